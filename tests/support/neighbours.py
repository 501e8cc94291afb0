"""What a posterior says of all one-variable neighbours at once, held to each of them alone."""

from __future__ import annotations

import numpy as np

from mercbo.arrays import Rows
from mercbo.drawing.samples import neighbours_of
from mercbo.posterior import Posterior


def check_neighbours(posterior: Posterior, rows: Rows) -> None:
    """Of a draw's path, and of the moments."""
    kernel, results = posterior.kernel, posterior.data.y[:, np.newaxis]
    moved = neighbours_of(kernel, rows)
    sample = posterior.draw(rng=np.random.default_rng(4))
    np.testing.assert_allclose(sample.path_neighbours(rows).ravel(), sample.path(moved))
    assert sample.path_neighbours(rows[:0]).shape == (0, kernel.levels)
    level = np.tile(np.arange(kernel.levels), (len(rows), 1))
    around = posterior.predictor(results).around(rows, level)
    for found, wanted in zip(around, posterior.means(moved, results), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
