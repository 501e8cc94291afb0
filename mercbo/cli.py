"""The command line, `mercbo bench ...`: what is measured, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

try:
    import typer
    from rich.console import Console
except ImportError as error:
    raise ImportError(
        "the mercbo command needs typer and rich: pip install 'mercbo[bench]'"
    ) from error

app = typer.Typer(no_args_is_help=True, add_completion=True)
bench = typer.Typer(no_args_is_help=True, help="Measurements that decide what is a default.")
app.add_typer(bench, name="bench")


@app.callback()
def main() -> None:
    """Bayesian optimisation over combinatorial spaces."""


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

    console = Console()
    with console.status("starting") as status:
        rows = backends.run(
            parse_problems(problems),
            out,
            data=data,
            cp_sat_seconds=cp_sat_seconds,
            progress=status.update,
        )
    table = backends.summarise(rows)
    text = backends.markdown(table)
    (out / "backends.md").write_text(text + "\n", encoding="utf-8")
    backends.plot(table, out / "backends.png")
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
    with console.status("starting") as status:
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
    with console.status("starting") as status:
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
    """Play methods on problems; killed and started again, it goes on."""
    from rich.progress import Progress

    from mercbo.bench import runner
    from mercbo.errors import MercboError

    if budget != "published" and not budget.isdigit():
        raise typer.BadParameter(f"--budget {budget!r} is neither a number nor 'published'")
    try:
        tasks = runner.tasks_of(
            names_of(problems),
            names_of(methods),
            runner.runs_of(runs),
            budget=None if budget == "published" else int(budget),
            relocated=relocated,
            data=data,
        )
        with Progress() as shown:
            bar = shown.add_task("runs", total=len(tasks))

            def progress(outcome: runner.Outcome | None, done: int, total: int) -> None:  # noqa: ARG001
                what = "runs" if outcome is None else " ".join(map(str, outcome.task.key))
                shown.update(bar, completed=done, description=what)

            failures = runner.run_all(tasks, out, jobs=jobs, progress=progress)
    except MercboError as error:
        raise typer.BadParameter(str(error)) from None
    for failed in failures:
        typer.echo(f"failed: {' '.join(map(str, failed.task.key))}: {failed.error}", err=True)
    typer.echo(f"{len(tasks) - len(failures)} of {len(tasks)} runs are in {out / runner.FILE}")


@bench.command("report")
def bench_report(
    out: Annotated[Path, typer.Argument(help="Folder of the results.")],
) -> None:
    """Tables and plots of the runs in a folder."""
    from mercbo.bench import report
    from mercbo.errors import MercboError

    try:
        curves, failures = report.load(out)
    except MercboError as error:
        raise typer.BadParameter(str(error)) from None
    text = report.markdown(curves, failures)
    (out / "report.md").write_text(text + "\n", encoding="utf-8")
    typer.echo(text)
    for path in report.plot(curves, out):
        typer.echo(f"wrote {path}", err=True)


def names_of(text: str) -> list[str]:
    """``"a, b"`` -> the names, each once.

    >>> names_of("mercbo, random,mercbo")
    ['mercbo', 'random']
    """
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def parse_problems(text: str) -> dict[str, tuple[int, int]]:
    """``"ising:2x5,dna:1x3"`` -> name: (instances, draws each)."""
    from mercbo.errors import hint
    from mercbo.problems import PROBLEMS

    parsed = {}
    for part in text.split(","):
        name, _, counts = part.strip().partition(":")
        instances, _, each = (counts or "1x1").partition("x")
        if name not in PROBLEMS:
            known = list(PROBLEMS)
            raise typer.BadParameter(f"{name!r} is not one of {known}{hint(name, known)}")
        if not (instances.isdigit() and each.isdigit()):
            raise typer.BadParameter(f"{part!r} is not of the form name:INSTANCESxDRAWS")
        parsed[name] = (int(instances), int(each))
    return parsed
