"""Max-value entropy search: the formula, its tails, the minima and pending points."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import AtMost, Model, Optimizer, Space
from mercbo.arrays import Rows
from mercbo.asking.entropy import LOWER, MINIMA, UPPER, Entropy, capped, log_information
from mercbo.asking.improvement import MARGIN
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior

# -- the formula -------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [-2.0, -0.5, 0.0, 0.7, 1.5])
def test_information_is_the_entropy_lost_by_samples_below_the_minimum(gamma: float) -> None:
    """H[f] - H[f | f >= y*] for f ~ N(gamma, 1) and y* = 0. Of those samples that stay, the density
    is phi / Phi, so that their entropy is the mean of -log phi + log Phi over them."""
    draws = 400_000
    f = gamma + np.random.default_rng(0).standard_normal(draws)
    kept = f[f >= 0.0]
    surprise = 0.5 * (kept - gamma) ** 2 + 0.5 * np.log(2.0 * np.pi) + np.log(len(kept) / draws)
    lost = 0.5 * np.log(2.0 * np.pi * np.e) - surprise.mean()
    share = len(kept) / draws
    # errors of the mean and of log share, added up as if they went the same way
    error = surprise.std() / np.sqrt(len(kept)) + np.sqrt((1.0 - share) / (share * draws))
    assert np.exp(log_information(np.array([gamma])))[0] == pytest.approx(lost, abs=4 * error)


def test_the_logarithm_goes_on_where_information_underflows() -> None:
    gamma = np.array([10.0, 40.0, 1e4, 1e8])
    log = log_information(gamma)
    # gamma phi / 2 leads, and what follows is 2 / gamma^2 of it
    lead = np.log(0.5 * gamma) - 0.5 * gamma**2 - 0.5 * np.log(2.0 * np.pi)
    assert (log[:2] > lead[:2]).all()
    np.testing.assert_allclose(log[:2], lead[:2], atol=2.0 / gamma[0] ** 2)
    np.testing.assert_allclose(log[2:], lead[2:], rtol=1e-12)


def test_the_other_tail_grows_as_a_logarithm_does() -> None:
    a = np.array([1e2, 999.0, 1e4, 1e9, 1e150])
    information = np.exp(log_information(-a))
    lead = np.log(a) + 0.5 * np.log(2.0 * np.pi) - 0.5
    # the next term of the series is 2 / a^2
    np.testing.assert_allclose(information, lead, atol=1e-9 + 2.1 / a[0] ** 2)


@pytest.mark.parametrize("seam", [UPPER, 0.0, LOWER])
def test_the_parts_meet(seam: float) -> None:
    step = 1e-9
    below, above = log_information(np.array([seam - step, seam + step]))
    # the slope of log h is at most gamma + 2 in size
    assert below == pytest.approx(above, abs=2 * step * (abs(seam) + 2) + 1e-9)


def test_information_falls_with_gamma() -> None:
    gamma = np.concatenate([-np.logspace(6, -3, 400), np.logspace(-3, 3, 400)])
    assert (np.diff(log_information(gamma)) < 0).all()


# -- on a posterior ----------------------------------------------------------------------------


def all_rows(n: int) -> Rows:
    return Space.binary(n).enumerate_rows()


def some_posterior(noise: float = 1e-4, model: Model | None = None) -> Posterior:
    kernel, rows = Kernel(Encoding(Space.binary(4))), all_rows(4)[:6]
    y = np.random.default_rng(1).standard_normal(len(rows))
    hyper = Hyper(np.full(kernel.n, 1.5), 1.2, noise, 0.1)
    return Posterior(model or Model(), Data(kernel, rows, y), hyper)


def score_of(posteriors: list[Posterior], pending: Rows) -> Entropy:
    """With the minima of the drawn functions over all of the space."""
    return Entropy.of(
        posteriors,
        pending,
        lambda sample: float(sample.path(all_rows(4)).min()),
        rng=np.random.default_rng(0),
    )


def test_the_minima_are_shared_out_among_the_states_and_capped() -> None:
    posteriors = [some_posterior(), some_posterior(0.5), some_posterior(0.1)]
    score = score_of(posteriors, all_rows(4)[:0])
    assert sum(map(len, score.minima)) >= MINIMA
    assert {len(lowest) for lowest in score.minima} == {3}
    for posterior, lowest in zip(posteriors, score.minima, strict=True):
        at_data = posterior.predict(posterior.data.rows)[0].min()
        assert (lowest <= at_data - MARGIN).all()
        np.testing.assert_allclose(capped(posterior, np.array([9.0, -9.0])), [at_data - MARGIN, -9])


@pytest.mark.parametrize("model", [Model(), Model(posterior="truncated"), Model(order=3)])
def test_the_score_is_the_average_over_minima_and_states(model: Model) -> None:
    posteriors = [some_posterior(model=model), some_posterior(0.5, model=model)]
    score = score_of(posteriors, all_rows(4)[:0])
    rows, gains = all_rows(4)[6:], []
    for posterior, lowest in zip(posteriors, score.minima, strict=True):
        mean, variance = posterior.full.predict(rows)
        for value in lowest:
            gains.append(np.exp(log_information((mean - value) / np.sqrt(variance))))
    np.testing.assert_allclose(np.exp(-score.path(rows)), np.mean(gains, axis=0))


def test_a_pending_point_tells_little_and_the_means_stay() -> None:
    posterior, rows = some_posterior(), all_rows(4)
    plain = score_of([posterior], rows[:0])
    score = score_of([posterior], rows[[9]])
    np.testing.assert_array_equal(score.minima[0], plain.minima[0])
    before, after = plain.predictors[0].at(rows), score.predictors[0].at(rows)
    np.testing.assert_allclose(after[0], before[0], atol=1e-9)
    assert (after[1] <= before[1] + 1e-12).all()
    assert after[1][9] < 1e-3 < before[1][9]
    assert score.path(rows)[9] > plain.path(rows)[9] + 1.0


def test_neighbours_are_what_single_rows_give() -> None:
    score = score_of([some_posterior(), some_posterior(0.5)], all_rows(4)[[8]])
    row = np.array([[0, 1, 1, 0]])
    table = score.path_neighbours(row)[0]
    levels = zip(score.kernel.level_variable, score.kernel.level_value, strict=True)
    for column, (variable, value) in enumerate(levels):
        moved = row.copy()
        moved[0, variable] = value
        assert table[column] == pytest.approx(score.path(moved)[0])


# -- in an optimizer ---------------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
def test_the_minimum_of_a_draw_is_found_on_a_small_space(constrained: bool) -> None:
    names = Space.binary(7).names
    rules = [AtMost(3, [(name, 1) for name in names])] if constrained else []
    space = Space(Space.binary(7).variables, constraints=rules)
    opt = Optimizer(space, seed=0)
    rng = np.random.default_rng(3)
    opt.tell(space.sample(12, rng=rng), rng.standard_normal(12))
    rows = space.enumerate_rows()
    for seed in range(3):
        sample = opt.draw(rng=np.random.default_rng(seed)).sample
        found = opt._asking().minimum(sample, rng=np.random.default_rng(seed))
        assert found == pytest.approx(sample.path(rows).min(), abs=1e-9)
