"""How often the intervals of `opt.explain()` hold the truth: on random functions that are known.

    python examples/explain_coverage.py                      # a few minutes; prints a table
    python examples/explain_coverage.py --runs 12 --out examples/results/explain.md

A function is the sum of an effect of each of eight variables (binary, categorical of 3-5 values,
ordered of 3-6) and, where it is quadratic, of interactions of all pairs or of every second one.
Effects of ordered variables are a slope, a bend and a step. Sizes vary by a factor of about
exp(0.5) either way. Noise is given as a share of the function's standard deviation. The intervals
are those of level 80 %. A rate's standard error is that over functions, as the intervals of one
function depend on each other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, Space

LEVEL = 0.8
VARIABLES = 8
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
    hits: dict[str, list[bool]] = {"effects": [], "interactions": [], "no interaction": []}
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


def rates(
    kind: str, noise: float, results: int, *, asked: bool = False, runs: range
) -> dict[str, tuple[float, float]]:
    """Mean and standard error over functions of `covered`."""
    found: dict[str, list[float]] = {}
    for run in runs:
        rng = np.random.default_rng([run, list(PAIRS).index(kind), int(10 * noise), results, asked])
        function = draw_function(kind, rng)
        for what, rate in covered(function, told(function, noise, results, asked, rng)).items():
            found.setdefault(what, []).append(rate)
    return {k: (float(np.mean(v)), float(np.std(v) / np.sqrt(len(v)))) for k, v in found.items()}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=4, help="functions of each kind")
    arguments.add_argument("--first", type=int, default=1000, help="seed of the first")
    arguments.add_argument("--out", type=Path)
    chosen = arguments.parse_args()
    runs = range(chosen.first, chosen.first + chosen.runs)
    cells = [(k, s, n, False) for k in PAIRS for s in (0.1, 0.5, 1.0) for n in (30, 60, 120)]
    cells += [(kind, 0.5, 60, True) for kind in PAIRS]
    lines = ["| function | noise | results | points | effects | interactions | no interaction |",
             "|---|---|---|---|---|---|---|"]  # fmt: skip
    print(*lines, sep="\n")
    started = time.perf_counter()
    for kind, noise, results, asked in cells:
        found = rates(kind, noise, results, asked=asked, runs=runs)
        shown = [
            f"{100 * found[what][0]:.0f} ± {100 * found[what][1]:.0f}" if what in found else ""
            for what in ("effects", "interactions", "no interaction")
        ]
        points = "asked for" if asked else "random"
        lines.append(f"| {kind} | {noise} | {results} | {points} | {' | '.join(shown)} |")
        print(lines[-1], flush=True)
    if chosen.out:
        chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    minutes = (time.perf_counter() - started) / 60
    print(f"found the rates of {len(cells)} settings, in % of {LEVEL:.0%} intervals, "
          f"over {chosen.runs} functions each, in {minutes:.0f} minutes")  # fmt: skip


if __name__ == "__main__":
    main()
