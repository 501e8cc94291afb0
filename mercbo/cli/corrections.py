"""`mercbo amend`, `cancel`: what is taken back from a study, or corrected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from mercbo.arrays import key, keys
from mercbo.cli.common import (
    AsJson,
    OptionalPath,
    OptionalTexts,
    Output,
    StudyPath,
    Target,
    answering,
    complain,
    counted,
    list_some,
    values_of,
)
from mercbo.domain.variables import Point
from mercbo.errors import MercboError
from mercbo.lab.assignments import assigned
from mercbo.lab.cells import CellError, result_of
from mercbo.lab.parsing import ControlRows, Designs, check_variables
from mercbo.lab.results import Options
from mercbo.lab.study import Study
from mercbo.lab.tables import Table, read_table

app = typer.Typer()

# -- amend -------------------------------------------------------------------------------------


@app.command()
def amend(
    study: StudyPath,
    corrected: Annotated[
        OptionalPath, typer.Argument(help="A table: its results replace those told.")
    ] = None,
    point: Annotated[str, typer.Option(help="Or one design: solvent=DMSO,heat=80,...")] = "",
    value: Annotated[str, typer.Option(help="Its right result, or 'failed'.")] = "",
    target: Target = None,
    std: Annotated[str, typer.Option(help="The column of known measurement errors.")] = "std",
    as_json: AsJson = False,
) -> None:
    """Correct results that were told wrongly; known errors stay where no other is given."""
    out = Output(as_json=as_json)
    with answering(out, when_stopped=lambda: "a table is corrected whole or not at all"):
        opened = Study.open(study)
        if (corrected is None) == (not point):
            raise MercboError("either a table or --point with --value is needed")
        if corrected is None:
            changes, replaced = _by_hand(opened, point, value)
        else:
            table = read_table(corrected)
            options = Options(target or opened.target, std)
            changes, replaced = _by_table(out, opened, table, options)
    failed = sum(each is None for each in changes)
    out.give({"amended": len(changes), "replaced": replaced, "failed": failed})
    into = f" ({counted(failed, 'failure')} now)" if failed else ""
    done = f"in place of {replaced}" if replaced > len(changes) else "corrected"
    out.say(f"{counted(len(changes), 'result')} {done}{into}")


def _by_hand(study: Study, point: str, value: str) -> tuple[list[float | None], int]:
    """Correct one design; return its result and how many results it replaces."""
    chosen, result = assigned(study.space, point), _right(value)
    optimizer = study.optimizer
    with optimizer.transaction():
        before = sum(each.state != "pending" for each in optimizer.records())
        optimizer.amend(chosen, result)
        after = sum(each.state != "pending" for each in optimizer.records())
    return [result], before - after + 1


def _by_table(
    out: Output, study: Study, table: Table, options: Options
) -> tuple[list[float | None], int]:
    """Correct the results of a table; return those and how many results they replace."""
    reading = study.amend(table, options)
    complain(out, reading)
    if reading.problems:
        raise MercboError("nothing was corrected")
    changes = [*(each.value for each in reading.good), *(each.value for each in reading.controls)]
    return changes, len(changes)


def _right(value: str) -> float | None:
    """What --value says. A lone x or - is a failure in a spreadsheet, but a slip on a line that
    takes a result away."""
    try:
        return result_of(value, failures=("failed",))
    except CellError as error:
        raise MercboError(f"--value: {error}") from None


# -- cancel ------------------------------------------------------------------------------------


@app.command()
def cancel(
    study: StudyPath,
    which: Annotated[
        OptionalTexts,
        typer.Argument(
            help="A table of the designs, or numbers of `mercbo status --pending` (3 5-7), which "
            "are not those of a plate."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All pending designs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say that pending designs will not be evaluated; they may be suggested again."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        if everything == bool(which):
            raise MercboError("say which: numbers, a table, or --all")
        wanted = _wanted(out, opened, which or [])
        with opened.optimizer.transaction():
            pending = opened.optimizer.pending
            chosen = pending if everything else _chosen(opened, pending, wanted)
            if chosen:
                opened.optimizer.cancel(chosen)
        left = len(pending) - len(chosen)
    out.give({"cancelled": len(chosen), "pending": left, "points": chosen})
    if chosen:  # a number may have been meant otherwise, such as that of a plate
        out.grid(list(opened.space.names), values_of(opened, chosen))
    out.say(f"{counted(len(chosen), 'design')} cancelled, {left} pending")


# One number, or the first and the last of several.
NUMBERS = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


class Listed(NamedTuple):
    """A design that a table lists."""

    where: str
    key: bytes


def _wanted(out: Output, study: Study, which: list[str]) -> list[int | Listed]:
    """Read the arguments: numbers of pending designs, or designs of a table."""
    wanted: list[int | Listed] = []
    for text in which:
        numbers = NUMBERS.fullmatch(text)
        if numbers:
            first, last = numbers[1], numbers[2] or numbers[1]
            if int(last) < int(first):
                raise MercboError(f"{text!r} runs backwards; {last}-{first} was wanted")
            wanted += range(int(first), int(last) + 1)
        else:
            wanted += _designs_of(out, study, Path(text))
    return wanted


def _designs_of(out: Output, study: Study, file: Path) -> list[Listed]:
    table = read_table(file)
    check_variables(table, study.space)
    designs, controls = Designs(table, study.space), ControlRows(study.space)
    lines = [line for line in table.lines if line not in controls]
    rows = designs.rows(lines)
    if designs.problems:
        raise MercboError(str(designs.problems[0]))
    list_some(out, designs.remarks(), "remarks")
    return [
        Listed(f"{file.name}, line {line.number}", key(row))
        for line, row in zip(lines, rows, strict=True)
        if row is not None
    ]


def _chosen(study: Study, pending: list[Point], wanted: list[int | Listed]) -> list[Point]:
    """The pending designs that are wanted, each once."""
    numbers = {found: i for i, found in enumerate(keys(study.space.rows(pending)), start=1)}
    chosen: dict[int, Point] = {}
    for each in wanted:
        if isinstance(each, Listed) and each.key not in numbers:
            raise MercboError(f"{each.where}: this design is not pending")
        number = numbers[each.key] if isinstance(each, Listed) else each
        if not 1 <= number <= len(pending):
            raise MercboError(
                f"no pending design has the number {number}; there are {len(pending)}"
            )
        chosen[number] = pending[number - 1]
    return list(chosen.values())
