"""Points without a model: the space-filling start of a run, and unseen points in general."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.space import Space

# Random candidates per design point: enough to spread out, few enough to stay random.
CANDIDATES = 64


def key(row: Rows) -> bytes:
    """A row as a dictionary key."""
    return row.astype(np.int16).tobytes()


def keys(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows.astype(np.int16)]


def unseen(space: Space, seen: Collection[bytes], k: int, *, rng: np.random.Generator) -> Rows:
    """Up to `k` distinct random points that are not in `seen`; fewer only where no more exist.

    While at least half of the space is unseen, random points are tried until enough are new;
    after that the space is at most twice the history and is listed.
    """
    if 2 * (len(seen) + k) >= space.size:
        rows = space.enumerate_rows()
        fresh = rows[[found not in seen for found in keys(rows)]]
        return fresh[rng.permutation(len(fresh))[:k]]
    taken: dict[bytes, Rows] = {}
    while len(taken) < k:
        rows = space.sample_rows(2 * k, rng=rng)
        for found, row in zip(keys(rows), rows, strict=True):
            if found not in seen:
                taken.setdefault(found, row)
    return np.array(list(taken.values())[:k], dtype=np.int64).reshape(-1, len(space))


def space_filling(
    space: Space, seen: Collection[bytes], placed: Rows, *, rng: np.random.Generator
) -> Rows:
    """One unseen point far from those already placed: the best of a few random candidates.

    Distance is the number of differing variables; on ordered ones the share of the range.
    """
    candidates = unseen(space, seen, CANDIDATES, rng=rng)
    if len(placed) == 0:
        return np.asarray(candidates[0])
    nearest = distances(space, candidates, placed).min(axis=1)
    return np.asarray(candidates[int(nearest.argmax())])


def distances(space: Space, a: Rows, b: Rows) -> Floats:
    """(A, B): the distance of `space_filling` between rows."""
    gap = np.abs(a[:, np.newaxis, :] - b[np.newaxis, :, :])
    ordered = np.array([v.graph == "path" for v in space.variables.values()])
    share = gap / np.maximum(space.sizes - 1, 1)
    return np.asarray(np.where(ordered, share, gap > 0).sum(axis=2))
