"""Which process wrote an event of a store, and whether it still runs."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path


def this_process() -> str:
    """A name for this process that no other has, not even a later one of the same number."""
    return f"{socket.gethostname()}/{os.getpid()}/{_started(os.getpid())}"


def is_gone(writer: str) -> bool | None:
    """Whether the process that wrote an event has ended; None if that cannot be seen from here."""
    named = re.fullmatch(r"(.*)/(\d+)/(\d*)", writer, re.DOTALL | re.ASCII)
    if named is None or named[1] != socket.gethostname() or not Path("/proc/self/stat").exists():
        return None
    return _started(named[2]) != named[3]


def _started(process: int | str) -> str:
    """When a process started, in the system's ticks; "" where there is none, or no telling."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # the second field, the name in brackets, may hold anything
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]
