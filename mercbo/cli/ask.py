"""`mercbo ask`: the next designs, as a table to fill in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated

import numpy as np
import typer

from mercbo.arrays import keys
from mercbo.cli.common import (
    SHOWN,
    AsJson,
    OptionalInt,
    OptionalPath,
    OptionalTexts,
    Output,
    StudyPath,
    Unshown,
    answering,
    check_free,
    counted,
)
from mercbo.domain.variables import Point
from mercbo.errors import MercboError
from mercbo.lab.assignments import assigned
from mercbo.lab.notes import Well
from mercbo.lab.plates import Plate, controls_of
from mercbo.lab.rows import Cell
from mercbo.lab.sheets import to_fill, why
from mercbo.lab.study import Study
from mercbo.lab.tables import check_writable, write_table
from mercbo.record.processes import this_process

app = typer.Typer()


@app.command()
def ask(
    study: StudyPath,
    k: Annotated[
        OptionalInt, typer.Option("-k", min=1, help="How many; with --plate, all free wells.")
    ] = None,
    out_file: Annotated[
        OptionalPath, typer.Option("--out", help="A .csv or .xlsx file to fill in.")
    ] = None,
    plate: Annotated[
        OptionalInt, typer.Option(help="Write well positions: 6, 12, 24, 48, 96, 384 or 1536.")
    ] = None,
    controls: Annotated[
        str,
        typer.Option(help="Wells set aside: names (A1,H12), a number, or 'column 12'."),
    ] = "",
    fix: Annotated[
        OptionalTexts,
        typer.Option(
            help="Hold variables for this batch: solvent=DMSO,heat=80. May be repeated; "
            "a value with a comma in it stands in quotes or in an option of its own."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over the file.")] = False,
    as_json: AsJson = False,
) -> None:
    """The next designs to evaluate, as a table to fill in; they are pending until told."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        plates = _plates(plate, controls)
        count = k if k is not None else len(plates.free()) if plates else 1
        fixed = assigned(opened.space, *fix) if fix else None
        if out_file is not None:
            check_writable(out_file)
            check_free(out_file, force=force)
        before = opened.optimizer._state.number
        with answering(out, when_stopped=lambda: _pending_now(study, before)):
            with out.working(f"choosing {count} designs"):
                points = opened.optimizer.ask(count, fixed=fixed)
            with _taken_back(opened, points) as wells:
                wells += opened.lay_out(points, plates) if plates else []
                more = why(opened, opened.optimizer.last_suggestions)
                header, rows = to_fill(opened, points, wells, more=more)
                cells = [dict(zip(header, row, strict=True)) for row in rows]
                for each in cells:
                    del each[opened.target]
                if out_file is not None:
                    # one process at a time, so that none writes over the designs of another
                    with opened.optimizer.transaction():
                        check_free(out_file, force=force)
                        write_table(out_file, header, rows)
                else:
                    _show(out, study, points, cells)
    if out_file is not None:
        out.give({"points": points, "file": str(out_file), "rows": cells})
        designs = counted(len(points), "design")
        out.say(f"{out_file}: {designs}; fill in the column {opened.target!r}, then:")
        out.say(f"next: mercbo tell {quote(str(study))} {quote(str(out_file))}")


def _show(out: Output, study: Path, points: list[Point], cells: list[dict[str, Cell]]) -> None:
    out.give({"points": points, "file": None, "rows": cells})
    out.grid(list(cells[0]), [list(each.values()) for each in cells])
    if len(cells) > SHOWN:
        out.say(f"the whole table: mercbo export {quote(str(study))} plate.csv --pending")


def _plates(size: int | None, controls: str) -> Plate | None:
    if size is not None:
        return Plate(size, controls_of(controls, size) if controls else ())
    if controls:
        raise MercboError("--controls needs --plate")
    return None


@contextlib.contextmanager
def _taken_back(study: Study, points: list[Point]) -> Iterator[list[Well]]:
    """Cancel designs that could not be shown or written, and free their wells."""
    wells: list[Well] = []
    try:
        yield wells
    except BaseException as error:
        said = repr(error)
        if isinstance(error, MercboError):
            said = str(error)
        elif isinstance(error, Unshown):
            said = f"the designs cannot be shown ({error.reason})"
        try:
            with study.optimizer.transaction():
                study.optimizer.cancel(points)
                study.notes.remove_wells(wells)
        except MercboError:
            raise MercboError(
                f"{said}; the designs are pending: `mercbo export --pending` writes them"
            ) from error
        if isinstance(error, (MercboError, Unshown)):
            raise MercboError(f"{said}; nothing was asked for, the study is as it was") from None
        raise


def _pending_now(study: Path, before: int) -> str:
    """Return how many designs an interrupted ask leaves pending: designs that this process asked
    for after event `before`."""
    optimizer = Study.open(study).optimizer
    asked: set[bytes] = set()
    for entry in optimizer._log.entries(before):
        if entry.kind == "ask" and entry.by == this_process():
            asked.update(keys(np.array(entry.body["rows"], dtype=np.int64)))
    left = asked.intersection(keys(optimizer.space.rows(optimizer.pending)))
    if not left:
        return "nothing was asked for, the study is as it was"
    verb = "is" if len(left) == 1 else "are"
    designs = counted(len(left), "design")
    return f"{designs} {verb} pending: `mercbo export --pending` writes the table"
