"""Where evaluations fail: the chance that one at a row works, to weight an acquisition with.

| symbol | meaning                                                                        | shape  |
|--------|--------------------------------------------------------------------------------|--------|
| N      | rows told, each of them once                                                   |        |
| y      | +1 where the evaluation worked, -1 where it failed                             | (N,)   |
| g      | latent function: an evaluation at x works with probability Phi(g(x))           |        |
| C      | prior covariance of g at the data: MEAN_VARIANCE + amplitude * K               | (N, N) |
| a      | C^-1 (g - MEAN_CENTRE) at the data; at the mode it is the slope                | (N,)   |
| slope  | derivative of log Phi(y g) by g                                                | (N,)   |
| W      | minus the second derivative of log Phi(y g) by g, in (0, 1)                    | (N,)   |
| B      | I + W^1/2 C W^1/2: its eigenvalues are at least 1, however singular C is       | (N, N) |
| R      | W^1/2 B^-1 W^1/2 = (C + W^-1)^-1                                               | (N, N) |
| z      | (log c_1 .. log c_n, log amplitude), c the contrast of `kernel.py`             | (n+1,) |

Gaussian-process classification on the diffusion kernel, with the probit likelihood and Laplace's
approximation: the posterior of g is taken as the Gaussian at its mode with its curvature there.
Averaged over that Gaussian, the chance at a row is Phi(mean / sqrt(1 + variance)), exactly.

z is the mode of the approximate evidence times a prior under which variables differ in their
contrast by far more than for an objective: a failure is often the doing of two or three of them.
There is no randomness: the answer depends on the set of rows told and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mercbo.arrays import Floats, Index, Rows
from mercbo.drawing.samples import KernelSum, Sample
from mercbo.inference import CONTRAST_BOUNDS, TOTAL_CONTRAST, Data
from mercbo.kernel import Kernel
from mercbo.linalg import Factor, cholesky

# Constant part of the latent: before anything is told, an evaluation rather works than not.
MEAN_CENTRE, MEAN_VARIANCE = 1.0, 1.0
# Prior sds of log c, shared and own, chosen on eight hidden rules. With own 1, as for an objective,
# 30 results on a rule of 2 among 25 variables predict 91 % of other points, with 2 and more 100 %;
# with 4 a rule of all variables is predicted worse than with 2, 73 % against 77 %.
SHARED_SD, OWN_SD = 3.0, 2.5
# Amplitude 4 spreads the latent by 2 around its mean of 1: chances from 16 to 99.9 %. A rule
# without exceptions wants more; beyond 100 that changes nothing, as Phi is 0 or 1 by then.
AMPLITUDE_CENTRE, AMPLITUDE_SD = np.log(4.0), 1.5
AMPLITUDE_BOUNDS = (np.log(0.1), np.log(100.0))
# The climb starts at this many times the contrasts at the centre of the prior. At the centre itself
# "fails where two bits differ" is hardly felt: 40 results among 30 bits found it in 11 fits of 16,
# from here in all; other rules do not care. 30 iterations predicted 0.1 % more points than 10.
START, ITERATIONS = 3.0, 10
# z is fitted on this many rows at most, half of them failures where there are as many.
MOST_FITTED = 200
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
# Where |slope - a| is below this the mode is found: rounding is 1e-12, and the climb feels in the
# first order what is left. Newton's method takes up to 11 steps (measured), 1 in 20 of them halved.
TOLERANCE, NEWTON_STEPS, HALVINGS = 1e-8, 50, 20
# Rows whose neighbours are looked at together: bounds the memory, 64 * L * N numbers.
CHUNK = 64
# Results times levels up to which neighbours get their own variance: some milliseconds for the
# rows of one step of a descent.
EXACT_NEIGHBOURS = 20_000
# Width of the bend in the gain of a weighed sample, in standard deviations of the results.
SOFTNESS = 0.1
# Power of the chance in a weighed sample. With 1, the expected gain, 12 runs of 80 evaluations
# wasted 42 % of what they waste without a model, with 2 32 %, with 4 24 %; the best values found
# were alike with 1 and 2 (once better, once worse), and with 4 three times worse.
AVERSION = 2.0


class Works(Protocol):
    """How likely an evaluation is to work."""

    def chance(self, rows: Rows) -> Floats:
        """(P,): the probability at each row."""
        ...

    def chance_neighbours(self, rows: Rows) -> Floats:
        """(P, L): `chance` where one variable takes another value (its own: `chance` itself)."""
        ...


def fit_works(kernel: Kernel, worked: Rows, failed: Rows) -> Works:
    """What the rows say that `worked` and those that `failed`; a row in both has worked.

    Without a failure everything works. Without a success there is nothing to tell variables apart
    by, and z stays at the centre of its prior.
    """
    data = labelled(kernel, worked, failed)
    if (data.y > 0).all():
        return Always(kernel)
    if (data.y < 0).all():
        return FailureModel(data, centre(kernel))
    return FailureModel(data, fit(for_fitting(data)))


def labelled(kernel: Kernel, worked: Rows, failed: Rows) -> Data:
    """Every row once, in lexicographic order, with its y."""
    told = np.concatenate([worked, failed])
    rows, first = np.unique(told, axis=0, return_index=True)
    return Data(kernel, rows, np.where(first < len(worked), 1.0, -1.0))


@dataclass(frozen=True)
class Always:
    """Nothing has failed so far: the chance is 1 everywhere."""

    kernel: Kernel

    def chance(self, rows: Rows) -> Floats:
        return np.ones(len(rows))

    def chance_neighbours(self, rows: Rows) -> Floats:
        return np.ones((len(rows), self.kernel.levels))


@dataclass(frozen=True)
class Weighed:
    """A sampled function weighed by the chance that its evaluation works, to be minimised.

    An evaluation that fails gains nothing and costs as much, so what counts is the gain below
    `level` times a power of the chance. The gain is softened so that rows above the level are
    still told apart.
    """

    sample: Sample
    works: Works
    level: float

    def value(self, rows: Rows) -> Floats:
        return self._weigh(self.sample.value(rows), self.works.chance(rows))

    def path(self, rows: Rows) -> Floats:
        return self._weigh(self.sample.path(rows), self.works.chance(rows))

    def path_neighbours(self, rows: Rows) -> Floats:
        return self._weigh(self.sample.path_neighbours(rows), self.works.chance_neighbours(rows))

    def _weigh(self, values: Floats, chance: Floats) -> Floats:
        gain = SOFTNESS * np.logaddexp(0.0, (self.level - values) / SOFTNESS)
        return np.asarray(-(chance**AVERSION) * gain)


@dataclass(frozen=True)
class Discounted:
    """Minus the log of a gain, and of the same power of the chance that the evaluation works."""

    score: Sample
    works: Works

    def value(self, rows: Rows) -> Floats:
        return self.path(rows)

    def path(self, rows: Rows) -> Floats:
        return self.score.path(rows) - AVERSION * _log(self.works.chance(rows))

    def path_neighbours(self, rows: Rows) -> Floats:
        chance = self.works.chance_neighbours(rows)
        return self.score.path_neighbours(rows) - AVERSION * _log(chance)


def _log(chance: Floats) -> Floats:
    return np.log(np.maximum(chance, np.finfo(np.float64).tiny))


@dataclass(frozen=True)
class FailureModel:
    """The posterior of the latent given `data` (y of plus and minus one), z held fixed."""

    data: Data
    z: Floats

    @cached_property
    def _tables(self) -> list[Floats]:
        return log_tables(self.data.kernel, self.z)

    @cached_property
    def mode(self) -> Mode:
        gram = self.data.kernel.gram(self._tables, self.data.rows, self.data.hot)
        return find_mode(MEAN_VARIANCE + np.exp(self.z[-1]) * gram, self.data.y)

    @cached_property
    def _root(self) -> Floats:
        """(N, N): S with S'S = R."""
        return self.mode.factor.half_solve(np.diag(np.sqrt(self.mode.curvature)))

    @cached_property
    def _levels(self) -> tuple[Floats, Floats]:
        return level_tables(self.data.kernel, self._tables, self.data.rows)

    def latent(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and variance of g at each row."""
        to_data, to_self = self._levels
        hot = self.data.kernel.onehot(rows)
        return self._latent(hot @ to_data, hot @ to_self)

    def _latent(self, log_cross: Floats, log_prior: Floats) -> tuple[Floats, Floats]:
        """Mean and variance from log K to the data (P, N) and log K to itself (P,)."""
        amplitude = np.exp(self.z[-1])
        cross = MEAN_VARIANCE + amplitude * np.exp(log_cross)
        known = cross @ self._root.T
        variance = MEAN_VARIANCE + amplitude * np.exp(log_prior)
        variance = variance - np.einsum("pn,pn->p", known, known)
        return MEAN_CENTRE + cross @ self.mode.weights, np.maximum(variance, 0.0)

    def chance(self, rows: Rows) -> Floats:
        return probability(*self.latent(rows))

    def chance_neighbours(self, rows: Rows) -> Floats:
        """(P, L). Of many rows and levels the variance of the row itself stands in for those of
        its neighbours: exact ones would take L N^2 steps for each row."""
        if len(self.data) * self.data.kernel.levels > EXACT_NEIGHBOURS:
            return self._roughly(rows)
        parts = [self._neighbours(rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK)]
        return np.concatenate([np.zeros((0, self.data.kernel.levels)), *parts])

    def _roughly(self, rows: Rows) -> Floats:
        weights = self.mode.weights
        kernel_sum = KernelSum(self.data.kernel, self._tables, self.data.hot, weights)
        constant = MEAN_CENTRE + MEAN_VARIANCE * weights.sum()
        mean = constant + np.exp(self.z[-1]) * kernel_sum.neighbours(rows)
        return probability(mean, self.latent(rows)[1][:, np.newaxis])

    def _neighbours(self, rows: Rows) -> Floats:
        """A move takes one term out of each sum of logarithms and puts another in."""
        to_data, to_self = self._levels
        hot = self.data.kernel.onehot(rows)
        row, level = np.nonzero(hot == 0.0)
        left = self.data.kernel.held(rows)[row, self.data.kernel.level_variable[level]]
        log_cross = (hot @ to_data)[row] + (to_data[level] - to_data[left])
        log_prior = (hot @ to_self)[row] + (to_self[level] - to_self[left])
        out = np.repeat(self.chance(rows)[:, np.newaxis], self.data.kernel.levels, axis=1)
        out[row, level] = probability(*self._latent(log_cross, log_prior))
        return out


def probability(mean: Floats, variance: Floats) -> Floats:
    """The average of Phi(g) over g ~ N(mean, variance)."""
    from scipy.special import ndtr

    return np.asarray(ndtr(mean / np.sqrt(1.0 + variance)))


# -- tables by level ---------------------------------------------------------------------------


def log_tables(kernel: Kernel, z: Floats) -> list[Floats]:
    return kernel.log_tables(kernel.beta(np.exp(z[:-1])))


def level_tables(kernel: Kernel, tables: Sequence[Floats], rows: Rows) -> tuple[Floats, Floats]:
    """What a level adds to log K with each of `rows`, (L, N), and with the point itself, (L,)."""
    to_rows, to_self = np.zeros((kernel.levels, len(rows))), np.zeros(kernel.levels)
    for part, table in zip(kernel.parts, tables, strict=True):
        there = table[np.arange(len(part.variables)), :, rows[:, part.variables]]  # (N, v, k)
        to_rows[part.levels] = there.transpose(1, 2, 0)
        to_self[part.levels] = np.diagonal(table, axis1=1, axis2=2)
    return to_rows, to_self


# -- the mode ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mode:
    """A state of the latent at the data: the mode, or a step on the way there."""

    cov: Floats  # (N, N), C
    y: Floats  # (N,)
    weights: Floats  # (N,), a

    @cached_property
    def latent(self) -> Floats:
        return MEAN_CENTRE + self.cov @ self.weights

    @cached_property
    def log_likelihoods(self) -> Floats:
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(self.y * self.latent))

    @cached_property
    def density(self) -> float:
        """log p(y | g) + log p(g), up to a constant."""
        deviation = self.weights @ (self.latent - MEAN_CENTRE)
        return float(self.log_likelihoods.sum() - 0.5 * deviation)

    @cached_property
    def ratio(self) -> Floats:
        """phi / Phi at y g. Through logarithms, as both underflow far on the wrong side."""
        log_phi = -0.5 * (self.latent**2 + np.log(2.0 * np.pi))
        return np.asarray(np.exp(log_phi - self.log_likelihoods))

    @cached_property
    def slope(self) -> Floats:
        return self.y * self.ratio

    @cached_property
    def curvature(self) -> Floats:
        return self.ratio * (self.ratio + self.y * self.latent)

    @property
    def third(self) -> Floats:
        """Third derivative of log Phi(y g) by g."""
        at = self.y * self.latent
        return np.asarray(self.slope * ((at + 2.0 * self.ratio) * (at + self.ratio) - 1.0))

    @cached_property
    def factor(self) -> Factor:
        """The Cholesky factor of B."""
        root = np.sqrt(self.curvature)
        return cholesky(np.eye(len(root)) + root[:, np.newaxis] * self.cov * root)

    @property
    def log_evidence(self) -> float:
        """Laplace's approximation to log p(y)."""
        return self.density - 0.5 * self.factor.log_det

    def newton(self) -> Floats:
        """The weights at the top of the parabola that touches the density here."""
        root = np.sqrt(self.curvature)
        pull = self.curvature * (self.latent - MEAN_CENTRE) + self.slope
        return np.asarray(pull - root * self.factor.solve(root * (self.cov @ pull)))


def find_mode(cov: Floats, y: Floats, start: Floats | None = None) -> Mode:
    """Newton's method on the density, which is concave, from the better of `start` and zero."""
    state = Mode(cov, y, np.zeros_like(y))
    if start is not None:
        state = max(Mode(cov, y, start), state, key=lambda m: m.density)
    for _ in range(NEWTON_STEPS):
        if np.abs(state.slope - state.weights).max() < TOLERANCE:
            break
        state = ascend(state, state.newton())
    return state


def ascend(state: Mode, target: Floats) -> Mode:
    """As far towards `target` as the density rises, by halving."""
    for halving in range(HALVINGS):
        weights = state.weights + 0.5**halving * (target - state.weights)
        reached = Mode(state.cov, state.y, weights)
        if reached.density >= state.density:
            return reached
    return Mode(state.cov, state.y, target)  # no rise but for rounding: this is the top


# -- hyper-parameters --------------------------------------------------------------------------


def centre(kernel: Kernel) -> Floats:
    """z before anything is told."""
    contrast = np.full(kernel.n, np.log(TOTAL_CONTRAST / max(kernel.n, 1)))
    return np.append(contrast, AMPLITUDE_CENTRE)


def log_prior(kernel: Kernel, z: Floats) -> tuple[float, Floats]:
    """The Gaussian prior of z up to a constant, and its gradient."""
    away = z - centre(kernel)
    # (own^2 I + shared^2 11')^-1 by Sherman-Morrison
    shrink = SHARED_SD**2 / (OWN_SD**2 + kernel.n * SHARED_SD**2)
    pull = (away[:-1] - shrink * away[:-1].sum()) / OWN_SD**2
    gradient = -np.append(pull, away[-1] / AMPLITUDE_SD**2)
    return float(0.5 * away @ gradient), gradient


def log_density(data: Data, z: Floats, start: Floats | None) -> tuple[float, Floats, Mode]:
    """log p(z | y) up to a constant, its gradient, and the mode of the latent.

    The mode moves with z. As the density is flat there, only log |B| feels it, through W:
    with p = diag (C^-1 + W)^-1, s = p * third / 2 and u = (I - R C) s, all derivatives are
    contractions of dC with (slope slope' - R + u slope' + slope u') / 2.
    """
    kernel = data.kernel
    signal = np.exp(z[-1]) * kernel.gram(log_tables(kernel, z), data.rows, data.hot)
    mode = find_mode(MEAN_VARIANCE + signal, data.y, start)
    inverse, root = mode.factor.inverse(), np.sqrt(mode.curvature)
    resolvent = root[:, np.newaxis] * inverse * root
    # p = (1 - diag B^-1) / W; the digits lost where W is small are lost in a product with W
    spread = (1.0 - np.diag(inverse)) / np.maximum(mode.curvature, np.finfo(np.float64).tiny)
    through = 0.5 * spread * mode.third
    through = through - resolvent @ (mode.cov @ through)
    pull = np.outer(0.5 * mode.slope + through, mode.slope)
    weight = (0.5 * (pull + pull.T) - 0.5 * resolvent) * signal
    gradients = kernel.log_table_gradients(kernel.beta(np.exp(z[:-1])))
    by_z = np.append(kernel.contract(gradients, weight, data.hot), weight.sum())
    value, by_prior = log_prior(kernel, z)
    return mode.log_evidence + value, by_z + by_prior, mode


def for_fitting(data: Data) -> Data:
    """The rows that z is fitted on: all, or `MOST_FITTED` of them, as even as may be between
    successes and failures."""
    if len(data) <= MOST_FITTED:
        return data
    worked, failed = np.flatnonzero(data.y > 0), np.flatnonzero(data.y < 0)
    half = MOST_FITTED // 2
    few = min(len(worked), len(failed), half)
    most = MOST_FITTED - few
    sizes = (few, most) if len(worked) <= len(failed) else (most, few)
    chosen = np.concatenate([spread_over(worked, sizes[0]), spread_over(failed, sizes[1])])
    return Data(data.kernel, data.rows[chosen], data.y[chosen])


def spread_over(index: Index, size: int) -> Index:
    """`size` entries, evenly spread. The stride is irrational: it is out of step with the values
    of every variable, also where the rows are a whole space in lexicographic order."""
    return index[np.argsort((np.arange(len(index)) * GOLDEN) % 1.0)[:size]]


def fit(data: Data) -> Floats:
    """z of the highest density that L-BFGS reaches."""
    bounds: Floats = np.array([CONTRAST_BOUNDS] * data.kernel.n + [AMPLITUDE_BOUNDS])
    start = centre(data.kernel) + np.append(np.full(data.kernel.n, np.log(START)), 0.0)
    weights: Floats | None = None

    def loss(z: Floats) -> tuple[float, Floats]:
        nonlocal weights
        value, gradient, mode = log_density(data, z, weights)
        weights = mode.weights  # the next z is near by, and so is its mode
        return -value, -gradient

    from scipy.optimize import minimize

    found = minimize(
        loss,
        np.clip(start, *bounds.T),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": ITERATIONS, "maxcor": ITERATIONS},
    )
    return np.asarray(found.x)
