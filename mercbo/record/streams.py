"""`Streams`: the random numbers of a run, which follow from its entropy and what they are for.

Each use has a stream of its own, so that one more or less of one use changes no other: what an
`ask` suggests does not depend on whether a prediction was made before.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace

import numpy as np

from mercbo.errors import whole

# First entry of a spawn key: which of the independent random streams.
ASKING, FITTING, EXPLAINING = 0, 1, 2


@dataclass(frozen=True)
class Streams:
    """One generator for each use, the same whenever it is asked for."""

    entropy: int
    # part of the spawn keys of asks, once another process was seen to ask by the same ones
    lane: tuple[int, ...] = ()

    @classmethod
    def of(cls, seed: int | None) -> Streams:
        """By a seed, or by fresh entropy where there is none."""
        if seed is not None:
            return cls(whole("seed", seed, least=0))
        drawn = np.random.SeedSequence().entropy
        assert isinstance(drawn, int)
        return cls(drawn)

    def apart(self) -> Streams:
        """The same, but for asks by random numbers that no other process has."""
        return replace(self, lane=(secrets.randbits(32),))

    def asking(self, number: int) -> np.random.Generator:
        """For one of the points asked for, by its number in the run."""
        return self._generator(ASKING, number, *self.lane)

    def fitting(self, results: int) -> np.random.Generator:
        """For the fit to so many results."""
        return self._generator(FITTING, results)

    def explaining(self, results: int) -> np.random.Generator:
        """For an explanation of so many results."""
        return self._generator(EXPLAINING, results)

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))
