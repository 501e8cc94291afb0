"""`mercbo init`, `ask`, `tell`, `cancel`, `amend`, `import`: what changes a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, NamedTuple, Optional

import numpy as np
import typer

from mercbo.arrays import key, keys
from mercbo.cli.common import (
    PARTLY,
    SHOWN,
    WRONG,
    AsJson,
    Output,
    StudyPath,
    answering,
    check_free,
    counted,
    values_of,
)  # fmt: skip
from mercbo.domain.variables import Point
from mercbo.errors import MercboError, choose
from mercbo.lab.assignments import assigned
from mercbo.lab.cells import CellError, result_of
from mercbo.lab.infer import Column, as_yaml, inferred, space_from
from mercbo.lab.notes import Kept, design_key
from mercbo.lab.plates import Plate, controls_of
from mercbo.lab.results import (
    CONTROL,
    Changed,
    Known,
    Options,
    Problem,
    Reading,
    Result,
    check_variables,
    design_of,
    is_control,
    known_of,
    read_results,
)
from mercbo.lab.spacefile import read_titled
from mercbo.lab.study import TARGET, Study, check_new
from mercbo.lab.tables import Cell, check_writable, put, read_table, write_table

app = typer.Typer()
# Designs of a batch that `init` proposes: those of a small plate.
USUAL = 24

OptionalPath = Optional[Path]  # noqa: UP045 (typer reads the annotation on Python 3.10 too)
OptionalText = Optional[str]  # noqa: UP045
OptionalInt = Optional[int]  # noqa: UP045
OptionalTexts = Optional[list[str]]  # noqa: UP045
Target = Annotated[
    OptionalText, typer.Option(help="The column of results, if not the study's own.")
]
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
        bool, typer.Option("--maximize/--minimize", help="Which results are better.")
    ] = False,
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
        "direction": "maximize" if maximize else "minimize",
        "seed": seed,
        "target": target,
        "title": title,
    }
    with answering(out, when_stopped=lambda: _was_it_made(study)):
        if (space is None) == (past is None):
            raise MercboError("one of --space and --from is needed")
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
    _complain(out, reading)
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
    return f"{column.name}: a variable of {len(column.variable.values)} values{differ}"


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


# -- tell, import, amend -----------------------------------------------------------------------


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
            reading = read_results(read_table(results), opened.space, _known(opened), options)
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
    _complain(out, reading)
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


def _known(study: Study) -> Known:
    history = study.optimizer._history
    return known_of(
        history.rows, history.values.tolist(),
        history.stack(history.failed), history.stack(history.pending),
    )  # fmt: skip


def _errors(study: Study) -> dict[bytes, list[float]]:
    """The known errors of all results by the key of the design, NaN where there is none."""
    history = study.optimizer._history
    errors: dict[bytes, list[float]] = {}
    for found, error in zip(keys(history.rows), history.errors.tolist(), strict=True):
        errors.setdefault(found, []).append(error)
    return errors


def _store(study: Study, good: tuple[Result, ...]) -> None:
    """Results in one event, which is there as a whole or not; their other columns first."""
    if not good:
        return
    study.notes.keep(Kept(design_key(each.row), each.value, each.extra) for each in good)
    points = study.space.points(np.array([result.row for result in good]))
    errors = [None if result.std is None else result.std for result in good]
    known = any(error is not None for error in errors)
    study.optimizer.tell(points, [result.value for result in good], std=errors if known else None)


def _complain(out: Output, reading: Reading) -> None:
    """What is wrong with a table, and what was understood all the same."""
    _list(out, reading.remarks, "remarks")
    _list(out, reading.problems, "complaints")


def _list(out: Output, listed: Sequence[object], what: str) -> None:
    for each in listed[:SHOWN]:
        out.warn(str(each))
    if len(listed) > SHOWN:
        out.warn(f"... {len(listed)} {what} in all")


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
        parts.append(f"best so far {best.mean:g}{f' ({best.of})' if best.of else ''}")
    return "; ".join([*parts, f"{len(optimizer.pending)} pending"])


def _among(failed: int) -> str:
    return f" ({counted(failed, 'failure')} among them)" if failed else ""


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
    known, errors = _known(study), _errors(study)
    # what was told is set aside, so that no row counts as known
    reading = read_results(read_table(corrected), study.space, Known({}, known.pending), options)
    _complain(out, reading)
    changes: list[Correction] = []
    for result in reading.good:
        told = known.told.get(key(result.row))
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
    _list(out, changed.remarks(), "remarks")
    return numbers
