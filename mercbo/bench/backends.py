"""`mercbo bench backends`: every backend, and peers, on the same real posterior draws.

A draw comes from an optimizer that has played its problem for a while, so that it has the shape
that backends meet in use. Each solver gets the same models with the same seeds, one after the other
in one process. Reported for each solver and problem:

- gap: mean energy above the best that any solver found on the draw, in standard deviations of y;
- best: share of draws on which it found that best;
- proven: mean distance from its energy to its own lower bound, where it has one;
- feasible: share of its samples that mean a point, before any repair;
- seconds: median.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import dimod
import numpy as np

import mercbo
from mercbo import backend
from mercbo.bench.runs import make_folder
from mercbo.optimizer import Optimizer
from mercbo.problems import Problem
from mercbo.problems.catalogue import find
from mercbo.quadratic import Draw

# Results told before draws are taken: the initial ones and some of the optimizer's own.
HISTORY = 60


@dataclass(frozen=True)
class Contender:
    """A solver and how it is called; `limit` is the most bits it is given."""

    name: str
    call: Callable[[Draw, int], dimod.SampleSet]
    limit: float = np.inf


@dataclass(frozen=True)
class Measurement:
    """One solver on one draw."""

    problem: str
    draw: int
    solver: str
    energy: float | None
    lower_bound: float | None
    status: str
    feasible: float
    seconds: float


def contenders(cp_sat_seconds: float) -> list[Contender]:
    """Our backends and, where dwave-samplers is installed, its samplers with usual settings."""

    def ours(name: str, **settings: Any) -> Callable[[Draw, int], dimod.SampleSet]:
        sampler = backend.resolve(name)

        def call(draw: Draw, seed: int) -> dimod.SampleSet:
            if draw.is_constrained:
                return sampler.sample_cqm(draw.constrained, seed=seed, **settings)
            return sampler.sample(draw.bqm, seed=seed, **settings)

        return call

    found = [
        Contender("graph-cut", ours("graph-cut")),
        Contender("annealing", ours("annealing")),
        Contender("exhaustive", ours("exhaustive"), limit=26),
        Contender("cp-sat", ours("cp-sat", time_limit=cp_sat_seconds, workers=2), limit=40),
    ]
    try:
        from dwave.samplers import (
            SimulatedAnnealingSampler,
            SteepestDescentSolver,
            TabuSampler,
        )
    except ImportError:
        return found

    def peer(sampler: Any, **settings: Any) -> Callable[[Draw, int], dimod.SampleSet]:
        return lambda draw, seed: sampler.sample(draw.bqm, seed=seed, **settings)

    return [
        *found,
        Contender(
            "dwave SA 20x100", peer(SimulatedAnnealingSampler(), num_reads=20, num_sweeps=100)
        ),
        Contender("dwave descent x100", peer(SteepestDescentSolver(), num_reads=100)),
        Contender("dwave tabu 100 ms", peer(TabuSampler(), num_reads=1, timeout=100)),
    ]


def draws_of(
    make: Callable[..., Problem], instances: int, each: int, data: Path | None
) -> Iterator[Draw]:
    """`each` draws from each of `instances` optimizers that played the problem for a while."""
    for run in range(instances):
        problem = make(run, data)
        opt = Optimizer(problem.space, seed=run)
        opt.tell(problem.space.points(problem.initial), problem.evaluate(problem.initial))
        while len(opt.observations) < min(HISTORY, problem.space.size // 3):
            batch = opt.ask(8)
            done = len(opt.observations)
            opt.tell(batch, problem.evaluate(problem.space.rows(batch), first=done))
        for number in range(each):
            yield opt.draw(rng=np.random.default_rng([run, number]))


def measure(solver: Contender, problem: str, number: int, draw: Draw) -> Measurement:
    _ = draw.bqm, draw.constrained  # built before the clock starts
    started = time.perf_counter()
    found = solver.call(draw, number)
    seconds = time.perf_counter() - started
    labels = draw.encoding.labels
    order = [found.variables.index(label) for label in labels] if len(found) else []
    bits = (found.record.sample[:, order] > 0).astype(np.int8)
    rows, valid = draw.encoding.from_bits(bits)
    fine = np.asarray(valid.all(axis=1))
    values = draw.sample.value(rows[fine])
    bound = found.info.get("lower_bound")
    return Measurement(
        problem,
        number,
        solver.name,
        float(values.min()) if len(values) else None,
        None if bound is None or not np.isfinite(bound) else float(bound),
        str(found.info.get("status", "")),
        float(fine.mean()) if len(fine) else 0.0,
        seconds,
    )


def run(
    problems: dict[str, tuple[int, int]],
    out: Path,
    *,
    data: Path | None = None,
    cp_sat_seconds: float = 5.0,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Measurement]:
    """Measure every problem (name: instances, draws each); one JSON line per measurement.

    A problem that cannot be made is an error before anything is measured.
    """
    makers = {name: find(name) for name in problems}
    for make in makers.values():
        make(0, data)
    make_folder(out)
    solvers = contenders(cp_sat_seconds)
    rows: list[Measurement] = []
    with (out / "backends.jsonl").open("w", encoding="utf-8") as file:
        file.write(json.dumps(header()) + "\n")
        for name, (instances, each) in problems.items():
            for number, draw in enumerate(draws_of(makers[name], instances, each, data)):
                progress(f"{name}: draw {number + 1} of {instances * each}")
                bits = float(np.log2(draw.space.sizes.astype(float)).sum())
                for solver in solvers:
                    if bits <= solver.limit:
                        rows.append(measure(solver, name, number, draw))
                        file.write(json.dumps(asdict(rows[-1])) + "\n")
                        file.flush()
    return rows


def header() -> dict[str, Any]:
    packages = ["mercbo", "numpy", "scipy", "dimod", "PyMaxflow", "ortools", "dwave-samplers"]
    return {
        "versions": {name: _version(name) for name in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "code": _code(),
    }


def _code() -> str:
    """A fingerprint of mercbo's sources: its version is the same in all states of a checkout."""
    digest = hashlib.sha256()
    for path in sorted(Path(mercbo.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Summary:
    """One line of the table."""

    problem: str
    solver: str
    draws: int
    gap: float
    best: float
    proven: float | None
    feasible: float
    seconds: float
    energy: float


def summarise(rows: list[Measurement]) -> list[Summary]:
    """One summary for each problem and solver, in the order first met."""
    lowest: dict[tuple[str, int], float] = {}
    for row in rows:
        if row.energy is not None:
            where = (row.problem, row.draw)
            lowest[where] = min(lowest.get(where, np.inf), row.energy)
    grouped: dict[tuple[str, str], list[Measurement]] = {}
    for row in rows:
        grouped.setdefault((row.problem, row.solver), []).append(row)
    return [_summary(*names, found, lowest) for names, found in grouped.items()]


def _summary(
    problem: str, solver: str, rows: list[Measurement], lowest: dict[tuple[str, int], float]
) -> Summary:
    gaps = np.array(
        [np.inf if r.energy is None else r.energy - lowest[problem, r.draw] for r in rows]
    )
    known = [
        r.energy - r.lower_bound for r in rows if r.energy is not None and r.lower_bound is not None
    ]
    energies = [r.energy for r in rows if r.energy is not None]
    return Summary(
        problem,
        solver,
        len(rows),
        float(gaps.mean()),
        float((gaps <= 1e-6).mean()),
        float(np.mean(known)) if known else None,
        float(np.mean([r.feasible for r in rows])),
        float(np.median([r.seconds for r in rows])),
        float(np.mean(energies)) if energies else np.inf,
    )


def markdown(table: list[Summary]) -> str:
    lines = [
        "| problem | solver | draws | gap to best | found best | proven gap | feasible | ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        proven = "" if row.proven is None else _short(row.proven)
        gap = "none feasible" if np.isinf(row.gap) and row.feasible == 0 else _short(row.gap)
        lines.append(
            f"| {row.problem} | {row.solver} | {row.draws} | {gap} | {row.best:.1%} | {proven} | "
            f"{row.feasible:.0%} | {1000 * row.seconds:.3g} |"
        )
    return "\n".join(lines)


def _short(gap: float) -> str:
    """Two digits; what CP-SAT's rounding and ours leave is nothing."""
    return "0" if abs(gap) < 1e-6 else f"{gap:.2g}"


def plot(table: list[Summary], path: Path) -> None:
    """Gap against time, one panel for each problem."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    problems = list(dict.fromkeys(row.problem for row in table))
    solvers = list(dict.fromkeys(row.solver for row in table))
    across = min(4, len(problems))
    down = -(-len(problems) // across)
    figure, panels = plt.subplots(
        down, across, figsize=(3.2 * across, 2.8 * down), squeeze=False, constrained_layout=True
    )
    floor = 1e-5  # gaps below this are drawn here
    for axes, problem in zip(panels.flat, problems, strict=False):
        for row in (row for row in table if row.problem == problem):
            gap = 3.0 if np.isinf(row.gap) else max(row.gap, floor)
            axes.plot(
                1000 * row.seconds,
                gap,
                "x" if np.isinf(row.gap) else "o",
                color=f"C{solvers.index(row.solver)}",
                label=row.solver,
            )
        axes.set(xscale="log", yscale="log", title=problem, ylim=(floor / 2, 5))
    for axes in panels.flat[len(problems) :]:
        axes.set_axis_off()
    for axes in panels[-1]:
        axes.set_xlabel("milliseconds")
    for axes in panels[:, 0]:
        axes.set_ylabel("energy gap, sd of y")
    handles = {h.get_label(): h for axes in panels.flat for h in axes.get_lines()}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=130)
    plt.close(figure)
