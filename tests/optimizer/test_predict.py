"""What the model says of points: predict and draw."""

import numpy as np
import pandas as pd
import pytest
from support.optimizer import FOUR, INFERENCES, MIXED, P, Q, Wrapped, make, score, told

from mercbo import Model, NoResults, Space
from mercbo.posterior import Posterior

# -- predict -----------------------------------------------------------------------------------


def test_predict_needs_a_result():
    opt = make()
    opt.ask()
    with pytest.raises(NoResults, match="nothing can be predicted"):
        opt.predict(MIXED.points(MIXED.enumerate_rows()))


def test_predict_takes_every_form_of_points():
    opt = told(FOUR, [1.0, 2.0, 4.0])
    wanted = opt.predict([P, Q])
    for points in (
        [["x", 2], ["y", 1]],
        np.array([["x", 2], ["y", 1]], dtype=object),
        pd.DataFrame([P, Q]),
    ):
        assert np.array_equal(opt.predict(points).mean, wanted.mean)
        assert np.array_equal(opt.predict(points).std, wanted.std)
    assert opt.predict(P).mean.shape == opt.predict(P).std.shape == (1,)
    # alone or among others a sum may be taken in another order: three terms of at most
    # 1/noise <= 1e6 times the largest value
    atol = 3 * 1e6 * 4.0 * np.finfo(float).eps
    np.testing.assert_allclose(opt.predict(P).mean, wanted.mean[:1], rtol=0, atol=atol)
    assert opt.predict([]).mean.shape == (0,)


def test_predictions_agree_with_what_was_measured_and_doubt_the_rest():
    space = Space.binary(4)
    points = space.points(space.enumerate_rows())
    values = [100.0 + 10 * score(space, p) for p in points]
    opt = make(space)
    opt.tell(points[:12], values[:12])
    seen, unseen = opt.predict(points[:12]), opt.predict(points[12:])
    # a mean is off by more than four of its own standard deviations once in 15,000 times
    assert (np.abs(seen.mean - values[:12]) <= 4 * seen.std + 1e-9 * np.abs(values[:12])).all()
    assert seen.std.max() < unseen.std.min()
    assert seen.std.max() < np.std(values)


@pytest.mark.parametrize("inference", INFERENCES)
def test_predictions_follow_the_unit_of_the_results(inference):
    """A power of two changes no rounding: mean and standard deviation scale with it exactly."""
    values = [1.0, 3.5, -2.0, 0.25, 7.0]
    plain = told(MIXED, values, model=Model(inference=inference))
    scaled = told(MIXED, [1024 * v for v in values], model=Model(inference=inference))
    every = MIXED.points(MIXED.enumerate_rows())
    assert np.array_equal(scaled.predict(every).mean, 1024 * plain.predict(every).mean)
    assert np.array_equal(scaled.predict(every).std, 1024 * plain.predict(every).std)


def test_predictions_follow_the_origin_of_the_results():
    """Four numbers whose largest is a power of two before and after: standardising is exact."""
    values = np.array([8.0, -2.0, 0.5, 3.0])
    plain, moved = told(MIXED, values.tolist()), told(MIXED, (values + 56).tolist())
    every = MIXED.points(MIXED.enumerate_rows())
    rounding = 64 * 8 * np.finfo(float).eps  # a few operations on numbers of at most 64
    np.testing.assert_allclose(
        moved.predict(every).mean, plain.predict(every).mean + 56, rtol=0, atol=rounding
    )
    np.testing.assert_allclose(
        moved.predict(every).std, plain.predict(every).std, rtol=0, atol=rounding
    )


def test_predictions_count_the_doubt_about_the_hyper_parameters():
    """The variance over hyper-parameter states: mean of the variances plus that of the means."""
    values = np.array([8.0, -2.0, 0.5, 3.0, 1.0])
    opt = told(MIXED, values.tolist(), model=Model(inference="hmc"))
    rows = MIXED.enumerate_rows()
    mean, std = opt.predict(MIXED.points(rows))
    states = [posterior.predict(rows) for posterior in opt._model_of_now().posteriors]
    means, variances = np.array(states).transpose(1, 0, 2)
    assert len(states) > 1
    assert (means.var(axis=0) > 0).any()
    wanted = values.std() * np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    # the same few operations on numbers of at most 8, in another order
    rounding = {"rtol": 32 * np.finfo(float).eps, "atol": 8 * 32 * np.finfo(float).eps}
    np.testing.assert_allclose(std, wanted, **rounding)
    np.testing.assert_allclose(mean, values.mean() + values.std() * means.mean(axis=0), **rounding)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_predictions_beside_a_wild_result_are_about_ordinary_ones(direction):
    space = Space.binary(10)
    rows = np.random.default_rng(0).permutation(space.enumerate_rows())[:160]
    points, bits = space.points(rows), 2.0 * rows - 1
    values = bits @ np.arange(1.0, 11.0) / 4 + bits[:, 0] * bits[:, 3]
    sign = 1.0 if direction == "minimize" else -1.0
    opt = make(space, direction=direction, model=Model(inference="map"))
    opt.tell(points[:60], sign * np.where(np.arange(60) == 7, 1e12, values[:60]))
    found, truth = opt.predict(points[60:]), sign * values[60:]
    # but for neighbours of the wild one, which may be wild as well
    assert np.median(found.std) < truth.std()
    assert np.median(np.abs(found.mean - truth)) < truth.std() / 2


# -- draw --------------------------------------------------------------------------------------


def test_a_draw_is_the_same_until_the_next_ask():
    opt = told(MIXED, [1.0, 2.0, 4.0])
    every = MIXED.points(MIXED.enumerate_rows())
    first, again = opt.draw(), opt.draw()
    assert [first.value(p) for p in every] == [again.value(p) for p in every]
    opt.ask()
    assert [opt.draw().value(p) for p in every[:5]] != [first.value(p) for p in every[:5]]


def test_a_draw_of_another_generator_is_another_draw():
    opt = told(MIXED, [1.0, 2.0, 4.0])
    point = MIXED.points(MIXED.enumerate_rows())[7]
    a, b, c = (opt.draw(rng=np.random.default_rng(s)).value(point) for s in (1, 1, 2))
    assert a == b
    assert a != c


@pytest.mark.parametrize(("inference", "states"), [("map", 1), ("hmc", 6)])
def test_draws_are_under_all_states_of_the_hyper_parameters(inference, states, monkeypatch):
    """Those of successive asks in turn, those of a generator under any."""
    opt = told(MIXED, [1.0, 2.0, 4.0], model=Model(inference=inference))
    under, begin = [], Posterior.begin

    def noted(posterior, rng):
        under.append(id(posterior))
        return begin(posterior, rng)

    monkeypatch.setattr(Posterior, "begin", noted)
    for _ in range(6):
        opt.draw()
        opt.ask()
    assert len(set(under)) == states
    under.clear()
    rng = np.random.default_rng(1)
    for _ in range(40):  # one of six is missed with a chance of 0.004
        opt.draw(rng=rng)
    assert len(set(under)) == states


def test_the_next_ask_minimises_the_draw():
    """With an exact solver and no refinement the suggestion is the minimum of `draw()`."""
    space = Space.binary(6)
    checked = 0
    for seed in range(8):
        model = Model(posterior="truncated", refine=False, trust="none")
        opt = told(space, [3.0, 1.0, 2.0, 5.0], seed=seed, backend=Wrapped(), model=model)
        draw = opt.draw()
        lowest = min(space.points(space.enumerate_rows()), key=draw.value)
        if lowest not in [o.point for o in opt.observations]:
            assert opt.ask() == lowest
            checked += 1
    assert checked >= 4


def test_a_draw_before_any_result_is_one_of_the_prior():
    draw = make().draw()
    values = {draw.value(p) for p in MIXED.points(MIXED.enumerate_rows())}
    assert len(values) > 1
    assert draw.bqm.num_variables > 0
