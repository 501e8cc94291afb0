"""What all commands on studies share: output for people or machines, errors, and the way out.

| exit code | meaning                                                              |
|-----------|----------------------------------------------------------------------|
| 0         | done                                                                 |
| 1         | a file or a study is not as it should be; nothing was changed        |
| 2         | the command itself was not understood                                |
| 3         | `--partial`: the good rows were kept, others were not                |
| 130       | stopped by Ctrl-C; the last line says where that leaves the study    |
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from mercbo.domain.variables import Point
from mercbo.errors import MercboError
from mercbo.lab.characters import for_terminal
from mercbo.lab.results import Reading
from mercbo.lab.study import Study

WRONG, PARTLY, STOPPED = 1, 3, 130
# Rows of a table, or complaints, that are shown; a file or --json holds all.
SHOWN = 30

StudyPath = Annotated[Path, typer.Argument(help="The study, a file made by `mercbo init`.")]
OptionalPath = Optional[Path]  # noqa: UP045 (typer reads the annotation on Python 3.10 too)
OptionalText = Optional[str]  # noqa: UP045
OptionalInt = Optional[int]  # noqa: UP045
OptionalBool = Optional[bool]  # noqa: UP045
OptionalTexts = Optional[list[str]]  # noqa: UP045
Target = Annotated[
    OptionalText, typer.Option(help="The column of results, if not the study's own.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object in place of text.")]


class Unshown(typer.Exit):
    """The output could not be written, and why; the command ends with an exit code."""

    def __init__(self, reason: str) -> None:
        super().__init__(WRONG)
        self.reason = reason


class Output:
    """Where a command's answer goes: text and tables, or one JSON object at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # a character that the terminal lacks must not stop a command halfway
                stream.reconfigure(errors="backslashreplace")
        self.console = Console(highlight=False, soft_wrap=True)
        if not self.console.is_terminal:  # a file or a pipe has no width to keep to
            self.console.width = 10_000
        self.errors = Console(highlight=False, soft_wrap=True, stderr=True)

    def say(self, text: str) -> None:
        if not self.as_json:
            self._write(lambda: self.console.print(Text(for_terminal(text))))

    def warn(self, text: str) -> None:
        self.errors.print(Text(for_terminal(text)))

    def grid(self, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table, of as many rows as fit a page."""
        if self.as_json:
            return
        grid = Grid(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
        for column in header:
            grid.add_column(Text(for_terminal(column)), overflow="fold")
        for row in rows[:SHOWN]:
            grid.add_row(*(Text(for_terminal(shown(cell))) for cell in row))
        self._write(lambda: self.console.print(grid))
        if len(rows) > SHOWN:
            self.say(f"... {len(rows)} in all")

    def give(self, answer: dict[str, Any]) -> None:
        """The answer for machines, in ASCII, which any output can hold; NaN, which JSON lacks,
        becomes null."""
        if self.as_json:
            text = json.dumps(_without_nan(answer), allow_nan=False)
            self._write(lambda: typer.echo(text))

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except (SystemExit, BrokenPipeError):  # rich exits if the reader of a pipe is gone
            _discard_output()
            raise Unshown("its reader is gone") from None
        except OSError as error:
            _discard_output()
            self.warn(f"error: the output cannot be written ({error.strerror or error})")
            raise Unshown(error.strerror or str(error)) from None

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A bar that moves while something takes its time; for eyes only."""
        bar = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn(),
            console=self.errors, transient=True, disable=not self.errors.is_terminal,
        )  # fmt: skip
        with bar:
            bar.add_task(what, total=None)
            yield


def _discard_output() -> None:
    """Let nothing more be written to an output that failed, at the end of the process either."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "result"), counted(3, "row")
    ('1 result', '3 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def among(failed: int) -> str:
    return f" ({counted(failed, 'failure')} among them)" if failed else ""


def shown(cell: object) -> str:
    """A cell for people."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return value


@contextlib.contextmanager
def answering(out: Output, *, when_stopped: Callable[[], str] | None = None) -> Iterator[None]:
    """Errors as one line without a traceback, and Ctrl-C with a word on what is left."""
    try:
        yield
    except (MercboError, ImportError) as error:
        out.give({"error": str(error)})
        out.warn(f"error: {error}")
        raise typer.Exit(WRONG) from None
    except KeyboardInterrupt:
        left = when_stopped() if when_stopped else "the study is as it was"
        out.give({"error": f"stopped; {left}"})
        out.warn(f"stopped; {left}")
        raise typer.Exit(STOPPED) from None


def values_of(study: Study, points: Sequence[Point]) -> list[list[object]]:
    """Points as rows of a table."""
    return [[point[name] for name in study.space.names] for point in points]


def check_free(
    path: Path, *, force: bool, remedy: str = "choose another name, or add --force"
) -> None:
    """Refuse to write over a file that is not empty, which may hold a week's results; `remedy` is
    what the command has options for."""
    is_empty = path.is_file() and path.stat().st_size == 0
    if path.exists() and not is_empty and not force:
        raise MercboError(f"{path}: exists already; {remedy}")
    if not path.parent.is_dir():
        raise MercboError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise MercboError(f"{path}: the folder {path.parent} cannot be written")


def complain(out: Output, reading: Reading) -> None:
    """What is wrong with a table, and what was understood all the same."""
    list_some(out, reading.remarks, "remarks")
    list_some(out, reading.problems, "complaints")


def list_some(out: Output, listed: Sequence[object], what: str) -> None:
    for each in listed[:SHOWN]:
        out.warn(str(each))
    if len(listed) > SHOWN:
        out.warn(f"... {len(listed)} {what} in all")
