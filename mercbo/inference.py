"""Hyper-parameters: what the results so far say about beta, amplitude, noise and mean.

Third stop of an `ask`, after the history has become index rows and standardised y. The
likelihood is that of the full Gaussian process, y ~ N(mean, amplitude * K + D). D is diagonal:
error^2 for a result of known error (`Data.error`), the fitted noise for every other.

| inference | what                                                                           |
|-----------|--------------------------------------------------------------------------------|
| "map"     | the best of several L-BFGS fits with the analytic gradient                     |
| "hmc"     | a few samples by Hamiltonian Monte Carlo from the same density                 |
| "auto"    | "hmc" while results and factors are few, else "map" (`model.py`)               |
| "slice"   | slice sampling with COMBO's priors, as the paper does (`fitting/slicing.py`)   |

Density of "map" and "hmc", over z = (log c_1 .. log c_n, log amplitude, log noise), c the
contrast of `kernel.py`:

- log c ~ N(log(2/n), 1.0^2 I + 1.5^2 11'): a shared scale that the data may move far, and
  variables that differ from it by a factor of about e. A difference in *all* variables then
  decorrelates by about exp(-2), whatever n is.
- log amplitude ~ N(0, 1.5^2), log noise ~ N(log 1e-3, 2^2), for standardised y. Where every
  error is known, nothing but this prior governs the noise.
- mean ~ N(0, 1), taken at its best value given the rest.

Where neighbours act together, or like variables do alike, the kernel has more terms, and z more
coordinates (`fitting/structured.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, sum_of
from mercbo.errors import NumericalError
from mercbo.fitting.warp import IDENTITY, Warp
from mercbo.kernel import Kernel
from mercbo.kernels.motifs import Motifs, MotifTerm
from mercbo.kernels.pooling import Pool, Pooling
from mercbo.kernels.reading import Reading, agreements
from mercbo.kernels.windows import Summand, Windows, summands
from mercbo.linalg import Factor, Factors, cholesky

log = logging.getLogger(__name__)

TOTAL_CONTRAST = 2.0
SHARED_SD, OWN_SD = 1.5, 1.0
AMPLITUDE_SD = 1.5
NOISE_CENTRE, NOISE_SD = np.log(1e-3), 2.0

# Beyond these a factor is a constant (c < 1e-4) or the kernel diagonal (c > 12).
CONTRAST_BOUNDS = (np.log(1e-4), np.log(12.0))
AMPLITUDE_BOUNDS = (np.log(1e-2), np.log(1e3))
# Below this the factorisation loses digits, whether the noise is fitted or known.
LEAST_NOISE = 1e-6
# Above 1 all of y would be noise.
NOISE_BOUNDS = (np.log(LEAST_NOISE), np.log(1.0))

COLD_STARTS = ((1.0, 1e-3), (4.0, 1e-2), (0.25, 1e-2), (1.0, 0.3))  # (times c, noise)
# Fresh starts are screened by a short climb; only the best goes on.
SCREENING, COLD_ITERATIONS, WARM_ITERATIONS = 10, 40, 12
# A cold fit is tried again whenever the data have grown by this factor.
COLD_GROWTH = 1.5
# Above this many results a refit waits until the data have grown by this factor.
LAZY_FROM, LAZY_GROWTH = 100, 1.02
# A fit looks at this many results at most, and what only screens, starts or warps, at fewer: the
# better half of them, and a spread of the rest.
MOST_FITTED, MOST_SCREENED = 500, 250
# A fit that calls more than this share of the variance noise is checked against fresh starts.
NOISY = 0.5

# States that are kept, moves of a fresh chain before the first of them, and leapfrog steps of a
# move.
HMC_SAMPLES, HMC_WARMUP, HMC_LEAPS = 6, 6, 5
# New states for each fit that goes on from the last: while there is one for every result, and from
# `LAZY_FROM` results on, where each has to stand for some more.
HMC_NEW, HMC_LATE = 2, 4
# A chain that is farther below the fit than its number of coordinates (samples are half of that
# below, on average) and this: results came that it cannot explain, and no step of it is taken.
ASTRAY = 20.0
# How much of the warm-up's change of the step size is left after it.
HMC_SETTLED = 0.1
HMC_FIRST_STEP, HMC_TARGET = 0.5, 0.75  # the step scales as (dimensions)^(-1/4)


@dataclass(frozen=True)
class Hyper:
    """One state of the hyper-parameters, in units of standardised y (noise is a variance, that
    of the results whose error is not known)."""

    beta: Floats  # (n,)
    amplitude: float
    noise: float
    mean: float
    # where variables act together with their neighbours
    windows: Windows | None = None
    # where variables that have the same values do alike
    pooling: Pooling | None = None
    # where a few letters in a row do the same wherever they stand
    motifs: Motifs | None = None

    @property
    def covariance(self) -> tuple[object, ...]:
        """What a covariance depends on, as a key."""
        return self.beta.tobytes(), self.amplitude, self.noise, *self._more.values()

    @property
    def terms(self) -> tuple[bool | int, ...]:
        """Which further terms the kernel has, and how many strands are read."""
        strands = 0 if self.motifs is None else self.motifs.strands
        return self.windows is not None, self.pooling is not None, strands

    @property
    def is_plain(self) -> bool:
        """Whether the kernel is that of all variables alone."""
        return not any(self.terms)

    @property
    def plain(self) -> Hyper:
        """The same without further terms of the kernel."""
        return replace(self, windows=None, pooling=None, motifs=None)

    def to_dict(self) -> dict[str, Any]:
        more = {name: part and vars(part) for name, part in self._more.items()}
        return {**vars(self), "beta": self.beta.tolist(), **more}

    @property
    def _more(self) -> dict[str, Windows | Pooling | Motifs | None]:
        return {"windows": self.windows, "pooling": self.pooling, "motifs": self.motifs}


@dataclass(frozen=True)
class Data:
    """Index rows and standardised results, with what every evaluation of a density needs."""

    kernel: Kernel
    rows: Rows  # (N, variables)
    y: Floats  # (N,)
    # (N,): the known standard deviation of each result, NaN where it is not known
    error: Floats | None = None
    # what y went through after it was standardised
    warp: Warp = IDENTITY
    # factors of covariances at (some of) these rows
    factors: Factors = field(default_factory=Factors, compare=False, repr=False)

    @cached_property
    def hot(self) -> Floats:
        return self.kernel.onehot(self.rows)

    @cached_property
    def agreements(self) -> Floats:
        """(W + 1, N, N): what stretches of letters have in common (`kernels/motifs.py`)."""
        return self._agreements(0)

    @cached_property
    def agreements_of_strands(self) -> Floats:
        """The same with what they have in common with the other strand."""
        return self.agreements + self._agreements(1)

    def _agreements(self, strand: int) -> Floats:
        reading = Reading.of(self.kernel)
        assert reading is not None
        return agreements(reading, self.rows, strand)

    @cached_property
    def fitted_noise(self) -> Mask:
        """(N,): whether the noise of a result is the fitted one, its error being unknown."""
        if self.error is None:
            return np.ones(len(self), dtype=np.bool_)
        return np.isnan(self.error)

    def noise(self, level: float) -> Floats:
        """(N,): the variance of the noise of each result, `level` where its error is unknown."""
        if self.error is None:
            return np.full(len(self), level)
        return np.where(self.fitted_noise, level, np.maximum(self.error**2, LEAST_NOISE))

    def __len__(self) -> int:
        return len(self.y)

    def and_at(self, rows: Rows, y: Floats) -> Data:
        """These and more results, whose errors are not known."""
        more = None if self.error is None else np.append(self.error, np.full(len(y), np.nan))
        both = np.concatenate([self.rows, rows]), np.append(self.y, y)
        return Data(self.kernel, *both, more, self.warp, self.factors)

    def warped(self, name: str | None) -> Data:
        """The same results through the warp of this name."""
        warp = Warp.of(name, self.y)
        y = warp(self.y)
        error = None if self.error is None else self.error * np.exp(warp.log_slope(y))
        return Data(self.kernel, self.rows, y, error, warp, self.factors)

    @cached_property
    def compact(self) -> Data:
        """The same for a density of hyper-parameters, without values that no row has: it takes
        less time where a variable has very many."""
        kernel, rows = self.kernel.compact(self.rows)
        if kernel is self.kernel:
            return self
        return Data(kernel, rows, self.y, self.error, self.warp)

    def for_fitting(self) -> Data:
        return self.at_most(MOST_FITTED)

    def for_screening(self) -> Data:
        return self.at_most(MOST_SCREENED)

    def at_most(self, most: int) -> Data:
        """All results up to `most` of them; beyond that half as many of the lowest (those that
        matter most), and an even spread over the others."""
        if len(self) <= most:
            return self
        half = most // 2
        ranked = np.argsort(self.y, kind="stable")
        others = np.sort(ranked[half:])
        spread = others[np.linspace(0, len(others) - 1, most - half).astype(np.intp)]
        chosen = np.concatenate([ranked[:half], spread])
        error = None if self.error is None else self.error[chosen]
        return Data(self.kernel, self.rows[chosen], self.y[chosen], error, self.warp)


@dataclass(frozen=True)
class Fit:
    """Hyper-parameter states to draw with, and how much data they and the last cold fit saw."""

    hypers: tuple[Hyper, ...]
    seen: int
    cold: int
    # the name of the output warp, None where there is none
    warp: str | None = None
    # how much data was seen when the warp and the terms of the kernel were chosen; None: as much as
    # by the cold fit
    chosen: int | None = None
    # the step size of a chain, None where there is none
    step: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "hypers": [h.to_dict() for h in self.hypers]}

    def is_due(self, size: int) -> bool:
        """Whether so many results call for a fresh fit: half as many more, or fewer."""
        return size >= COLD_GROWTH * self.cold or size < self.seen

    def is_open(self, size: int) -> bool:
        """Whether so many results call for another choice of warp and terms, likewise."""
        chosen = self.cold if self.chosen is None else self.chosen
        return size >= COLD_GROWTH * chosen or size < self.seen


def diffusions(kernel: Kernel, hyper: Hyper) -> list[Summand]:
    """The kernel of all variables, and those of windows where there are any."""
    return summands(kernel, hyper.beta, hyper.amplitude, hyper.windows)


def prior(kernel: Kernel) -> Hyper:
    """The state to draw with before any result."""
    contrast = np.full(kernel.n, TOTAL_CONTRAST / max(kernel.n, 1))
    return Hyper(kernel.beta(contrast), amplitude=1.0, noise=1e-3, mean=0.0)


# -- the density -------------------------------------------------------------------------------


def unpack(kernel: Kernel, z: Floats, mean: float = 0.0) -> Hyper:
    return Hyper(kernel.beta(np.exp(z[:-2])), float(np.exp(z[-2])), float(np.exp(z[-1])), mean)


def pack(kernel: Kernel, hyper: Hyper) -> Floats:
    tail = [np.log(hyper.amplitude), np.log(hyper.noise)]
    # that of a beta beyond all that is fitted, as a slice sampler may have, is 0
    contrast = np.maximum(kernel.contrast(hyper.beta), np.exp(CONTRAST_BOUNDS[0]))
    return np.concatenate([np.log(contrast), tail])


def log_prior(z: Floats) -> tuple[float, Floats]:
    """The Gaussian prior of z up to a constant, and its gradient."""
    n = len(z) - 2
    away = z[:-2] - np.log(TOTAL_CONTRAST / max(n, 1))
    # (own^2 I + shared^2 11')^-1 by Sherman-Morrison
    shrink = SHARED_SD**2 / (OWN_SD**2 + n * SHARED_SD**2)
    pull = (away - shrink * away.sum()) / OWN_SD**2
    amplitude = z[-2] / AMPLITUDE_SD**2
    noise = (z[-1] - NOISE_CENTRE) / NOISE_SD**2
    gradient = -np.concatenate([pull, [amplitude, noise]])
    value = -0.5 * (away @ pull + z[-2] * amplitude + (z[-1] - NOISE_CENTRE) * noise)
    return float(value), gradient


# A log density, its gradient, and the best mean: what a chain knows of where it stands.
Level: TypeAlias = tuple[float, Floats, float]
Density: TypeAlias = Callable[[Data, Floats], Level]


def log_density(data: Data, z: Floats) -> Level:
    """log p(z | y) up to a constant, its gradient, and the best mean given z.

    One factorisation serves every derivative: with G = alpha alpha' - A^-1 and M = G * K,
    the derivative by log c_i is half the contraction of M with d log K / d log c_i.
    """
    kernel = data.kernel
    hyper = unpack(kernel, z)
    gram = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
    value, mean, pull, by_noise = likelihood(data, gram, hyper.noise)
    by_contrast = kernel.slopes(hyper.beta, hyper.amplitude, pull, gram, data.rows, data.hot)
    prior_value, prior_gradient = log_prior(z)
    slopes = np.concatenate([by_contrast, [(pull * gram).sum(), by_noise]])
    gradient = 0.5 * slopes + prior_gradient
    # tied contrasts that start alike stay alike: L-BFGS moves along gradients only
    return value + prior_value, kernel.tied(gradient), mean


class Likelihood(NamedTuple):
    """log p(y | K) up to a constant, and what its derivatives follow from."""

    value: float
    mean: float
    pull: Floats  # (N, N): G, twice the derivative by the entries of K
    by_noise: float  # twice the derivative by log noise


def likelihood(data: Data, gram: Floats, noise: float) -> Likelihood:
    """How well a Gram matrix explains the results, at the best mean.

    With A = gram + D and alpha = A^-1 (y - mean), G is alpha alpha' - A^-1; the derivative by log
    noise is half the noise times the trace of G over the results of unknown error.
    """
    factor = cholesky(gram + np.diag(data.noise(noise)))
    mean = best_mean(factor, data.y)
    away = data.y - mean
    alpha = factor.solve(away)
    value = float(-0.5 * (away @ alpha + factor.log_det + mean**2))
    pull = np.outer(alpha, alpha) - factor.inverse()
    return Likelihood(value, mean, pull, noise * np.diagonal(pull)[data.fitted_noise].sum())


def best_mean(factor: Factor, y: Floats) -> float:
    """The mode of the mean under its N(0, 1) prior."""
    weights = factor.solve(np.ones_like(y))
    return float(weights @ y / (weights.sum() + 1.0))


# -- MAP ---------------------------------------------------------------------------------------


def bounds_of(factors: int) -> Floats:
    """(n + 2, 2): the range of each coordinate of z."""
    return np.array([CONTRAST_BOUNDS] * factors + [AMPLITUDE_BOUNDS, NOISE_BOUNDS])


def climb(
    data: Data,
    start: Floats,
    iterations: int,
    *,
    density: Density = log_density,
    bounds: Floats | None = None,
) -> tuple[float, Floats]:
    """L-BFGS from `start`; the density reached and where. A start that breaks down is lost."""
    from scipy.optimize import minimize

    bounds = bounds_of(len(start) - 2) if bounds is None else bounds
    low, high = bounds.T
    data = data.compact

    def loss(z: Floats) -> tuple[float, Floats]:
        value, gradient, _ = density(data, z)
        return -value, -gradient

    try:
        found = minimize(
            loss,
            np.clip(data.kernel.tied(start), low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": iterations, "maxcor": 20},
        )
    except NumericalError as error:
        log.warning("a hyper-parameter fit broke down: %s", error)
        return -np.inf, start
    return -float(found.fun), np.asarray(found.x)


@dataclass(frozen=True)
class Chart:
    """Coordinates of the hyper-parameters, and the density over them."""

    density: Density
    bounds: Callable[[Kernel], Floats]
    pack: Callable[[Kernel, Hyper], Floats]
    unpack: Callable[[Kernel, Floats, float], Hyper]


PLAIN = Chart(log_density, lambda kernel: bounds_of(kernel.n), pack, unpack)


def cold_starts(kernel: Kernel) -> list[Floats]:
    contrast = np.full(kernel.n, np.log(TOTAL_CONTRAST / max(kernel.n, 1)))
    return [
        np.concatenate([contrast + np.log(times), [0.0, np.log(noise)]])
        for times, noise in COLD_STARTS
    ]


def fit_map(data: Data, previous: Fit | None) -> Fit:
    """The highest density found: from the previous fit, and from fresh starts when the data have
    grown by half since the last fresh fit or when the previous fit explains little."""
    size = len(data)
    cold = previous is None or previous.is_due(size)
    if previous is not None and not cold and is_recent(previous, data):
        return replace(previous, hypers=(with_mean(data, previous.hypers[0]),))
    fitted, tried = data.for_fitting(), []
    if previous is not None:
        tried.append(climb(fitted, pack(data.kernel, previous.hypers[0]), WARM_ITERATIONS))
        cold = cold or explains_little(fitted, np.exp(tried[0][1][-1]))
    if cold:
        known = [z for value, z in tried if np.isfinite(value)]
        best = screened(fitted.for_screening(), known)
        tried.append(climb(fitted, best, COLD_ITERATIONS))
    value, z = max(tried, key=lambda pair: pair[0])
    if not np.isfinite(value):
        log.warning("no hyper-parameter fit succeeded on %d results; the prior is used", size)
        return Fit((prior(data.kernel),), seen=size, cold=size)
    seen_cold = size if cold or previous is None else previous.cold
    return Fit((with_mean(data, unpack(data.kernel, z)),), size, seen_cold)


def screened(data: Data, known: Sequence[Floats]) -> Floats:
    """The best of some states and of those that short climbs from fresh starts reach."""
    tried = [(_attempted(log_density, data, z)[0], z) for z in known]
    tried += [climb(data, start, SCREENING) for start in cold_starts(data.kernel)]
    return max(tried, key=lambda pair: pair[0])[1]


def log_evidence(data: Data, start: Floats, iterations: int) -> tuple[float, Floats]:
    """The density that a short climb from `start` reaches, in the units of unwarped results, and
    where."""
    value, z = climb(data, start, iterations)
    return value + float(data.warp.log_slope(data.y).sum()), z


def is_recent(previous: Fit, data: Data) -> bool:
    """Whether a fit on many results that explains them may stand for a few more."""
    few_more = LAZY_FROM < len(data) < LAZY_GROWTH * previous.seen
    return few_more and not explains_little(data, previous.hypers[0].noise)


def explains_little(data: Data, noise: float) -> bool:
    """Whether a fit calls most of the variance noise. Where every error is known it cannot: its
    noise is then that of no result."""
    return bool(noise > NOISY and data.fitted_noise.any())


def with_mean(data: Data, hyper: Hyper) -> Hyper:
    """`hyper` with the best mean for the data."""
    return replace(hyper, mean=best_mean(full_factor(data, hyper), data.y))


Term: TypeAlias = Summand | Pool | MotifTerm


def pools_of(kernel: Kernel, hyper: Hyper) -> list[Pool]:
    return [] if hyper.pooling is None else [Pool(kernel, hyper.pooling)]


def motifs_of(kernel: Kernel, hyper: Hyper) -> list[MotifTerm]:
    return [] if hyper.motifs is None else [MotifTerm(kernel, hyper.motifs)]


def terms_of(kernel: Kernel, hyper: Hyper) -> list[Term]:
    """All that the kernel is the sum of."""
    return [*diffusions(kernel, hyper), *pools_of(kernel, hyper), *motifs_of(kernel, hyper)]


def full_factor(data: Data, hyper: Hyper, terms: Sequence[Term] | None = None) -> Factor:
    """The factor of the covariance of what is observed, of all orders; `terms` are those of the
    kernel, where they are known."""
    added = terms_of(data.kernel, hyper) if terms is None else terms

    def covariance(part: slice) -> Floats:
        return sum_of(each.gram(data.rows[part], data.hot[: part.stop]) for each in added)

    return data.factors.factor(
        ("full", *hyper.covariance), data.rows, data.noise(hyper.noise), covariance
    )


# -- HMC ---------------------------------------------------------------------------------------


def sampled(
    data: Data,
    best: Fit,
    previous: Fit | None,
    *,
    chart: Chart = PLAIN,
    rng: np.random.Generator,
) -> Fit:
    """`best`, and behind it the last few samples of a chain that goes on as results come in.

    A fresh chain, which starts at the MAP, follows every cold fit. While it warms up, and ever
    less after that, the step size follows how likely the moves are to be taken. Where the fit
    stands for a few more results, so do the samples.
    """
    kept: list[Hyper] = []
    if previous is not None and previous.step is not None and previous.cold == best.cold:
        # a chain over other terms of the kernel is another chain
        kept = [hyper for hyper in previous.hypers[1:] if hyper.terms == best.hypers[0].terms]
        if kept and is_recent(previous, data):
            return replace(best, hypers=(best.hypers[0], *kept), step=previous.step)
    new = HMC_NEW if len(data) <= LAZY_FROM else HMC_LATE
    data = data.for_fitting().compact
    bounds, density = chart.bounds(data.kernel), chart.density
    z = np.clip(chart.pack(data.kernel, best.hypers[0]), *bounds.T)
    state = _attempted(density, data, z)
    if not np.isfinite(state[0]):
        log.warning("hyper-parameters are not sampled: the chain cannot start at the fit")
        return best
    first_step = step = float(HMC_FIRST_STEP * len(z) ** -0.25)
    if previous is not None and previous.step is not None:
        step = previous.step
    if kept:
        last = np.clip(chart.pack(data.kernel, kept[-1]), *bounds.T)
        reached = _attempted(density, data, last)
        if state[0] - reached[0] > len(z) + ASTRAY:
            log.debug("a chain is %.0f below the fit; starting anew", state[0] - reached[0])
            kept, step = [], first_step
        else:
            z, state = last, reached
    for _ in range(0 if kept else HMC_WARMUP):
        z, state, chance = hmc_step(data, z, state, step, bounds, rng=rng, density=density)
        step *= float(np.exp(chance - HMC_TARGET))
    for _ in range(new if kept else HMC_SAMPLES):
        z, state, chance = hmc_step(data, z, state, step, bounds, rng=rng, density=density)
        step *= float(np.exp(HMC_SETTLED * (chance - HMC_TARGET)))
        kept.append(chart.unpack(data.kernel, z, state[2]))
    # The MAP comes first: it is where the next fit starts from.
    return replace(best, hypers=(best.hypers[0], *kept[-HMC_SAMPLES:]), step=step)


def _attempted(density: Density, data: Data, z: Floats) -> Level:
    """The density at z, zero if the covariance matrix cannot be factored."""
    try:
        return density(data, z)
    except NumericalError:
        return -np.inf, np.zeros_like(z), 0.0


def reflected(z: Floats, momentum: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    """Where a step beyond the bounds bounces back to, and with what momentum: the chain then stays
    inside without being stuck at a wall."""
    low, high = bounds.T
    back = np.where(z < low, 2 * low - z, np.where(z > high, 2 * high - z, z))
    return back, np.where(back == z, momentum, -momentum)


def hmc_step(
    data: Data,
    z: Floats,
    state: Level,
    step: float,
    bounds: Floats,
    *,
    rng: np.random.Generator,
    density: Density = log_density,
) -> tuple[Floats, Level, float]:
    """One trajectory of leapfrog steps: where the chain stands after it, and how likely the move
    was to be taken. The walls of the bounds reflect it."""
    momentum = data.kernel.tied(rng.standard_normal(len(z)))
    energy = state[0] - 0.5 * momentum @ momentum
    level = np.log(rng.uniform())
    step *= rng.uniform(0.8, 1.2)
    gradient, new, reached = state[1], z, state
    try:
        for _ in range(HMC_LEAPS):
            momentum = momentum + 0.5 * step * gradient
            new, momentum = reflected(new + step * momentum, momentum, bounds)
            if not np.all((new >= bounds[:, 0]) & (new <= bounds[:, 1])):
                return z, state, 0.0
            reached = density(data, new)
            gradient = reached[1]
            momentum = momentum + 0.5 * step * gradient
    except NumericalError:
        return z, state, 0.0
    gained = reached[0] - 0.5 * momentum @ momentum - energy
    chance = float(np.exp(np.minimum(gained, 0.0)))
    return (new, reached, chance) if level < gained else (z, state, chance)
