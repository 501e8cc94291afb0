"""What was told, in the user's words."""

from __future__ import annotations

import numpy as np

from mercbo import Categorical, Observation, Space
from mercbo.record.history import History
from mercbo.record.observations import best_of, marked_points, observed

SPACE = Space({"base": Categorical(["A", "C"]), "heat": Categorical([20, 40])})
ROWS = np.array([[0, 1], [1, 1], [0, 1]])
HISTORY = History.empty(2).told(ROWS, np.array([3.0, 1.0, 1.0]), np.full(3, np.nan))


def test_replicates_stay_apart_in_the_order_told() -> None:
    first, second = {"base": "A", "heat": 40}, {"base": "C", "heat": 40}
    expected = [Observation(first, 3.0), Observation(second, 1.0), Observation(first, 1.0)]
    assert observed(SPACE, HISTORY) == expected


def test_the_best_is_the_first_of_the_lowest_or_of_the_highest() -> None:
    lowest = best_of(SPACE, HISTORY.rows, HISTORY.values, 1.0)
    assert lowest == Observation({"base": "C", "heat": 40}, 1.0)
    assert best_of(SPACE, HISTORY.rows, HISTORY.values, -1.0).value == 3.0


def test_marked_points_are_those_of_the_mark() -> None:
    history = HISTORY.asked(np.array([[1, 0]]))
    assert marked_points(SPACE, history, history.pending) == [{"base": "C", "heat": 20}]
    assert marked_points(SPACE, history, history.failed) == []
