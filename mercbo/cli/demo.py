"""`mercbo demo`: the whole loop on a made-up reaction, in a folder to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress

from mercbo.cli.common import AsJson, Output, answering
from mercbo.errors import MercboError
from mercbo.lab import reaction
from mercbo.lab.plates import Plate
from mercbo.lab.report import render
from mercbo.lab.results import Options
from mercbo.lab.sheets import to_fill
from mercbo.lab.spacefile import parse, space_of
from mercbo.lab.study import Study
from mercbo.lab.tables import put, read_table, write_table

app = typer.Typer()


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.")] = Path(
        "mercbo-demo"
    ),
    batches: Annotated[int, typer.Option(min=1, help="How many batches.")] = 3,
    k: Annotated[int, typer.Option("-k", min=1, help="Designs of a batch.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Of the suggestions and the noise.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Play a study of a made-up reaction: a space, plates, results, a report."""
    out = Output(as_json=as_json)
    with answering(out, when_stopped=lambda: f"{folder} holds a study that can go on"):
        if folder.exists():
            raise MercboError(f"{folder}: exists already; choose another name")
        folder.mkdir(parents=True)
        put(folder / "space.yaml", reaction.SPACE.encode("utf-8"))
        space = space_of(parse(reaction.SPACE, ".yaml"))
        study = Study.create(
            folder / "study.db", space, direction="maximize", target="yield", seed=seed,
            title="A made-up coupling",
        )  # fmt: skip
        rng = np.random.default_rng(seed)
        with Progress(console=out.errors, transient=True) as bar:
            task = bar.add_task("batches", total=batches)
            for number in range(1, batches + 1):
                best = _batch(study, folder, number, k, rng)
                bar.advance(task)
                out.say(f"batch {number}: {k} designs, best so far {best:g} %")
        put(folder / "report.html", render(study).encode("utf-8"))
    point, value, _ = study.ranked()[0]
    out.give({"folder": str(folder), "best": {"point": point, "value": value}})
    out.say(f"best {value:g} % at {', '.join(f'{n}={v}' for n, v in point.items())}")
    out.say(
        f"look at {folder / 'report.html'}; go on with: mercbo ask {folder / 'study.db'} -k {k}"
    )


def _batch(study: Study, folder: Path, number: int, k: int, rng: np.random.Generator) -> float:
    """Ask, measure, write the plate as a person would have filled it in, tell."""
    points = study.optimizer.ask(k)
    values = [reaction.measured(point, rng=rng) for point in points]
    wells = study.lay_out(points, Plate(24) if k <= 24 else Plate(384))
    header, rows = to_fill(study, points, wells)
    filled = [
        [*row[:-1], "failed" if v is None else v] for row, v in zip(rows, values, strict=True)
    ]
    file = folder / f"plate-{number}.csv"
    write_table(file, header, filled)
    study.tell(read_table(file), Options(study.target))
    return study.ranked()[0].mean
