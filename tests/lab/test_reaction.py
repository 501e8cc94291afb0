"""The made-up reaction: measurable everywhere that its rules allow, and best where it should be."""

from __future__ import annotations

import numpy as np

from mercbo.lab import reaction
from mercbo.lab.spacefile import parse, space_of

SPACE = space_of(parse(reaction.SPACE, ".yaml"))


def test_yields_are_per_cent_and_some_mixtures_fail() -> None:
    points = SPACE.sample(2000, rng=np.random.default_rng(0))
    values = [reaction.true_yield(point) for point in points]
    found = [value for value in values if value is not None]
    assert 0 < len(values) - len(found) < 0.05 * len(values)
    assert min(found) >= 0
    assert max(found) <= 99


def test_measurements_scatter_around_the_truth() -> None:
    point = SPACE.sample(1, rng=np.random.default_rng(1))[0]
    truth, rng = reaction.true_yield(point), np.random.default_rng(2)
    assert truth is not None
    measured = np.array([reaction.measured(point, rng=rng) for _ in range(400)])
    # four standard errors of the mean
    assert abs(measured.mean() - truth) < 4 * reaction.NOISE / np.sqrt(400)
