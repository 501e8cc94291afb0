"""Points without a model: the space-filling start of a run."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.asking.failures import Works
from mercbo.domain.feasible import Feasible
from mercbo.encoding import HasVariables

# Random candidates per design point: enough to spread out, few enough to stay random.
CANDIDATES = 64
# Random rows that predicates are asked about for these, once they have allowed one: they are the
# user's code, which may take long. Those that allow one row in 32 or more give all candidates.
TRIES = 32 * CANDIDATES


def space_filling(
    feasible: Feasible,
    seen: Collection[bytes],
    placed: Rows,
    works: Works,
    *,
    rng: np.random.Generator,
) -> Rows | None:
    """One unseen point far from those already placed and likely to work: the best of a few random
    candidates by distance times chance.

    Distance is the number of differing variables; on ordered ones the share of the range.
    """
    candidates = feasible.unseen(seen, CANDIDATES, tries=TRIES, rng=rng)
    if len(candidates) == 0:
        return None
    chance = works.chance(candidates)
    if len(placed) == 0:
        return np.asarray(candidates[int(chance.argmax())])
    nearest = distances(feasible.region, candidates, placed).min(axis=1)
    return np.asarray(candidates[int((nearest * chance).argmax())])


def diversity(rows: Rows) -> float:
    """The mean number of variables in which two of the rows differ; 0 where there is one row."""
    count = len(rows)
    if count < 2:
        return 0.0
    same = sum(int((np.bincount(column) ** 2).sum()) for column in rows.T)  # ordered pairs
    return float(rows.shape[1] * count**2 - same) / (count * (count - 1))


def distances(space: HasVariables, a: Rows, b: Rows) -> Floats:
    """(A, B): the distance of `space_filling` between rows."""
    gap = np.abs(a[:, np.newaxis, :] - b[np.newaxis, :, :])
    ordered = np.array([v.graph == "path" for v in space.variables.values()])
    sizes = np.array([v.size for v in space.variables.values()])
    share = gap / np.maximum(sizes - 1, 1)
    return np.asarray(np.where(ordered, share, gap > 0).sum(axis=2))
