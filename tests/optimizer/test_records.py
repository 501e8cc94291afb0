"""`records`, `to_frame`, notes and `target_bounds`."""

from __future__ import annotations

import math

import pytest
from support.optimizer import plain
from support.stored import url_of

from mercbo import (
    Binary,
    Categorical,
    Integer,
    Optimizer,
    Record,
    ResultError,
    SettingError,
    Space,
)

SPACE = Space({"base": Categorical(list("ACGT")), "n": Integer(1, 3), "wash": Binary()})
TIME = "2026-01-01T00:00:00.000+00:00"  # of the frozen clock


def make(**options) -> Optimizer:
    return Optimizer(SPACE, seed=0, n_initial=10, model=plain(), **options)


def test_records_list_results_failures_and_pending_points() -> None:
    opt = make()
    one, two = opt.ask(2)
    three = opt.ask()
    prior = next(p for p in SPACE.points(SPACE.feasible.listed) if p not in (one, two, three))
    opt.tell(prior, 0.5)
    opt.tell(one, 1.5, std=0.1, notes={"well": "A1"})
    opt.tell(three, None, notes={"why": "spilt"})
    assert opt.records() == [
        Record(prior, 0.5, None, "evaluated", None, TIME),
        Record(one, 1.5, 0.1, "evaluated", 1, TIME, {"well": "A1"}),
        Record(three, None, None, "failed", 2, TIME, {"why": "spilt"}),
        Record(two, None, None, "pending", 1, TIME),
    ]


def test_batch_numbers_count_asks_and_not_points() -> None:
    opt = make()
    opt.ask(3)
    opt.cancel(opt.pending[0])
    opt.ask(2)
    assert [record.batch for record in opt.records()] == [1, 1, 2, 2]


def test_amend_keeps_batch_and_notes() -> None:
    opt = make()
    points = opt.ask(2)
    opt.tell(points, [1.0, 2.0], notes=[{"well": "A1"}, None])
    opt.amend(points[0], 5.0)
    assert [(r.value, r.batch, r.notes) for r in opt.records()] == [
        (5.0, 1, {"well": "A1"}), (2.0, 1, {}),
    ]  # fmt: skip
    opt.amend(points[0], None)
    opt.amend(points[0], 6.0)
    assert [(r.value, r.batch, r.notes) for r in opt.records()] == [
        (2.0, 1, {}), (6.0, 1, {"well": "A1"}),
    ]  # fmt: skip


def test_forgotten_and_retried_points_leave_no_record() -> None:
    opt = make()
    points = opt.ask(3)
    opt.tell(points, [1.0, None, 3.0], notes=[{"i": 0}, {"i": 1}, {"i": 2}])
    opt.forget(points[0])
    opt.retry(points[1])
    assert [(r.point, r.notes) for r in opt.records()] == [(points[2], {"i": 2})]
    assert opt.ask() == points[1]
    assert opt.records()[-1] == Record(points[1], None, None, "pending", 2, TIME)


def run_with_notes(**options) -> Optimizer:
    opt = make(**options)
    points = opt.ask(4)
    opt.tell(points[:3], [1.0, None, 3.0], notes=[{"well": "A1", "ml": 0.5}, {"well": "A2"}, None])
    return opt


def test_records_survive_save_and_load(tmp_path) -> None:
    opt = run_with_notes()
    opt.save(tmp_path / "run.json")
    loaded = Optimizer.load(tmp_path / "run.json")
    assert loaded.records() == opt.records()
    loaded.ask()
    assert loaded.records()[-1].batch == 2


def test_records_survive_a_store(tmp_path) -> None:
    opt = run_with_notes(storage=url_of(tmp_path))
    assert Optimizer.open(url_of(tmp_path)).records() == opt.records()


def test_to_frame_has_a_column_per_variable_field_and_note() -> None:
    opt = run_with_notes()
    frame = opt.to_frame()
    assert list(frame.columns) == [
        "base", "n", "wash", "value", "std", "state", "batch", "time", "well", "ml",
    ]  # fmt: skip
    assert frame["state"].tolist() == ["evaluated", "evaluated", "failed", "pending"]
    assert frame["value"].tolist()[:2] == [1.0, 3.0]
    assert frame["value"].isna().tolist() == [False, False, True, True]
    assert frame["well"].isna().tolist() == [False, True, False, True]
    assert frame["batch"].tolist() == [1, 1, 1, 1]
    assert len(make().to_frame()) == 0


def test_to_frame_renames_columns_that_a_variable_has() -> None:
    opt = Optimizer(Space({"value": Binary(), "batch": Binary()}), seed=0)
    opt.tell({"value": 1, "batch": 0}, 2.0, notes={"value": "x"})
    frame = opt.to_frame()
    assert list(frame.columns) == [
        "value", "batch", "value (record)", "std", "state", "batch (record)", "time",
        "value (note)",
    ]  # fmt: skip
    assert frame["value (record)"].tolist() == [2.0]


def nested(levels: int) -> dict:
    note: dict = {}
    for _ in range(levels - 1):
        note = {"x": note}
    return note


@pytest.mark.parametrize(
    ("notes", "message"),
    [
        (nested(33), "notes: expected at most 32 levels, got 33"),
        (nested(5000), "notes: expected at most 32 levels, got more"),
        ("A1", r"notes: expected a mapping of names to values, got 'A1'"),
        ({1: "x"}, r"notes: expected a mapping of names to values, got \{1: 'x'\}"),
        ({"x": object()}, "cannot be written as JSON"),
        ({"x": math.nan}, "cannot be written as JSON"),
        ([{}, {}], "expected a mapping"),
    ],
)
def test_tell_rejects_notes_that_it_cannot_keep(notes, message) -> None:
    opt = make()
    point = opt.ask()
    before = opt.to_dict()
    with pytest.raises(ResultError, match=message):
        opt.tell(point, 1.0, notes=notes)
    assert opt.to_dict() == before


@pytest.mark.parametrize("notes", [{"well": "A1"}, "A1", [{}], [{}, 3], 7])
def test_tell_rejects_notes_that_do_not_match_the_points(notes) -> None:
    opt = make()
    points = opt.ask(2)
    with pytest.raises(ResultError, match="notes"):
        opt.tell(points, [1.0, 2.0], notes=notes)
    assert opt.observations == []


def test_notes_of_many_levels_are_kept(tmp_path) -> None:
    opt = make(storage=url_of(tmp_path))
    opt.tell(opt.ask(), 1.0, notes=nested(32))
    opt.save(tmp_path / "run.json")
    for again in (Optimizer.open(url_of(tmp_path)), Optimizer.load(tmp_path / "run.json")):
        assert again.records()[0].notes == nested(32)


def test_notes_are_copied() -> None:
    opt = make()
    note = {"well": ["A1"]}
    opt.tell(opt.ask(), 1.0, notes=note)
    note["well"].append("A2")
    assert opt.records()[0].notes == {"well": ["A1"]}


# -- target_bounds -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "good", "bad"),
    [((0, 100), [0.0, 100.0], [-0.1, 820.0]), ((None, 1), [-1e9], [1.5]), ((0, None), [9e9], [-1])],
)
def test_target_bounds_reject_results_outside(bounds, good, bad) -> None:
    opt = make(target_bounds=bounds)
    points = opt.ask(4)
    for value in bad:
        with pytest.raises(ResultError, match=rf"{value!r} is outside target_bounds=\("):
            opt.tell(points[0], value)
        with pytest.raises(ResultError, match=r"result 1: .* is outside target_bounds"):
            opt.tell(points[:2], [good[0], value])
    assert opt.observations == []
    opt.tell(points[: len(good)], good)
    with pytest.raises(ResultError, match="outside"):
        opt.amend(points[0], bad[0])
    assert [seen.value for seen in opt.observations] == good
    opt.tell(points[3], None)  # a failure has no value


@pytest.mark.parametrize(
    "bounds", [(1, 0), (1, 1), 5, "01", (0,), (0, math.nan), ("a", 1), [0, 1, 2]]
)
def test_target_bounds_must_be_an_interval(bounds) -> None:
    with pytest.raises(SettingError, match=r"target_bounds=.*: expected \(low, high\)"):
        make(target_bounds=bounds)


@pytest.mark.parametrize("bounds", [None, (0, 100), (None, 5.5), [1, None]])
def test_target_bounds_survive_save_and_load(bounds, tmp_path) -> None:
    opt = make(target_bounds=bounds)
    opt.save(tmp_path / "run.json")
    assert Optimizer.load(tmp_path / "run.json").target_bounds == opt.target_bounds
