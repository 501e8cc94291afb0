"""The lower confidence bound on the full Gaussian process.

| symbol | meaning                                                                     | shape |
|--------|-----------------------------------------------------------------------------|-------|
| mean   | posterior mean of the noise-free function, averaged over states             | (R,)  |
| sd     | standard deviation under all states together, pending points counted as     | (R,)  |
|        | measured: the root of the average variance and the variance of the means    |       |
| b      | `WIDTH` squared                                                             |       |
| LCB    | mean - sqrt(b) sd                                                           | (R,)  |

b is a constant. The schedule with a proven regret, b_t = 2 log(|X| t^2 pi^2 / 6 delta) (Srinivas
et al. 2010), grows with the logarithm of the size of the space: for 50 bits it is above 70 from the
first, more than eight standard deviations, and the search would hardly come to exploit within the
budgets meant here.

Results that are awaited are conditioned on at their means (Desautels et al. 2014): the means stay
as they are, and the uncertainty around those points is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.drawing.prediction import MomentScore, Predictor
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior

# sqrt(b): a value is called possible up to two standard deviations below the mean.
WIDTH = 2.0


@dataclass(frozen=True)
class Bound(MomentScore):
    """The bound as a function to descend, in standardised units."""

    kernel: Kernel
    predictors: Sequence[Predictor]

    @classmethod
    def of(cls, posteriors: Sequence[Posterior], pending: Rows) -> Bound:
        predictors = [posterior.full.awaiting(pending) for posterior in posteriors]
        return cls(posteriors[0].kernel, predictors)

    def combine(self, moments: Sequence[tuple[Floats, Floats]]) -> Floats:
        means = np.array([mean[:, 0] for mean, _ in moments])  # (states, R)
        variances = np.array([variance for _, variance in moments])
        sd = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
        return np.asarray(means.mean(axis=0) - WIDTH * sd)
