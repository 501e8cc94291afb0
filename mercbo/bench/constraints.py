"""`mercbo bench constraints`: what constraints cost, what they find, and what failures waste.

Three tables, each measured in one run:

- *cost*: median seconds of an `ask()` at 100 results, on a constrained space and, in turns with
  it, on the same space without its constraints;
- *found*: of runs on small problems whose optimum is known by enumeration, how many find it within
  a number of feasible evaluations: with the constraints; without them, infeasible points being
  told as failures (and not counted); and with the feasible points as a table;
- *wasted*: evaluations that fail by a hidden rule, with the failure model and without it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.bench.backends import header
from mercbo.bench.runs import make_folder
from mercbo.domain.constraints import (
    AllDifferent,
    AtMost,
    Constraint,
    Exactly,
    Forbid,
    Implies,
    Linear,
)
from mercbo.domain.variables import Binary, Categorical, Point, Variable
from mercbo.model import Model
from mercbo.optimizer import Optimizer
from mercbo.space import Space

RESULTS, ASKS = 100, 15
# Feasible evaluations of a run that looks for an optimum, and all evaluations of one that fails.
TO_FIND, TO_WASTE = 60, 80
# Asks after which a run that is told mostly failures is given up.
MOST_ASKS = 300


@dataclass(frozen=True)
class Case:
    """A space with constraints, and an objective of main effects and pairs."""

    name: str
    variables: dict[str, Variable]
    constraints: list[Constraint]
    main: Floats  # (n, k)
    pairs: Floats  # (n, n, k, k)

    @property
    def space(self) -> Space:
        return Space(self.variables, self.constraints)

    def values(self, rows: Rows) -> Floats:
        n = rows.shape[1]
        total = self.main[np.arange(n), rows].sum(axis=1)
        for i in range(n):
            for j in range(i):
                total = total + self.pairs[i, j, rows[:, i], rows[:, j]]
        return np.asarray(total)

    def value(self, point: Point) -> float:
        return float(self.values(Space(self.variables).rows(point))[0])


def case(
    name: str,
    variables: dict[str, Variable],
    constraints: list[Constraint],
    rng: np.random.Generator,
) -> Case:
    n, k = len(variables), max(v.size for v in variables.values())
    main = rng.standard_normal((n, k))
    return Case(name, variables, constraints, main, rng.standard_normal((n, n, k, k)) / np.sqrt(n))


def switches(n: int) -> dict[str, Variable]:
    return {f"x{i}": Binary() for i in range(n)}


def knapsack(n: int, share: float, rng: np.random.Generator) -> Linear:
    """Weights and a bound under which a share of all points is feasible."""
    weights = rng.integers(1, 100, n)
    sums = rng.integers(0, 2, (100_000, n)) @ weights
    bound = float(np.quantile(sums, share))
    return Linear({f"x{i}": float(w) for i, w in enumerate(weights)}, "<=", bound)


def forbidden(names: list[str], k: int, count: int, rng: np.random.Generator) -> Forbid:
    """Random pairs of values of two variables."""
    pairs = []
    for _ in range(count):
        i, j = rng.choice(len(names), 2, replace=False)
        a, b = rng.integers(0, k, 2)
        pairs.append({names[i]: int(a), names[j]: int(b)})
    return Forbid(pairs)


def large_cases(run: int) -> Iterator[Case]:
    rng = np.random.default_rng([run, 41])
    bits = switches(200)
    yield case("5 of 200", bits, [Exactly(5, list(bits))], rng)
    yield case("knapsack of 30, 1 % feasible", switches(30), [knapsack(30, 0.01, rng)], rng)
    places: dict[str, Variable] = {f"p{i}": Categorical(range(12)) for i in range(12)}
    yield case("permutations of 12", places, [AllDifferent(list(places))], rng)
    letters: dict[str, Variable] = {f"c{i}": Categorical(range(4)) for i in range(12)}
    yield case("12 x 4, 30 forbidden pairs", letters, [forbidden(list(letters), 4, 30, rng)], rng)


def small_cases(run: int) -> Iterator[Case]:
    rng = np.random.default_rng([run, 42])
    bits = switches(14)
    yield case("4 of 14", bits, [Exactly(4, list(bits))], rng)
    yield case("knapsack of 12, 10 % feasible", switches(12), [knapsack(12, 0.1, rng)], rng)
    places: dict[str, Variable] = {f"p{i}": Categorical(range(5)) for i in range(5)}
    yield case("permutations of 5", places, [AllDifferent(list(places))], rng)
    letters: dict[str, Variable] = {f"c{i}": Categorical(range(4)) for i in range(6)}
    rules: list[Constraint] = [
        forbidden(list(letters), 4, 8, rng),
        Implies({"c0": 1}, {"c1": [0, 2]}),
        AtMost(2, [(name, 3) for name in letters]),
    ]
    yield case("6 x 4, rules", letters, rules, rng)


# -- cost --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Median seconds of an ask with and without the constraints of a case."""

    case: str
    seconds: float
    free_seconds: float


def cost(problem: Case) -> Cost:
    rng = np.random.default_rng(0)
    both = [problem.space, Space(problem.variables)]
    runs = [Optimizer(space, seed=0) for space in both]
    seconds: list[list[float]] = [[], []]
    for opt, space in zip(runs, both, strict=True):
        rows = np.unique(space.sample_rows(RESULTS, rng=rng), axis=0)
        opt.tell(space.points(rows), problem.values(rows))
    for _ in range(ASKS + 1):
        for opt, taken in zip(runs, seconds, strict=True):
            started = time.perf_counter()
            point = opt.ask()
            taken.append(time.perf_counter() - started)
            opt.tell(point, problem.value(point))
    # the first ask fits from nothing
    return Cost(problem.name, *(float(np.median(taken[1:])) for taken in seconds))


# -- found -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Whether each way found the optimum of one run, and the infeasible points it asked for."""

    case: str
    run: int
    way: str
    hit: bool
    infeasible: int


def find(problem: Case, run: int, budget: int) -> Iterator[Found]:
    """The constrained run, the unconstrained one, and one on the table of feasible points."""
    space = problem.space
    rows = space.enumerate_rows()
    best = float(problem.values(rows).min())
    ways = {
        "constrained": space,
        "unconstrained": Space(problem.variables),
        "table": Space.table(space.points(rows), variables=problem.variables),
    }
    for way, searched in ways.items():
        opt = Optimizer(searched, seed=run)
        infeasible = 0
        while len(opt.observations) < min(budget, len(rows)) and infeasible < MOST_ASKS:
            point = opt.ask()
            fine = not space.broken(point)
            infeasible += not fine
            opt.tell(point, problem.value(point) if fine else None)
        hit = bool(opt.observations) and opt.best.value <= best + 1e-9
        yield Found(problem.name, run, way, bool(hit), infeasible)


# -- wasted ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wasted:
    """Failed evaluations of one run, and the best value it found."""

    rule: str
    run: int
    failures: str
    wasted: int
    best: float


def rules(run: int) -> Iterator[tuple[str, Case, Callable[[Point], bool]]]:
    """Hidden rules by which about 30 to 50 % of the evaluations fail."""
    rng = np.random.default_rng([run, 43])
    bits = case("16 bits", switches(16), [], rng)
    order = rng.permutation(16)
    a, b, c, d = (f"x{i}" for i in order[:4])
    many = [f"x{i}" for i in order[:9]]
    yield "4 of 16 bits", bits, lambda p: bool(p[a] and (p[b] or (p[c] and p[d])))
    yield "xor in 16 bits", bits, lambda p: p[a] != p[b] and not (p[c] and p[d])
    yield "more than half of 9 of 16 bits", bits, lambda p: sum(bool(p[i]) for i in many) >= 5
    letters: dict[str, Variable] = {f"c{i}": Categorical(list("ACGT")) for i in range(8)}
    words = case("8 x 4", letters, [], rng)
    first, second = (f"c{i}" for i in rng.permutation(8)[:2])
    yield "2 of 8 letters", words, lambda p: p[first] in ("A", "C") and p[second] != "G"


def waste(run: int, budget: int) -> Iterator[Wasted]:
    for rule, problem, fails in rules(run):
        for failures in ("learn", "ignore"):
            opt = Optimizer(problem.space, seed=run, model=Model(failures=failures))
            for _ in range(budget):
                point = opt.ask()
                opt.tell(point, None if fails(point) else problem.value(point))
            best = opt.best.value if opt.observations else float("nan")
            yield Wasted(rule, run, failures, len(opt.failed), best)


# -- all of it ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    costs: list[Cost]
    found: list[Found]
    wasted: list[Wasted]


def run(
    out: Path, *, first: int, runs: int, progress: Callable[[str], None] = lambda _: None
) -> Results:
    """Measure everything; one JSON line per measurement."""
    make_folder(out)
    results = Results([], [], [])
    with (out / "constraints.jsonl").open("w", encoding="utf-8") as file:

        def keep(home: list[Any], row: Any) -> None:
            home.append(row)
            file.write(json.dumps({"kind": type(row).__name__.lower(), **asdict(row)}) + "\n")
            file.flush()

        file.write(json.dumps(header()) + "\n")
        for problem in large_cases(first):
            progress(f"cost: {problem.name}")
            keep(results.costs, cost(problem))
        for number in range(first, first + runs):
            for problem in small_cases(number):
                progress(f"found: {problem.name}, run {number}")
                for row in find(problem, number, budget=TO_FIND):
                    keep(results.found, row)
            progress(f"wasted: run {number}")
            for wasted in waste(number, budget=TO_WASTE):
                keep(results.wasted, wasted)
    return results


def markdown(results: Results) -> str:
    lines = ["| `ask()` at 100 results | with | without | ratio |", "|---|---|---|---|"]
    for row in results.costs:
        ratio = row.seconds / row.free_seconds
        lines.append(
            f"| {row.case} | {row.seconds:.3f} s | {row.free_seconds:.3f} s | {ratio:.1f} |"
        )
    ways = list(dict.fromkeys(row.way for row in results.found))
    lines += ["", f"| optimum found | {' | '.join(ways)} |", "|---" * (len(ways) + 1) + "|"]
    for name in dict.fromkeys(row.case for row in results.found):
        cells = []
        for way in ways:
            rows = [r for r in results.found if (r.case, r.way) == (name, way)]
            spent = sum(r.infeasible for r in rows) / len(rows)
            more = f" (and {spent:.0f} infeasible)" if spent else ""
            cells.append(f"{sum(r.hit for r in rows)} of {len(rows)}{more}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", f"| failed, of {TO_WASTE} evaluations | learn | ignore |", "|---|---|---|"]
    for rule in dict.fromkeys(row.rule for row in results.wasted):
        cells = []
        for failures in ("learn", "ignore"):
            rows_of = [r for r in results.wasted if (r.rule, r.failures) == (rule, failures)]
            cells.append(f"{np.mean([r.wasted for r in rows_of]):.1f}")
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    return "\n".join(lines)
