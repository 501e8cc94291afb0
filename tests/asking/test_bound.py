"""The lower confidence bound: its formula, states together, and pending points."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import Model, Space
from mercbo.arrays import Rows
from mercbo.asking.bound import WIDTH, Bound
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior


def all_rows() -> Rows:
    return Space.binary(4).enumerate_rows()


def some_posterior(noise: float = 1e-4, model: Model | None = None) -> Posterior:
    kernel, rows = Kernel(Encoding(Space.binary(4))), all_rows()[:6]
    y = np.random.default_rng(1).standard_normal(len(rows))
    hyper = Hyper(np.full(kernel.n, 1.5), 1.2, noise, 0.1)
    return Posterior(model or Model(), Data(kernel, rows, y), hyper)


@pytest.mark.parametrize("model", [Model(), Model(posterior="truncated")])
def test_the_bound_is_the_mean_less_two_deviations(model: Model) -> None:
    posterior = some_posterior(model=model)
    mean, variance = posterior.full.predict(all_rows())
    found = Bound.of([posterior], all_rows()[:0]).path(all_rows())
    np.testing.assert_allclose(found, mean - WIDTH * np.sqrt(variance), atol=1e-9)


def test_what_states_disagree_on_is_uncertain() -> None:
    states = [some_posterior(), some_posterior(0.5)]
    moments = [posterior.predict(all_rows()) for posterior in states]
    mean = np.mean([m for m, _ in moments], axis=0)
    second = np.mean([v + m**2 for m, v in moments], axis=0)  # of the mixture
    found = Bound.of(states, all_rows()[:0]).path(all_rows())
    np.testing.assert_allclose(found, mean - WIDTH * np.sqrt(second - mean**2), atol=1e-6)


def test_a_pending_point_is_no_longer_uncertain() -> None:
    posterior = some_posterior()
    plain = Bound.of([posterior], all_rows()[:0]).path(all_rows())
    found = Bound.of([posterior], all_rows()[[9]]).path(all_rows())
    mean, variance = posterior.predict(all_rows())
    assert (found >= plain - 1e-9).all()
    assert found[9] == pytest.approx(mean[9], abs=WIDTH * np.sqrt(posterior.hyper.noise))
    assert variance[9] > 0.1


def test_neighbours_are_what_single_rows_give() -> None:
    score = Bound.of([some_posterior(), some_posterior(0.5)], all_rows()[[8]])
    row = np.array([[0, 1, 1, 0]])
    table = score.path_neighbours(row)[0]
    levels = zip(score.kernel.level_variable, score.kernel.level_value, strict=True)
    for column, (variable, value) in enumerate(levels):
        moved = row.copy()
        moved[0, variable] = value
        assert table[column] == pytest.approx(score.path(moved)[0])
