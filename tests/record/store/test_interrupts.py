"""A call that is interrupted at any line releases the write lock at once."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.optimizer import plain
from support.stored import stored, url_of

from mercbo import Optimizer


class Interrupter:
    """Raises KeyboardInterrupt at the n-th line that runs within mercbo or SQLAlchemy."""

    def __init__(self, at: int | None) -> None:
        self.at, self.lines = at, 0

    def __call__(self, frame, _event, _argument):
        path = frame.f_code.co_filename
        if "sqlalchemy" not in path and "mercbo" not in path:
            return None
        if frame.f_code.co_name in ("rollback", "invalidate", "undo"):  # the cleaning up itself
            return None
        return self.trace

    def trace(self, _frame, event, _argument):
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.trace

    def during(self, call: Callable[[], object]) -> BaseException | None:
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        except KeyboardInterrupt as error:
            return error  # with its frames, as a handler of the user's would have it
        finally:
            sys.settrace(before)
        return None


def is_free(path: Path) -> bool:
    """Whether another process could write now."""
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    except sqlite3.OperationalError:
        return False
    finally:
        other.close()
    return True


def lines_of_a_tell(folder: Path) -> int:
    opt = stored(url_of(folder, "whole.db"), model=plain())
    counter = Interrupter(None)
    point = opt.ask()
    counter.during(lambda: opt.tell(point, 1.0))
    return counter.lines


def sweep(folder: Path, step: int) -> int:
    path = folder / "run.db"
    opt = stored(url_of(folder, timeout=1), model=plain(), n_initial=1000)
    point = opt.ask()
    interrupted = 0
    for at in range(1, lines_of_a_tell(folder), step):
        before = len(opt.observations)
        error = Interrupter(at).during(lambda: opt.tell(point, 1.0))
        assert is_free(path), f"the interrupt at line {at} left the lock"
        # the same for every reader, whether the interrupt came before or after the commit
        now = len(opt.observations)
        assert now in (before, before + 1)
        assert now == len(Optimizer.open(url_of(folder)).observations)
        interrupted += error is not None
    return interrupted


def test_interrupted_tell_releases_the_write_lock(tmp_path) -> None:
    assert sweep(tmp_path, 61) > 20


@pytest.mark.slow
def test_tell_interrupted_at_many_lines_releases_the_write_lock(tmp_path) -> None:
    assert sweep(tmp_path, 7) > 500
