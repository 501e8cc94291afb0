"""All problems by name: `PROBLEMS`, the names of the benchmark; `make`, those of any size too.

| form             | problem                                                  | file             |
|------------------|----------------------------------------------------------|------------------|
| labs-N           | low auto-correlation binary sequences                    | labs             |
| maxsat-N         | weighted MaxSAT; 28, 43 and 60 are published             | maxsat           |
| quadratic-N      | random main effects and pairs                            | random_quadratic |
| nk-N-K           | NK landscape with K neighbours                           | nk               |
| ehrlich-L        | Ehrlich function, 8 letters, sequences may be infeasible | ehrlich          |
| ehrlich-L-V      | the same with V letters                                  | ehrlich          |
| knapsack-N       | quadratic knapsack, a linear constraint                  | knapsack         |
| assignment-N     | quadratic assignment, all different                      | assignment       |
| rna-N, rna-gap-N | RNA inverse folding; needs ViennaRNA                     | rna              |
| dna:FACTOR       | DNA binding of one factor; needs the published tables    | dna              |
| dna-bits:FACTOR  | the same, 2 bits per base                                | dna              |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mercbo.errors import SettingError, hint
from mercbo.problems.assignment import assignment
from mercbo.problems.base import Problem
from mercbo.problems.contamination import contamination
from mercbo.problems.dna import dna
from mercbo.problems.ehrlich import ehrlich
from mercbo.problems.feature_selection import feature_selection
from mercbo.problems.ising import ising
from mercbo.problems.knapsack import knapsack
from mercbo.problems.labs import labs
from mercbo.problems.maxsat import maxsat
from mercbo.problems.microarray import microarray
from mercbo.problems.nk import nk
from mercbo.problems.pest import pest
from mercbo.problems.power import power
from mercbo.problems.random_quadratic import random_quadratic
from mercbo.problems.relocation import relocate
from mercbo.problems.rna import rna

Maker = Callable[..., Problem]  # (run, data=None) -> Problem

# Forms of names with whole numbers: each upper-case part after a dash is an option of the maker.
FORMS: dict[str, tuple[Maker, tuple[str, ...]]] = {
    "labs-N": (labs, ("n",)),
    "maxsat-N": (maxsat, ("n",)),
    "quadratic-N": (random_quadratic, ("n",)),
    "nk-N-K": (nk, ("n", "k")),
    "ehrlich-L": (ehrlich, ("length",)),
    "ehrlich-L-V": (ehrlich, ("length", "v")),
    "knapsack-N": (knapsack, ("n",)),
    "assignment-N": (assignment, ("n",)),
    "rna-N": (rna, ("n",)),
    "rna-gap-N": (partial(rna, goal="gap"), ("n",)),
}
# Forms with the name of a transcription factor.
FACTORS: dict[str, Maker] = {
    "dna:FACTOR": dna,
    "dna-bits:FACTOR": partial(dna, encoding="binary"),
}


def find(name: str) -> Maker:
    """The maker of a problem; a `SettingError` with a close match where there is none."""
    if name in PROBLEMS:
        return PROBLEMS[name]
    made = _numbered(name) or _factor(name)
    if made is None:
        known = [*PROBLEMS, *FORMS, *FACTORS]
        raise SettingError(f"name={name!r} is not one of {known}{hint(name, known)}")
    return made


def make(name: str, run: int, data: Path | str | None = None, *, relocated: bool = True) -> Problem:
    """The instance of a run; relocated unless told otherwise, see `relocate`.

    It is a pure function of the arguments. With `data`, the folder of published instances, a run
    is a published one where there are any.

    >>> problem = make("nk-12-2", run=0)
    >>> problem.name, problem.relocated, problem.initial.shape
    ('nk-12-2', True, (20, 12))
    """
    if isinstance(run, bool) or not isinstance(run, int) or run < 0:
        raise SettingError(f"run={run!r} is not a whole number of at least 0")
    problem = find(name)(run, None if data is None else Path(data))
    return relocate(problem, run) if relocated else problem


def _numbered(name: str) -> Maker | None:
    for form, (maker, options) in FORMS.items():
        pattern = re.sub("-[A-Z]", r"-([0-9]+)", form)
        if found := re.fullmatch(pattern, name):
            return partial(maker, **dict(zip(options, map(int, found.groups()), strict=True)))
    return None


def _factor(name: str) -> Maker | None:
    family, colon, factor = name.partition(":")
    maker = FACTORS.get(f"{family}:FACTOR")
    return partial(maker, factor=factor) if maker and colon else None


PROBLEMS: dict[str, Maker] = {
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
    "microarray": microarray,
    "power-energy": partial(power, goal="energy"),
    "power-mass": partial(power, goal="mass"),
    "power-energy-bits": partial(power, goal="energy", encoding="binary"),
    "power-mass-bits": partial(power, goal="mass", encoding="binary"),
    "nk-30-3": partial(nk, n=30, k=3),
    "ehrlich-15": partial(ehrlich, length=15),
    "ehrlich-32": partial(ehrlich, length=32),
    "knapsack-30": partial(knapsack, n=30),
    "assignment-10": partial(assignment, n=10),
    "features": feature_selection,
    "rna-30": partial(rna, n=30),
    "rna-gap-30": partial(rna, n=30, goal="gap"),
    "quadratic-100": partial(random_quadratic, n=100),
    "quadratic-200": partial(random_quadratic, n=200),
}
