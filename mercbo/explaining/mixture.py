"""Normal variables under several states of the hyper-parameters: their moments and quantiles.

A posterior that averages over states is a mixture of normals. Where the states differ (one calls
noise what another calls an effect), it is skewed or has heavy tails, and a multiple of its standard
deviation is no quantile: `quantile` solves for the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from mercbo.arrays import Floats

# Halvings of the bracket of a quantile: what is left is beyond the digits that anybody reads.
HALVINGS = 40


@dataclass(frozen=True)
class Mixture:
    """c normal variables under S states that count alike."""

    means: Floats  # (S, c)
    variances: Floats  # (S, c)

    @classmethod
    def together(cls, several: Sequence[Mixture]) -> Mixture:
        """The variables of several mixtures under the same states, side by side."""
        means = np.concatenate([each.means for each in several], axis=1)
        return cls(means, np.concatenate([each.variances for each in several], axis=1))

    @property
    def mean(self) -> Floats:
        return np.asarray(self.means.mean(axis=0))

    @property
    def variance(self) -> Floats:
        return np.asarray(self.variances.mean(axis=0) + self.means.var(axis=0))

    def below(self, level: Floats | float) -> Floats:
        """The probability of each variable to lie below its `level`, or at it if it is certain."""
        from scipy.special import ndtr

        sd = np.sqrt(np.maximum(self.variances, np.finfo(float).tiny))
        return np.asarray(ndtr((level - self.means) / sd).mean(axis=0))

    def quantile(self, share: float) -> Floats:
        """(c,): it lies between the lowest and the highest of the states' own."""
        own = self.means + NormalDist().inv_cdf(share) * np.sqrt(self.variances)
        low, high = own.min(axis=0), own.max(axis=0)
        for _ in range(HALVINGS if len(own) > 1 else 0):
            middle = 0.5 * (low + high)
            under = self.below(middle) < share
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return np.asarray(0.5 * (low + high))
