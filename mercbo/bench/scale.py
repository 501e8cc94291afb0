"""`mercbo bench scale`: what an ask costs, how many workers that feeds, what more optimizers buy.

Three steps, each checked against the one before: asks are timed over a grid of results N, variables
n and points k; a cost model with non-negative terms is fitted to the times; and a discrete-event
simulation plays W workers that are fed by P optimizer processes on one store, with that cost.

| symbol | meaning                                                     |
|--------|-------------------------------------------------------------|
| N, n   | results of the run; variables of the space                  |
| k      | points of one ask: all workers that wait, up to `MOST_ASKED` |
| W, P   | workers; optimizer processes, each with a core of its own   |
"""

from __future__ import annotations

import heapq
import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from mercbo.bench.backends import header
from mercbo.bench.runs import make_folder
from mercbo.domain.variables import Point
from mercbo.optimizer import Optimizer
from mercbo.space import Space

RESULTS, VARIABLES, POINTS = (50, 200, 500, 1000, 2000, 5000), (25, 50, 100), (1, 10)
WORKERS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000)
OPTIMIZERS = (1, 2, 4, 16)
SECONDS = {"1 s": 1.0, "1 min": 60.0, "1 h": 3600.0}
# Workers that are served by one ask at most: more would wait for the last of them.
MOST_ASKED = 64
# The run that the simulation is of, and the share of time from which on workers count as busy.
TYPICAL = {"results": 1000, "variables": 50}
BUSY = 0.9
# Evaluations vary: the standard deviation of the logarithm of their time.
SPREAD = 0.3
# Evaluations of each worker in a simulation; the first, when all start at once, do not count.
ROUNDS = 6
# Evaluations of a simulation at least: with few workers, chance would decide.
LEAST_PLAYED = 1000
# Times that each ask of the grid is repeated, after a result each time.
REPEATS = 3

# What happens in a simulation.
FREE, READY, WRITTEN = 0, 1, 2

# The cost of an ask: fitting and factoring once, then for each point a draw and its minimum.
TERMS: dict[str, Callable[[float, float, float], float]] = {
    "1": lambda N, n, k: 1.0,  # noqa: ARG005
    "N n": lambda N, n, k: N * n,  # noqa: ARG005
    "N^2": lambda N, n, k: N**2,  # noqa: ARG005
    "N^2 n": lambda N, n, k: N**2 * n,  # noqa: ARG005
    "N^3": lambda N, n, k: N**3,  # noqa: ARG005
    "k": lambda N, n, k: k,  # noqa: ARG005
    "k n^2": lambda N, n, k: k * n**2,  # noqa: ARG005
    "k N n": lambda N, n, k: k * N * n,
    "k N^2": lambda N, n, k: k * N**2,  # noqa: ARG005
}


@dataclass(frozen=True)
class Ask:
    """One timed ask: the mean of some, in seconds of one core."""

    results: int
    variables: int
    points: int
    seconds: float


@dataclass(frozen=True)
class Cost:
    """Seconds of an ask as a sum of terms in N, n and k."""

    weights: tuple[float, ...]

    @classmethod
    def fitted(cls, asks: Sequence[Ask]) -> Cost:
        """Non-negative weights with the least squared relative error."""
        terms = np.array([_terms(a.results, a.variables, a.points) for a in asks])
        relative = terms / np.array([a.seconds for a in asks])[:, np.newaxis]
        scale = relative.max(axis=0)
        weights, _ = nnls(relative / scale, np.ones(len(asks)))
        return cls(tuple((weights / scale).tolist()))

    def seconds(self, results: float, variables: float, points: float) -> float:
        return float(np.dot(self.weights, _terms(results, variables, points)))

    def __str__(self) -> str:
        pairs = zip(self.weights, TERMS, strict=True)
        return " + ".join(f"{weight:.2g} {term}" for weight, term in pairs if weight > 0)


def _terms(results: float, variables: float, points: float) -> list[float]:
    return [term(results, variables, points) for term in TERMS.values()]


@dataclass(frozen=True)
class Played:
    """One simulation: the share of time for which workers were busy."""

    evaluation: float
    optimizers: int
    workers: int
    busy: float


# -- measuring ---------------------------------------------------------------------------------


def timed(results: int, variables: int, points: int) -> Ask:
    """The cost of an ask that follows on a result, in a run with so many results."""
    space = Space.binary(variables)
    rng = np.random.default_rng([results, variables, points])
    opt = Optimizer(space, seed=0, n_initial=1, acquisition="thompson")
    rows = np.unique(space.sample_rows(results, rng=rng), axis=0)
    weights = rng.standard_normal((variables, variables)) / variables
    values = [float(row @ weights @ row) for row in rows]
    opt.tell(space.points(rows), values)
    told = opt.ask()
    total = 0.0
    for _ in range(REPEATS):
        opt.tell(told, float(rng.standard_normal()))
        began = time.process_time()
        told, *others = opt.ask(points)
        total += time.process_time() - began
        opt.cancel(others)
    return Ask(results, variables, points, total / REPEATS)


def turn_seconds(folder: Path, *, turns: int = 50) -> float:
    """How long the store is locked for an ask and a tell: what optimizers cannot do at once."""
    url = f"sqlite:///{folder / 'turns.db'}"
    space = Space.binary(TYPICAL["variables"])
    opt = Optimizer(space, storage=url, n_initial=turns)
    rows = space.sample_rows(turns, rng=np.random.default_rng(0))
    points = space.points(rows)
    began = time.perf_counter()
    for point in points:
        opt.tell(point, 1.0)
    seconds = (time.perf_counter() - began) / turns
    for path in folder.glob("turns.db*"):
        path.unlink()
    return 2 * seconds


def run(
    out: Path,
    *,
    results: Sequence[int] = RESULTS,
    variables: Sequence[int] = VARIABLES,
    points: Sequence[int] = POINTS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Ask]:
    """Time the grid; one JSON line per ask."""
    make_folder(out)
    asks = []
    with (out / "scale.jsonl").open("w", encoding="utf-8") as file:
        file.write(json.dumps(header()) + "\n")
        for size in results:
            for count in variables:
                for number in points:
                    progress(f"{size} results, {count} variables, ask({number})")
                    asks.append(timed(size, count, number))
                    file.write(json.dumps(asdict(asks[-1])) + "\n")
                    file.flush()
    return asks


# -- simulating --------------------------------------------------------------------------------


def simulate(
    workers: int,
    optimizers: int,
    evaluation: float,
    ask: Callable[[int], float],
    *,
    turn: float = 0.0,
    rng: np.random.Generator,
) -> Played:
    """Workers that evaluate, wait for an optimizer, and evaluate again.

    An optimizer that is free serves all that wait, up to `MOST_ASKED`: ``ask(k)`` seconds of its
    own, then `turn` seconds in which it alone may write.
    """
    wanted = max(workers * ROUNDS, LEAST_PLAYED)
    drawn = np.exp(SPREAD * rng.standard_normal(wanted) - SPREAD**2 / 2)
    lengths = itertools.cycle((evaluation * drawn / drawn.mean()).tolist())
    # (time, what, k): a worker is free, or an optimizer wants to write its k points, or has done so
    agenda = [(next(lengths) * float(rng.random()), FREE, 1) for _ in range(workers)]
    heapq.heapify(agenda)
    waiting = finished = 0
    idle, unlocked, now, since = optimizers, 0.0, 0.0, 0.0
    while finished < wanted:
        now, what, points = heapq.heappop(agenda)
        if what == FREE:
            waiting, finished = waiting + 1, finished + 1
            since = now if finished == workers else since
        elif what == READY:
            unlocked = max(unlocked, now) + turn
            heapq.heappush(agenda, (unlocked, WRITTEN, points))
        else:
            idle += 1
            for _ in range(points):
                heapq.heappush(agenda, (now + next(lengths), FREE, 1))
        while idle and waiting:
            count = min(waiting, MOST_ASKED)
            waiting, idle = waiting - count, idle - 1
            heapq.heappush(agenda, (now + ask(count), READY, count))
    busy = (finished - workers) * evaluation / (workers * max(now - since, 1e-12))
    return Played(evaluation, optimizers, workers, min(busy, 1.0))


def simulations(cost: Cost, turn: float) -> list[Played]:
    """Every evaluation time, number of optimizers and number of workers."""
    asks = {k: cost.seconds(**TYPICAL, points=k) for k in range(1, MOST_ASKED + 1)}
    rng = np.random.default_rng(0)
    return [
        simulate(workers, optimizers, evaluation, asks.__getitem__, turn=turn, rng=rng)
        for evaluation in SECONDS.values()
        for optimizers in OPTIMIZERS
        for workers in WORKERS
    ]


def fed(played: Sequence[Played], evaluation: float, optimizers: int) -> int:
    """The most workers that are kept busy, together with all smaller numbers of them."""
    found = 0
    for one in sorted(played, key=lambda one: one.workers):
        if (one.evaluation, one.optimizers) == (evaluation, optimizers):
            if one.busy < BUSY:
                return found
            found = one.workers
    return found


def kept_busy(*, workers: int = 8, evaluations: int = 500, seconds: float = 2.0) -> float:
    """Measured, not simulated: the share of time for which worker processes of Dask evaluate."""
    from distributed import Client, LocalCluster

    from mercbo.loop.driver import minimize

    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    space = Space.binary(25)
    with cluster, Client(cluster) as client:
        result = minimize(
            Sleeping(seconds), space, budget=evaluations, executor=client, seed=0, progress=False
        )
    return evaluations * seconds / (workers * result.seconds)


@dataclass(frozen=True)
class Sleeping:
    """An objective that takes its time."""

    seconds: float

    def __call__(self, point: Point) -> float:
        time.sleep(self.seconds)
        return float(np.dot(list(point.values()), np.arange(len(point)) % 5 - 2))  # type: ignore[arg-type]


# -- reporting ---------------------------------------------------------------------------------


def markdown(
    asks: Sequence[Ask], cost: Cost, turn: float, played: Sequence[Played], busy: float | None
) -> str:
    ratios = [cost.seconds(a.results, a.variables, a.points) / a.seconds for a in asks]
    lines = [
        f"Seconds of an ask by the fitted model (N results, n variables, k points): {cost}.",
        f"On the {len(asks)} measured asks it is off by a factor of "
        f"{np.exp(np.abs(np.log(ratios)).mean()):.2f} on average, {max(ratios):.2f} and "
        f"{min(ratios):.2f} at most. An ask and a tell lock the store for {turn * 1e3:.1f} ms.",
        "",
        "| N | n | k | measured s | model s |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {a.results} | {a.variables} | {a.points} | {a.seconds:.3g} | "
        f"{cost.seconds(a.results, a.variables, a.points):.3g} |"
        for a in asks
    ]
    heads = " | ".join(f"{p} optimizer{'s' * (p > 1)}" for p in OPTIMIZERS)
    lines += [
        "",
        f"Workers kept at least {BUSY:.0%} busy (of {', '.join(map(str, WORKERS))}) at "
        f"N = {TYPICAL['results']}, n = {TYPICAL['variables']}, simulated:",
        "",
        f"| an evaluation takes | {heads} |",
        "|---" * (len(OPTIMIZERS) + 1) + "|",
    ]
    for name, seconds in SECONDS.items():
        cells = " | ".join(str(fed(played, seconds, p)) for p in OPTIMIZERS)
        lines.append(f"| {name} | {cells} |")
    if busy is not None:
        lines += ["", f"Measured: 8 worker processes, 500 evaluations of 2 s: {busy:.1%} busy."]
    return "\n".join(lines)


def plot(asks: Sequence[Ask], cost: Cost, played: Sequence[Played], path: Path) -> None:
    """Left, measured asks on the model's curves; right, how busy workers are."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    sizes = np.geomspace(min(a.results for a in asks), max(a.results for a in asks), 40)
    for color, (n, k) in enumerate(sorted({(a.variables, a.points) for a in asks})):
        curve = [cost.seconds(size, n, k) for size in sizes]
        left.plot(sizes, curve, color=f"C{color}", label=f"n = {n}, ask({k})")
        found = [a for a in asks if (a.variables, a.points) == (n, k)]
        measured = [a.results for a in found], [a.seconds for a in found]
        left.plot(*measured, "o", color=f"C{color}")
    left.set(xscale="log", yscale="log", xlabel="results N", ylabel="seconds of an ask",
             title="measured (points) and fitted")  # fmt: skip
    for color, (name, seconds) in enumerate(SECONDS.items()):
        for optimizers, style in ((1, "-"), (OPTIMIZERS[-1], "--")):
            line = [p for p in played if (p.evaluation, p.optimizers) == (seconds, optimizers)]
            shares = [p.workers for p in line], [p.busy for p in line]
            right.plot(*shares, style, color=f"C{color}", label=f"{name}, {optimizers} optimizers")
    right.axhline(BUSY, color="grey", linewidth=0.7)
    right.set(xscale="log", xlabel="workers", ylabel="share of time busy", title="simulated")
    for axes in (left, right):
        axes.legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
