"""Max-value entropy search: how much a result would tell about the lowest value there is.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| y*     | minima of functions drawn from the posterior, K per state                   | (K,)   |
| mean   | posterior mean of the noise-free function                                   | (R, 1) |
| sd     | its posterior standard deviation, pending points counted as measured        | (R, 1) |
| gamma  | (mean - y*) / sd                                                            | (R, K) |
| h      | gamma phi(gamma) / (2 Phi(gamma)) - log Phi(gamma): the entropy that f(x)   | (R, K) |
|        | loses when it is known not to be below y*                                   |        |

The score is minus the log of h averaged over y* and states (Wang and Jegelka 2017, turned round for
minimisation). The minima come from solved acquisition problems: each drawn function goes to the
backend and is descended, as a Thompson draw is. A drawn function leaves out what the prior has
beyond the order of its features, so its minimum may be too high, and a search may miss it; no y* is
let above the lowest posterior mean at a point with a result, less a margin.

Results that are awaited do not change the distribution of the minimum, only what is left to learn:
they are conditioned on at their means, which leaves all means as they are and lowers the variance.

Predictive entropy search is not here. It measures the information about *where* the minimum is. Its
approximation conditions f on a drawn location by a zero gradient and a positive curvature there,
with expectation propagation; on a discrete space there is neither, and the condition that remains,
f(x*) <= f(x) for all x, is as many constraints as there are points. A location is also worth less
here: many points may share the lowest value, and which of them is lowest is of no use. The minima
of the same draws give the information about the value in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.asking.improvement import LEAST_SD, LOG_ROOT_2PI, MARGIN, averaged
from mercbo.drawing.prediction import MomentScore, Predictor
from mercbo.drawing.samples import Sample
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior

# Drawn functions whose minima are samples of y*, over all states of the hyper-parameters together.
MINIMA = 8
# Above the first gamma 1 - Phi is so small that two terms of its series are exact; below the
# second the squares in h cancel, and what remains is that of the tail.
UPPER, LOWER = 6.0, -1e3


def log_information(gamma: Floats) -> Floats:
    """log h, accurate in both tails.

    >>> float(np.exp(log_information(np.zeros(1)))[0])  # log 2
    0.6931471805599453
    """
    from scipy.special import erfcx, log_ndtr

    high = np.maximum(gamma, UPPER)
    log_phi = -0.5 * high**2 - LOG_ROOT_2PI
    mills = np.sqrt(0.5 * np.pi) * erfcx(high / np.sqrt(2.0))  # (1 - Phi) / phi
    beyond = np.exp(log_phi) * mills
    right = log_phi + np.log(0.5 * high * (1.0 + beyond) + mills * (1.0 + 0.5 * beyond))

    middle = np.clip(gamma, 0.0, UPPER)
    log_cdf = log_ndtr(middle)
    ratio = np.exp(-0.5 * middle**2 - LOG_ROOT_2PI - log_cdf)
    centre = np.log(0.5 * middle * ratio - log_cdf)

    # Phi(-a) = exp(-a^2 / 2) erfcx(a / sqrt 2) / 2: both terms hold a^2 / 2
    a = np.clip(-gamma, 0.0, -LOWER)
    half = 0.5 * erfcx(a / np.sqrt(2.0))
    left = np.log(0.5 * a * (a - np.exp(-LOG_ROOT_2PI) / half) - np.log(half))

    tail = np.log(np.log(np.maximum(-gamma, -LOWER)) + LOG_ROOT_2PI - 0.5)
    parts = [gamma > UPPER, gamma > 0.0, gamma > LOWER]
    return np.asarray(np.select(parts, [right, centre, left], tail))


@dataclass(frozen=True)
class Entropy(MomentScore):
    """Minus the log of the information about the minimum, a function to descend."""

    kernel: Kernel
    predictors: Sequence[Predictor]
    minima: Sequence[Floats]  # (K,) for each of the predictors

    @classmethod
    def of(
        cls,
        posteriors: Sequence[Posterior],
        pending: Rows,
        minimum: Callable[[Sample], float],
        *,
        rng: np.random.Generator,
    ) -> Entropy:
        """`minimum` gives the lowest value of a drawn function that can be found."""
        each = -(-MINIMA // len(posteriors))
        minima = [
            capped(posterior, np.array([minimum(posterior.draw(rng=rng)) for _ in range(each)]))
            for posterior in posteriors
        ]
        predictors = [posterior.full.awaiting(pending) for posterior in posteriors]
        return cls(posteriors[0].kernel, predictors, minima)

    def combine(self, moments: Sequence[tuple[Floats, Floats]]) -> Floats:
        logs = []
        for (means, variance), lowest in zip(moments, self.minima, strict=True):
            sd = np.maximum(np.sqrt(variance), LEAST_SD)[:, np.newaxis]
            logs.append(log_information((means - lowest) / sd))
        return averaged(logs)


def capped(posterior: Posterior, minima: Floats) -> Floats:
    """No minimum is above what the data show to be there, less a margin."""
    means, _ = posterior.full.predict(posterior.data.rows)
    return np.asarray(np.minimum(minima, means.min() - MARGIN))
