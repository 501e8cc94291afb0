"""Predicted against observed: each result predicted from all the others, in closed form.

With Sigma the covariance of the results, alpha = Sigma^-1 (z - mean) and s_i = (Sigma^-1)_ii, the
prediction of z_i from the others is normal with mean z_i - alpha_i / s_i and variance 1 / s_i: one
factorisation serves all of them. The hyper-parameters are those fitted to all results. A replicate
leaves the other results of its point in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats
from mercbo.domain.variables import Point
from mercbo.drawing.surrogate import Units
from mercbo.explaining.mixture import Mixture
from mercbo.posterior import Posterior

# Stated rates whose true rate is counted.
RATES = (0.5, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Calibration:
    """How many results lie in their intervals, against how many should."""

    stated: float
    inside: int
    of: int

    @property
    def rate(self) -> float:
        return self.inside / self.of

    @property
    def tolerance(self) -> float:
        """Two standard deviations of the rate, were the intervals right and results independent."""
        return 2.0 * float(np.sqrt(self.stated * (1.0 - self.stated) / self.of))


@dataclass(frozen=True)
class LeftOut:
    """A result, and what the others predict for it, with an interval, in the user's units.

    residual
        The result less its prediction, in standard deviations of the prediction (noise included);
        positive if the result is above.
    """

    point: Point
    observed: float
    predicted: float
    low: float
    high: float
    residual: float


@dataclass(frozen=True)
class CrossValidation:
    """Leave-one-out predictions of all results, in the order told."""

    results: tuple[LeftOut, ...]
    calibration: tuple[Calibration, ...]
    # share of the results' variance that the predictions explain; below 0: worse than their mean
    r2: float


def moments(posterior: Posterior) -> tuple[Floats, Floats]:
    """Mean and standard deviation (N,) of each result given the others, in the data's units."""
    inverse = np.diag(posterior._sigma.inverse())
    alpha = posterior._sigma.solve(posterior.centred)
    return posterior.data.y - alpha / inverse, 1.0 / np.sqrt(inverse)


def cross_validation(
    posteriors: list[Posterior], units: Units, points: list[Point], values: Floats, level: float
) -> CrossValidation:
    """Several posteriors (samples of the hyper-parameters) count alike."""
    pairs = [moments(posterior) for posterior in posteriors]
    left = Mixture(np.array([m for m, _ in pairs]), np.array([d**2 for _, d in pairs]))
    data = posteriors[0].data
    ranks = left.below(data.y)  # uniform where all is right
    sides = (left.mean, left.quantile(0.5 - level / 2), left.quantile(0.5 + level / 2))
    shown = [units.value(data.warp.inverse(side)) for side in sides]
    low, high = np.min(shown, axis=0), np.max(shown, axis=0)
    residuals = units.sign * (data.y - left.mean) / np.sqrt(left.variance)
    columns = [column.tolist() for column in (values, shown[0], low, high, residuals)]
    results = tuple(LeftOut(*each) for each in zip(points, *columns, strict=True))
    counted = tuple(
        Calibration(rate, int((np.abs(2.0 * ranks - 1.0) <= rate).sum()), len(ranks))
        for rate in RATES
    )
    return CrossValidation(results, counted, _explained(values, shown[0]))


def _explained(values: Floats, predicted: Floats) -> float:
    # in units of the largest, so that sums and squares do not overflow
    size = max(float(np.abs(values).max(initial=0.0)), float(np.abs(predicted).max(initial=0.0)))
    values, predicted = values / (size or 1.0), predicted / (size or 1.0)
    total = float(((values - values.mean()) ** 2).sum())
    return 1.0 - float(((values - predicted) ** 2).sum()) / total if total > 0 else 0.0
