"""Telling processes apart, also those that are no more."""

import os
import subprocess
import sys

import pytest

from mercbo.record import processes
from mercbo.record.processes import is_gone, this_process

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc here")


@needs_proc
def test_this_process_is_not_gone():
    assert is_gone(this_process()) is False


@needs_proc
def test_a_process_that_ended_is_gone_though_nobody_has_waited_for_it():
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    host, _, started = this_process().rsplit("/", 2)
    name = f"{host}/{child.pid}/{processes._started(child.pid)}"
    assert is_gone(name) is False
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert is_gone(name) is True
    child.communicate()
    assert is_gone(name) is True
    assert is_gone(f"{host}/{os.getpid()}/{int(started) + 1}") is True


def test_of_another_machine_nothing_is_known():
    assert is_gone("some.other.host/1/5") is None


@pytest.mark.parametrize(
    "writer", ["", "text", "a/b", "a/b/c", "host/1/x", "/1/", "host/²/5", "\n/1/1"]
)
def test_of_a_writer_that_is_no_process_nothing_is_known(writer):
    assert is_gone(writer) is None
