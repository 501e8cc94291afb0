"""`Reading`: the letters of a sequence, in stretches of a few, for `motifs.py`.

What is read is the longest row of neighbours with the same unordered values, in the order in which
the space lists them: of letters, where there are any, else of bits. Where the letters are those of
DNA, so is the other strand.

| symbol | meaning                                                                      | shape    |
|--------|------------------------------------------------------------------------------|----------|
| n      | places that are read                                                         |          |
| k, W   | letters of the alphabet; of a stretch                                        |          |
| S      | stretches of W letters: n - W + 1                                            |          |
| code   | number of the letters of a stretch, written to the base k                    | (N, S)   |
| e_r    | of two rows: sum over their stretches of how many sets of r places agree     | (A, B)   |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mercbo.arrays import Floats, Index, Rows
from mercbo.kernel import Kernel, Part, once_per_kernel

# Letters of a stretch. On 32 simulated microarrays of 8 letters, stretches of four were better than
# no motifs (20 wins, 8 ties, 4 losses after 120 evaluations), those of five no better than four.
LETTERS = 4
# Neighbours that are read at least (fewer hold a motif at hardly more than one place) and at most.
FEWEST, MOST = 6, 64
# Codes of stretches at most: a large alphabet is read in shorter ones, of two letters at least.
MOST_CODES = 1024
MOST_VALUES = 32
# What stands on the other strand of DNA.
OPPOSITE = {"A": "T", "C": "G", "G": "C", "T": "A"}


@dataclass(frozen=True, eq=False)
class Reading:
    """Which variables are read, and in stretches of how many letters."""

    variables: Index  # (n,), neighbours in the space
    size: int  # k
    letters: int  # W
    psi: Floats  # (k, d)
    features: Index  # (n, d)
    opposite: Index | None  # (k,): each letter's on the other strand, where there is one
    # (n, k): the number of each declared value among the letters; None: as declared
    rank: Index | None = None

    @staticmethod
    @once_per_kernel  # every step of a fit asks for it
    def of(kernel: Kernel) -> Reading | None:
        """None where there is nothing to read. Letters go before bits, and longer rows first."""
        rows = [(part, row) for part in kernel.parts for row in _neighbours(kernel, part)]
        if not rows:
            return None
        part, found = max(rows, key=lambda each: (each[0].size > 2, len(each[1])))
        letters = LETTERS
        while part.size**letters > MOST_CODES:
            letters -= 1
        members = np.searchsorted(part.variables, found)
        opposite = _opposite(kernel.values[found[0]])
        rank = None if part.rank is None else part.rank[members]
        return Reading(found, part.size, letters, part.psi, part.features[members], opposite, rank)

    @property
    def starts(self) -> int:
        """S."""
        return len(self.variables) - self.letters + 1

    @property
    def codes(self) -> int:
        return int(self.size**self.letters)

    @property
    def powers(self) -> Index:
        """(W,): what a letter is worth in a code, by its place in the stretch."""
        return self.size ** np.arange(self.letters - 1, -1, -1)

    @property
    def axes(self) -> tuple[int, ...]:
        """The shape of a table of codes with an axis for each place."""
        return (self.size,) * self.letters

    def spelt(self, rows: Rows, strand: int = 0) -> Rows:
        """(N, n): the letters of one strand or of the other."""
        letters = rows[:, self.variables]
        if self.rank is not None:
            letters = self.rank[np.arange(len(self.variables)), letters]
        return letters if strand == 0 else self._other(letters)

    def _other(self, letters: Rows) -> Rows:
        assert self.opposite is not None
        return self.opposite[letters[..., ::-1]]

    def windows(self, rows: Rows, strand: int = 0) -> Rows:
        """(N, S, W): the letters of each stretch."""
        return sliding_window_view(self.spelt(rows, strand), self.letters, axis=1)

    def code(self, rows: Rows) -> Index:
        return np.asarray(self.windows(rows) @ self.powers)

    @cached_property
    def turned(self) -> Index:
        """(codes,): each stretch's code on the other strand."""
        letters = np.stack(np.unravel_index(np.arange(self.codes), self.axes), axis=1)
        return np.asarray(self._other(letters) @ self.powers)

    @cached_property
    def around(self) -> tuple[Index, Index]:
        """(n + 1, W) each: the stretches that have a place, and what a letter is worth in their
        codes. Near the ends there are fewer, and none behind the last place, for variables that
        are not read; those that are not there have the number S, and no worth."""
        place = np.arange(len(self.variables) + 1)[:, np.newaxis]
        start = place - np.arange(self.letters)
        there = (start >= 0) & (start < self.starts) & (place < len(self.variables))
        return np.where(there, start, self.starts), np.where(there, self.powers, 0)


def _neighbours(kernel: Kernel, part: Part) -> list[Index]:
    """Rows of variables of a part that stand side by side, have the same unordered values, one-hot
    or bits, and are neither too few nor too many."""
    unordered = part.graph != "path" and part.factors.shape[1] == 1
    if not unordered or not 2 <= part.size <= MOST_VALUES:
        return []
    kind = kernel.alike[part.variables]
    breaks = (np.diff(part.variables) != 1) | (np.diff(kind) != 0)
    rows = np.split(part.variables, np.flatnonzero(breaks) + 1)
    return [row for row in rows if FEWEST <= len(row) <= MOST]


def _opposite(values: tuple[Any, ...]) -> Index | None:
    if set(values) != set(OPPOSITE):
        return None
    return np.array([values.index(OPPOSITE[value]) for value in values], dtype=np.intp)


# -- what rows have in common ------------------------------------------------------------------


def agreements(reading: Reading, rows: Rows, strand: int = 0) -> Floats:
    """(W + 1, N, N): e_r of rows with each other, the second read from one of the strands."""
    left, right = reading.windows(rows), reading.windows(rows, strand)
    out = np.zeros((reading.letters + 1, len(rows), len(rows)))
    for count in range(reading.letters + 1):
        for places in combinations(range(reading.letters), count):
            powers, chosen = reading.size ** np.arange(count), list(places)
            codes = left[:, :, chosen] @ powers, right[:, :, chosen] @ powers
            one, other = (counts_of(each, reading.size**count) for each in codes)
            out[count] += one @ other.T
    return out


def counts_of(code: Index, codes: int) -> Floats:
    """(N, codes): how often a row has each code."""
    flat = code + codes * np.arange(len(code))[:, np.newaxis]
    counts = np.bincount(flat.ravel(), minlength=codes * len(code))
    return np.asarray(counts, dtype=np.float64).reshape(len(code), codes)
