"""`Surrogate`: what a history says of the objective, in standardised units and back.

The results are divided by their size (so that the largest floats do not overflow), centred, scaled
to a spread of 1, and turned so that lower is better; the model and its draws know only these. A
result so far off that the others would be lost in its rounding, such as the 1e20 that some programs
give for a failure, counts as one that is just not that far (`within_reach`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Rows, keys
from mercbo.explaining.explanatory import averaged
from mercbo.inference import Data, Fit
from mercbo.kernel import Kernel
from mercbo.linalg import Factors
from mercbo.model import Model, is_strained
from mercbo.posterior import Posterior
from mercbo.record.history import History
from mercbo.record.observations import Prediction

log = logging.getLogger(__name__)

# Known errors beyond this many spreads of the results tell nothing, and larger ones overflow.
MOST_ERROR = 1e6
# Quartile distances from the median within which results are told apart from one another, and warps
# deal with what is far off (`fitting/warp.py`).
FARTHEST = 1e8
# A spread below rounding is no spread.
LEAST_SPREAD = 1e-14
# A point is not measured again where the model's standard deviation is below this share of the
# spread of the results: without noise no point is, with noise of the size of the spread up to
# some hundred times.
SETTLED = 0.05
# Points predicted at a time: with 1,000 results 32 MB for each of some arrays.
PREDICTED = 4096
# Results beyond the first of their point from which the model's noise is believed.
REPLICATES = 5


def within_reach(values: Floats, sign: float) -> Floats:
    """The values, those that are worse than the median by more than `FARTHEST` at that distance.

    The unit is the smaller distance of a quartile, as up to a third of the values may be far off.
    Where more are, or where quartiles differ by rounding only, all stay as they are.
    """
    if len(values) == 0:
        return values
    y = sign * values / 2  # whose differences are floats
    quartiles = np.quantile(y, (0.25, 0.5, 0.75))
    rounding = LEAST_SPREAD * np.abs(quartiles).max()
    unit = min((part for part in np.diff(quartiles) if part > rounding), default=np.inf)
    most = np.finfo(np.float64).max / 4
    limit = quartiles[1] + min(FARTHEST * min(unit, most / FARTHEST), most)
    far = y > limit
    if np.isinf(unit) or not 0 < far.sum() <= len(y) / 3:
        return values
    log.info("%d results beyond %g quartile distances count as being there", far.sum(), FARTHEST)
    return np.where(far, sign * 2 * limit, values)


@dataclass(frozen=True)
class Units:
    """y = (sign * value / size - centre) / spread."""

    sign: float
    size: float = 1.0
    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, values: Floats, sign: float) -> Units:
        if len(values) == 0:
            return cls(sign)
        size = float(np.abs(values).max()) or 1.0
        y = sign * values / size
        spread = float(np.std(y))
        return cls(sign, size, float(np.mean(y)), spread if spread > LEAST_SPREAD else 1.0)

    def standardised(self, values: Floats) -> Floats:
        return np.asarray((self.sign * values / self.size - self.centre) / self.spread)

    def standardised_errors(self, errors: Floats) -> Floats | None:
        """None where no error is known."""
        if np.isnan(errors).all():
            return None
        largest = MOST_ERROR * self.size * self.spread
        return np.asarray(np.minimum(errors, largest) / self.size / self.spread)

    def value(self, mean: Floats) -> Floats:
        return self._in_units(self.sign * (self.centre + self.spread * mean))

    def deviation(self, std: Floats) -> Floats:
        return self._in_units(self.spread * std)

    def _in_units(self, share: Floats) -> Floats:
        """Times the size of the results, as far as there are floats."""
        most = np.finfo(np.float64).max / max(self.size, 1.0)
        return np.asarray(np.clip(share, -most, most) * self.size)


class Surrogate:
    """A fit to the results of a history, and the posteriors that follow from it."""

    def __init__(
        self,
        model: Model,
        kernel: Kernel,
        history: History,
        sign: float,
        previous: Fit | None,
        *,
        keep: bool,
        factors: Factors | None = None,
        rng: np.random.Generator,
    ) -> None:
        """`previous` is where the fit starts; with `keep` it is the fit. `factors` are those of
        earlier histories, where they are known."""
        values = within_reach(history.values, sign)
        self.units = Units.of(values, sign)
        y = self.units.standardised(values)
        error = self.units.standardised_errors(history.errors)
        data = Data(kernel, history.rows, y, error, factors=factors or Factors())
        self._wild = len(y) > 0 and is_strained(y)
        kept = previous if keep else None
        self.fit = model.fit(data, previous, rng=rng) if kept is None else kept
        data = self._data = data.warped(self.fit.warp)
        drawn = self.fit.hypers[1:] or self.fit.hypers
        self.posteriors = [Posterior(model, data, hyper) for hyper in drawn]
        self._averaged: list[Posterior] | None = None

    @cached_property
    def settled(self) -> set[bytes]:
        """The points with a result of which another would tell little.

        How large the noise is shows in replicates only: while there are few of them, a point with
        a single result is never settled.
        """
        rows, counts = np.unique(self._data.rows, axis=0, return_counts=True)
        known = self._predict(rows)[1] < SETTLED
        if len(self._data) - len(rows) < REPLICATES:
            known &= counts > 1
        return set(keys(rows[known]))

    def averaged(self, *, rng: np.random.Generator) -> list[Posterior]:
        """Posteriors for an explanation (`explaining/explanatory.py`), made once."""
        if self._averaged is None:
            first = self.posteriors[0]
            self._averaged = (
                averaged(first.model, first.data, self.fit.hypers[0], rng=rng)
                if first.kernel.n
                else self.posteriors
            )
        return self._averaged

    @property
    def jitter(self) -> float:
        """The largest jitter on the covariance of the data in any of the posteriors."""
        return max(posterior.jitter for posterior in self.posteriors)

    def prediction(self, rows: Rows) -> Prediction:
        """`predict` in the units of the results."""
        mean, std = self.predict(rows)
        return Prediction(self.units.value(mean), self.units.deviation(std))

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the noise-free function, in standardised units.

        Among wild results, a chance of 1 in 1,000 of another at 1e12 is a mean of 1e9, which says
        nothing of what is likely: these are the median then, and half of the middle 68%."""
        warp = self._data.warp
        return (warp.middle if self._wild else warp.moments)(*self._predict(rows))

    def _predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """The same before the output warp is undone, some rows at a time."""
        mean, spread = np.empty(len(rows)), np.empty(len(rows))
        for i in range(0, len(rows), PREDICTED):
            part = slice(i, i + PREDICTED)
            pairs = [posterior.predict(rows[part]) for posterior in self.posteriors]
            means, variances = np.array([m for m, _ in pairs]), np.array([v for _, v in pairs])
            mean[part] = means.mean(axis=0)
            spread[part] = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
        return mean, spread
