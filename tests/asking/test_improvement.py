"""Expected improvement: the formula, its tail, and fantasies for pending points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mercbo import Optimizer, Space
from mercbo.arrays import Rows
from mercbo.asking.choice import FEW_PENDING
from mercbo.asking.improvement import MARGIN, Belief, Improvement, log_improvement
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.model import Model
from mercbo.posterior import Posterior


@pytest.mark.parametrize(("mean", "variance"), [(0.3, 1.0), (-1.0, 0.25), (2.0, 1.0), (0.0, 4.0)])
def test_expected_improvement_is_that_of_samples(mean: float, variance: float) -> None:
    draws = 200_000
    f = mean + np.sqrt(variance) * np.random.default_rng(0).standard_normal(draws)
    gains = np.maximum(0.1 - f, 0.0)
    found = log_improvement(np.array([mean]), np.array([variance]), 0.1)
    assert np.exp(found[0]) == pytest.approx(gains.mean(), abs=4 * gains.std() / np.sqrt(draws))


def test_log_improvement_goes_on_where_improvement_underflows() -> None:
    z = np.array([-1.0 - 1e-9, -1.0 + 1e-9, -999.999, -1000.001, -1e6, 50.0])
    log = log_improvement(-z, np.ones(6), 0.0)
    assert np.isfinite(log).all()
    # both formulas meet where one takes over: the slope of log EI is at most |z| + 2 / |z|
    assert log[0] == pytest.approx(log[1], abs=1e-8)
    assert log[2] - log[3] == pytest.approx(0.002 * 1000, rel=1e-2)
    assert log[4] == pytest.approx(-0.5e12, rel=1e-9)
    assert log[5] == pytest.approx(np.log(50.0))
    # a point that is known not to be better gains nothing; rounding is no error
    assert log_improvement(np.zeros(1), np.zeros(1), 0.0)[0] < -20


# -- fantasies ---------------------------------------------------------------------------------


def some_posterior(rows: Rows, noise: float = 1e-4) -> Posterior:
    kernel = Kernel(Encoding(Space.binary(rows.shape[1])))
    y = np.random.default_rng(1).standard_normal(len(rows))
    return Posterior(Model(), Data(kernel, rows, y), Hyper(np.full(kernel.n, 1.5), 1.2, noise, 0.1))


def all_rows(n: int) -> Rows:
    return Space.binary(n).enumerate_rows()


def test_nothing_pending_is_plain_expected_improvement() -> None:
    posterior = some_posterior(all_rows(4)[:6])
    score = Improvement.of([posterior], all_rows(4)[:0], rng=np.random.default_rng(0))
    rows = all_rows(4)[6:]
    best = posterior.predict(posterior.data.rows)[0].min() - MARGIN
    plain = log_improvement(*posterior.predict(rows), best)
    np.testing.assert_allclose(score.path(rows), -plain, rtol=1e-9)


def test_fantasies_are_draws_from_the_posterior_of_results() -> None:
    posterior = some_posterior(all_rows(4)[:6], noise=0.3)
    rows = all_rows(4)[[7, 8, 15]]
    drawn = posterior.results_at(rows, 100_000, rng=np.random.default_rng(2))
    mean, variance = posterior.predict(rows)
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(drawn.var(axis=1), variance + 0.3, rtol=0.02)


def test_a_fantasy_equals_a_posterior_that_was_told_it() -> None:
    posterior = some_posterior(all_rows(4)[:6])
    pending, rows = all_rows(4)[[9, 12]], all_rows(4)[[6, 7, 13]]
    belief = Belief.of(posterior, pending, 3, rng=np.random.default_rng(3))
    found = belief.log_improvements(rows)
    for s in range(3):
        told = posterior.given(pending, belief.results[-2:, s])
        best = told.predict(told.data.rows)[0].min() - MARGIN
        np.testing.assert_allclose(found[:, s], log_improvement(*told.predict(rows), best))


def test_a_liar_says_that_what_is_pending_came_out_as_the_best_so_far() -> None:
    posterior = some_posterior(all_rows(4)[:6])
    pending, rows = all_rows(4)[[9, 12]], all_rows(4)[[6, 7, 9, 13]]
    lowest = posterior.predict(posterior.data.rows)[0].min()
    told = posterior.given(pending, np.full(2, lowest))
    best = told.predict(told.data.rows)[0].min() - MARGIN
    score = Improvement.of([posterior], pending, liar=True, rng=np.random.default_rng(0))
    found = -score.path(rows)
    np.testing.assert_allclose(found, log_improvement(*told.predict(rows), best), rtol=1e-9)
    # no random number is used
    again = Improvement.of([posterior], pending, liar=True, rng=np.random.default_rng(7))
    assert np.array_equal(-again.path(rows), found)


def test_improvement_is_averaged_over_states() -> None:
    one, two = some_posterior(all_rows(4)[:6]), some_posterior(all_rows(4)[:6], noise=0.5)
    rows, nobody, rng = all_rows(4)[6:], all_rows(4)[:0], np.random.default_rng(0)
    alone = [np.exp(-Improvement.of([p], nobody, rng=rng).path(rows)) for p in (one, two)]
    both = np.exp(-Improvement.of([one, two], nobody, rng=rng).path(rows))
    np.testing.assert_allclose(both, np.mean(alone, axis=0))


def test_neighbours_are_what_single_rows_give() -> None:
    posterior = some_posterior(all_rows(4)[:6])
    score = Improvement.of([posterior], all_rows(4)[[8]], rng=np.random.default_rng(0))
    row = np.array([[0, 1, 1, 0]])
    table = score.path_neighbours(row)[0]
    for column, (variable, value) in enumerate(
        zip(score.kernel.level_variable, score.kernel.level_value, strict=True)
    ):
        moved = row.copy()
        moved[0, variable] = value
        assert table[column] == pytest.approx(score.path(moved)[0])


# -- in an optimizer ---------------------------------------------------------------------------


def told(acquisition: str, seed: int = 0) -> Optimizer:
    opt = Optimizer(Space.binary(8), acquisition=acquisition, seed=seed)
    rows = np.random.default_rng(5).permutation(all_rows(8))[:24]
    opt.tell(opt.space.points(rows), rows @ np.arange(8.0) - 6.0 * rows[:, 3] * rows[:, 5])
    return opt


def test_the_suggestion_has_the_highest_expected_improvement_of_all() -> None:
    opt = told("ei")
    score = Improvement.of(
        opt._model_of_now().posteriors, opt._history.rows[:0], rng=np.random.default_rng(0)
    )
    seen = {tuple(row) for row in opt._history.rows.tolist()}
    new = np.array([row for row in all_rows(8).tolist() if tuple(row) not in seen])
    best = new[score.path(new).argmin()]
    assert opt.space.rows(opt.ask())[0].tolist() == best.tolist()


def test_a_batch_is_what_single_asks_give_and_has_no_point_twice() -> None:
    batch = told("ei").ask(12)
    one_by_one = told("ei")
    assert batch == [one_by_one.ask() for _ in range(12)]
    assert len({tuple(point.values()) for point in batch}) == 12


def test_pending_points_push_others_away() -> None:
    """Without fantasies the second point of a batch would be the runner-up of the first."""
    opt = told("ei")
    score = Improvement.of(
        opt._model_of_now().posteriors, opt._history.rows[:0], rng=np.random.default_rng(0)
    )
    batch = opt.space.rows(opt.ask(8))
    assert score.path(batch).tolist() != sorted(score.path(batch).tolist())


def test_expected_improvement_is_discounted_where_evaluations_fail() -> None:
    opt = told("ei")
    rows = np.random.default_rng(5).permutation(all_rows(8))[24:60]
    opt.tell(opt.space.points(rows[rows[:, 0] == 1]), [None] * int(rows[:, 0].sum()))
    works = opt._works()
    drawn, rng = opt.draw().sample, np.random.default_rng(0)
    score = opt._asking().situation(rng=rng).score("ei", drawn, rng=rng)
    plain = Improvement.of(opt._model_of_now().posteriors, rows[:0], rng=np.random.default_rng(0))
    np.testing.assert_allclose(score.path(rows), plain.path(rows) - 2 * np.log(works.chance(rows)))
    around = plain.path_neighbours(rows) - 2 * np.log(works.chance_neighbours(rows))
    np.testing.assert_allclose(score.path_neighbours(rows), around)


@pytest.mark.parametrize(
    ("options", "pending", "failed", "greedy"),
    [
        ({}, 0, 0, True),
        ({}, FEW_PENDING - 1, 0, True),
        ({}, FEW_PENDING, 0, False),
        ({}, 0, 1, False),
        ({"model": Model.paper()}, 0, 0, False),
        ({"acquisition": "ei"}, FEW_PENDING, 1, True),
        ({"acquisition": "thompson"}, 0, 0, False),
    ],
)
def test_auto_goes_by_what_is_pending_and_what_failed(
    options: dict[str, Any], pending: int, failed: int, greedy: bool
) -> None:
    opt = Optimizer(Space.binary(8), seed=0, **options)
    points = opt.space.points(all_rows(8)[: 8 + failed])
    opt.tell(points, [1.0] * 8 + [None] * failed)
    assert opt._asking().acquires(pending) == ("ei" if greedy else "thompson")


def test_the_acquisition_is_saved(tmp_path) -> None:  # type: ignore[no-untyped-def]
    opt = told("ei")
    opt.ask(3)
    opt.save(tmp_path / "run.json")
    assert Optimizer.load(tmp_path / "run.json").ask(2) == opt.ask(2)


def test_what_is_improved_on_is_the_lowest_mean_at_a_result() -> None:
    space, rng = Space.binary(8), np.random.default_rng(0)
    opt = Optimizer(space, seed=0, model=Model(inference="map"))
    opt.tell(space.sample(20, rng=rng), rng.standard_normal(20), std=[0.5, 0.0] * 10)
    (posterior,) = opt._model_of_now().posteriors
    pending = space.sample_rows(3, rng=rng)
    belief = Belief.of(posterior, pending, 4, rng=rng)
    rows = np.concatenate([posterior.data.rows, pending])
    means, _ = belief.moments.at(rows)
    np.testing.assert_allclose(belief.best, means.min(axis=0) - MARGIN, atol=1e-9)
