"""Figure 6: how the submodular relaxation converges over its rounds.

    python examples/paper/relaxation.py [--data DIR] [--quick]

"We ran five iterations of submodular relaxation and observed convergence", says the paper. Each
round of `mercbo_backends.graphcut.relax` minimises a lower bound of the energy by one cut, which
also gives a state. Over draws from running optimizations: the best bound so far, the best energy of
a state so far, and the same after descent by single flips, above the minimum, in units of the
distance from the minimum to the mean energy of random states. The best that any bound of this kind
can be is the roof dual.
"""

from __future__ import annotations

import numpy as np
from common import figure, options, report, save
from mercbo_backends import Exhaustive, GraphCut
from mercbo_backends.cuts import roof_dual
from mercbo_backends.graphcut import relax
from mercbo_backends.problem import Problem

from mercbo import moves
from mercbo.bench.backends import draws_of
from mercbo.problems.catalogue import find
from mercbo.quadratic import Draw

PROBLEMS, QUICK_PROBLEMS = ["contamination", "ising", "labs-50"], ["labs-10"]
ROUNDS = np.array([1, 2, 3, 5, 7, 10, 14, 20])
MARKS = (1, 5, 10, 20)
RANDOM = 1000
# Bits up to which the minimum is proved by enumeration; beyond, it is the best that is known.
PROVED = 25
KINDS = ("bound", "state", "descended", "roof dual")


def least(draw: Draw) -> float:
    sampler = Exhaustive() if len(draw.bqm.variables) <= PROVED else GraphCut(restarts=1000)
    return float(sampler.sample(draw.bqm, seed=0).first.energy)


def gaps(draw: Draw) -> np.ndarray:
    """(KINDS, ROUNDS): relative distances from the minimum."""
    problem = Problem.of_bqm(draw.bqm)
    lowest = least(draw) - problem.offset
    random = np.random.default_rng(0).integers(0, 2, (RANDOM, problem.width)).astype(np.int8)
    unit = float(problem.energies(random).mean()) - lowest
    found = [relax(problem, int(rounds), upper=lowest) for rounds in ROUNDS]
    bounds = np.array([bound for _, bound in found])
    energies = np.array([problem.energies(states).min() for states, _ in found])
    states, _ = found[-1]  # those of fewer rounds are the first of these
    polished, _ = moves.descend(problem.linear, problem.coupling, problem.groups, states)
    after = np.minimum.accumulate(problem.energies(polished))[np.minimum(ROUNDS, len(states)) - 1]
    dual = np.full(len(ROUNDS), roof_dual(problem)[0])
    return np.array([lowest - bounds, energies - lowest, after - lowest, lowest - dual]) / unit


def main() -> None:
    given = options("relaxation", __doc__, runs="0-7")
    problems = QUICK_PROBLEMS if given.quick else PROBLEMS
    drawn, axes = figure(len(problems))
    print("| draws of | after rounds |", " | ".join(KINDS), "|")
    print("|---" * (2 + len(KINDS)) + "|")
    for axis, name in zip(axes, problems, strict=True):
        table = np.stack([gaps(d) for d in draws_of(find(name), len(given.runs), 1, given.data)])
        for mark in MARKS:
            parts = table[:, :, ROUNDS.tolist().index(mark)].T
            cells = [report.shown(*report.mean_and_error(part)) for part in parts]
            print(f"| {name} ({len(table)}) | {mark} |", " | ".join(cells), "|")
        for number, kind in enumerate(KINDS):
            mean = table[:, number].mean(axis=0)
            error = 2 * table[:, number].std(axis=0, ddof=min(1, len(table) - 1))
            error /= np.sqrt(len(table))
            (line,) = axis.plot(ROUNDS, mean, label=kind, linestyle=":" if number == 3 else "-")
            axis.fill_between(
                ROUNDS, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0
            )
        axis.axvline(5, color="grey", linewidth=0.6, linestyle="--")
        axis.set_title(f"{name}, {len(table)} draws", fontsize=9)
        axis.set_xlabel("rounds")
    axes[0].set_ylabel("distance from the minimum")
    axes[0].legend(fontsize=7)
    save(drawn, given.out / "relaxation.png")


if __name__ == "__main__":
    main()
