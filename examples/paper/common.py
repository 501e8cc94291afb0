"""What the scripts of the paper's figures share: arguments, runs, panels.

Each script is one command, `python examples/paper/NAME.py`. Runs are kept in a folder and not
played again; a picture `NAME.png` and a table are made of them.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One thread: what is compared is the method, not the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

from mercbo.bench import report
from mercbo.bench.runner import run_all, runs_of, tasks_of
from mercbo.bench.runs import PACKED, gathered, pack


@dataclass(frozen=True)
class Options:
    """What a script was called with."""

    out: Path
    data: Path | None
    runs: Sequence[int]
    jobs: int
    quick: bool
    known: Path | None
    only: str | None


def options(name: str, about: str | None, runs: str) -> Options:
    """Read the command line of a script."""
    parser = argparse.ArgumentParser(description=(about or name).splitlines()[0])
    parser.add_argument("--out", type=Path, help=f"folder of results (default paper/{name})")
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCBO_DATA"))
    parser.add_argument("--runs", help=f"such as 0-4 (default {runs})")
    parser.add_argument("--jobs", type=int, default=1, help="runs played side by side")
    parser.add_argument("--quick", action="store_true", help="a few evaluations, to see it work")
    parser.add_argument("--known", type=Path, help="packed runs that are not to be played again")
    parser.add_argument("--only", help="one problem of the figure")
    given = parser.parse_args()
    chosen = runs_of(given.runs or ("0" if given.quick else runs))
    data = Path(given.data) if given.data else None
    # a short look must not meet the whole runs
    out = given.out or Path("paper") / (f"{name}-quick" if given.quick else name)
    out.mkdir(parents=True, exist_ok=True)
    return Options(out, data, chosen, given.jobs, given.quick, given.known, given.only)


def play(
    problems: Sequence[str], methods: Sequence[str], given: Options, budget: int | None
) -> dict[str, report.Curves]:
    """The curves of each problem; what the folder does not hold is played first."""
    if given.known is not None:
        pack(given.out / PACKED, *gathered(given.known))
    tasks = tasks_of(problems, methods, given.runs, budget=budget, relocated=False, data=given.data)

    def progress(outcome: Any, done: int, total: int) -> None:
        print(f"{done}/{total}", *(outcome.task.key if outcome else ()), flush=True)

    for failed in run_all(tasks, given.out, jobs=given.jobs, progress=progress):
        print("failed:", *failed.task.key, failed.error)
    curves, _ = report.load(given.out)
    print(report.markdown([c for c in curves if c.problem in problems]), flush=True)
    return {curve.problem: curve for curve in curves}


def figure(panels: int, width: float = 3.6, height: float = 3.0) -> tuple[Any, list[Any]]:
    """A row of panels, or two of three."""
    rows = 2 if panels > 4 else 1
    columns = -(-panels // rows)
    drawn, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False
    )
    return drawn, list(axes.flat)


def save(drawn: Any, path: Path) -> None:
    drawn.tight_layout()
    drawn.savefig(path, dpi=80)
    plt.close(drawn)
    print(f"wrote {path}")


def convergence(
    curves: Mapping[str, report.Curves],
    names: Mapping[str, str],
    path: Path,
    *,
    title: Callable[[report.Curves], str] = lambda curve: curve.problem,
    sign: float = 1.0,
    ylabel: str = "best value, mean ± 2 s.e.",
) -> None:
    """One panel of best values for each problem."""
    drawn, axes = figure(len(curves))
    for axis, curve in zip(axes, curves.values(), strict=True):
        report.draw_convergence(axis, curve, names, sign)
        axis.set_title(f"{title(curve)} ({report.counted(curve.runs)})", fontsize=9)
        axis.set_ylabel(ylabel if axis is axes[0] else "")
    axes[0].legend(fontsize=7)
    save(drawn, path)
