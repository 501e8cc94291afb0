"""Benchmark problems, one file each: `make(name, run, data)` gives an instance.

With `data` (a folder of published instances) a run is a published one; without it the instance
is drawn by the same recipe. All are to be minimised. `PROBLEMS[name](run, data)` is the same
without relocation, for the names of the benchmark; `catalogue.py` lists all forms of names.
"""

from __future__ import annotations

from mercbo.problems.base import Problem
from mercbo.problems.catalogue import PROBLEMS, make
from mercbo.problems.relocation import relocate

__all__ = ["PROBLEMS", "Problem", "make", "relocate"]
