"""`mercbo tell` and `mercbo import`: results of a table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mercbo.cli.common import (
    PARTLY,
    WRONG,
    AsJson,
    Output,
    StudyPath,
    Target,
    among,
    answering,
    complain,
    counted,
)
from mercbo.errors import choose
from mercbo.lab.results import Options, Reading
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table

app = typer.Typer()

Partial = Annotated[bool, typer.Option("--partial", help="Keep the good rows if others are wrong.")]
EmptyIs = Annotated[str, typer.Option(help="A row without a result: skip it, or it failed.")]


@app.command()
def tell(
    study: StudyPath,
    results: Annotated[Path, typer.Argument(help="The table, filled in: .csv or .xlsx.")],
    target: Target = None,
    std: Annotated[str, typer.Option(help="The column of known measurement errors.")] = "std",
    partial: Partial = False,
    new: Annotated[bool, typer.Option("--new", help="Take designs that nobody asked for.")] = False,
    replicates: Annotated[
        bool,
        typer.Option(
            "--replicates",
            help="Take further results of the same design; rows told before are passed over.",
        ),
    ] = False,
    empty: EmptyIs = "skip",
    as_json: AsJson = False,
) -> None:
    """Store the results of a table: all of it, or, where anything is wrong, nothing."""
    options = Options("", std, new, replicates, empty)
    _tell(study, results, target, options, partial, as_json)


@app.command("import")
def import_(
    study: StudyPath,
    past: Annotated[Path, typer.Argument(help="A table of earlier results.")],
    target: Target = None,
    std: Annotated[str, typer.Option(help="The column of known measurement errors.")] = "std",
    partial: Partial = False,
    replicates: Annotated[
        bool,
        typer.Option(
            "--replicates",
            help="Store rows once more whose design has the same result in the study already.",
        ),
    ] = False,
    empty: EmptyIs = "skip",
    as_json: AsJson = False,
) -> None:
    """Store results from before the study: designs that nobody asked for, replicates too.

    Rows that the study has already, of the same design and result, are passed over: a table that
    has grown may be imported again.
    """
    options = Options("", std, new=True, replicates=True, empty=empty, again=replicates)
    _tell(study, past, target, options, partial, as_json)


def _tell(
    study: Path, results: Path, target: str | None, options: Options, partial: bool, as_json: bool
) -> None:
    out = Output(as_json=as_json)
    with answering(out, when_stopped=lambda: "a table is stored whole or not at all"):
        opened = Study.open(study)
        choose("--empty", options.empty, ["skip", "failed"])
        options = replace(options, target=target or opened.target)
        with out.working(f"reading {results.name}"):
            reading = opened.tell(read_table(results), options, partial=partial)
    stored = partial or not reading.problems
    kept, controls = (reading.good, reading.controls) if stored else ((), ())
    failed = sum(result.value is None for result in kept)
    out.give({
        "told": len(kept), "failed": failed, "without_result": len(reading.empty),
        "controls": len(reading.control_lines), "controls_told": len(controls),
        "told_before": len(reading.again), "failed_but_has_result": len(reading.outdone),
        "remarks": list(reading.remarks),
        "problems": [{"line": p.line, "where": p.where, "message": p.message}
                     for p in reading.problems],
    })  # fmt: skip
    complain(out, reading)
    if not stored:
        wrong = len({problem.line for problem in reading.problems})
        out.warn(
            f"nothing was stored, since {counted(wrong, 'row')} cannot be used: mend the file, "
            "or add --partial to keep the others"
        )
        raise typer.Exit(WRONG)
    out.say(_told(opened, reading, len(kept), failed))
    if reading.again and options.replicates and not options.again:
        out.say(
            "rows told before were passed over; `mercbo import --replicates` stores them once more"
        )
    if reading.problems:
        raise typer.Exit(PARTLY)


def _told(study: Study, reading: Reading, kept: int, failed: int) -> str:
    parts = [f"{counted(kept, 'result')} stored{among(failed)}"]
    if reading.controls:
        parts.append(f"{counted(len(reading.controls), 'control result')} stored")
    for lines, what in (
        (reading.empty, "without a result yet"),
        (reading.idle_controls, "of controls without a result"),
        (reading.again, "told before"),
        (reading.outdone, "that failed where the design has a result"),
    ):
        if lines:
            parts.append(f"{counted(len(lines), 'row')} {what}")
    optimizer = study.optimizer
    ranked = study.ranked()
    if ranked:
        best = ranked[0]
        parts.append(f"best so far {best.mean:g}{best.remark}")
    return "; ".join([*parts, f"{len(optimizer.pending)} pending"])
