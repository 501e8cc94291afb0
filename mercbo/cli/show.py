"""`mercbo status`, `best`, `explain`, `export`, `plot`, `report`, `schema`: what only looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mercbo.cli.common import (
    AsJson,
    OptionalPath,
    OptionalText,
    Output,
    StudyPath,
    answering,
    check_free,
    counted,
    values_of,
)
from mercbo.domain.variables import Point
from mercbo.errors import MercboError, choose, hint
from mercbo.lab import sheets
from mercbo.lab.assignments import assigned
from mercbo.lab.spacefile import schema as published
from mercbo.lab.study import Study
from mercbo.lab.tables import put, write_table

app = typer.Typer()
Force = Annotated[bool, typer.Option("--force", help="Write over the file.")]
# Kinds of pictures that --variables says something to.
OF_VARIABLES = ("effects", "interactions")


@app.command()
def status(
    study: StudyPath,
    pending: Annotated[bool, typer.Option("--pending", help="List the pending designs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Where a study stands."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        optimizer = opened.optimizer
        told, waiting, failed = optimizer.observations, optimizer.pending, optimizer.failed
        best = opened.ranked()[0] if told else None
    answer: dict[str, Any] = {
        "study": str(study), "direction": optimizer.direction, "target": opened.target,
        "results": len(told), "failed": len(failed), "pending": len(waiting),
        "best": None if best is None else {"point": best.point, "value": best.mean},
        "variables": list(opened.space.names), "points": opened.space.size,
    }  # fmt: skip
    if pending:
        answer["pending_points"] = waiting
    out.give(answer)
    out.say(f"{study}: {optimizer.direction} {opened.target!r}")
    out.say(f"{counted(len(told), 'result')}, {len(failed)} failed, {len(waiting)} pending")
    if best is not None:
        out.say(f"best {best.mean:g} at {_line(best.point)}{best.remark}")
    if pending:
        numbered = [[i + 1, *row] for i, row in enumerate(values_of(opened, waiting))]
        out.grid(["number", *opened.space.names], numbered)


def _line(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())


@app.command()
def best(
    study: StudyPath,
    n: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 10,
    as_json: AsJson = False,
) -> None:
    """The best designs with a result, each with all of its results."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        listed = opened.ranked()[:n]
    out.give({"best": [{"point": p, "value": mean, "results": all_} for p, mean, all_ in listed]})
    rows = [
        [i + 1, mean, len(results), *values]
        for i, ((_, mean, results), values) in enumerate(
            zip(listed, values_of(opened, [point for point, _, _ in listed]), strict=True)
        )
    ]
    out.grid(["", opened.target, "times", *opened.space.names], rows)


@app.command()
def explain(
    study: StudyPath,
    point: Annotated[str, typer.Option(help="Why this one: solvent=DMSO,heat=80,...")] = "",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """What the model has learned: effects, interactions, importance, and how far to trust it."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        chosen = assigned(opened.space, point) if point else None
        with out.working("fitting the model"):
            found = opened.optimizer.explain(chosen, level=level)
    kinds = ["effects", "interactions", "importance", "pairs", "check"]
    answer: dict[str, Any] = {kind: found.records(kind) for kind in kinds}
    if found.why is not None:
        answer["why"] = {"predicted": found.why.predicted, "low": found.why.low,
                         "high": found.why.high, "chance": found.why.chance,
                         "parts": found.records("why")}  # fmt: skip
    out.give(answer)
    out.say(repr(found))


@app.command()
def export(
    study: StudyPath,
    file: Annotated[OptionalPath, typer.Argument(help="A .csv or .xlsx file.")] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Only the pending designs.")] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """All that a study knows: designs with their results and known errors (std), batch, time, the
    columns that came with each result, and the results of controls."""
    out = Output(as_json=as_json)
    with answering(out):
        opened = Study.open(study)
        header, rows = sheets.pending(opened) if pending else sheets.whole(opened)
        if file is None and not as_json:
            raise MercboError("name the file to write, or add --json")
        if file is not None:
            check_free(file, force=force)
            write_table(file, header, rows)
    out.give({"rows": [dict(zip(header, row, strict=True)) for row in rows],
              "file": None if file is None else str(file)})  # fmt: skip
    out.say(f"{file}: {counted(len(rows), 'row')}")


@app.command()
def plot(
    study: StudyPath,
    kind: Annotated[
        str, typer.Option(help="convergence, effects, interactions, predicted, best, batch, logo.")
    ] = "convergence",
    out_file: Annotated[OptionalPath, typer.Option("--out", help=".png, .svg or .pdf.")] = None,
    variables: Annotated[
        OptionalText,
        typer.Option(help="For effects: names by commas; for interactions: two names."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """A picture of a study."""
    out = Output(as_json=as_json)
    with answering(out):
        from mercbo import plots

        drawn: dict[str, Callable[..., Any]] = {
            "convergence": plots.convergence, "effects": plots.effects,
            "interactions": plots.interactions, "predicted": plots.predicted,
            "best": plots.best_designs, "batch": plots.batch_diversity,
            "logo": plots.sequence_logo,
        }  # fmt: skip
        choose("--kind", kind, drawn)
        opened = Study.open(study)
        target = out_file or study.with_name(f"{study.stem}-{kind}.png")
        plots.check_ending(target)  # before the model is fitted, which takes its time
        check_free(target, force=force or out_file is None)
        options: dict[str, Any] = {}
        if variables is not None:
            options["variables"] = _chosen_variables(opened, kind, variables)
        with out.working("drawing"):
            axes = drawn[kind](opened.optimizer, **options)
            try:
                plots.save(axes, target)
            except OSError as error:
                raise MercboError(
                    f"{target}: cannot be written ({error.strerror or error})"
                ) from None
    out.give({"file": str(target)})
    out.say(f"wrote {target}")


def _chosen_variables(study: Study, kind: str, text: str) -> tuple[str, ...]:
    """The names that --variables lists, if the kind of picture takes so many."""
    if kind not in OF_VARIABLES:
        raise MercboError(
            f"--variables={text} is of no use with --kind {kind}; {' and '.join(OF_VARIABLES)} "
            "take it"
        )
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name not in study.space.variables:
            known = study.space.names
            raise MercboError(
                f"--variables: {name!r} is not one of {list(known)}{hint(name, known)}"
            )
    if kind == "interactions" and len(set(names)) != 2:
        raise MercboError(f"--variables={text}: two names by a comma are wanted for interactions")
    return names


@app.command()
def report(
    study: StudyPath,
    page: Annotated[OptionalPath, typer.Argument(help="The .html file to write.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """One HTML page on a study, with everything in it: to mail, to print, to keep."""
    out = Output(as_json=as_json)
    with answering(out):
        from mercbo.lab.report import render

        opened = Study.open(study)
        target = page or study.with_suffix(".html")
        # a report can be made again at any time, so that only a named file is guarded
        check_free(target, force=force or page is None)
        with out.working("writing the report"):
            put(target, render(opened).encode("utf-8"))
    out.give({"file": str(target)})
    out.say(f"wrote {target}")


@app.command()
def schema() -> None:
    """The JSON schema of space files, for editors and other programs."""
    typer.echo(json.dumps(published(), indent=2))
