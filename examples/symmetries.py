"""What stating a symmetry is worth: the same runs with and without it.

    python examples/symmetries.py                    # a ring of 20 bits, five runs
    python examples/symmetries.py ring slots labs dna --runs 0-4
    python examples/symmetries.py dna --data DIR     # real tables in DIR/tfbind8 in place of motifs

ring    a random sum over windows of five of 20 bits in a ring: 20 shifts
slots   four equal slots, each with one of 16 ingredients, with pairs and triples that interact
labs    low auto-correlation sequences of 30 bits: reversal, flip, every second bit flipped
dna     binding of 8 letters to a protein, the same on both strands

Each run starts from the same random points. The table shows how far above the optimum the best
value is, on average over the runs.
"""

import argparse
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np

from mercbo import (
    Categorical,
    CyclicShift,
    Flip,
    Optimizer,
    Permutation,
    Reversal,
    ReverseComplement,
    Space,
)
from mercbo.problems.dna import dna as binding
from mercbo.problems.labs import labs as sequences

Case = tuple[dict, list, Callable, float]


def ring(run: int, _data: Path | None) -> Case:
    n, taps, rng = 20, (0, 1, 2, 4, 7), np.random.default_rng([run, 77])
    gains = rng.normal(size=2 ** len(taps))

    def objective(rows):
        window = sum(np.roll(rows, -tap, axis=1) << bit for bit, tap in enumerate(taps))
        return gains[window].sum(axis=1) / np.sqrt(n)

    every = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    optimum = min(objective(part).min() for part in np.array_split(every, 32))
    return Space.binary(n).variables, [CyclicShift()], objective, float(optimum)


def slots(run: int, _data: Path | None) -> Case:
    m, k, rng = 4, 16, np.random.default_rng([run, 78])
    one, two, three = rng.normal(size=k), rng.normal(size=(k, k)), rng.normal(size=(k, k, k))

    def objective(rows):
        rows = np.sort(rows, axis=1)
        value = one[rows].sum(axis=1)
        value += sum(two[rows[:, i], rows[:, j]] for i, j in combinations(range(m), 2))
        return value + sum(three[tuple(rows[:, c].T)] for c in combinations(range(m), 3))

    names = [f"slot{i}" for i in range(m)]
    variables = {name: Categorical([f"ingredient {j}" for j in range(k)]) for name in names}
    optimum = objective(Space(variables).enumerate_rows()).min()
    return variables, [Permutation(names)], objective, float(optimum)


def labs(run: int, _data: Path | None) -> Case:
    problem = sequences(run, n=30)
    every_second = Flip([f"x{i}" for i in range(1, 30, 2)])
    stated = [Reversal(), Flip(), every_second]
    return problem.space.variables, stated, problem.objective, problem.optimum


def dna(run: int, data: Path | None) -> Case:
    problem = binding(run, data)
    return problem.space.variables, [ReverseComplement()], problem.objective, problem.optimum


CASES = {"ring": ring, "slots": slots, "labs": labs, "dna": dna}


def regret(case: Case, run: int, budget: int, *, stated: bool) -> np.ndarray:
    """How far above the optimum the best value is after each evaluation."""
    variables, symmetries, objective, optimum = case
    space = Space(dict(variables), symmetries=symmetries if stated else [])
    opt = Optimizer(space, seed=run)
    first = np.unique(
        Space(dict(variables)).sample_rows(20, rng=np.random.default_rng(run)), axis=0
    )
    values = list(objective(first))
    opt.tell(space.points(first), values)
    while len(values) < budget:
        point = opt.ask()
        values.append(float(objective(space.rows(point))[0]))
        opt.tell(point, values[-1])
    return np.minimum.accumulate(values) - optimum


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("problems", nargs="*", default=["ring"], metavar="|".join(CASES))
    parser.add_argument("--runs", default="0-4", help="a number, or the first and the last: 0-4")
    parser.add_argument("--budget", type=int, default=40, help="evaluations of a run")
    parser.add_argument("--data", type=Path, help="a folder with tfbind8/*.npy")
    chosen = parser.parse_args()
    first, _, last = chosen.runs.partition("-")
    runs = range(int(first), int(last or first) + 1)
    looked_at = [n for n in (30, 40, 60, 100, 150) if n < chosen.budget] + [chosen.budget]
    print("above the optimum after", *(f"{n:>8}" for n in looked_at))
    for name in chosen.problems:
        cases = [(run, CASES[name](run, chosen.data)) for run in runs]
        for stated in (False, True):
            found = [regret(case, run, chosen.budget, stated=stated) for run, case in cases]
            mean = np.mean(found, axis=0)
            label = f"{name}, symmetries {'stated' if stated else 'left out'}"
            print(f"{label:30}", *(f"{mean[n - 1]:8.4f}" for n in looked_at), flush=True)


if __name__ == "__main__":
    main()
