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
    "ising": ising,
    "ising-0": partial(ising, penalty=0.0),
    "ising-1e-2": partial(ising, penalty=1e-2),
    "contamination": contamination,
    "contamination-0": partial(contamination, penalty=0.0),
    "contamination-1e-2": partial(contamination, penalty=1e-2),
    "labs-40": partial(labs, n=40),
    "labs-50": partial(labs, n=50),
    "maxsat-28": partial(maxsat, n=28),
    "maxsat-43": partial(maxsat, n=43),
    "maxsat-60": partial(maxsat, n=60),
    "pest": pest,
    "pest-fixed": partial(pest, noisy=False),
    "dna": dna,
    "dna-bits": partial(dna, encoding="binary"),
    "quadratic-100": partial(random_quadratic, n=100),
    "quadratic-200": partial(random_quadratic, n=200),
}

__all__ = ["PROBLEMS", "Problem"]
