"""Benchmark problems, one file each: `PROBLEMS[name](run, data)` makes an instance.

With `data` (a folder of published instances) a run is a published one; without it the instance
is drawn by the same recipe. All are to be minimised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mercbo.problems.base import Problem
from mercbo.problems.contamination import contamination
from mercbo.problems.dna import dna
from mercbo.problems.ising import ising
from mercbo.problems.labs import labs
from mercbo.problems.maxsat import maxsat
from mercbo.problems.pest import pest
from mercbo.problems.random_quadratic import random_quadratic

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "contamination": contamination,
    "ising": ising,
    "labs-50": partial(labs, n=50),
    "maxsat-60": partial(maxsat, n=60),
    "quadratic-100": partial(random_quadratic, n=100),
    "quadratic-200": partial(random_quadratic, n=200),
    "dna": dna,
    "pest": pest,
}

__all__ = ["PROBLEMS", "Problem"]
