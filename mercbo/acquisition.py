"""From one posterior draw to one point: solve, refine, and take the best that is new.

Thompson sampling: the draw is the acquisition function. Its quadratic problem goes to the
backend; the answers, repaired and polished, and the best points measured so far are where
descent on the sampled function of all orders starts.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import numpy as np

from mercbo import backend
from mercbo.arrays import Floats, Rows
from mercbo.design import key, unseen
from mercbo.kernel import Kernel
from mercbo.quadratic import Draw
from mercbo.samples import Sample

log = logging.getLogger(__name__)

# Points of the backend's pool, and of the history, from which a sampled function is descended.
POOL, INCUMBENTS = 16, 5
# Random starts where the draw is of higher order and no backend can help.
RANDOM_STARTS = 32
# Unseen points that stand in where everything around the minima has been seen.
SPARE = 2000
RELATIVE_GAIN = 1e-12


def thompson(
    draw: Draw,
    kernel: Kernel,
    sampler: Any,
    incumbents: Rows,
    seen: Collection[bytes],
    *,
    rng: np.random.Generator,
) -> Rows:
    """The best unseen point of one draw, as a row."""
    pool = starts(draw, sampler, rng=rng)
    begin = np.unique(np.concatenate([pool, incumbents[:INCUMBENTS]]), axis=0)
    rows, values, around = descend(draw.sample, kernel, begin)
    chosen = best_unseen(kernel, rows, values, around, seen)
    if chosen is not None:
        return chosen
    log.debug("all points around the minima of a draw were seen; taking the best of others")
    spare = unseen(draw.space, seen, SPARE, rng=rng)
    return np.asarray(spare[int(draw.sample.path(spare).argmin())])


def starts(draw: Draw, sampler: Any, *, rng: np.random.Generator) -> Rows:
    """Distinct low points of the draw's acquisition problem, best first."""
    if not draw.is_quadratic:
        return draw.space.sample_rows(RANDOM_STARTS, rng=rng)
    constrained = backend.wants_constraints(sampler, constrained=draw.is_constrained)
    found = backend.solve(sampler, draw.constrained if constrained else draw.bqm, rng=rng)
    return draw.rows_of(found)[:POOL]


def descend(sample: Sample, kernel: Kernel, rows: Rows) -> tuple[Rows, Floats, Floats]:
    """Follow the best one-variable move of the sampled function from each row until none gains.

    Returns the minima (P, n), their values (P,), and the values of all their neighbours (P, L).
    """
    rows = rows.copy()
    values = sample.path(rows)
    around = sample.path_neighbours(rows)
    active = np.arange(len(rows))
    while True:
        best = around[active].argmin(axis=1)
        lowest = around[active, best]
        gains = values[active] - lowest
        moving = gains > RELATIVE_GAIN * (1.0 + np.abs(values[active]))
        active, best, lowest = active[moving], best[moving], lowest[moving]
        if len(active) == 0:
            return rows, values, around
        rows[active, kernel.level_variable[best]] = kernel.level_value[best]
        values[active] = lowest
        around[active] = sample.path_neighbours(rows[active])


def best_unseen(
    kernel: Kernel, rows: Rows, values: Floats, around: Floats, seen: Collection[bytes]
) -> Rows | None:
    """The lowest of the minima and their neighbours that is not in `seen`."""
    table = np.column_stack([values, around])  # (P, 1 + L); column 0 is the minimum itself
    for flat in np.argsort(table, axis=None, kind="stable"):
        which, column = divmod(int(flat), table.shape[1])
        row: Rows = rows[which].copy()
        if column:
            row[kernel.level_variable[column - 1]] = kernel.level_value[column - 1]
        if key(row) not in seen:
            return row
    return None
