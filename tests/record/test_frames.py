"""DataFrames out of `ask` and into `tell`: dtypes, column names, and an index that says nothing."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from mercbo import Binary, Categorical, Integer, Optimizer, Ordinal, PointError, ResultError, Space
from mercbo.record.frames import dtype

SPACE = Space(
    {
        "n": Integer(1, 6),
        "heat": Ordinal([20.5, 40.0]),
        "wash": Binary(),
        "base": Categorical(["A", "C"]),
        "dry": Categorical([True, False]),
        "ligand": Categorical(["PPh3", None]),
        "mixed": Categorical([1, 2.5]),
        "missing": Categorical([1, 2, None]),
    }
)


def optimizer() -> Optimizer:
    return Optimizer(SPACE, seed=0)


def test_a_frame_has_the_points_and_dtypes_that_do_not_depend_on_them() -> None:
    points = optimizer().ask(5)
    frame = optimizer().ask(5, as_frame=True)
    assert frame.index.tolist() == list(range(5))
    assert frame.columns.tolist() == list(SPACE.names)
    kinds = {name: dtype(v.values) for name, v in SPACE.variables.items()}
    assert kinds == {
        "n": "int64", "heat": "float64", "wash": "int64", "base": "str", "dry": "bool",
        "ligand": "object", "mixed": "object", "missing": "object",
    }  # fmt: skip
    for name in SPACE.names:
        assert frame[name].tolist() == [point[name] for point in points]
        assert frame[name].dtype == optimizer().ask(1, as_frame=True)[name].dtype
    assert optimizer().ask(as_frame=True).shape == (1, 8)


def test_what_was_asked_as_a_frame_is_pending_and_told_as_one() -> None:
    opt = optimizer()
    frame = opt.ask(4, as_frame=True)
    assert len(opt.pending) == 4
    frame["yield"] = [1.0, 2.0, None, 4.0]
    opt.tell(frame)
    assert not opt.pending
    assert len(opt.failed) == 1
    assert [o.value for o in opt.observations] == [1.0, 2.0, 4.0]
    assert opt.best.point == {**frame.drop(columns="yield").iloc[0].to_dict()}


def test_columns_may_be_named_and_others_left_alone() -> None:
    opt = optimizer()
    frame = opt.ask(3, as_frame=True).assign(note="x", y=[3, 1, 2], error=0.5)
    opt.tell(frame, "y", std="error")
    assert [o.value for o in opt.observations] == [3.0, 1.0, 2.0]
    assert opt.to_dict()["errors"] == [0.5] * 3


def test_further_columns_are_left_alone_wherever_a_frame_comes() -> None:
    opt = optimizer()
    frame = opt.ask(3, as_frame=True).assign(note="x", y=[3, 1, 2])
    opt.tell(frame, frame["y"])
    assert [o.value for o in opt.observations] == [3.0, 1.0, 2.0]
    assert opt.predict(frame).mean.shape == (3,)
    opt.forget(frame[["y", *SPACE.names]])
    assert not opt.observations
    with pytest.raises(PointError, match="unknown variable 'Base'; did you mean 'base'"):
        opt.tell(frame.rename(columns={"base": "Base"}), frame["y"])
    with pytest.raises(PointError, match=r"^missing variable \['base'\]"):
        opt.tell(frame.drop(columns="base"), "y")


def test_missing_cells_are_failures_whatever_pandas_calls_them() -> None:
    opt = optimizer()
    frame = opt.ask(3, as_frame=True)
    frame["y"] = pd.array([1, None, 3], dtype="Int64")
    opt.tell(frame)
    assert (len(opt.observations), len(opt.failed)) == (2, 1)


def test_missing_results_outside_of_a_frame_are_failures_too() -> None:
    opt = optimizer()
    opt.tell(opt.ask(2), pd.Series([1, pd.NA], dtype="Int64"))
    opt.tell(opt.ask(2), [2.0, pd.NA], std=[pd.NA, 0.1])
    opt.tell(opt.ask(), pd.NA)
    assert ([o.value for o in opt.observations], len(opt.failed)) == ([1.0, 2.0], 3)


def test_the_index_says_nothing() -> None:
    plain, odd = optimizer(), optimizer()
    frame = plain.ask(4, as_frame=True)
    odd.ask(4)
    plain.tell(frame, [1, 2, 3, 4])
    shuffled = frame.set_axis([7, 7, 0, -1])
    odd.tell(shuffled, pd.Series([1, 2, 3, 4], index=list("abcd")))
    assert plain.to_dict() == odd.to_dict()


def test_a_series_in_another_order_is_not_guessed_at() -> None:
    opt = optimizer()
    frame = opt.ask(3, as_frame=True)
    with pytest.raises(ResultError, match="labels of the frame in another order"):
        opt.tell(frame, pd.Series([1, 2, 3], index=[2, 0, 1]))
    assert len(opt.pending) == 3
    opt.tell(frame, pd.Series([1, 2, 3]))
    assert not opt.pending


@pytest.mark.parametrize(("change", "arguments", "complaint"), [
    ({}, (), r"besides the variables, got \[\]"),
    ({"a": 1.0, "b": 2.0}, (), r"got \['a', 'b'\]; name it"),
    ({"yield": 1.0}, ("yeild",), "no column is named 'yeild'; did you mean 'yield'"),
])  # fmt: skip
def test_columns_that_cannot_be_told_are_named(
    change: dict[str, float], arguments: tuple[str, ...], complaint: str
) -> None:
    opt = optimizer()
    frame = opt.ask(2, as_frame=True).assign(**change)
    with pytest.raises(ResultError, match=complaint):
        opt.tell(frame, *arguments)
    assert len(opt.pending) == 2


def test_points_without_values_are_refused() -> None:
    opt = optimizer()
    with pytest.raises(ResultError, match="points came without values"):
        opt.tell(opt.ask())


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    opt = optimizer()
    with pytest.raises(ImportError, match="pip install pandas"):
        opt.ask(2, as_frame=True)
    assert not opt.pending


def test_a_frame_is_no_list_of_results_and_a_variable_no_result() -> None:
    opt = Optimizer(Space.binary(2), seed=0)
    frame = pd.DataFrame({"x0": [0, 1], "x1": [1, 1]})
    with pytest.raises(ResultError, match="a list of points needs a list of results, got"):
        opt.tell([[0, 1], [1, 1]], frame)
    with pytest.raises(ResultError, match="values: 'x1' is a variable of the space"):
        opt.tell(frame, "x1")
    assert opt.observations == []


def test_whole_numbers_of_any_size_come_in_a_frame() -> None:
    opt = Optimizer(Space({"a": Categorical([2**70, 1]), "b": Binary()}), seed=0)
    frame = opt.ask(4, as_frame=True)
    assert sorted(frame["a"].tolist()) == [1, 1, 2**70, 2**70]
    opt.tell(frame, [1.0, 2.0, 3.0, 4.0])
    assert len(opt.observations) == 4
