"""What `minimize` shows while it runs: a bar where rich is installed, else lines of the log."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Any, Protocol

log = logging.getLogger(__name__)

# Seconds between two lines of the log.
LINES_APART = 10.0


class Progress(Protocol):
    """Told now and then how far the run is; a context around it."""

    def show(self, done: int, failed: int, running: int, best: float | None) -> None: ...

    def __enter__(self) -> Progress: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None: ...


def described(failed: int, running: int, best: float | None) -> str:
    parts = [] if best is None else [f"best {best:.6g}"]
    parts += [f"{running} running"] * (running > 0) + [f"{failed} failed"] * (failed > 0)
    return ", ".join(parts)


class Silent:
    """Shows nothing."""

    def show(self, done: int, failed: int, running: int, best: float | None) -> None:
        pass

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Lines(Silent):
    """A line of the log every now and then, and one at the end."""

    def __init__(self, budget: int) -> None:
        self._budget, self._last, self._line = budget, -LINES_APART, ""

    def show(self, done: int, failed: int, running: int, best: float | None) -> None:
        self._line = f"{done} of {self._budget} evaluated; {described(failed, running, best)}"
        if time.monotonic() - self._last >= LINES_APART:
            self._last = time.monotonic()
            log.info("%s", self._line)

    def __exit__(self, *_: object) -> None:
        log.info("%s", self._line)


class Bar:
    """A bar of rich, on the standard error."""

    def __init__(self, budget: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Rich

        columns: list[Any] = [
            BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
        ]  # fmt: skip
        self._rich = Rich(*columns, console=Console(stderr=True))
        self._task = self._rich.add_task("", total=budget, said="")

    def show(self, done: int, failed: int, running: int, best: float | None) -> None:
        self._rich.update(self._task, completed=done, said=described(failed, running, best))

    def __enter__(self) -> Progress:
        self._rich.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._rich.stop()


def reporter(wanted: bool, budget: int) -> Progress:
    """The bar if it is wanted and rich is there; lines of the log otherwise."""
    if not wanted:
        return Silent()
    try:
        return Bar(budget)
    except ImportError:
        return Lines(budget)
