"""Each step of a history gives a new one; the old one stays as it was."""

import dataclasses

import numpy as np
import pytest

from mercbo.arrays import keys
from mercbo.record.history import History, mark

A, B, C, D = (np.array([row]) for row in ([0, 0], [0, 1], [1, 0], [1, 1]))
NAN = float("nan")


def rows(*some: np.ndarray) -> np.ndarray:
    return np.concatenate(some)


def told(history: History, row: np.ndarray, value: float, error: float = NAN) -> History:
    return history.told(row, np.array([value]), np.array([error]))


def halfway() -> History:
    """A twice measured, B failed, C pending, D failed and to be tried again."""
    history = History.empty(2).asked(rows(A, C))
    history = told(told(history, A, 1.0), A, 2.0, 0.5)
    history = told(told(history, B, NAN), D, NAN)
    return history.retried(D)


def plain(history: History) -> dict:
    """A history as lists, in order."""
    return {
        "rows": history.rows.tolist(),
        "values": history.values.tolist(),
        "errors": [None if np.isnan(e) else e for e in history.errors],
        "failed": history.stack(history.failed).tolist(),
        "pending": history.stack(history.pending).tolist(),
        "retries": history.stack(history.retries).tolist(),
    }


HALFWAY = {
    "rows": [[0, 0], [0, 0]],
    "values": [1.0, 2.0],
    "errors": [None, 0.5],
    "failed": [[0, 1]],
    "pending": [[1, 0]],
    "retries": [[1, 1]],
}

STEPS = {
    "asked": (lambda h: h.asked(D), {"pending": [[1, 0], [1, 1]], "retries": []}),
    "told a value": (
        lambda h: told(h, C, 3.0, 0.1),
        {
            "rows": [[0, 0], [0, 0], [1, 0]],
            "values": [1.0, 2.0, 3.0],
            "errors": [None, 0.5, 0.1],
            "pending": [],
        },
    ),
    "told a failure": (lambda h: told(h, C, NAN), {"failed": [[0, 1], [1, 0]], "pending": []}),
    "told a failure of a measured point": (
        lambda h: told(h, A, NAN),
        {},
    ),
    "told a value of a failed point": (
        lambda h: told(h, B, 4.0),
        {
            "rows": [[0, 0], [0, 0], [0, 1]],
            "values": [1.0, 2.0, 4.0],
            "errors": [None, 0.5, None],
            "failed": [],
        },
    ),
    "told what was to be tried again": (
        lambda h: told(h, D, NAN),
        {"failed": [[0, 1], [1, 1]], "retries": []},
    ),
    "cancelled": (lambda h: h.cancelled(C), {"pending": []}),
    "forgotten results": (lambda h: h.forgotten(A), {"rows": [], "values": [], "errors": []}),
    "forgotten failure": (lambda h: h.forgotten(B), {"failed": []}),
    "forgotten several": (
        lambda h: h.forgotten(rows(B, A, B)),
        {"rows": [], "values": [], "errors": [], "failed": []},
    ),
    "amended": (
        lambda h: h.amended(A, 7.0, 0.2),
        {"rows": [[0, 0]], "values": [7.0], "errors": [0.2]},
    ),
    "amended to a failure": (
        lambda h: h.amended(A, NAN, NAN),
        {"rows": [], "values": [], "errors": [], "failed": [[0, 1], [0, 0]]},
    ),
    "amended failure": (
        lambda h: h.amended(B, 7.0, NAN),
        {
            "rows": [[0, 0], [0, 0], [0, 1]],
            "values": [1.0, 2.0, 7.0],
            "errors": [None, 0.5, None],
            "failed": [],
        },
    ),
    "retried": (lambda h: h.retried(B), {"failed": [], "retries": [[1, 1], [0, 1]]}),
    "nothing asked": (lambda h: h.asked(A[:0]), {}),
    "nothing told": (lambda h: h.told(A[:0], np.zeros(0), np.zeros(0)), {}),
    "nothing forgotten": (lambda h: h.forgotten(A[:0]), {}),
}


def test_the_example_is_what_it_says():
    assert plain(halfway()) == HALFWAY
    assert len(halfway()) == 2


@pytest.mark.parametrize("step", STEPS)
def test_a_step_changes_what_it_should_and_nothing_of_the_old_history(step):
    before = halfway()
    call, changes = STEPS[step]
    after = call(before)
    assert plain(after) == {**HALFWAY, **changes}
    assert after is not before
    assert plain(before) == HALFWAY


def test_a_history_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        halfway().rows = A


def test_an_empty_history_knows_its_width():
    history = History.empty(3)
    assert len(history) == 0
    assert history.rows.shape == (0, 3)
    assert history.stack(history.pending).shape == (0, 3)
    assert history.seen(repeats=False) == set()


def test_an_amended_result_stays_in_its_place():
    history = told(told(told(told(History.empty(2), A, 1.0), B, 2.0), C, 3.0), B, 4.0)
    after = history.amended(B, 9.0, 0.5)
    assert after.rows.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert after.values.tolist() == [1.0, 9.0, 3.0]
    assert np.isnan(after.errors).tolist() == [True, False, True]


def test_a_point_that_is_amended_stays_pending():
    history = told(History.empty(2), A, 1.0).asked(A)
    assert plain(history.amended(A, 2.0, NAN))["pending"] == [[0, 0]]


def test_one_call_may_tell_a_point_several_times():
    history = History.empty(2).asked(A)
    after = history.told(rows(A, A, B, B), np.array([1.0, NAN, NAN, 2.0]), np.full(4, NAN))
    assert after.values.tolist() == [1.0, 2.0]
    # both have a result, in whatever order it came
    assert after.failed == {}
    assert after.pending == {}


@pytest.mark.parametrize("repeats", [False, True])
def test_what_must_not_be_asked_for(repeats):
    told_too = [] if repeats else [A]
    assert halfway().seen(repeats=repeats) == set(keys(rows(B, C, *told_too)))


def test_which_rows_have_a_result():
    assert halfway().has_result(rows(A, B, C, D)).tolist() == [True, True, False, False]
    assert halfway().has_result(A[:0]).shape == (0,)


def test_marks_keep_their_order_and_come_once():
    assert list(mark(rows(B, A, B))) == keys(rows(B, A))
