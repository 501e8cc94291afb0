"""`mercbo amend`, `cancel`: what is taken back from a study, or corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
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
    known,
    list_some,
    values_of,
)
from mercbo.domain.variables import Point
from mercbo.errors import MercboError
from mercbo.lab.assignments import assigned
from mercbo.lab.cells import CellError, result_of
from mercbo.lab.results import (
    Changed,
    Known,
    Options,
    Problem,
    check_variables,
    design_of,
    is_control,
    read_results,
)
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table

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
    with answering(out, when_stopped=lambda: "some results may be corrected already; run it again"):
        opened = Study.open(study)
        if (corrected is None) == (not point):
            raise MercboError("either a table or --point with --value is needed")
        changes: list[Correction]
        if corrected is None:
            changes = [Correction(assigned(opened.space, point), _right(value), None)]
        else:
            changes = _corrections(
                out, opened, corrected, Options(target or opened.target, std, new=True)
            )
        before = _results(opened)
        for each in changes:
            opened.optimizer.amend(each.point, each.value, std=each.std)
        replaced = before - _results(opened) + len(changes)
    failed = sum(each.value is None for each in changes)
    out.give({"amended": len(changes), "replaced": replaced, "failed": failed})
    into = f" ({counted(failed, 'failure')} now)" if failed else ""
    done = f"in place of {replaced}" if replaced > len(changes) else "corrected"
    out.say(f"{counted(len(changes), 'result')} {done}{into}")


class Correction(NamedTuple):
    """A design with its right result (None: it failed), and the error of that where it is given."""

    point: Point
    value: float | None
    std: float | None


def _results(study: Study) -> int:
    return len(study.optimizer.observations) + len(study.optimizer.failed)


def _right(value: str) -> float | None:
    """What --value says. A lone x or - is a failure in a spreadsheet, but a slip on a line that
    takes a result away."""
    try:
        return result_of(value, failures=("failed",))
    except CellError as error:
        raise MercboError(f"--value: {error}") from None


def _corrections(out: Output, study: Study, corrected: Path, options: Options) -> list[Correction]:
    """The rows whose result, or its error, differs from the one told; all must be designs with a
    result."""
    before, errors = known(study), _errors(study)
    # what was told is set aside, so that no row counts as known
    reading = read_results(read_table(corrected), study.space, Known({}, before.pending), options)
    complain(out, reading)
    changes: list[Correction] = []
    for result in reading.good:
        told = before.told.get(key(result.row))
        if told is None:
            raise MercboError(f"{corrected.name}, line {result.line}: has no result to correct")
        right = result.value in told and (
            result.value is None
            or result.std is None
            or (result.value, result.std) in zip(told, errors[key(result.row)], strict=True)
        )
        if len(told) > 1 and not right:
            raise MercboError(
                f"{corrected.name}, line {result.line}: the design has {len(told)} results, and a "
                "table cannot say which of them to correct; --point with --value puts one in the "
                "place of all"
            )
        if not right:
            point = study.space.points(result.row[np.newaxis])[0]
            changes.append(Correction(point, result.value, result.std))
    if reading.problems:
        raise MercboError("nothing was corrected")
    return changes


def _errors(study: Study) -> dict[bytes, list[float]]:
    """The known errors of all results by the key of the design, NaN where there is none."""
    history = study.optimizer._history
    errors: dict[bytes, list[float]] = {}
    for found, error in zip(keys(history.rows), history.errors.tolist(), strict=True):
        errors.setdefault(found, []).append(error)
    return errors


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
        pending = opened.optimizer.pending
        if everything == bool(which):
            raise MercboError("say which: numbers, a table, or --all")
        chosen = pending if everything else _chosen(out, opened, pending, which or [])
        if chosen:
            opened.optimizer.cancel(chosen)
        left = len(opened.optimizer.pending)
    out.give({"cancelled": len(chosen), "pending": left, "points": chosen})
    if chosen:  # a number may have been meant otherwise, such as that of a plate
        out.grid(list(opened.space.names), values_of(opened, chosen))
    out.say(f"{counted(len(chosen), 'design')} cancelled, {left} pending")


def _chosen(out: Output, study: Study, pending: list[Point], which: list[str]) -> list[Point]:
    numbers: list[int] = []
    for text in which:
        first, dash, last = text.partition("-")
        if first.isdigit() and (last.isdigit() or not dash):
            if last and int(last) < int(first):
                raise MercboError(f"{text!r} runs backwards; {last}-{first} was wanted")
            numbers += range(int(first), int(last or first) + 1)
        else:
            numbers += _lines_of(out, study, pending, Path(text))
    for number in numbers:
        if not 1 <= number <= len(pending):
            raise MercboError(
                f"no pending design has the number {number}; there are {len(pending)}"
            )
    return [pending[number - 1] for number in dict.fromkeys(numbers)]


def _lines_of(out: Output, study: Study, pending: list[Point], file: Path) -> list[int]:
    """The numbers of the pending designs that a table lists."""
    table = read_table(file)
    check_variables(table, study.space)
    numbers: list[int] = []
    wrong: list[Problem] = []
    changed = Changed(table)
    for line in table.lines:
        if is_control(line, study.space):
            continue
        row = design_of(table, line, study.space, wrong, changed)
        if row is None:
            raise MercboError(str(wrong[0]))
        point = study.space.points(row[np.newaxis])[0]
        if point not in pending:
            raise MercboError(f"{file.name}, line {line.number}: this design is not pending")
        numbers.append(pending.index(point) + 1)
    list_some(out, changed.remarks(), "remarks")
    return numbers
