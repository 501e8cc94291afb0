"""Ehrlich functions: sequences in which spaced motifs must be present and some steps are banned.

Stanton et al. (2024), "Closed-form test functions for biophysical sequence design". A sequence is
feasible where no letter is followed by one that is banned after it; else its evaluation fails
(NaN). The value is the product over motifs of the largest share of the motif's letters that stand
at its spacing from any position, rounded down to a multiple of 1 / q. It is to be maximised with
optimum 1, so the objective is its negative.

| symbol  | meaning                                              | shape  |
|---------|------------------------------------------------------|--------|
| v, L    | letters in the vocabulary, length of the sequence    |        |
| c, k, q | motifs, letters in each, levels of a motif's share   |        |
| allowed | whether a letter may follow another                  | (v, v) |
| motifs  | letters of each motif                                | (c, k) |
| offsets | their positions, the first at 0                      | (c, k) |

The name ehrlich-L has v = 8, k = q = 4 and about one motif per 8 places, at most 8 motifs; with
ehrlich-L-V the vocabulary is another one, so that ehrlich-32-32 has the size of the paper's first
function, Ehr(32, 32, 4, 4). Instances are drawn here, not those of the paper's software.

The optimum is feasible by construction. The motifs, one after the other, are a walk of allowed
steps, a letter may always follow itself, and a motif spans at most L // c places: so each letter
repeated up to the next one's place is an optimal sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Mask, Rows
from mercbo.domain.variables import Categorical
from mercbo.errors import SettingError
from mercbo.problems.base import INITIAL, Problem, at_least
from mercbo.space import Space

# Share of the steps that are banned after each letter. Of 32 letters that is what the paper's
# software bans, of 8 it is two where theirs is at most one: less of the space is feasible here.
BANNED = 0.2
# Places for each motif, and the most motifs, in ehrlich-L: the paper has 4 motifs at L = 32.
PLACES_PER_MOTIF, MOST_MOTIFS = 8, 8


@dataclass(frozen=True)
class Ehrlich:
    """The function itself; called with rows (N, L) it gives minus their values (N,)."""

    allowed: Mask
    motifs: Rows
    offsets: Rows
    levels: int

    def __call__(self, rows: Rows) -> Floats:
        shares = [self.share(rows, m, o) for m, o in zip(self.motifs, self.offsets, strict=True)]
        return np.where(self.feasible(rows), 0.0 - np.prod(shares, axis=0), np.nan)

    def feasible(self, rows: Rows) -> Mask:
        return np.asarray(self.allowed[rows[:, :-1], rows[:, 1:]].all(axis=1))

    def share(self, rows: Rows, motif: Rows, offsets: Rows) -> Floats:
        """How much of one motif is present, in steps of 1 / q, (N,)."""
        starts = np.arange(rows.shape[1] - offsets[-1])
        there = rows[:, starts[:, np.newaxis] + offsets] == motif  # (N, starts, k)
        most = there.sum(axis=2).max(axis=1)
        return np.asarray((most * self.levels // len(motif)) / self.levels)

    def solution(self, length: int) -> Rows:
        """An optimal sequence, (L,): each letter is repeated up to the place of the next one."""
        row: list[int] = []
        for motif, offsets in zip(self.motifs, self.offsets, strict=True):
            repeats = np.append(np.diff(offsets), 1)
            row.extend(np.repeat(motif, repeats).tolist())
        return np.array(row + [row[-1]] * (length - len(row)))


def draw_allowed(v: int, rng: np.random.Generator) -> Mask:
    """(v, v): some steps banned; none of a letter to itself, nor of one cycle through all letters,
    so that every letter can be reached."""
    allowed = np.ones((v, v), dtype=np.bool_)
    cycle = rng.permutation(v)
    following = dict(zip(cycle.tolist(), np.roll(cycle, -1).tolist(), strict=True))
    for letter in range(v):
        others = [other for other in range(v) if other not in (letter, following[letter])]
        count = min(len(others), max(1, round(BANNED * v)))
        allowed[letter, rng.choice(others, count, replace=False)] = False
    return allowed


def walk(allowed: Mask, steps: int, rng: np.random.Generator) -> Rows:
    """(steps,): letters drawn uniformly among those that may follow."""
    letters = [int(rng.integers(len(allowed)))]
    while len(letters) < steps:
        letters.append(int(rng.choice(np.flatnonzero(allowed[letters[-1]]))))
    return np.array(letters)


def draw_offsets(span: int, k: int, rng: np.random.Generator) -> Rows:
    """(k,): 0 and then increasing places below `span`."""
    return np.append(0, np.sort(rng.choice(np.arange(1, span), k - 1, replace=False)))


def draw(v: int, length: int, c: int, k: int, q: int, rng: np.random.Generator) -> Ehrlich:
    allowed = draw_allowed(v, rng)
    moving = allowed & ~np.eye(v, dtype=np.bool_)  # a motif does not repeat a letter at once
    motifs = walk(moving, c * k, rng).reshape(c, k)
    offsets = np.array([draw_offsets(length // c, k, rng) for _ in range(c)])
    return Ehrlich(allowed, motifs, offsets, q)


def ehrlich(
    run: int,
    data: Path | None = None,  # noqa: ARG001
    *,
    length: int = 32,
    v: int = 8,
    c: int | None = None,
    k: int = 4,
    q: int | None = None,
) -> Problem:
    """Initial sequences are walks of allowed steps, hence feasible."""
    at_least("v", v, 3)
    at_least("k", k, 2)
    motifs = min(MOST_MOTIFS, max(1, round(length / PLACES_PER_MOTIF))) if c is None else c
    at_least("length", length, at_least("c", motifs, 1) * k)
    levels = k if q is None else q
    if levels < 1 or k % levels:
        raise SettingError(f"q={q} does not divide the length of motifs, k={k}")
    rng = np.random.default_rng([run, 12, length, v])
    function = draw(v, length, motifs, k, levels, rng)
    space = Space({f"place{i}": Categorical(range(v)) for i in range(length)})
    initial = np.array([walk(function.allowed, length, rng) for _ in range(INITIAL)])
    name = f"ehrlich-{length}" if v == 8 else f"ehrlich-{length}-{v}"
    return Problem(name, space, function, initial, "Stanton et al. 2024", -1.0)
