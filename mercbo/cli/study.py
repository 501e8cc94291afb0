"""`mercbo init`, `ask`, `tell`, `import`: what a study grows by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
import typer

from mercbo.cli.common import (
    PARTLY,
    SHOWN,
    WRONG,
    AsJson,
    OptionalBool,
    OptionalInt,
    OptionalPath,
    OptionalTexts,
    Output,
    StudyPath,
    Target,
    answering,
    check_free,
    complain,
    counted,
    known,
    values_of,
)
from mercbo.domain.variables import Point
from mercbo.errors import MercboError, choose
from mercbo.lab.assignments import assigned
from mercbo.lab.infer import Column, as_yaml, inferred, space_from
from mercbo.lab.notes import Kept, design_key
from mercbo.lab.plates import Plate, controls_of
from mercbo.lab.results import (
    CONTROL,
    Known,
    Options,
    Reading,
    Result,
    read_results,
)
from mercbo.lab.rows import Cell
from mercbo.lab.spacefile import read_titled
from mercbo.lab.study import TARGET, Study, check_new
from mercbo.lab.tables import check_writable, put, read_table, write_table

app = typer.Typer()
# Designs of a batch that `init` proposes: those of a small plate.
USUAL = 24

Partial = Annotated[
    bool, typer.Option("--partial", help="Keep the good rows where others are wrong.")
]
EmptyIs = Annotated[str, typer.Option(help="A row without a result: skip it, or it failed.")]


# -- init --------------------------------------------------------------------------------------


@app.command()
def init(
    study: Annotated[Path, typer.Argument(help="The file to make, such as study.db.")],
    space: Annotated[
        OptionalPath, typer.Option(help="The space: a .yaml, .toml or .json file.")
    ] = None,
    past: Annotated[
        OptionalPath, typer.Option("--from", help="Infer the space from a table of past results.")
    ] = None,
    target: Annotated[str, typer.Option(help="The name of the column of results.")] = TARGET,
    maximize: Annotated[
        OptionalBool,
        typer.Option("--maximize/--minimize", help="Which results are better. Required."),
    ] = None,
    ignore: Annotated[
        str, typer.Option(help="With --from: columns that are no variables, by commas.")
    ] = "",
    write_space: Annotated[
        OptionalPath, typer.Option(help="With --from: the space file to write.")
    ] = None,
    title: Annotated[str, typer.Option(help="A line for reports.")] = "",
    seed: Annotated[
        OptionalInt, typer.Option(min=0, help="The same seed and results, the same suggestions.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a study, from a space file or from a table of past results."""
    out = Output(as_json=as_json)
    settings: dict[str, Any] = {
        "seed": seed,
        "target": target,
        "title": title,
    }
    with answering(out, when_stopped=lambda: _was_it_made(study)):
        if (space is None) == (past is None):
            raise MercboError("one of --space and --from is needed")
        if maximize is None:
            raise MercboError(
                f"add --maximize if a larger {target!r} is better, --minimize if a smaller one is"
            )
        settings["direction"] = "maximize" if maximize else "minimize"
        if space is not None:
            described, named = read_titled(space)
            settings["title"] = title or named
            made = Study.create(study, described, **settings)
            told = 0
        else:
            assert past is not None
            written = write_space or study.with_suffix(".space.yaml")
            made, told = _from_table(out, study, past, written, ignore, settings)
        count = made.space.size
        names = list(made.space.names)
        out.give({"study": str(study), "variables": names, "points": count, "told": told})
        out.say(
            f"{study}: {len(names)} variables, {count:,} combinations, "
            f"{len(made.space.constraints)} constraints, to {made.optimizer.direction} {target!r}"
        )
        left = made.space.feasible.left(made.optimizer._history.seen(repeats=False), USUAL)
        if left > 0:
            out.say(f"next: mercbo ask {quote(str(study))} -k {left} --out plate.csv")


def _was_it_made(study: Path) -> str:
    return f"{study} was made" if study.exists() else "no study was made"


def _from_table(
    out: Output, study: Path, past: Path, written: Path, ignore: str, settings: dict[str, Any]
) -> tuple[Study, int]:
    check_new(study)
    if written.absolute() == study.absolute():
        raise MercboError(f"--write-space {written}: that is the study; name another file")
    check_free(
        written,
        force=False,
        remedy="--write-space names another file for the space that is inferred",
    )
    table = read_table(past)
    ignored = tuple(part.strip() for part in ignore.split(",") if part.strip())
    columns = inferred(table, settings["target"], ignore=ignored)
    space = space_from(columns)
    options = Options(settings["target"], new=True, replicates=True)
    reading = read_results(table, space, Known(), options)
    complain(out, reading)
    if reading.problems:
        raise MercboError(
            f"{past.name}: nothing was made; mend the rows above, or --ignore columns"
        )
    made = Study.create(study, space, **settings)
    put(written, as_yaml(columns, past.name).encode("utf-8"))
    _store(made, reading.good)
    for column in columns:
        out.say(_became(column))
    out.say("a date or a name of a person is no variable: begin anew with --ignore COLUMN,COLUMN")
    out.say(f"{written}: the space, to look at and to edit")
    failed = sum(result.value is None for result in reading.good)
    out.say(f"{counted(len(reading.good), 'past result')} loaded{_among(failed)}")
    return made, len(reading.good)


def _became(column: Column) -> str:
    """What a column of past results was taken for."""
    if column.variable is None:
        return f"{column.name}: left out, it {column.remark}"
    differ = ", another in every row: is it a variable?" if column.all_differ else ""
    remark = f"; it {column.remark}" if column.remark else ""
    return f"{column.name}: a variable of {len(column.variable.values)} values{differ}{remark}"


# -- ask ---------------------------------------------------------------------------------------


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
        wells = None
        if plate is not None:
            wells = Plate(plate, controls_of(controls, plate) if controls else ())
        elif controls:
            raise MercboError("--controls needs --plate")
        count = k if k is not None else len(wells.free()) if wells else 1
        if out_file is not None:
            check_writable(out_file)  # before anything is pending
            check_free(out_file, force=force)
        fixed = assigned(opened.space, *fix) if fix else None
        before = len(opened.optimizer.pending)
        with answering(out, when_stopped=lambda: _pending_now(study, before)):
            with out.working(f"choosing {count} designs"):
                points = opened.optimizer.ask(count, fixed=fixed)
            header, rows = _sheet(opened, points, wells)
            if out_file is not None:
                _write_sheet(out_file, header, rows)
    out.give({"points": points, "file": str(out_file) if out_file else None})
    if out_file is None:
        out.grid(header[:-1], [row[:-1] for row in rows])
        if len(rows) > SHOWN:
            out.say(f"the whole table: mercbo export {quote(str(study))} plate.csv --pending")
    else:
        designs = counted(len(points), "design")
        out.say(f"{out_file}: {designs}; fill in the column {opened.target!r}, then:")
        out.say(f"next: mercbo tell {quote(str(study))} {quote(str(out_file))}")


def _write_sheet(file: Path, header: list[str], rows: list[list[Cell]]) -> None:
    try:
        write_table(file, header, rows)
    except MercboError as error:
        raise MercboError(
            f"{error}; the designs are pending: `mercbo export --pending` writes them again"
        ) from None


def _pending_now(study: Path, before: int) -> str:
    now = len(Study.open(study).optimizer.pending)
    if now == before:
        return "nothing was asked for, the study is as it was"
    return f"{now - before} designs are pending: `mercbo export --pending` writes them"


def _sheet(
    study: Study, points: list[Point], wells: Plate | None
) -> tuple[list[str], list[list[Cell]]]:
    """The table to fill in: a row per design, and per control well."""
    values: list[list[Any]] = values_of(study, points)
    names = [*study.space.names, study.target]
    if wells is None:
        return ["design", *names], [[i + 1, *row, None] for i, row in enumerate(values)]
    rows: list[list[Cell]] = []
    for plate, well, number in wells.filled(len(points)):
        if number is None:
            rows.append([plate, well, CONTROL, *[None] * len(names)])
        else:
            rows.append([plate, well, number + 1, *values[number], None])
    return ["plate", "well", "design", *names], rows


# -- tell, import ------------------------------------------------------------------------------


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
            reading = read_results(read_table(results), opened.space, known(opened), options)
        kept = reading.good if partial or not reading.problems else ()
        _store(opened, kept)
    failed = sum(result.value is None for result in kept)
    out.give({
        "told": len(kept), "failed": failed, "without_result": len(reading.empty),
        "controls": len(reading.controls), "told_before": len(reading.again),
        "failed_but_has_result": len(reading.outdone),
        "remarks": list(reading.remarks),
        "problems": [{"line": p.line, "where": p.where, "message": p.message}
                     for p in reading.problems],
    })  # fmt: skip
    complain(out, reading)
    if reading.problems and not partial:
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


def _store(study: Study, good: tuple[Result, ...]) -> None:
    """Results in one event, which is there as a whole or not; their other columns first."""
    if not good:
        return
    study.notes.keep(Kept(design_key(each.row), each.value, each.extra) for each in good)
    points = study.space.points(np.array([result.row for result in good]))
    errors = [None if result.std is None else result.std for result in good]
    known = any(error is not None for error in errors)
    study.optimizer.tell(points, [result.value for result in good], std=errors if known else None)


def _told(study: Study, reading: Reading, kept: int, failed: int) -> str:
    parts = [f"{counted(kept, 'result')} stored{_among(failed)}"]
    for lines, what in (
        (reading.empty, "without a result yet"),
        (reading.controls, "of controls"),
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


def _among(failed: int) -> str:
    return f" ({counted(failed, 'failure')} among them)" if failed else ""
