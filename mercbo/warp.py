"""Output warp: a monotone change of the results that makes them fit a Gaussian process better.

Objectives are often skewed: a few results are far worse than the rest, or all of the progress
happens in a thin band above the best. A Gaussian process that spends its variance on the bad ones
cannot tell the good ones apart. The warp

    g(y) = log(y - low + c),  c = shape * (median - low),  low = min y

spreads the good ones; a large `shape` is nearly a straight line, and infinity is one. Which
shape is best is a matter of evidence: log p(g(y)) + sum log g'(y) compares shapes in the units of
y (`Model.fit`).

| symbol | meaning                                                      | shape |
|--------|--------------------------------------------------------------|-------|
| y      | standardised results                                         | (N,)  |
| z      | g(y), centred and scaled to a spread of 1                    | (N,)  |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats

# The shapes that are tried beside no warp at all.
SHAPES = (3.0, 1.0, 0.3, 0.1, 0.03)
# Nodes of the quadrature that takes a normal variable back to the units of y.
NODES = 32
# Below this, half of the results are as good as the best one, and their logs no better.
LEAST_OFFSET = 1e-9
# z beyond this is far outside of anything observed, and its exponential may overflow.
FARTHEST = 50.0


@dataclass(frozen=True)
class Warp:
    """y -> (log(y - low + offset) - centre) / spread, or y itself where there is no shape."""

    shape: float | None = None
    low: float = 0.0
    offset: float = 1.0
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, shape: float | None, y: Floats) -> Warp:
        """The warp of a shape for some results."""
        if shape is None or len(y) == 0:
            return cls()
        low = float(y.min())
        offset = shape * float(np.median(y) - low)
        if offset <= LEAST_OFFSET:
            return cls()
        logs = np.log(y - low + offset)
        return cls(shape, low, offset, float(logs.mean()), float(logs.std()))

    def __call__(self, y: Floats) -> Floats:
        if self.shape is None:
            return y
        return np.asarray((np.log(y - self.low + self.offset) - self.centre) / self.spread)

    def log_slope(self, z: Floats) -> Floats:
        """log dz / dy, by z."""
        if self.shape is None:
            return np.zeros_like(z)
        return np.asarray(-np.log(self.spread) - self.centre - self.spread * z)

    def inverse(self, z: Floats) -> Floats:
        if self.shape is None:
            return z
        logs = self.centre + self.spread * np.clip(z, -FARTHEST, FARTHEST)
        return np.asarray(self.low - self.offset + np.exp(logs))

    def moments(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of y where z is normal."""
        if self.shape is None:
            return mean, sd
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        weights = weights / weights.sum()
        y = self.inverse(mean[:, np.newaxis] + sd[:, np.newaxis] * nodes)
        centre = y @ weights
        return centre, np.sqrt(((y - centre[:, np.newaxis]) ** 2) @ weights)


IDENTITY = Warp()
