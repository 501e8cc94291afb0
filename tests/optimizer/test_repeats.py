"""repeats="allow": noisy objectives are measured again, and the best goes by the model."""

import re

import numpy as np
import pytest
from support.optimizer import FOUR, MIXED, as_tuples, make, plain, reloaded, run, score, told
from support.states import without_batches

from mercbo import NoResults, Observation, Optimizer, SettingError, Space, SpaceExhausted

EVERY = MIXED.points(MIXED.enumerate_rows())


def noisy(space: Space, seed: int, steps: int, noise: float, **options) -> Optimizer:
    """A run on a linear objective with noise of a given sd; its values are sums of the row."""
    opt = Optimizer(space, repeats="allow", seed=seed, n_initial=6, **options)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        point = opt.ask()
        opt.tell(point, truth(point) + noise * rng.standard_normal())
    return opt


def truth(point: dict) -> float:
    return float(sum(point.values()))


@pytest.mark.slow
def test_told_points_may_come_again_and_the_best_ones_do():
    opt = noisy(Space.binary(5), seed=0, steps=40, noise=0.5)
    measured = as_tuples([o.point for o in opt.observations])
    assert len(set(measured)) < len(measured)
    most = max(set(measured), key=measured.count)
    # of 32 points, whose sums are 0 to 5, the one measured most is among the lowest 6
    assert sum(most) <= 1


def test_without_repeats_the_same_run_repeats_nothing():
    opt = make(Space.binary(4))
    run(opt, 16)
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_pending_and_failed_points_do_not_come_again():
    opt = make(FOUR, repeats="allow", n_initial=1)
    points = FOUR.points(FOUR.enumerate_rows())
    opt.tell(points, [1.0, None, 2.0, 3.0])
    asked = opt.ask(3)
    assert set(as_tuples(asked)) == set(as_tuples([points[0], points[2], points[3]]))
    message = re.escape("1 asked for, 0 left: all other points of the space are failed or pending")
    with pytest.raises(SpaceExhausted, match=message) as caught:
        opt.ask()
    assert caught.value.left == 0
    opt.tell(asked[0], 0.5)
    assert opt.ask() == asked[0]


def test_ask_k_gives_what_k_asks_would_with_repeats():
    batch, single = (make(repeats="allow") for _ in range(2))
    for opt in (batch, single):
        run(opt, 6)
    asked = batch.ask(5)
    assert asked == [single.ask() for _ in range(5)]
    assert len(set(as_tuples(asked))) == 5
    assert without_batches(batch) == without_batches(single)


# -- best --------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_is_the_measured_point_of_best_posterior_mean(direction):
    opt = make(repeats="allow", direction=direction)
    rng = np.random.default_rng(1)
    opt.tell(EVERY[::2] * 2, [score(MIXED, p) + rng.standard_normal() for p in EVERY[::2] * 2])
    mean = opt.predict(EVERY[::2]).mean
    where = int(np.argmin(mean) if direction == "minimize" else np.argmax(mean))
    assert opt.best.point == EVERY[::2][where]
    assert opt.best.value == pytest.approx(mean[where], rel=1e-12)
    values = [o.value for o in opt.observations]
    wanted = min(values) if direction == "minimize" else max(values)
    assert opt.best_observed.value == wanted
    assert Observation(opt.best_observed.point, wanted) in opt.observations


def test_one_lucky_measurement_does_not_make_a_best():
    opt = make(Space.binary(3), repeats="allow")
    points = opt.space.points(opt.space.enumerate_rows())
    opt.tell(points[1:3] * 6, [1.0, 2.0] * 6)
    opt.tell([points[2]], [0.5])  # 12 results say that it is the worse of the two
    assert opt.best_observed == Observation(points[2], 0.5)
    assert opt.best.point == points[1]


def test_without_repeats_the_best_is_the_best_observed():
    opt = told(MIXED, [3.0, 1.0, 2.0])
    assert opt.best == opt.best_observed == Observation(EVERY[1], 1.0)


def test_there_is_no_best_before_a_result():
    opt = make(repeats="allow")
    opt.tell(EVERY[0], None)
    for name in ("best", "best_observed"):
        with pytest.raises(NoResults, match="no best"):
            getattr(opt, name)


def test_looking_at_the_best_changes_nothing():
    opt, twin = (told(MIXED, [3.0, 1.0, 2.0, 5.0], repeats="allow") for _ in range(2))
    before = opt.to_dict()
    assert opt.best == opt.best
    assert opt.to_dict() == before
    assert opt.ask(3) == twin.ask(3)


def test_repeats_go_through_a_file(tmp_path):
    opt, twin = (make(Space.binary(3), repeats="allow") for _ in range(2))
    for number in range(10):
        twin = reloaded(twin, tmp_path)
        assert twin.repeats == "allow"
        point = opt.ask()
        assert twin.ask() == point
        for each in (opt, twin):
            each.tell(point, truth(point) + (number * 7 % 5) / 5)
    assert twin.to_dict() == opt.to_dict()
    assert twin.best == opt.best


@pytest.mark.parametrize("repeats", ["sometimes", None, True, "Allow"])
def test_a_wrong_setting_is_refused(repeats):
    with pytest.raises(SettingError, match=re.escape(f"repeats={repeats!r} is not one of")):
        make(repeats=repeats)


@pytest.mark.slow
def test_the_best_by_mean_is_truly_better_than_the_best_observed():
    """With noise as large as the steps of the objective, over 24 runs. The true values are whole
    numbers, 0 the lowest; the lowest of 30 noisy values is one of many points near the lowest."""
    pairs = []
    for seed in range(24):
        opt = noisy(Space.binary(6), seed, steps=30, noise=1.5, model=plain())
        pairs.append((truth(opt.best.point), truth(opt.best_observed.point)))
    by_mean, observed = np.mean(pairs, axis=0)
    assert by_mean < observed


def test_points_measured_several_times_lead_once_and_by_their_mean() -> None:
    opt = Optimizer(Space.binary(3), repeats="allow", seed=0)
    opt.tell([[0, 0, 0]] * 3, [-9.0, 6.0, 6.0])  # one lucky result, 1 on average
    opt.tell([[1, 0, 0], [1, 1, 0], [1, 1, 0]], [0.5, 3.0, 5.0])
    assert opt._asking().incumbents.tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 0]]
