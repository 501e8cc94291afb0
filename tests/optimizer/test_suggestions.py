"""`last_suggestions`: the source of each point, its acquisition value and its prediction."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, ClassVar

import dimod
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from support.optimizer import make, plain, run, score

from mercbo import (
    Categorical,
    Integer,
    Model,
    Optimizer,
    Space,
    SpaceExhausted,
    Suggestion,
    linalg,
)
from mercbo.acquisition import Moves

BITS = Space.binary(8)
TABLE = Space.table([{"a": i, "b": j} for i in range(5) for j in "wxyz"])
# The model's units are standardized results: no warp, one state of the hyper-parameters.
PLAIN = plain(trust="none", refine=False)


def standardized(opt: Optimizer, value: float | None) -> float:
    """A prediction of an optimizer that minimizes, in units of the model."""
    assert value is not None
    told = [each.value for each in opt.observations]
    return (value - np.mean(told)) / np.std(told)


# -- where a point came from -------------------------------------------------------------------


def test_there_is_no_record_before_the_first_ask() -> None:
    opt = make(BITS)
    assert opt.last_suggestions == []
    opt.tell({f"x{i}": 0 for i in range(8)}, 1.0)
    assert opt.last_suggestions == []


def test_record_of_the_initial_design_has_no_acquisition_and_no_prediction() -> None:
    opt = make(BITS, n_initial=4)
    first = opt.ask(3)
    assert opt.last_suggestions == [Suggestion(point, "initial design") for point in first]
    opt.tell(first[0], 1.0)
    opt.predict(first)  # there is a model now, which did not choose the next point
    point = opt.ask()
    assert opt.last_suggestions == [Suggestion(point, "initial design")]


def test_record_of_a_retried_point_comes_before_that_of_the_model() -> None:
    opt = make(BITS)
    asked = run(opt, 4)
    failed = opt.ask()
    opt.tell(failed, None)
    opt.retry(failed)
    points = opt.ask(2)
    retried, modelled = opt.last_suggestions
    assert retried == Suggestion(failed, "retry")
    assert modelled.point == points[1]
    assert modelled.acquisition is not None
    assert failed not in asked


class Answer:
    """A backend that knows one answer, as bits in the order of the model's variables."""

    parameters: ClassVar[dict[str, Any]] = {}
    properties: ClassVar[dict[str, Any]] = {}

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def sample(self, bqm: Any) -> Any:
        return dimod.SampleSet.from_samples_bqm(self.answer(bqm), bqm)


def minimum(bqm: Any) -> Any:
    return dimod.ExactSolver().sample(bqm).first.sample


def test_source_is_the_backend_if_it_answers_with_the_minimum() -> None:
    """Without refinement and trust region, the suggestion is the exact minimum of the draw."""
    opt = make(BITS, backend=Answer(minimum), acquisition="thompson", model=PLAIN)
    run(opt, 5)
    draw = opt.draw()
    point = opt.ask()
    (record,) = opt.last_suggestions
    assert (record.point, record.source, record.acquisition) == (point, "backend", "thompson")
    assert record.value == pytest.approx(-draw.value(point))
    assert record.value == pytest.approx(-draw.bqm.energy(draw.encode(point)))


def test_source_is_local_search_if_the_draw_has_no_bqm() -> None:
    opt = make(BITS, model=plain(order=3))
    run(opt, 4)
    opt.ask()
    assert opt.last_suggestions[0].source == "local search"
    assert opt.last_suggestions[0].note == "backend not called: the draw has no BQM"


class Empty:
    """A solver of constrained models that finds no solution."""

    def sample_cqm(self, cqm: dimod.ConstrainedQuadraticModel) -> dimod.SampleSet:
        return dimod.SampleSet.from_samples(([], list(cqm.variables)), energy=[], vartype="BINARY")


def test_note_says_that_the_backend_gave_no_feasible_point() -> None:
    opt = make(BITS, backend=Empty())
    run(opt, 4)
    opt.ask()
    assert opt.last_suggestions[0].source == "local search"
    assert opt.last_suggestions[0].note == "backend gave no feasible point"


def test_source_is_enumeration_in_a_table_and_at_the_end_of_a_small_space() -> None:
    opt = make(TABLE)
    run(opt, 4)
    opt.ask()
    assert opt.last_suggestions[0].source == "enumeration"
    small = make(Space.binary(3))
    run(small, 5)
    small.ask()
    assert small.last_suggestions[0].source == "enumeration"


def test_source_is_random_search_if_everything_near_the_minima_is_seen(monkeypatch) -> None:
    monkeypatch.setattr(Moves, "best_unseen", lambda *_: None)
    opt = make(BITS)
    run(opt, 4)
    opt.ask()
    assert opt.last_suggestions[0].source == "random search"


# -- values and predictions --------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("inference", ["map", "hmc"])
@pytest.mark.parametrize("acquisition", ["thompson", "ei", "ei-liar", "mes", "lcb"])
def test_prediction_is_that_of_predict(acquisition, inference, direction) -> None:
    opt = make(BITS, acquisition=acquisition, direction=direction, model=Model(inference=inference))
    run(opt, 6)
    points = opt.ask(3)
    records = opt.last_suggestions
    mean, std = opt.predict(points)
    assert [record.point for record in records] == points
    assert {record.acquisition for record in records} == {acquisition}
    np.testing.assert_array_equal([record.mean for record in records], mean)
    np.testing.assert_array_equal([record.std for record in records], std)
    assert np.isfinite([record.value for record in records]).all()


def test_prediction_is_of_the_time_of_asking() -> None:
    opt = make(BITS)
    run(opt, 6)
    point = opt.ask()
    before = opt.predict(point)
    opt.tell(point, 1e3)
    (record,) = opt.last_suggestions
    assert (record.mean, record.std) == (before.mean[0], before.std[0])
    assert opt.predict(point).mean[0] != record.mean


def test_value_of_lcb_is_minus_the_bound() -> None:
    opt = make(BITS, acquisition="lcb", model=PLAIN)
    run(opt, 6)
    opt.ask()
    (record,) = opt.last_suggestions
    assert record.std is not None
    told = [each.value for each in opt.observations]
    bound = standardized(opt, record.mean) - 2.0 * record.std / np.std(told)
    assert record.value == pytest.approx(-bound)


def test_value_of_ei_is_the_log_of_the_expected_improvement() -> None:
    opt = make(BITS, acquisition="ei", model=PLAIN)
    run(opt, 6)
    opt.ask()
    (record,) = opt.last_suggestions
    told = [each.value for each in opt.observations]
    assert record.std is not None
    mean, std = standardized(opt, record.mean), record.std / np.std(told)
    best = min(standardized(opt, m) for m in opt.predict([o.point for o in opt.observations]).mean)
    gain = best - 0.02 - mean  # the margin of `asking/improvement.py`
    expected = gain * norm.cdf(gain / std) + std * norm.pdf(gain / std)
    assert record.value == pytest.approx(np.log(expected), rel=1e-6)


def test_chosen_point_has_the_largest_value_of_a_table() -> None:
    """Larger is better: with the same results, no other point of the table has a larger value."""
    opt = make(TABLE, acquisition="lcb", model=PLAIN)
    run(opt, 8)
    opt.ask()
    (record,) = opt.last_suggestions
    seen = [each.point for each in opt.observations]
    rest = [p for p in TABLE.points(TABLE.enumerate_rows()) if p not in seen]
    mean, std = opt.predict(rest)
    spread = np.std([each.value for each in opt.observations])
    values = [2.0 * s / spread - standardized(opt, m) for m, s in zip(mean, std, strict=True)]
    assert record.value == pytest.approx(max(values))


def test_note_tells_of_jitter(monkeypatch) -> None:
    opt = make(BITS, model=PLAIN)
    run(opt, 5)
    # nothing is factored without jitter of 1e-8
    monkeypatch.setattr(linalg, "grow", lambda *_: None)
    monkeypatch.setattr(linalg, "JITTERS", (1e-8,))
    opt.ask()
    assert opt.last_suggestions[0].note == "jitter 1e-08 on the covariance"


# -- what a record leaves alone ----------------------------------------------------------------


def test_looking_at_records_does_not_change_suggestions() -> None:
    looked, alone = make(BITS, model=Model()), make(BITS, model=Model())
    for _ in range(8):
        point = looked.ask()
        assert looked.last_suggestions[0].point == point == alone.ask()
        for opt in (looked, alone):
            opt.tell(point, score(BITS, point))
    assert looked.to_dict() == alone.to_dict()


def test_ask_that_raises_leaves_the_records_of_the_last_one() -> None:
    opt = make(Space.binary(3))
    run(opt, 5)
    opt.ask()
    before = opt.last_suggestions
    with pytest.raises(SpaceExhausted):
        opt.ask(3)
    assert opt.last_suggestions == before


def test_changing_a_point_or_the_list_changes_no_record() -> None:
    opt = make(BITS)
    point = opt.ask()
    kept = dict(point)
    point["x0"] = 7
    opt.last_suggestions.clear()
    opt.last_suggestions[0].point["x1"] = 9
    assert [record.point for record in opt.last_suggestions] == [kept]


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_records_are_the_same_with_an_executor(kind) -> None:
    def records(**options) -> list[Suggestion]:
        opt = make(Space.binary(12), acquisition="thompson")
        run(opt, 6)
        opt.ask(9, **options)
        return opt.last_suggestions

    with kind(2) as pool:
        assert records(executor=pool) == records()


# -- as a DataFrame ----------------------------------------------------------------------------


def test_frame_has_a_column_per_variable_and_per_field() -> None:
    space = Space({"n": Integer(1, 4), "base": Categorical(["A", "C", None])})
    opt = make(space, n_initial=4)
    run(opt, 3)
    points = opt.ask(2)
    frame = opt.last_suggestions.to_frame()
    fields = ["source", "acquisition", "value", "mean", "std", "note"]
    assert list(frame.columns) == ["n", "base", *fields]
    assert frame[["n", "base"]].to_dict("records") == points
    assert frame["source"].tolist()[0] == "initial design"
    assert frame["acquisition"].tolist()[0] is None
    assert {str(frame[name].dtype) for name in ("value", "mean", "std")} == {"float64"}
    assert frame[["value", "mean", "std"]].isna().to_numpy().tolist() == [[True] * 3, [False] * 3]
    assert frame["mean"][1] == opt.last_suggestions[1].mean


def test_field_with_the_name_of_a_variable_gets_a_suffix() -> None:
    one, two = Integer(1, 4), Integer(0, 3)
    opt = make(Space({"mean": one, "mean (model)": one, "source": two}))
    point = opt.ask()
    frame = opt.last_suggestions.to_frame()
    assert list(frame.columns)[:3] == ["mean", "mean (model)", "source"]
    assert list(frame.columns)[3:] == [
        "source (model)", "acquisition", "value", "mean (model) (model)", "std", "note",
    ]  # fmt: skip
    assert frame["mean"].tolist() == [point["mean"]]


def test_frame_before_the_first_ask_is_empty() -> None:
    frame = make(BITS).last_suggestions.to_frame()
    assert len(frame) == 0
    assert isinstance(frame, pd.DataFrame)
