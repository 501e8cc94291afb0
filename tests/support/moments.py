"""The exact mean and covariance of draws, which are affine in the normal variables they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Given:
    """Gives out the entries of a vector in place of random numbers, and counts them."""

    def __init__(self, entries: np.ndarray | None = None) -> None:
        self.entries = entries
        self.used = 0

    def standard_normal(self, size: Any = None) -> Any:
        count = int(np.prod(size)) if size is not None else 1
        first, self.used = self.used, self.used + count
        if self.entries is None:
            return np.zeros(size) if size is not None else 0.0
        taken = self.entries[first : self.used]
        return taken.reshape(size) if size is not None else float(taken[0])


def exact_moments(values: Callable[[Any], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of `values(rng)` (points,), one call per normal variable."""
    counter = Given()
    mean = values(counter)
    steps = [values(Given(row)) - mean for row in np.eye(counter.used)]
    return mean, np.transpose(steps) @ np.array(steps)
