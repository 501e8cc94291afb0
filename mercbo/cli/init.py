"""`mercbo init`: begin a study."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from mercbo.cli.common import (
    AsJson,
    OptionalBool,
    OptionalInt,
    OptionalPath,
    Output,
    among,
    answering,
    check_free,
    complain,
    counted,
)
from mercbo.errors import MercboError
from mercbo.lab.cells import CellError, number_of
from mercbo.lab.infer import Column, as_yaml, inferred, space_from
from mercbo.lab.results import Options
from mercbo.lab.spacefile import read_titled
from mercbo.lab.study import TARGET, Study, check_new, discard
from mercbo.lab.tables import put, read_table

app = typer.Typer()
# Designs of a batch that `init` proposes: those of a small plate.
USUAL = 24


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
    between: Annotated[
        str,
        typer.Option(
            help="The lowest and the highest result that is possible, such as 0,100; one of them "
            "may be left out (0, or ,100). Results outside are refused."
        ),
    ] = "",
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
    settings: dict[str, Any] = {"seed": seed, "target": target, "title": title}
    with answering(out, when_stopped=lambda: _was_it_made(study)):
        if (space is None) == (past is None):
            raise MercboError("one of --space and --from is needed")
        if maximize is None:
            raise MercboError(
                f"add --maximize if a larger {target!r} is better, --minimize if a smaller one is"
            )
        settings["direction"] = "maximize" if maximize else "minimize"
        settings["target_bounds"] = _bounds(between)
        if space is not None:
            described, named = read_titled(space)
            settings["title"] = title or named
            made = Study.create(study, described, **settings)
            told = 0
        else:
            assert past is not None
            check_new(study)
            written = write_space or study.with_suffix(".space.yaml")
            made, told = _from_table(out, study, past, written, ignore, settings)
        count = made.space.size
        names = list(made.space.names)
        out.give({"study": str(study), "variables": names, "points": count, "told": told})
        out.say(
            f"{study}: {counted(len(names), 'variable')}, {counted(count, 'combination')}, "
            f"{counted(len(made.space.constraints), 'constraint')}, "
            f"to {made.optimizer.direction} {target!r}"
        )
        left = made.space.feasible.left(made.optimizer._history.seen(repeats=False), USUAL)
        if left > 0:
            out.say(f"next: mercbo ask {quote(str(study))} -k {left} --out plate.csv")


def _bounds(text: str) -> tuple[float | None, float | None] | None:
    """What --between says."""
    if not text:
        return None
    low, _, high = text.partition(",")
    try:
        bounds = tuple(number_of(part.strip()) for part in (low, high))
    except CellError:
        bounds = (None, None)
    given = [bool(part.strip()) for part in (low, high)]
    if given != [bound is not None for bound in bounds] or not any(given):
        raise MercboError(f"--between={text}: two numbers were expected, such as 0,100")
    return bounds[0], bounds[1]


@contextlib.contextmanager
def _undone(study: Path) -> Iterator[None]:
    """Remove a new study if anything goes wrong before it is complete."""
    try:
        yield
    except BaseException:
        discard(study)
        raise


def _was_it_made(study: Path) -> str:
    return f"{study} was made" if study.exists() else "no study was made"


def _from_table(
    out: Output, study: Path, past: Path, written: Path, ignore: str, settings: dict[str, Any]
) -> tuple[Study, int]:
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
    made = Study.create(study, space, **settings)
    with _undone(study):
        reading = made.tell(table, options)
        complain(out, reading)
        if reading.problems:
            raise MercboError(
                f"{past.name}: nothing was made; mend the rows above, or --ignore columns"
            )
        put(written, as_yaml(columns, past.name).encode("utf-8"))
    for column in columns:
        out.say(_became(column))
    out.say("a date or a name of a person is no variable: begin anew with --ignore COLUMN,COLUMN")
    out.say(f"{written}: the space, to look at and to edit")
    failed = sum(result.value is None for result in reading.good)
    out.say(f"{counted(len(reading.good), 'past result')} loaded{among(failed)}")
    return made, len(reading.good)


def _became(column: Column) -> str:
    """Say which variable a column of past results became, or why none."""
    if column.variable is None:
        return f"{column.name}: left out, it {column.remark}"
    differ = ", another in every row: is it a variable?" if column.all_differ else ""
    remark = f"; it {column.remark}" if column.remark else ""
    return f"{column.name}: a variable of {len(column.variable.values)} values{differ}{remark}"
