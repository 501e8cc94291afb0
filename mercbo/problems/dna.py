"""DNA binding: 8 letters; real 8-mer E-scores where data are given, a motif model otherwise.

Real tables (Barrera et al. 2016, TFBind8) are ``DATA/tfbind8/NAME.npy``: 65,536 scores, indexed
by the base-4 number of the sequence, A = 0 .. T = 3, first letter most significant. They are to be
maximised, so the objective is their negative. Run r takes the r-th factor in alphabetical order,
round and round; ``dna:ARX`` is one factor in all runs, which then differ in their initial points.

The motif model scores the better strand against a random position weight matrix with a few pair
interactions, so it has the symmetry of the real tables: a sequence and its reverse complement
bind alike.

The name dna has one variable of 4 letters per base; dna-bits has the paper's 2 bits per base.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Categorical
from mercbo.errors import SettingError, hint
from mercbo.problems.base import Problem, random_initial
from mercbo.space import Space

LETTERS, LENGTH = "ACGT", 8
BUDGET = 500  # as published
PLACES = 4 ** np.arange(LENGTH - 1, -1, -1)


def look_up(rows: Rows, table: Floats) -> Floats:
    return -np.asarray(table[rows @ PLACES], dtype=np.float64)


def reverse_complement(rows: Rows) -> Rows:
    return 3 - rows[:, ::-1]


def motif_table(rng: np.random.Generator) -> Floats:
    """(65536,) scores of a random motif, the better strand counting."""
    rows = np.stack(np.unravel_index(np.arange(4**LENGTH), [4] * LENGTH), axis=1)
    matrix = rng.normal(0.0, 1.0, (LENGTH, 4))
    score = matrix[np.arange(LENGTH), rows].sum(axis=1)
    for _ in range(4):
        i, j = rng.choice(LENGTH, 2, replace=False)
        score = score + rng.normal(0.0, 1.0, (4, 4))[rows[:, i], rows[:, j]]
    both = np.maximum(score, score[reverse_complement(rows) @ PLACES])
    return np.asarray(1.0 / (1.0 + np.exp(-both / 3.0)) - 0.5)


def factor_table(data: Path, run: int, factor: str | None) -> tuple[str, Floats]:
    """The name and the scores of a factor: the one named, else the one whose turn it is."""
    paths = sorted((Path(data) / "tfbind8").glob("*.npy"))
    if not paths:
        raise SettingError(f"data={str(data)!r} has no tfbind8/*.npy")
    by_name = {path.stem.partition("_")[0]: path for path in paths}
    name = list(by_name)[run % len(by_name)] if factor is None else factor
    if name not in by_name:
        known = list(by_name)
        raise SettingError(f"factor={factor!r} is not one of {known}{hint(factor, known)}")
    return name, np.load(by_name[name])


def dna(
    run: int,
    data: Path | None = None,
    *,
    encoding: str = "one-hot",
    factor: str | None = None,
) -> Problem:
    """The table of a factor where `data` is given, else a motif of the run's own."""
    variable = Categorical(list(LETTERS), encoding=encoding)
    space = Space({f"base{i}": variable for i in range(LENGTH)})
    rng = np.random.default_rng([run, 6])
    name = "dna-bits" if encoding == "binary" else "dna"
    if data is not None:
        factor, table = factor_table(data, run, factor)
        name = f"{name}:{factor}"
    elif factor is None:
        table = motif_table(rng)
    else:
        raise SettingError(f"factor={factor!r} needs the folder of published tables, data=...")
    return Problem(
        name, space, partial(look_up, table=table), random_initial(space, rng),
        "Barrera et al. 2016", -float(table.max()), BUDGET,
    )  # fmt: skip
