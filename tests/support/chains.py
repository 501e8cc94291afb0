"""A chain of hyper-parameters around the highest density found."""

from __future__ import annotations

import numpy as np

from mercbo.inference import Data, Fit, fit_map, sampled


def fit_hmc(data: Data, previous: Fit | None, *, rng: np.random.Generator) -> Fit:
    return sampled(data, fit_map(data, previous), previous, rng=rng)
