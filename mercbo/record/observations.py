"""What was told and what is predicted, in the user's words: points and values instead of arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Point
from mercbo.record.history import UNKNOWN, History, Marked, Metadata
from mercbo.space import Space


@dataclass(frozen=True)
class Observation:
    """A point and its result, in the user's units."""

    point: Point
    value: float


@dataclass(frozen=True)
class Record:
    """A point of a run with all that is known of it.

    value, std
        The result and the standard deviation of its error, in the user's units; None if unknown.
    state
        "evaluated", "failed" or "pending".
    batch
        Number of the `ask` that suggested the point, from 1; None if no `ask` did.
    time
        UTC time of the result, or of the `ask` if the point is pending; "" if unknown.

    `notes` holds the user's own entries.
    """

    point: Point
    value: float | None
    std: float | None
    state: str
    batch: int | None
    time: str
    notes: Mapping[str, Any] = field(default_factory=dict)


class Prediction(NamedTuple):
    """Mean and standard deviation of the noise-free objective, in the user's units; among wild
    results the median and half of the width of the middle 68% (`Optimizer.predict`)."""

    mean: Floats
    std: Floats


def observed(space: Space, history: History) -> list[Observation]:
    """Every result, in the order told."""
    values = history.values.tolist()
    return [Observation(p, v) for p, v in zip(space.points(history.rows), values, strict=True)]


def best_of(space: Space, rows: Rows, values: Floats, sign: float) -> Observation:
    """The row whose value times `sign` is the lowest, the first of them."""
    where = int(np.argmin(sign * values))
    return Observation(space.points(rows[where : where + 1])[0], float(values[where]))


def marked_points(space: Space, history: History, marked: Marked) -> list[Point]:
    """The points of a history that are marked as failed, pending or so."""
    return space.points(history.stack(marked))


def recorded(space: Space, history: History) -> list[Record]:
    """One record per result, in the order told, then per failure and per pending point."""

    def record(point: Point, value: float, error: float, state: str, said: Metadata) -> Record:
        batch, time, notes = said
        return Record(point, _known(value), _known(error), state, batch, time, notes or {})

    found = [
        record(point, value, error, "evaluated", said)
        for point, value, error, said in zip(
            space.points(history.rows), history.values.tolist(), history.errors.tolist(),
            history.metadata, strict=True,
        )
    ]  # fmt: skip
    for state, marked in (("failed", history.failed), ("pending", history.pending)):
        for key, point in zip(marked, marked_points(space, history, marked), strict=True):
            said = history.marks.get(key, UNKNOWN)
            found.append(record(point, math.nan, math.nan, state, said))
    return found


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number
