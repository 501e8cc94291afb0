"""RNA inverse folding: a sequence of n bases whose most stable structure is a given one.

Hofacker et al. (1994). Folding is done by the ViennaRNA package, an optional dependency. The target
is the structure of a random sequence of the run, so that a solution exists and the optimum is 0;
it depends on the energy parameters of the installed version.

- rna-N: the base-pair distance of the sequence's most stable structure to the target;
- rna-gap-N: energy (kcal/mol) of the target above that of the most stable structure. Pairs of the
  target that the bases cannot form are left out of it, and each costs IMPOSSIBLE.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Categorical
from mercbo.errors import choose
from mercbo.problems.base import Problem, at_least, random_initial
from mercbo.space import Space

BASES = "ACGU"
# Bases for each pair that a target has at least: a nearly open structure would be no task.
BASES_PER_PAIR = 4
PAIRS = {"AU", "CG", "GC", "GU", "UA", "UG"}
# A little more than the strongest stack of two pairs gains, 3.4 kcal/mol.
IMPOSSIBLE = 4.0  # kcal/mol
# The shortest length at which random sequences readily have that many pairs.
SHORTEST = 12


def vienna() -> Any:
    try:
        import RNA
    except ImportError as error:
        raise ImportError(
            "RNA folding needs the ViennaRNA package: pip install ViennaRNA"
        ) from error
    return RNA


def sequence(row: Rows) -> str:
    return "".join(BASES[base] for base in row)


def draw_target(n: int, rng: np.random.Generator) -> tuple[Rows, str]:
    """A random sequence with enough pairs in its most stable structure, and that structure."""
    while True:
        row = rng.integers(0, len(BASES), n)
        structure, _ = vienna().fold(sequence(row))
        if BASES_PER_PAIR * structure.count("(") >= n:
            return row, structure


def distances(rows: Rows, target: str) -> Floats:
    RNA = vienna()
    folded = [RNA.fold(sequence(row))[0] for row in rows]
    return np.array([float(RNA.bp_distance(structure, target)) for structure in folded])


def gaps(rows: Rows, target: str) -> Floats:
    return np.array([gap(sequence(row), target) for row in rows])


def gap(bases: str, target: str) -> float:
    possible, left_out = formable(bases, target)
    compound = vienna().fold_compound(bases)
    return float(compound.eval_structure(possible) - compound.mfe()[1] + IMPOSSIBLE * left_out)


def formable(bases: str, target: str) -> tuple[str, int]:
    """The target without the pairs that the bases cannot form, and how many these are.

    >>> formable("GAAAAAC", "((...))")
    ('(.....)', 1)
    """
    structure, opened, left_out = list(target), [], 0
    for i, sign in enumerate(target):
        if sign == "(":
            opened.append(i)
        elif sign == ")":
            partner = opened.pop()
            if bases[partner] + bases[i] not in PAIRS:
                structure[partner] = structure[i] = "."
                left_out += 1
    return "".join(structure), left_out


def rna(run: int, data: Path | None = None, *, n: int = 30, goal: str = "distance") -> Problem:  # noqa: ARG001
    choose("goal", goal, ["distance", "gap"])
    rng = np.random.default_rng([run, 15, at_least("n", n, SHORTEST)])
    _, target = draw_target(n, rng)
    space = Space({f"base{i}": Categorical(list(BASES)) for i in range(n)})
    return Problem(
        f"rna-{n}" if goal == "distance" else f"rna-gap-{n}", space,
        partial(distances if goal == "distance" else gaps, target=target),
        random_initial(space, rng), "Hofacker et al. 1994", 0.0,
    )  # fmt: skip
