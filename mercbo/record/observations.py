"""What was told and what is predicted, in the user's words: points and values instead of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Point
from mercbo.record.history import History, Marked
from mercbo.space import Space


@dataclass(frozen=True)
class Observation:
    """A point and its result, in the user's units."""

    point: Point
    value: float


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
