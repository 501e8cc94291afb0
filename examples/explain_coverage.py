"""How often the intervals of `opt.explain()` hold the truth: on random functions that are known.

    python examples/explain_coverage.py                      # a few minutes; prints a table
    python examples/explain_coverage.py --runs 5 --out rates.md     # examples/results/explain.md

A function is the sum of an effect of each of eight variables (binary, categorical of 3-5 values,
ordered of 3-6) and, where it is quadratic, of interactions of all pairs or of every second one.
Effects of ordered variables are a slope, a bend and a step. Sizes vary by a factor of about
exp(0.5) either way. Noise is given as a share of the function's standard deviation. The intervals
are those of level 80 %. A rate's standard error is that over functions, as the intervals of one
function depend on each other.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, Space

LEVEL = 0.8
VARIABLES = 8
KINDS = ("effects", "interactions", "no interaction")
# standard deviation of an interaction, where that of an effect is 1, and how many pairs have one
PAIRS = {"additive": (0.0, 0.0), "every pair": (0.35, 1.0), "half the pairs": (0.5, 0.5)}


@dataclass(frozen=True)
class Function:
    """Effects and interactions of mean zero over every variable."""

    space: Space
    effects: list[np.ndarray]
    pairs: dict[tuple[int, int], np.ndarray]

    @property
    def sd(self) -> float:
        parts = [*self.effects, *self.pairs.values()]
        return float(np.sqrt(sum(np.mean(part**2) for part in parts)))

    def at(self, rows: np.ndarray) -> np.ndarray:
        total = sum(effect[rows[:, i]] for i, effect in enumerate(self.effects))
        return total + sum(pair[rows[:, i], rows[:, j]] for (i, j), pair in self.pairs.items())


def draw_space(rng: np.random.Generator) -> Space:
    kinds = [
        lambda: Binary(),
        lambda: Categorical(list("abcde"[: rng.integers(3, 6)])),
        lambda: Ordinal(range(int(rng.integers(3, 7)))),
    ]
    return Space({f"x{i}": kinds[rng.integers(3)]() for i in range(VARIABLES)})


def draw_shape(variable, rng: np.random.Generator) -> np.ndarray:
    """A function of one variable, of mean 0 and mean square 1."""
    shape = rng.normal(size=variable.size)
    if isinstance(variable, Ordinal):
        t = np.linspace(-1, 1, variable.size)
        slope, bend, step = rng.normal(size=3) * (1.0, 1.0, 0.5)
        shape = slope * t + bend * t**2 + step * np.sign(t - rng.uniform(-0.9, 0.9))
    shape = shape - shape.mean()
    return shape / np.sqrt(np.mean(shape**2))


def draw_function(kind: str, rng: np.random.Generator) -> Function:
    space = draw_space(rng)
    variables = list(space.variables.values())
    effects = [np.exp(0.5 * rng.normal()) * draw_shape(v, rng) for v in variables]
    size, share = PAIRS[kind]
    pairs = {}
    for j, second in enumerate(variables):
        for i, first in enumerate(variables[:j]):
            own = size * np.exp(0.5 * rng.normal()) * (rng.uniform() < share)
            pairs[i, j] = own * np.outer(draw_shape(first, rng), draw_shape(second, rng))
    return Function(space, effects, pairs)


def told(
    function: Function, noise: float, results: int, asked: bool, rng: np.random.Generator
) -> Optimizer:
    """An optimizer that was told results at random points, or at those that it asked for."""
    seed = int(rng.integers(2**31))
    space = function.space
    opt = Optimizer(space, seed=seed, model=Model(warp="none"))
    while len(opt.observations) < results:
        points = opt.ask(10) if asked else space.sample(results, rng=rng)
        errors = noise * function.sd * rng.normal(size=len(points))
        opt.tell(points, function.at(space.rows(points)) + errors)
    return opt


def covered(function: Function, opt: Optimizer) -> dict[str, float]:
    """The share of intervals that hold the truth: of effects, of interactions that there are, and
    of pairs without one."""
    found = opt.explain(level=LEVEL)
    hits: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    truth = np.concatenate(function.effects)
    for each, true in zip(found.effects, truth, strict=True):
        hits["effects"].append(each.low <= true <= each.high)
    place = {(f"x{i}", f"x{j}"): pair for (i, j), pair in function.pairs.items()}
    values = {name: list(v.values) for name, v in function.space.variables.items()}
    for each in found.interactions:
        pair = place[each.variables]
        at = (values[n].index(v) for n, v in zip(each.variables, each.values, strict=True))
        kind = "interactions" if pair.any() else "no interaction"
        hits[kind].append(each.low <= pair[tuple(at)] <= each.high)
    return {kind: float(np.mean(each)) for kind, each in hits.items() if each}


def drawn(
    kind: str, noise: float, results: int, *, asked: bool = False, runs: range
) -> dict[str, list[float]]:
    """`covered` of one function after another."""
    found: dict[str, list[float]] = {}
    for run in runs:
        rng = np.random.default_rng([run, list(PAIRS).index(kind), int(10 * noise), results, asked])
        function = draw_function(kind, rng)
        for what, rate in covered(function, told(function, noise, results, asked, rng)).items():
            found.setdefault(what, []).append(rate)
    return found


def row(title: str, found: dict[str, list[float]]) -> str:
    """A line of the table: mean and standard error over functions."""
    shown = [f"{100 * np.mean(v):.0f} ± {100 * np.std(v) / np.sqrt(len(v)):.0f}" if v else ""
             for v in (found.get(what, []) for what in KINDS)]  # fmt: skip
    return f"| {title} | {' | '.join(shown)} |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=2, help="functions of each setting")
    arguments.add_argument("--first", type=int, default=1000, help="seed of the first")
    arguments.add_argument("--out", type=Path)
    chosen = arguments.parse_args()
    runs = range(chosen.first, chosen.first + chosen.runs)
    print(header := f"| function | noise | results | {' | '.join(KINDS)} |")
    print(rule := "|---" * 6 + "|")
    lines = [header, rule]

    def add(title: str, found: dict[str, list[float]]) -> None:
        lines.append(row(title, found))
        print(lines[-1], flush=True)

    started = time.perf_counter()
    for kind in PAIRS:
        together: dict[str, list[float]] = {}
        for noise, results in itertools.product((0.1, 0.5, 1.0), (30, 60, 120)):
            found = drawn(kind, noise, results, runs=runs)
            add(f"{kind} | {noise} | {results}", found)
            for what, listed in found.items():
                together.setdefault(what, []).extend(listed)
        add(f"**{kind}** | all | all", together)
        found = drawn(kind, 0.5, 60, asked=True, runs=runs)
        add(f"{kind} | 0.5 | 60, asked for", found)
    if chosen.out:
        chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    minutes = (time.perf_counter() - started) / 60
    print(f"found how many of {LEVEL:.0%} intervals hold the truth, in %, over {chosen.runs} "
          f"functions of each of {10 * len(PAIRS)} settings, in {minutes:.0f} minutes")  # fmt: skip


if __name__ == "__main__":
    main()
