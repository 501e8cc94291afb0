"""`minimize` and `maximize`: what they are given and give back, alone and with a store."""

import sys
from concurrent.futures import ThreadPoolExecutor

import dimod
import numpy as np
import pytest
from support.stored import SPACE, asked_rows, cost, log_of, stored, url_of

import mercbo
from mercbo import (
    Model,
    Observation,
    Optimizer,
    Result,
    ResultError,
    SettingError,
    Space,
    StateError,
    Where,
    maximize,
    minimize,
)
from mercbo.record import processes
from mercbo.record.store import Store

QUIET = {"progress": False, "seed": 0}


def by_hand(space: Space, budget: int, **options) -> Optimizer:
    opt = Optimizer(space, seed=0, **options)
    for _ in range(budget):
        point = opt.ask()
        opt.tell(point, cost(point))
    return opt


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_without_an_executor_it_is_the_loop_of_ask_and_tell(direction):
    result = getattr(mercbo, direction)(cost, SPACE, budget=9, n_initial=4, **QUIET)
    opt = by_hand(SPACE, 9, n_initial=4, direction=direction)
    assert list(result.observations) == opt.observations
    assert result.best == opt.best
    assert (result.failures, result.stopped) == ((), "budget")
    assert result.optimizer.to_dict() == opt.to_dict()


def test_a_function_may_know_the_error_of_its_value():
    def measured(point):
        return (cost(point), 0.1) if point["x0"] else (cost(point), None)

    result = minimize(measured, Space.binary(4), budget=6, n_initial=4, **QUIET)
    opt = Optimizer(Space.binary(4), n_initial=4, seed=0)
    for _ in range(6):
        point = opt.ask()
        opt.tell(point, cost(point), std=0.1 if point["x0"] else None)
    assert result.optimizer.to_dict() == opt.to_dict()
    assert {observation.point["x0"] for observation in result.observations} == {0, 1}


@pytest.mark.parametrize("answer", [(1.0, -0.1), (1.0, "much"), (1.0, 0.1, 0.2), [1.0, 0.1]])
def test_an_answer_that_is_no_value_with_its_error_has_failed(answer):
    result = minimize(lambda _: answer, Space.binary(1), budget=1, catch=ResultError, **QUIET)
    assert result.observations == ()
    assert result.failures[0].reason.startswith("ResultError: ")


def test_a_result_shows_what_matters():
    shown = repr(minimize(cost, Space.binary(2), budget=2, n_initial=2, **QUIET))
    assert shown.startswith("Result(best=Observation(point={'x0': ")
    assert "2 results, 0 failures, stopped='budget'" in shown
    assert len(shown) < 200


def test_a_result_is_frozen():
    result = minimize(cost, Space.binary(1), budget=1, **QUIET)
    with pytest.raises(AttributeError):
        result.best = None
    assert isinstance(result, Result)


def test_settings_go_to_the_optimizer():
    model = Model(inference="hmc")
    result = minimize(
        cost, SPACE, budget=2, model=model, acquisition="thompson", backend="annealing",
        repeats="allow", n_initial=7, **QUIET,
    )  # fmt: skip
    opt = result.optimizer
    assert (opt.model, opt.acquisition, opt.backend) == (model, "thompson", "annealing")
    assert (opt.repeats, opt.n_initial) == ("allow", 7)


def test_a_used_up_space_ends_the_run():
    result = minimize(cost, Space.binary(2), budget=10, n_initial=10, **QUIET)
    assert (result.stopped, len(result.observations)) == ("exhausted", 4)
    with ThreadPoolExecutor(3) as executor:
        result = minimize(
            cost, Space.binary(2), budget=10, n_initial=10, executor=executor, **QUIET
        )
    assert (result.stopped, len(result.observations)) == ("exhausted", 4)


def test_where_everything_fails_there_is_no_best():
    result = minimize(lambda _: None, SPACE, budget=3, **QUIET)
    assert result.best is None
    assert result.observations == ()
    assert {failure.reason for failure in result.failures} == {"it returned None or NaN"}
    assert len(result.failures) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget=0 is not a whole number of at least 1"),
        ({"budget": 2.5}, "budget=2.5 is not"),
        ({"batch": 0}, "batch=0 is not"),
        ({"retries": -1}, "retries=-1 is not"),
        ({"timeout": 0}, "timeout=0 is not a number of seconds"),
        ({"timeout": True}, "timeout=True is not a number of seconds"),
        ({"timeout": "1 h"}, "timeout='1 h' is not"),
        ({"callback": 3}, "callback=3 cannot be called"),
        ({"adopt": "some"}, "adopt='some' is not one of"),
        ({"executor": 4}, "executor=4: expected a thread or process pool"),
        ({"workers": 0}, "workers=0 is not a whole number of at least 1"),
        ({"workers": 2, "executor": ThreadPoolExecutor()}, "workers=2, executor=.*: give only one"),
        ({"catch": KeyboardInterrupt}, "catch=.*: expected a type of Exception, or a tuple"),
        ({"catch": ValueError("x")}, "catch=.*: expected a type of Exception, or a tuple"),
        ({"catch": [ValueError]}, "catch=.*: expected a type of Exception, or a tuple"),
        ({"catch": (ValueError, "x")}, "catch=.*: expected a type of Exception, or a tuple"),
        ({"acquisition": "luck"}, "acquisition='luck' is not one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message, tmp_path):
    with pytest.raises(SettingError, match=message):
        minimize(cost, SPACE, **{"budget": 3, "storage": url_of(tmp_path), **QUIET, **options})
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_called_is_refused():
    with pytest.raises(SettingError, match="f=3 cannot be called"):
        minimize(3, SPACE, budget=3)


# -- with a store ------------------------------------------------------------------------------


def test_a_run_in_two_calls_is_the_run_in_one(tmp_path):
    url = url_of(tmp_path)
    first = minimize(cost, SPACE, budget=4, n_initial=3, storage=url, **QUIET)
    second = minimize(cost, SPACE, budget=9, n_initial=3, storage=url, **QUIET)
    whole = minimize(cost, SPACE, budget=9, n_initial=3, **QUIET)
    assert len(first.observations) == 4
    assert second.observations == whole.observations
    assert Optimizer.open(url).to_dict() == whole.optimizer.to_dict()
    again = minimize(cost, SPACE, budget=9, storage=url, progress=False)
    assert again.observations == second.observations


@pytest.mark.parametrize("adopt", ["gone", "all", "none"])
def test_points_that_nobody_evaluates_any_more_are_evaluated(tmp_path, monkeypatch, adopt):
    url = url_of(tmp_path)
    opt = stored(url, n_initial=20)
    monkeypatch.setattr(mercbo.record.store, "this_process", lambda: DEAD)
    dead = opt.ask(2)
    monkeypatch.setattr(mercbo.record.store, "this_process", lambda: "another.machine/7/7")
    far = opt.ask()
    monkeypatch.undo()
    mine = opt.ask()
    evaluated = []
    minimize(
        lambda point: evaluated.append(point) or cost(point), SPACE, budget=8, storage=url,
        adopt=adopt, progress=False,
    )  # fmt: skip
    at_first = {"gone": [*dead, mine], "all": [*dead, far, mine], "none": []}[adopt]
    assert evaluated[: len(at_first)] == at_first
    left = {"gone": [far], "all": [], "none": [*dead, far, mine]}[adopt]
    assert Optimizer.open(url).pending == left
    # what is pending elsewhere is of the budget, too
    assert len(evaluated) == 8 - len(left)
    assert len(set(asked_rows(url))) == len(asked_rows(url)) == 8
    adopted = [entry.body["rows"] for entry in log_of(url) if entry.kind == "adopt"]
    assert adopted == ([SPACE.rows(at_first).tolist()] if at_first else [])


DEAD = processes.this_process().rsplit("/", 1)[0] + "/1"


def test_a_point_is_adopted_once(tmp_path, monkeypatch):
    url = url_of(tmp_path)
    opt = stored(url, n_initial=20)
    monkeypatch.setattr(mercbo.record.store, "this_process", lambda: DEAD)
    opt.ask(2)
    monkeypatch.undo()

    def one(point: dict) -> float:  # while this one evaluates it, another comes
        monkeypatch.setattr(mercbo.loop.campaign, "this_process", lambda: "someone/1/1")
        minimize(seen.append, SPACE, budget=2, storage=url, progress=False)
        monkeypatch.undo()
        return cost(point)

    seen: list = []
    result = minimize(one, SPACE, budget=2, storage=url, progress=False)
    assert (seen, len(result.observations)) == ([], 2)


def test_a_run_of_another_space_or_of_other_settings_is_left_alone(tmp_path):
    url = url_of(tmp_path)
    minimize(cost, SPACE, budget=2, storage=url, n_initial=2, **QUIET)
    number = len(log_of(url))
    with pytest.raises(StateError, match=r"run\.db: holds a run in another space"):
        minimize(cost, Space.binary(5), budget=2, storage=url, **QUIET)
    with pytest.raises(StateError, match="with direction='minimize', not 'maximize'"):
        maximize(cost, SPACE, budget=2, storage=url, **QUIET)
    with pytest.raises(StateError, match="with seed=0, not 5"):
        minimize(cost, SPACE, budget=2, storage=url, seed=5, progress=False)
    with pytest.raises(StateError, match="with n_initial=2, not 9"):
        minimize(cost, SPACE, budget=2, storage=url, n_initial=9, progress=False)
    assert len(log_of(url)) == number
    assert minimize(cost, SPACE, budget=3, storage=url, progress=False).stopped == "budget"


def even(point: dict) -> bool:
    return sum(point.values()) % 2 == 0


def test_predicates_and_sampler_objects_come_with_the_call(tmp_path):
    url = url_of(tmp_path)
    space = Space(SPACE.variables, constraints=[Where(even)])
    options = {"storage": url, "backend": dimod.ExactSolver(), "n_initial": 2, **QUIET}
    with pytest.warns(UserWarning, match="'even'"):
        minimize(cost, space, budget=2, **options)
    result = minimize(cost, space, budget=4, **options)
    assert len(result.observations) == 4
    assert all(even(observation.point) for observation in result.observations)


def test_what_was_told_before_counts(tmp_path):
    url = url_of(tmp_path)
    opt = stored(url)
    opt.tell(SPACE.points(SPACE.enumerate_rows()[:3]), [1.0, -50.0, None])
    result = minimize(cost, SPACE, budget=5, storage=url, progress=False)
    assert len(result.observations) == 4
    assert result.best == Observation(SPACE.points(SPACE.enumerate_rows()[1:2])[0], -50.0)
    assert [failure.reason for failure in result.failures] == [""]


def test_a_run_that_another_began_meanwhile_is_joined(tmp_path, monkeypatch):
    url = url_of(tmp_path)
    stored(url)
    answers = iter([False, True])
    monkeypatch.setattr(Store, "exists", lambda _: next(answers))
    assert len(minimize(cost, SPACE, budget=2, storage=url, progress=False).observations) == 2


def test_the_progress_is_shown_where_it_is_wanted(capfd, monkeypatch, caplog):
    minimize(cost, SPACE, budget=2, seed=0)
    assert "2/2" in capfd.readouterr().err
    minimize(cost, SPACE, budget=2, **QUIET)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with caplog.at_level("INFO", logger="mercbo"):
        minimize(cost, SPACE, budget=2, seed=0)
    assert "2 of 2 evaluated; best" in caplog.text
    assert np.isfinite(minimize(cost, SPACE, budget=2, **QUIET).seconds)


def test_an_objective_may_change_the_point_it_is_given() -> None:
    def spoilt(point):
        value = cost(point)
        point.clear()
        point["note"] = value
        return value

    result = minimize(spoilt, SPACE, budget=6, **QUIET)
    assert [seen.value for seen in result.optimizer.observations] == [
        cost(seen.point) for seen in result.optimizer.observations
    ]
    assert len(result.optimizer.observations) == 6
    assert result.optimizer.pending == []


@pytest.mark.parametrize("limit", [float("inf"), 1e12])
def test_a_time_limit_may_be_endless(limit: float) -> None:
    result = minimize(cost, SPACE, budget=3, timeout=limit, **QUIET)
    assert (len(result.optimizer.observations), result.failures) == (3, ())


def test_numbers_of_numpy_will_do() -> None:
    ends = []

    def callback(evaluation):
        ends.append(evaluation)
        return np.bool_(len(ends) == 2)

    result = minimize(cost, SPACE, budget=np.int64(5), callback=callback, **QUIET)
    assert (len(ends), result.stopped) == (2, "callback")


def test_another_direction_than_the_name_is_refused() -> None:
    with pytest.raises(SettingError, match=r"minimize\(direction='maximize'\): the name says it"):
        minimize(cost, SPACE, budget=3, direction="maximize", **QUIET)
