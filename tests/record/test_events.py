"""Events: there and back through JSON, and the state that follows from them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from mercbo import Categorical, Forbid, Model, Space, StateError
from mercbo.encoding import Encoding
from mercbo.inference import Fit, Hyper
from mercbo.kernel import Kernel
from mercbo.record.events import KINDS, Event, Nowhere, State
from mercbo.record.fits import fit_schema
from mercbo.record.history import History

ROWS = np.array([[0, 2], [1, 1]])
SPACE = Space({"a": Categorical([0, 1]), "b": Categorical([0, 1, 2])})
READ_FIT = fit_schema(Kernel(Encoding(SPACE)), Model())
FIT = Fit((Hyper(np.array([0.1, 1 / 3]), 1.5, 1e-6, -0.25),), 7, 3, "log:0.3")


def there_and_back(event: Event) -> Event:
    text = json.dumps(event.to_dict(), allow_nan=False)
    return Event.from_dict(event.kind, json.loads(text), SPACE.region, READ_FIT)


def same(one: Event, other: Event) -> bool:
    pairs = [
        (one.rows, other.rows), (one.values, other.values), (one.errors, other.errors),
        (one.answers, other.answers),
    ]  # fmt: skip
    fits = [None if e.fit is None else e.fit.to_dict() for e in (one, other)]
    equal = all(
        (a is None) == (b is None) and (a is None or np.array_equal(a, b, equal_nan=True))
        for a, b in pairs
    )
    return equal and one.kind == other.kind and one.fresh == other.fresh and fits[0] == fits[1]


EVENTS = [
    Event("ask", ROWS),
    Event("ask", ROWS, fit=FIT, fresh=True),
    Event.told(ROWS, np.array([0.1 + 0.2, np.nan]), np.array([np.nan, 1e-9])),
    Event.told(ROWS, np.array([1.0, -0.0]), np.full(2, np.nan)),
    Event.told(ROWS, np.full(2, np.nan), np.full(2, np.nan)),
    Event.told(ROWS[:1], np.ones(1), np.full(1, np.nan), answers=ROWS[1:]),
    Event("amend", ROWS[:1], np.array([2.5]), np.array([0.5])),
    Event("forget", ROWS),
    Event("cancel", ROWS),
    Event("retry", ROWS[:1]),
    Event("adopt", ROWS),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_goes_through_json_unchanged(event):
    assert same(there_and_back(event), event)


def test_every_kind_was_tried():
    assert {event.kind for event in EVENTS} == set(KINDS)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("dance", {"rows": [[0, 0]]}, r"kind: expected one of \['ask'.* got 'dance'"),
        (["ask"], {"rows": [[0, 0]]}, r"kind: expected one of \['ask'.* got \['ask'\]"),
        ("ask", {}, "rows: expected an entry"),
        ("ask", {"rows": [[0]]}, "rows: expected some rows of 2 indices"),
        ("ask", {"rows": [[0, 3]]}, "rows: expected some rows of 2 indices"),
        ("ask", {"rows": [[0, 0]], "fit": {"hypers": []}}, "fit.*expected an entry"),
        ("ask", {"rows": [[0, 0]], "fresh": 1}, "fresh: expected true or false, got 1"),
        ("ask", {"rows": [[0, 0]], "values": [1.0]}, "unknown entry 'values'"),
        ("ask", None, "expected an object, got None"),
        ("tell", {"rows": [[0, 0]]}, "values: expected an entry"),
        ("tell", {"rows": [[0, 0]], "values": [1.0, 2.0]}, "values: expected a list of 1 numbers"),
        ("tell", {"rows": [[0, 0]], "values": ["much"]}, "values: expected a list of 1 numbers"),
        ("tell", {"rows": [[0, 0]], "values": [[1.0]]}, "values: expected a list of 1 numbers"),
        ("tell", {"rows": [[0, 0]], "values": [float("inf")]}, "values: expected a list"),
        ("tell", {"rows": [[0, 0]], "values": [10**400]}, "values: expected a list"),
        ("tell", {"rows": [[0, 0]], "values": [1.0], "errors": []}, "errors: expected a list"),
        ("tell", {"rows": [[0, 0]], "values": [1.0], "errors": [-0.5]}, "errors: expected a list"),
        ("tell", {"rows": [[0, 0]], "values": [1.0], "answers": [[0, 3]]}, "answers: expected"),
        ("tell", {"rows": [[0, 0]], "values": [1.0], "notes": [3]}, r"notes\[0\]: expected an obj"),
        ("tell", {"rows": [[0, 0]], "values": [1.0], "notes": []}, "notes: expected a list of 1"),
        ("amend", {"rows": [[0, 0], [0, 1]], "values": [1.0, 2.0]}, "rows: expected 1 rows"),
        ("cancel", {"rows": [[0, 0]], "fit": None}, "unknown entry 'fit'"),
    ],
)
def test_event_of_another_shape_is_refused(kind, body, message):
    with pytest.raises(StateError, match=message):
        Event.from_dict(kind, body, SPACE.region, READ_FIT)


def test_event_at_a_point_that_breaks_a_constraint_is_refused():
    space = Space(SPACE.variables, [Forbid({"a": 1, "b": 2})])
    body = {"rows": [[0, 2], [1, 2]]}
    for kind, more in (("ask", {}), ("tell", {"values": [1.0, 2.0]})):
        with pytest.raises(StateError, match="rows: expected points within the constraints, got"):
            Event.from_dict(kind, {**body, **more}, space.region, READ_FIT)
    assert len(Event.from_dict("cancel", body, space.region, READ_FIT).rows) == 2


def after(*events: Event) -> State:
    state = State(History.empty(2))
    for event in events:
        state = state.after(event)
    return state


def tell(row: int, value: float) -> Event:
    return Event.told(ROWS[row : row + 1], np.array([value]), np.array([np.nan]))


def test_asks_are_counted_by_their_points():
    state = after(Event("ask", ROWS), Event("cancel", ROWS))
    assert (state.asked, state.number, len(state.history.pending)) == (2, 2, 0)


def test_answers_are_counted_where_pending_points_are_told():
    told = after(tell(0, 1.0), Event("ask", ROWS[1:]))
    assert told.answered == 0  # unasked, and asked and not told
    assert told.after(Event("cancel", ROWS[1:])).answered == 0
    assert told.after(tell(1, 2.0)).answered == 1
    failed = told.after(tell(1, np.nan))
    assert failed.answered == 1
    assert failed.after(tell(0, 3.0)).answered == 1


@pytest.mark.parametrize("kind", ["forget", "retry"])
def test_no_more_were_answered_than_there_are(kind):
    failed = after(Event("ask", ROWS[1:]), tell(1, np.nan))
    back = failed.after(Event(kind, ROWS[1:]))
    assert (failed.answered, back.answered) == (1, 0)
    again = back.after(Event("ask", ROWS[1:])).after(tell(1, 2.0))
    assert (again.asked, again.answered) == (2, 1)


def test_a_result_answers_pending_points_that_it_names():
    state = after(Event("ask", ROWS), replace(tell(0, 1.0), answers=ROWS[1:]))
    assert (len(state.history), len(state.history.pending)) == (1, 0)


def test_an_ask_leaves_its_fit_and_one_without_keeps_the_last():
    state = after(tell(0, 1.0), Event("ask", ROWS[1:], fit=FIT, fresh=True))
    assert state.committed is FIT
    assert state.fresh
    again = state.after(Event("ask", np.array([[0, 0]]), fresh=True))
    assert again.committed is FIT
    assert again.fresh


def test_a_result_makes_the_fit_stale_and_a_failure_does_not():
    state = after(tell(0, 1.0), Event("ask", ROWS[1:], fit=FIT, fresh=True))
    failed, told = state.after(tell(1, np.nan)), state.after(tell(1, 2.0))
    assert (failed.fresh, told.fresh) == (True, False)
    assert failed.committed is told.committed is FIT


@pytest.mark.parametrize("kind", ["amend", "forget"])
def test_a_correction_of_results_drops_the_fit(kind):
    state = after(tell(0, 1.0), Event("ask", ROWS[1:], fit=FIT, fresh=True))
    values = {"values": np.array([3.0]), "errors": np.array([np.nan])} if kind == "amend" else {}
    corrected = state.after(Event(kind, ROWS[:1], **values))
    assert corrected.committed is None
    assert not corrected.fresh


def test_what_can_be_suggested_no_more():
    state = after(tell(0, 1.0), Event("ask", ROWS[1:]))
    assert state.has_taken(ROWS[:1], repeats=False)
    assert not state.has_taken(ROWS[:1], repeats=True)
    assert state.has_taken(ROWS[1:], repeats=True)
    assert not state.has_taken(np.array([[0, 0]]), repeats=False)


def test_an_adoption_changes_nothing_but_the_number():
    state = after(tell(0, 1.0), Event("ask", ROWS[1:], fit=FIT, fresh=True))
    adopted = state.after(Event("adopt", ROWS[1:]))
    assert adopted == replace(state, number=state.number + 1)
    refused, complaint = state.refuses(Event("adopt", ROWS))
    assert (refused.tolist(), complaint) == ([True, False], "is not pending")


def test_nowhere_keeps_nothing():
    log = Nowhere()
    assert not log.begin(0)
    log.append(EVENTS[0])
    log.commit()
    assert not log.entries(0)
