"""Output warp: a monotone change of the results that makes them fit a Gaussian process better.

Objectives are often skewed: a few results are far worse than the rest, or all of the progress
happens in a thin band above the best. A Gaussian process that spends its variance on the bad ones
cannot tell the good ones apart. A warp takes results to z = (f(u) - centre) / spread with one of
the curves f below. Which is best is a matter of evidence: log p(z) + sum log dz/dy compares warps
in the units of y (`Model.fit`).

| name    | curve                                                              | u from the |
|---------|--------------------------------------------------------------------|------------|
| log:c   | log(u + c): spreads the good end; a large c is nearly straight     | best       |
| power:p | Yeo and Johnson's: ((1 + u)^p - 1) / p above 0, 2 - p below        | median     |
| tails:k | k asinh(u / k): a few results far off on either side weigh less    | median     |
| ranks:w | (1 - w) u + w times the normal scores, straight between quantiles  | median     |

From the best result, u = (y - low) / (median - low); from the median, u = (y - median) / s, where
s is the standard deviation that a normal variable with the quartiles of y has. Neither heeds how
far off a few wild results are.

| symbol | meaning                                                      | shape |
|--------|--------------------------------------------------------------|-------|
| y      | standardised results                                         | (N,)  |
| u      | the same from a robust origin, in a robust unit              | (N,)  |
| z      | warped results, centred and scaled to a spread of 1          | (N,)  |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercbo.arrays import Floats, Index
from mercbo.errors import SettingError

# The warps that are tried beside none at all: they have been played against none on whole runs.
LOGS = ("log:3", "log:1", "log:0.3", "log:0.1", "log:0.03")
# Those that are tried as well where a few results are wild: by evidence they may win elsewhere too,
# but nobody has shown yet that runs are the better for it.
ROBUST = (
    "power:0",
    "power:0.5",
    "power:1.5",
    "power:2",
    "tails:1",
    "tails:3",
    "ranks:0.5",
    "ranks:1",
)
NAMES = (*LOGS, *ROBUST)
# The evidence, in units of log p, by which a warp of one shape must beat none: no warp wins ties.
COST = 1.0
# Quantiles between which ranks are interpolated, beside the two lowest and the two highest results:
# a single wild one would bend all of the last tenth.
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# Nodes of the quadrature that takes a normal variable back to the units of y.
NODES = 32
# Below this unit, half of the results are the same but for rounding.
LEAST_UNIT = 1e-9
# Distance of the quartiles of a normal variable.
QUARTILES = 1.349
# The inverse of a warp ends this many ranges of the results beyond them: an exponential of a z
# far outside of anything observed would overflow.
FARTHEST = 1e3
# exp(300) squared is still a float.
MOST_EXPONENT = 300.0


class Curve(Protocol):
    """An increasing function with its inverse and the log of its derivative."""

    def __call__(self, u: Floats) -> Floats: ...

    def inverse(self, v: Floats) -> Floats: ...

    def log_slope(self, u: Floats) -> Floats: ...


@dataclass(frozen=True)
class Log:
    offset: float

    def __call__(self, u: Floats) -> Floats:
        return np.asarray(np.log(u + self.offset))

    def inverse(self, v: Floats) -> Floats:
        return np.asarray(np.exp(np.minimum(v, MOST_EXPONENT)) - self.offset)

    def log_slope(self, u: Floats) -> Floats:
        return np.asarray(-np.log(u + self.offset))


@dataclass(frozen=True)
class Power:
    """Yeo and Johnson's power: `power` above 0 and 2 - `power` below, from 0 to 2, so that the
    inverse is defined everywhere."""

    power: float

    def __call__(self, u: Floats) -> Floats:
        away = np.abs(u)
        return np.where(u >= 0, powered(away, self.power), -powered(away, 2.0 - self.power))

    def inverse(self, v: Floats) -> Floats:
        away = np.abs(v)
        return np.where(v >= 0, rooted(away, self.power), -rooted(away, 2.0 - self.power))

    def log_slope(self, u: Floats) -> Floats:
        return np.asarray(np.sign(u) * (self.power - 1.0) * np.log1p(np.abs(u)))


def powered(away: Floats, power: float) -> Floats:
    """((1 + away)^power - 1) / power, and its limit at 0."""
    logs = np.log1p(away)
    return np.asarray(np.expm1(power * logs) / power if power else logs)


def rooted(away: Floats, power: float) -> Floats:
    logs = np.log1p(power * away) / power if power else away
    return np.asarray(np.expm1(np.minimum(logs, MOST_EXPONENT)))


@dataclass(frozen=True)
class Tails:
    """Straight near 0, logarithmic on both sides from about `knee` on."""

    knee: float

    def __call__(self, u: Floats) -> Floats:
        return np.asarray(self.knee * np.arcsinh(u / self.knee))

    def inverse(self, v: Floats) -> Floats:
        exponents = np.clip(v / self.knee, -MOST_EXPONENT, MOST_EXPONENT)
        return np.asarray(self.knee * np.sinh(exponents))

    def log_slope(self, u: Floats) -> Floats:
        return np.asarray(-0.5 * np.log1p((u / self.knee) ** 2))


@dataclass(frozen=True)
class Ranks:
    """Straight lines through (ends, heights), both increasing; the outer ones go on."""

    ends: tuple[float, ...]
    heights: tuple[float, ...]

    @classmethod
    def of(cls, weight: float, u: Floats) -> Ranks:
        """A mix of u, of weight 1 - `weight`, and its normal scores at a few quantiles."""
        from scipy.special import ndtri

        edge, second = 0.5 / len(u), 1.5 / len(u)
        inner = {q for q in (second, *QUANTILES, 1 - second) if edge < q < 1 - edge}
        levels = np.array([edge, *sorted(inner), 1 - edge])
        places = np.quantile(u, np.clip((levels - edge) / (1 - 2 * edge), 0.0, 1.0))
        # of results that are equal, the middle rank counts
        ends = np.unique(places)
        ranks = np.array([levels[places == end].mean() for end in ends])
        heights = (1 - weight) * ends + weight * ndtri(ranks)
        return cls(tuple(ends.tolist()), tuple(heights.tolist()))

    def __call__(self, u: Floats) -> Floats:
        return through(u, self.ends, self.heights)

    def inverse(self, v: Floats) -> Floats:
        return through(v, self.heights, self.ends)

    def log_slope(self, u: Floats) -> Floats:
        ends, heights = np.array(self.ends), np.array(self.heights)
        return np.asarray(np.log(np.diff(heights) / np.diff(ends))[piece(u, ends)])


def piece(x: Floats, ends: Floats) -> Index:
    """Which straight line holds at x."""
    return np.asarray(np.clip(np.searchsorted(ends, x, side="right") - 1, 0, len(ends) - 2))


def through(x: Floats, starts: tuple[float, ...], targets: tuple[float, ...]) -> Floats:
    """Straight lines from `starts` to `targets`, the outer ones going on."""
    ends, heights = np.array(starts), np.array(targets)
    at = piece(x, ends)
    share = (x - ends[at]) / np.diff(ends)[at]
    return np.asarray(heights[at] + share * np.diff(heights)[at])


CURVES: dict[str, Callable[[float, Floats], Curve]] = {
    "log": lambda shape, _: Log(shape),
    "power": lambda shape, _: Power(shape),
    "tails": lambda shape, _: Tails(shape),
    "ranks": Ranks.of,
}


@dataclass(frozen=True)
class Warp:
    """y -> (curve((y - origin) / unit) - centre) / spread, or y itself where there is no curve."""

    name: str | None = None
    curve: Curve | None = None
    origin: float = 0.0
    unit: float = 1.0
    centre: float = 0.0
    spread: float = 1.0
    # where the inverse ends
    least: float = -np.inf
    most: float = np.inf

    @classmethod
    def of(cls, name: str | None, y: Floats) -> Warp:
        """The warp of a name for some results: none where too many of them are the same."""
        if name is None:
            return cls()
        family, shape = parsed(name)
        if len(y) < 2:
            return cls()
        low, quarter, median, three_quarters, high = np.quantile(
            y, (0, 0.25, 0.5, 0.75, 1)
        ).tolist()
        origin, unit = median, (three_quarters - quarter) / QUARTILES
        if family == "log":
            origin, unit = low, median - low
        if unit <= LEAST_UNIT:
            return cls()
        u = (y - origin) / unit
        curve = CURVES[family](shape, u)
        v = curve(u)
        far = FARTHEST * (high - low)
        centre, spread = float(v.mean()), float(v.std())
        return cls(name, curve, origin, unit, centre, spread, low - far, high + far)

    def cost(self, size: int) -> float:
        """The evidence, on so many results, by which this must beat no warp. Ranks are fitted to
        the results at every quantile, which counts as Schwarz's criterion has it."""
        if self.name is None:
            return 0.0
        free = len(QUANTILES) + 2 if isinstance(self.curve, Ranks) else 0
        return float(COST + 0.5 * free * np.log(size))

    def __call__(self, y: Floats) -> Floats:
        if self.curve is None:
            return y
        return np.asarray((self.curve((y - self.origin) / self.unit) - self.centre) / self.spread)

    def log_slope(self, z: Floats) -> Floats:
        """log dz / dy, by z."""
        if self.curve is None:
            return np.zeros_like(z)
        u = self.curve.inverse(self.centre + self.spread * z)
        return np.asarray(self.curve.log_slope(u) - np.log(self.spread) - np.log(self.unit))

    def inverse(self, z: Floats) -> Floats:
        if self.curve is None:
            return z
        u = self.curve.inverse(self.centre + self.spread * z)
        return np.clip(self.origin + self.unit * u, self.least, self.most)

    def moments(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of y where z is normal."""
        if self.curve is None:
            return mean, sd
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        weights = weights / weights.sum()
        y = self.inverse(mean[:, np.newaxis] + sd[:, np.newaxis] * nodes)
        centre = y @ weights
        return centre, np.sqrt(((y - centre[:, np.newaxis]) ** 2) @ weights)

    def middle(self, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """Median of y, and half of the width from a standard deviation below to one above."""
        below, above = self.inverse(mean - sd), self.inverse(mean + sd)
        return self.inverse(mean), np.asarray((above - below) / 2)


def parsed(name: str) -> tuple[str, float]:
    """Family and shape.

    >>> parsed("log:0.3")
    ('log', 0.3)
    """
    family, _, shape = name.partition(":")
    try:
        number = float(shape)
    except ValueError:
        number = np.nan
    if family not in CURVES or not np.isfinite(number):
        raise SettingError(f"{name!r} is not the name of a warp, such as {NAMES[0]!r}")
    return family, number


IDENTITY = Warp()
