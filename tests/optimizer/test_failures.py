"""Failed evaluations: kept out of the regression, learned from, and tried again on request."""

import numpy as np
import pytest
from support.optimizer import FOUR, MIXED, P, Q, as_tuples, make, plain, reloaded, run, score, told

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Flip,
    Integer,
    Model,
    Optimizer,
    PointError,
    Space,
    SpaceExhausted,
)

EVERY = MIXED.points(MIXED.enumerate_rows())
IGNORE = plain(failures="ignore")


# -- failed points -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", [plain(), IGNORE], ids=["learn", "ignore"])
def test_a_failed_point_never_comes_again(model):
    opt = told(MIXED, [1.0, 2.0, None, None, 3.0, None], model=model)
    asked = as_tuples(opt.ask(MIXED.size - 6))
    assert not set(asked) & set(as_tuples(EVERY[:6]))
    with pytest.raises(SpaceExhausted):
        opt.ask()


@pytest.mark.parametrize("failures", ["learn", "ignore"])
def test_failures_stay_out_of_the_regression(failures):
    usual, failing = (told(MIXED, [1.0, 3.0, 2.0, 5.0]) for _ in range(2))
    failing.model = plain(failures=failures)
    failing.tell(EVERY[10:14], [None] * 4)
    assert np.array_equal(usual.predict(EVERY).mean, failing.predict(EVERY).mean)
    assert failing.best == usual.best


def test_nothing_changes_by_learning_until_something_fails():
    learn, ignore = make(), make(model=IGNORE)
    assert run(learn, 8) == run(ignore, 8)
    for opt in (learn, ignore):
        left = [p for p in EVERY if p not in [o.point for o in opt.observations]]
        opt.tell([p for p in left if p["wash"] == 1], [None] * sum(p["wash"] for p in left))
        assert all(p["wash"] == 0 for p in opt.ask(3))


@pytest.mark.parametrize("constraints", [[], [Exactly(3, [f"x{i}" for i in range(8)])]])
def test_suggestions_keep_away_from_where_evaluations_fail(constraints):
    """Everything with x0 fails: of the next eight suggestions hardly one has it. Without learning
    nothing speaks against it: no result is known there, and what the other bits do is good."""
    space = Space({f"x{i}": Binary() for i in range(8)}, constraints)
    found = {}
    for name in ("learn", "ignore"):
        opt = make(space, model=plain(failures=name))
        rows = np.random.default_rng(0).permutation(space.feasible.listed)[:24]
        points = space.points(rows)
        values = [None if p["x0"] else -sum(p.values()) - p["x1"] for p in points]
        opt.tell(points, values)
        found[name] = sum(p["x0"] for p in opt.ask(8))
    assert 2 * found["learn"] <= found["ignore"]


@pytest.mark.parametrize("count", [1, 5, 25])
@pytest.mark.parametrize("model", [plain(), IGNORE], ids=["learn", "ignore"])
def test_suggestions_go_on_where_everything_has_failed(count, model):
    opt = make(model=model)
    asked = []
    for _ in range(count):
        asked.append(opt.ask())
        opt.tell(asked[-1], None)
    assert opt.failed == asked
    assert len(set(as_tuples(asked + opt.ask(4)))) == count + 4


@pytest.mark.parametrize("model", [plain(order=3), plain(refine=False), Model()])
def test_every_model_learns_from_failures(model):
    opt = make(model=model)
    for number in range(8):
        point = opt.ask()
        opt.tell(point, None if number % 2 else score(MIXED, point))
    assert len(set(as_tuples(opt.ask(3)))) == 3


def test_what_failures_say_goes_through_a_file(tmp_path):
    opt, twin = make(), make()
    for _ in range(8):
        twin = reloaded(twin, tmp_path)
        point = opt.ask()
        assert twin.ask() == point
        for each in (opt, twin):
            each.tell(point, None if point["wash"] else score(MIXED, point))
    assert twin.to_dict() == opt.to_dict()


# -- retry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("filed", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("repeats", ["never", "allow"])
def test_points_to_try_again_are_the_first_of_the_next_ask(repeats, filed, tmp_path):
    opt = told(MIXED, [1.0, None, 2.0, None, None, 3.0], repeats=repeats)
    opt.retry([EVERY[4], EVERY[1]])
    assert opt.failed == [EVERY[3]]
    if filed:
        opt = reloaded(opt, tmp_path)
    asked = opt.ask(3)
    assert asked[:2] == [EVERY[4], EVERY[1]]
    assert asked[2] not in EVERY[:5] or repeats == "allow"
    assert opt.pending == asked
    assert EVERY[1] not in opt.ask(3)


@pytest.mark.parametrize("single", [P, list(P.values())])
def test_one_point_is_tried_again_in_the_initial_design_as_well(single):
    opt = make(FOUR, n_initial=4)
    opt.tell([P, Q], [None, None])
    opt.retry(single)
    assert opt.ask() == P
    opt.tell(P, None)
    assert opt.failed == [Q, P]
    assert P not in opt.ask(2)


def test_several_retries_come_one_by_one():
    opt = told(MIXED, [1.0, None, None, None])
    opt.retry(EVERY[2])
    opt.retry([EVERY[3], EVERY[1]])
    assert [opt.ask() for _ in range(3)] == [EVERY[2], EVERY[3], EVERY[1]]


def test_a_retry_waits_for_an_ask_whose_fixed_values_it_has():
    opt = told(MIXED, [1.0, None, 2.0])
    other = "C" if EVERY[1]["base"] != "C" else "G"
    opt.retry(EVERY[1])
    assert opt.ask(fixed={"base": other})["base"] == other
    assert opt.ask(fixed={"base": EVERY[1]["base"]}) == EVERY[1]


def test_a_point_with_a_result_has_not_failed_whatever_comes_first():
    for values in ([1.0, None], [None, 1.0]):
        opt = told(MIXED, [])
        opt.tell([EVERY[1]] * 2, values)
        assert opt.failed == []
        assert [o.value for o in opt.observations] == [1.0]
        with pytest.raises(PointError, match="has not failed"):
            opt.retry(EVERY[1])


def test_a_point_to_try_again_counts_as_left():
    opt = told(FOUR, [1.0, None, 2.0, 3.0])
    point = opt.failed[0]
    with pytest.raises(SpaceExhausted):
        opt.ask()
    opt.retry(point)
    assert opt.ask() == point
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_a_retry_that_works_is_a_result_and_one_that_is_told_is_no_retry():
    opt = told(FOUR, [1.0, None, None])
    first, second = opt.failed
    opt.retry([first, second])
    opt.tell(second, 4.0)
    assert opt.ask() == first
    opt.tell(first, 5.0)
    assert opt.failed == []
    assert [o.value for o in opt.observations] == [1.0, 4.0, 5.0]


@pytest.mark.parametrize("looks", ["predict", "draw", "load"])
def test_a_look_at_the_model_before_a_retry_changes_nothing(looks, tmp_path):
    opt, twin = (told(MIXED, [1.0, None, 2.0, 5.0, 3.0]) for _ in range(2))
    for each in (opt, twin):
        each.retry(EVERY[1])
    if looks == "load":
        opt.predict(EVERY)
        opt = reloaded(opt, tmp_path)
        twin.predict(EVERY)
    else:
        getattr(opt, looks)(**({"points": EVERY} if looks == "predict" else {}))
    assert opt.ask() == twin.ask() == EVERY[1]
    assert opt.to_dict() == twin.to_dict()
    for each in (opt, twin):
        each.tell(EVERY[1], 0.5)
    assert opt.ask(3) == twin.ask(3)


# -- how much is wasted ------------------------------------------------------------------------


def bits(n: int) -> dict:
    return {f"x{i}": Binary() for i in range(n)}


# space, hidden rule of what fails (about 40 % of the space)
RULES = {
    "two bits": (
        Space({**bits(12), "n": Integer(0, 3)}),
        lambda p: (p["x2"] == 1 and p["x7"] == 0) or (p["x2"] == 1 and p["n"] == 3 and p["x1"]),
    ),
    "values": (
        Space({**bits(8), "s": Categorical(list("abcde")), "t": Categorical(list("uvwx"))}),
        lambda p: p["s"] in "ab",
    ),
    "count": (
        Space(bits(14)),
        lambda p: sum(p[f"x{i}"] for i in range(0, 10, 2)) <= 2 and p["x1"] + p["x3"] > 0,
    ),
}


def wasted(space: Space, fails, failures: str, seed: int, evaluations: int) -> int:
    model = plain(failures=failures)  # the quicker one: failures are what counts
    opt = Optimizer(space, model=model, n_initial=8, seed=seed)
    pull = np.random.default_rng(seed).standard_normal(len(space))
    for _ in range(evaluations):
        point = opt.ask()
        row = space.rows(point)[0]
        opt.tell(point, None if fails(point) else float(pull @ row + pull[0] * row[1] * row[2]))
    return len(opt.failed)


@pytest.mark.slow
def test_learning_wastes_at_most_half_of_the_evaluations():
    learn = ignore = 0
    for space, fails in RULES.values():
        points = space.sample(4000, rng=np.random.default_rng(0))
        assert 0.25 < np.mean([bool(fails(p)) for p in points]) < 0.55
        learn += wasted(space, fails, "learn", 0, 50)
        ignore += wasted(space, fails, "ignore", 0, 50)
    assert learn <= 0.5 * ignore


def test_failures_under_constraints_leave_feasible_suggestions():
    space = Space(bits(8), [AtMost(2, list(bits(8)))])
    opt = make(space)
    for number in range(12):
        point = opt.ask()
        assert sum(point.values()) <= 2
        opt.tell(point, None if number % 3 else score(space, point))


def test_a_retry_comes_though_an_image_of_the_point_has_a_result() -> None:
    names = ["x0", "x1", "x2"]
    opt = Optimizer(Space({n: Binary() for n in names}, symmetries=[Flip(names)]), seed=0)
    opt.tell([0, 0, 0], None)
    opt.tell([1, 1, 1], 2.0)
    opt.retry([0, 0, 0])
    assert opt.ask() == {"x0": 0, "x1": 0, "x2": 0}
    assert opt.ask() != {"x0": 0, "x1": 0, "x2": 0}
