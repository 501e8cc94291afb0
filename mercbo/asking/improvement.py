"""Expected improvement on the full Gaussian process, alone and in batches.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| mean   | posterior mean of the noise-free function, one per fantasy                  | (R, S) |
| sd     | its posterior standard deviation, which does not depend on results          | (R, 1) |
| best   | the lowest posterior mean at a point with a result, or a pending one, less  | (S,)   |
|        | a margin: gains too small to matter are none, and do not keep one in place  |        |
| z      | (best - mean) / sd                                                          | (R, S) |
| EI     | E max(best - f, 0) = sd (phi(z) + z Phi(z)), averaged over S and all states | (R,)   |

Points that are pending (asked for by others, or earlier in the same batch) have no results yet.
S sets of results are drawn for them from the posterior, jointly, and added to the data: what is
improved on is then what those points may well have found, and the uncertainty around them is gone.
With nothing pending there is one "fantasy", the data themselves. A *constant liar* adds one set in
place of the drawn ones: what is pending came out as the best so far (the model's mean there). That
is quicker and surer of itself: it keeps away from pending points, and learns nothing from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.drawing.prediction import MomentScore, Predictor
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior

# Sets of results drawn for pending points, over all states of the hyper-parameters together.
FANTASIES = 16
# What a gain must exceed, in spreads of the results.
MARGIN = 0.02
# A standard deviation below this is rounding: the point is known.
LEAST_SD = 1e-9
# Below this z the direct formula of EI cancels; further down its tail is phi(z) / z^2.
DIRECT, TAIL = -1.0, -1e3
LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


def log_improvement(mean: Floats, variance: Floats, best: Floats | float) -> Floats:
    """log EI, accurate where EI itself would underflow.

    >>> float(np.exp(log_improvement(np.zeros(1), np.ones(1), 0.0))[0])  # 1 / sqrt(2 pi)
    0.3989422804014327
    """
    from scipy.special import erfcx, ndtr

    sd = np.maximum(np.sqrt(variance), LEAST_SD)
    z = (best - mean) / sd
    log_phi = -0.5 * z**2 - LOG_ROOT_2PI
    near, far = np.maximum(z, DIRECT), np.clip(z, TAIL, DIRECT)
    direct = np.log(np.exp(-0.5 * near**2 - LOG_ROOT_2PI) + near * ndtr(near))
    # Phi(z) / phi(z) = sqrt(pi / 2) erfcx(-z / sqrt 2)
    ratio = log_phi + np.log1p(far * np.sqrt(0.5 * np.pi) * erfcx(-far / np.sqrt(2.0)))
    tail = log_phi - 2.0 * np.log(np.maximum(np.abs(z), 1.0))
    parts = np.where(z > DIRECT, direct, np.where(z > TAIL, ratio, tail))
    return np.asarray(np.log(sd) + parts)


@dataclass(frozen=True)
class Belief:
    """A posterior with some sets of results for the pending points, and what to improve on."""

    moments: Predictor  # given the data and, for its variance, the pending points
    results: Floats  # (M, S), standardised
    best: Floats  # (S,)

    @classmethod
    def of(
        cls, posterior: Posterior, pending: Rows, fantasies: int, *, rng: np.random.Generator
    ) -> Belief:
        """With so many sets of drawn results; with 0, by a constant liar."""
        posterior = posterior.full
        results = posterior.data.y[:, np.newaxis]
        if len(pending):
            if fantasies:
                drawn = posterior.results_at(pending, fantasies, rng=rng)  # (P, S)
            else:
                best = posterior.predict(posterior.data.rows)[0].min()
                drawn = np.full((len(pending), 1), best)
            results = np.concatenate([np.repeat(results, drawn.shape[1], axis=1), drawn])
            posterior = posterior.given(pending, drawn.mean(axis=1))
        moments = posterior.predictor(results)
        # the means at the results themselves: (Sigma - D) alpha + mean
        noise = posterior.data.noise(posterior.hyper.noise)[:, np.newaxis]
        means = results - noise * moments.alpha
        return cls(moments, results, means.min(axis=0) - MARGIN)

    def log_improvements(self, rows: Rows) -> Floats:
        """(R, S)."""
        means, variance = self.moments.at(rows)
        return log_improvement(means, variance[:, np.newaxis], self.best)


@dataclass(frozen=True)
class Improvement(MomentScore):
    """Minus the log of EI averaged over beliefs, to be descended as `drawing.samples.Sample`."""

    kernel: Kernel
    predictors: Sequence[Predictor]
    best: Sequence[Floats]  # (S,) for each of the predictors

    @classmethod
    def of(
        cls,
        posteriors: Sequence[Posterior],
        pending: Rows,
        *,
        liar: bool = False,
        rng: np.random.Generator,
    ) -> Improvement:
        each = 0 if liar else -(-FANTASIES // len(posteriors))
        beliefs = [Belief.of(posterior, pending, each, rng=rng) for posterior in posteriors]
        moments, best = [b.moments for b in beliefs], [b.best for b in beliefs]
        return cls(posteriors[0].kernel, moments, best)

    def combine(self, moments: Sequence[tuple[Floats, Floats]]) -> Floats:
        return averaged(
            [
                log_improvement(means, variance[:, np.newaxis], best)
                for (means, variance), best in zip(moments, self.best, strict=True)
            ]
        )


def averaged(logs: Sequence[Floats]) -> Floats:
    """Minus the log of the mean over the columns of all, (R,)."""
    every = np.concatenate(logs, axis=1)
    highest = every.max(axis=1)
    mean = np.exp(every - highest[:, np.newaxis]).mean(axis=1)
    return np.asarray(-highest - np.log(mean))
