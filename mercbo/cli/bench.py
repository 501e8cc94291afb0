"""`mercbo bench ...`: what is measured, and how."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from rich.console import Console

if TYPE_CHECKING:
    from mercbo.bench.runner import Task

bench = typer.Typer(no_args_is_help=True, help="Measurements that decide what is a default.")


@bench.command("backends")
def bench_backends(
    out: Annotated[Path, typer.Option(help="Folder for the raw file, table and plot.")] = Path(
        "bench-backends"
    ),
    data: Annotated[
        Optional[Path],  # noqa: UP045 (typer reads the annotation on Python 3.10 too)
        typer.Option(envvar="MERCBO_DATA", help="Folder of published instances."),
    ] = None,
    problems: Annotated[
        str, typer.Option(help="Names, with instances x draws each, by commas.")
    ] = "contamination:10x10,ising:10x10,labs-50:5x4,maxsat-60:5x4,"
    "quadratic-100:5x4,quadratic-200:4x3,dna:6x4,pest-fixed:5x4",
    cp_sat_seconds: Annotated[float, typer.Option(help="Time limit of CP-SAT per draw.")] = 5.0,
) -> None:
    """Compare every backend, and peers, on the same posterior draws."""
    from mercbo.bench import backends

    counts = parse_problems(problems)
    console = Console()
    with console.status("starting") as status, named_errors():
        rows = backends.run(
            counts, out, data=data, cp_sat_seconds=cp_sat_seconds, progress=status.update
        )
    table = backends.summarise(rows)
    text = backends.markdown(table)
    (out / "backends.md").write_text(text + "\n", encoding="utf-8")
    backends.plot(table, out / "backends.png")
    typer.echo(text)
    console.print(f"raw file, table and plot are in {out}", highlight=False)


@bench.command("scale")
def bench_scale(
    out: Annotated[Path, typer.Option(help="Folder for the raw file, table and plot.")] = Path(
        "bench-scale"
    ),
    busy: Annotated[
        bool, typer.Option(help="Also measure 8 worker processes of Dask, for two minutes.")
    ] = False,
    batches: Annotated[
        bool, typer.Option(help="Also measure large batches and long histories, for minutes.")
    ] = False,
) -> None:
    """Time asks, fit their cost, and simulate how many workers that feeds."""
    from mercbo.bench import batches as large
    from mercbo.bench import scale

    console = Console()
    with console.status("starting") as status, named_errors():
        asks = scale.run(out, progress=status.update)
        cost, turn = scale.Cost.fitted(asks), scale.turn_seconds(out)
        status.update("simulating")
        played = scale.simulations(cost, turn)
        status.update("keeping 8 workers busy")
        share = scale.kept_busy() if busy else None
        more = large.measured(progress=status.update) if batches else []
    text = scale.markdown(asks, cost, turn, played, share)
    if more:
        text += "\n\n" + large.markdown(more)
    (out / "scale.md").write_text(text + "\n", encoding="utf-8")
    scale.plot(asks, cost, played, out / "scale.png")
    typer.echo(text)
    console.print(f"raw file, table and plot are in {out}", highlight=False)


@bench.command("proofs")
def bench_proofs(
    out: Annotated[Path, typer.Option(help="Folder for the raw file and the table.")] = Path(
        "bench-proofs"
    ),
    draws: Annotated[int, typer.Option(min=1, help="Draws of each size.")] = 5,
    time_limit: Annotated[float, typer.Option(help="Seconds for each proof.")] = 30.0,
) -> None:
    """Measure the time to proof of CP-SAT's formulations and of enumeration."""
    from mercbo.bench import proofs

    console = Console()
    with console.status("starting") as status, named_errors():
        rows = proofs.run(out, draws=draws, time_limit=time_limit, progress=status.update)
    text = proofs.markdown(rows)
    (out / "proofs.md").write_text(text + "\n", encoding="utf-8")
    typer.echo(text)
    agreed = "agree" if proofs.agree(rows) else "DISAGREE"
    console.print(f"all proofs of a draw {agreed}; files are in {out}", highlight=False)


@bench.command("constraints")
def bench_constraints(
    out: Annotated[Path, typer.Option(help="Folder for the raw file and the tables.")] = Path(
        "bench-constraints"
    ),
    first: Annotated[int, typer.Option(min=0, help="The first run.")] = 0,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each small problem.")] = 10,
) -> None:
    """Measure what constraints cost and find, and what failures waste."""
    from mercbo.bench import constraints

    console = Console()
    with console.status("starting") as status, named_errors():
        results = constraints.run(out, first=first, runs=runs, progress=status.update)
    text = constraints.markdown(results)
    (out / "constraints.md").write_text(text + "\n", encoding="utf-8")
    typer.echo(text)
    console.print(f"raw file and tables are in {out}", highlight=False)


@bench.command("run")
def bench_run(
    problems: Annotated[str, typer.Option(help="Names by commas, such as labs-50,nk-30-3.")],
    methods: Annotated[str, typer.Option(help="Names by commas, such as mercbo,random.")],
    runs: Annotated[str, typer.Option(help="Such as 0-24 or 0,3,5-7.")] = "0-4",
    budget: Annotated[
        str, typer.Option(help="Evaluations of a run, or 'published'.")
    ] = "published",
    relocated: Annotated[
        bool, typer.Option(help="Move the optimum to a random place, differently in each run.")
    ] = True,
    data: Annotated[
        Optional[Path],  # noqa: UP045 (typer reads the annotation on Python 3.10 too)
        typer.Option(envvar="MERCBO_DATA", help="Folder of published instances."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs played side by side.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the results; runs in it are kept.")] = Path(
        "bench"
    ),
) -> None:
    """Play methods on problems; killed and started again, it goes on.

    Runs that failed are listed at the end, and the exit code is then 1.
    """
    from mercbo.bench import runner

    with named_errors():
        tasks = runner.tasks_of(
            names_of(problems),
            names_of(methods),
            runner.runs_of(runs),
            budget=budget_of(budget),
            relocated=relocated,
            data=data,
        )
        failed = play_tasks(tasks, out, jobs)
    if failed:
        raise typer.Exit(1)


@bench.command("suite")
def bench_suite(
    name: Annotated[str, typer.Argument(help="published or heldout.")],
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(envvar="MERCBO_DATA", help="Folder of published instances."),
    ] = None,
    methods: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Some methods of the suite, by commas; all by default."),
    ] = None,
    problems: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Some problems of the suite, by commas; all by default."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs played side by side.")] = 1,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of the results; bench-NAME by default. Runs in it are kept."),
    ] = None,
) -> None:
    """Play a whole table of the documentation and report it; started again, it goes on."""
    from mercbo.bench import suites

    with named_errors():
        tasks = suites.suite_tasks(
            name,
            data,
            methods=None if methods is None else names_of(methods),
            problems=None if problems is None else names_of(problems),
        )
        out = out or Path(f"bench-{name}")
        failed = play_tasks(tasks, out, jobs)
    write_report(out)
    if failed:
        raise typer.Exit(1)


@bench.command("report")
def bench_report(
    source: Annotated[Path, typer.Argument(help="Folder of the results, or a packed file.")],
    more: Annotated[
        Optional[list[Path]],  # noqa: UP045 (typer reads the annotation on Python 3.10 too)
        typer.Option("--with", help="Packed file or folder whose runs are put beside; repeatable."),
    ] = None,
    against: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Method that the others are compared with run by run; mercbo if there."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of report.md and the plots; by default that of the results."),
    ] = None,
) -> None:
    """Tables and plots of runs, written to their folder or another."""
    write_report(source, *(more or ()), against=against, out=out)


@bench.command("pack")
def bench_pack(
    source: Annotated[Path, typer.Argument(help="Folder of the results, or a packed file.")],
    file: Annotated[Path, typer.Argument(help="Such as runs.jsonl.xz or runs.jsonl.gz.")],
    more: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option("--with", help="Packed file or folder whose runs are added; repeatable."),
    ] = None,
) -> None:
    """Keep the curves of all runs, without their points, in one small file."""
    from mercbo.bench import runs

    with named_errors():
        header, found = runs.gathered(source, *(more or ()))
        checksum = runs.pack(file, header, found)
    played = sum(run.error is None for run in found)
    typer.echo(f"{played} runs, {file.stat().st_size} bytes, sha256 {checksum}")


def play_tasks(tasks: Sequence[Task], out: Path, jobs: int) -> bool:
    """Play what a folder does not hold yet, with a bar; whether some runs failed."""
    from rich.progress import Progress

    from mercbo.bench import runner
    from mercbo.bench.runs import FILE

    with Progress() as shown:
        bar = shown.add_task("runs", total=len(tasks))

        def progress(outcome: runner.Outcome | None, done: int, total: int) -> None:  # noqa: ARG001
            what = "runs" if outcome is None else " ".join(map(str, outcome.task.key))
            shown.update(bar, completed=done, description=what)

        failures = runner.run_all(tasks, out, jobs=jobs, progress=progress)
    for failed in failures:
        typer.echo(f"failed: {' '.join(map(str, failed.task.key))}: {failed.error}", err=True)
    typer.echo(f"{len(tasks) - len(failures)} of {len(tasks)} runs are in {out / FILE}")
    return bool(failures)


def write_report(
    source: Path, *more: Path, against: str | None = None, out: Path | None = None
) -> None:
    """Print the report of some runs, and write it with its plots."""
    from mercbo.bench import report
    from mercbo.bench.runs import make_folder

    out = out or (source if source.is_dir() else source.parent)
    with named_errors():
        curves, failures = report.load(source, *more)
        text = report.markdown(curves, failures, against)
        make_folder(out)
    (out / "report.md").write_text(text + "\n", encoding="utf-8")
    typer.echo(text)
    with named_errors():
        for path in report.plot(curves, out):
            typer.echo(f"wrote {path}", err=True)


@contextlib.contextmanager
def named_errors() -> Iterator[None]:
    """What was wrong, or is to be installed, as a message without a traceback."""
    from mercbo.errors import MercboError

    try:
        yield
    except (MercboError, ImportError) as error:
        raise typer.BadParameter(str(error)) from None


def budget_of(text: str) -> int | None:
    """``"120"`` -> 120, ``"published"`` -> None."""
    if text == "published":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise typer.BadParameter(
            f"--budget {text!r} is neither a whole number of at least 1 nor 'published'"
        )
    return int(text)


def names_of(text: str) -> list[str]:
    """``"a, b"`` -> the names, each once.

    >>> names_of("mercbo, random,mercbo")
    ['mercbo', 'random']
    """
    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise typer.BadParameter(f"{text!r} holds no name")
    return names


def parse_problems(text: str) -> dict[str, tuple[int, int]]:
    """``"ising:2x5,dna:ARX:1x3"`` -> name: (instances, draws each), 1x1 where none are given.

    >>> parse_problems("ising:2x5, nk-12-2, dna:ARX:1x3")
    {'ising': (2, 5), 'nk-12-2': (1, 1), 'dna:ARX': (1, 3)}
    """
    from mercbo.problems.catalogue import find

    parsed = {}
    for part in names_of(text):
        name, instances, each = split_counts(part)
        with named_errors():
            find(name)
        parsed[name] = (instances, each)
    return parsed


def split_counts(part: str) -> tuple[str, int, int]:
    """``"dna:ARX:1x3"`` -> "dna:ARX", 1, 3.

    A factor is the only thing but counts that may stand behind a colon, and none is called 1x3.
    """
    from mercbo.problems.catalogue import FACTORS

    name, colon, counts = part.rpartition(":")
    if colon and (found := re.fullmatch("([0-9]+)x([0-9]+)", counts)):
        return name, int(found[1]), int(found[2])
    if colon and f"{name}:FACTOR" not in FACTORS:
        raise typer.BadParameter(f"{part!r} is not of the form NAME:INSTANCESxDRAWS")
    return part, 1, 1
