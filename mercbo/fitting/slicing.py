"""`inference="slice"`: univariate slice sampling with COMBO's priors, as the paper's code has it.

Kernel: amplitude * (prod_i T_i + 1e-6 I) + noise * I, where a result of known error has its square
in place of the noise. Priors, for centred and scaled y:

- log beta_i in [-12, log 100], density log(1 + 2 / (beta_i / 5)^2), a horseshoe's envelope, read
  as a density of *log* beta_i, without the Jacobian of the change of variable; start 0. The
  published code does so; it favours small beta more than a horseshoe on beta would.
- mean in [min y, max y], normal about the middle of that range, sd a quarter of it; start mean y.
- log amplitude in [-12, log 1e4], normal between log(var y / kmax) and log(var y / kmin): centre,
  sd a quarter of the width. kmin and kmax are the products over variables of exp(-lam_max)
  and exp(-lam_min), each over mean(exp(-lam)), at beta = 1; start log(var y / 2).
- log noise in [-12, log 1e4], density log(1 + (0.1 / noise)^2), without Jacobian; start log 1e-3.

One sweep updates mean, amplitude, noise and then every log beta_i in random order. The first fit
makes 100 sweeps, each later one 10 (`Model.sweeps`), and the state is carried over. Intervals grow
by doubling (at most 10 times) and shrink under Neal's acceptance test (Annals of Statistics 31,
2003), so that each update leaves the density invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import NumericalError
from mercbo.inference import Data, Fit, Hyper
from mercbo.kernel import Kernel
from mercbo.linalg import Factor, cholesky

LOW, BETA_HIGH, SCALE_HIGH = -12.0, float(np.log(100.0)), float(np.log(1e4))
NUGGET = 1e-6
BURN_IN = 100
DOUBLINGS = 10


def fit_slice(data: Data, previous: Fit | None, *, sweeps: int, rng: np.random.Generator) -> Fit:
    """The last state of the chain after this fit's sweeps. A chain whose last state cannot be
    evaluated on the present data starts anew."""
    chain = Chain(data, previous.hypers[0] if previous else None)
    if previous is not None and not chain.is_possible:
        chain, previous = Chain(data, None), None
    for _ in range(sweeps if previous else BURN_IN):
        chain.sweep(rng=rng)
    return Fit((chain.hyper(),), seen=len(data), cold=previous.cold if previous else len(data))


class Chain:
    """The state of the sampler: coordinates, and the matrices that make updates cheap."""

    def __init__(self, data: Data, start: Hyper | None) -> None:
        self.data = data
        self.kernel = data.kernel
        self.tables = FactorTables(data)
        variance = float(np.var(data.y)) or 1.0
        if start is None:
            self.log_beta = np.zeros(self.kernel.n)
            self.log_amplitude = float(np.log(variance / 2))
            self.log_noise = float(np.log(1e-3))
            self.mean = float(data.y.mean())
        else:
            # slice sampling does not find back from outside the support
            self.log_beta = np.clip(np.log(start.beta), LOW, BETA_HIGH)
            self.log_amplitude = float(np.clip(np.log(start.amplitude), LOW, SCALE_HIGH))
            self.log_noise = float(np.clip(np.log(start.noise), LOW, SCALE_HIGH))
            self.mean = float(np.clip(start.mean, data.y.min(), data.y.max()))
        low, high = float(data.y.min()), float(data.y.max())
        self.mean_prior = (0.5 * (low + high), max(high - low, 1e-6) / 4, low, high)
        self.amplitude_prior = amplitude_prior(self.kernel, variance)
        # The tables that log_product is the sum of. An update subtracts the same table that was
        # added: an entry of T that is zero but for rounding has no logarithm worth recomputing.
        self.own = self.tables.log_tables(np.exp(self.log_beta))
        self.log_product = self.tables.log_product(self.own)  # (N, N)

    def hyper(self) -> Hyper:
        amplitude, noise = float(np.exp(self.log_amplitude)), float(np.exp(self.log_noise))
        return Hyper(np.exp(self.log_beta), amplitude, noise, self.mean)

    @property
    def is_possible(self) -> bool:
        """True if the covariance matrix of the state can be factored."""
        try:
            self._factor(np.exp(self.log_product), self.log_amplitude, self.log_noise)
        except NumericalError:
            return False
        return True

    def sweep(self, *, rng: np.random.Generator) -> None:
        self._update_mean(rng)
        self._update_scales(rng)
        for factor in rng.permutation(self.kernel.n):
            self._update_beta(int(factor), rng)

    def _update_mean(self, rng: np.random.Generator) -> None:
        centre, sd, low, high = self.mean_prior
        product = np.exp(self.log_product)
        factor = self._factor(product, self.log_amplitude, self.log_noise)

        def density(mean: float) -> float:
            if not low <= mean <= high:
                return -np.inf
            return log_likelihood(factor, self.data.y - mean) - 0.5 * ((mean - centre) / sd) ** 2

        self.mean = slice_update(density, self.mean, width=sd, rng=rng)

    def _update_scales(self, rng: np.random.Generator) -> None:
        product = np.exp(self.log_product)

        def by_amplitude(value: float) -> float:
            centre, sd = self.amplitude_prior
            if not LOW <= value <= SCALE_HIGH:
                return -np.inf
            factor = self._factor(product, value, self.log_noise)
            return self._likelihood(factor) - 0.5 * ((value - centre) / sd) ** 2

        def by_noise(value: float) -> float:
            if not LOW <= value <= SCALE_HIGH:
                return -np.inf
            factor = self._factor(product, self.log_amplitude, value)
            return self._likelihood(factor) + log_horseshoe_noise(value)

        self.log_amplitude = slice_update(by_amplitude, self.log_amplitude, width=1.0, rng=rng)
        self.log_noise = slice_update(by_noise, self.log_noise, width=1.0, rng=rng)

    def _update_beta(self, which: int, rng: np.random.Generator) -> None:
        pairs = self.tables.pairs(which)
        log_others = self.log_product - self.own[which].take(pairs)
        others = np.exp(log_others)

        def density(value: float) -> float:
            if not LOW <= value <= BETA_HIGH:
                return -np.inf
            table = np.exp(self.tables.log_table(which, np.exp(value)))
            product = others * table.take(pairs)
            factor = self._factor(product, self.log_amplitude, self.log_noise)
            return self._likelihood(factor) + log_horseshoe_beta(value)

        value = slice_update(density, float(self.log_beta[which]), width=1.0, rng=rng)
        self.log_beta[which] = value
        self.own[which] = self.tables.log_table(which, np.exp(value))
        self.log_product = log_others + self.own[which].take(pairs)

    def _factor(self, product: Floats, log_amplitude: float, log_noise: float) -> Factor:
        amplitude = np.exp(log_amplitude)
        matrix = amplitude * product
        diagonal = amplitude * NUGGET + self.data.noise(float(np.exp(log_noise)))  # (N,)
        np.einsum("ii->i", matrix)[:] += diagonal
        return cholesky(matrix)

    def _likelihood(self, factor: Factor) -> float:
        return log_likelihood(factor, self.data.y - self.mean)


class FactorTables:
    """log T of single factors at the data."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.owner = {
            int(factor): (p, v, f)
            for p, part in enumerate(data.kernel.parts)
            for (v, f), factor in np.ndenumerate(part.factors)
        }

    def log_tables(self, beta: Floats) -> list[Floats]:
        """`log_table` of each factor."""
        return [self.log_table(which, float(each)) for which, each in enumerate(beta)]

    def log_product(self, tables: Sequence[Floats]) -> Floats:
        """(N, N): the sum over all factors of log T between the data rows."""
        total = np.zeros((len(self.data), len(self.data)))
        for which, table in enumerate(tables):
            total += table.take(self.pairs(which))
        return total

    def log_table(self, which: int, beta: float) -> Floats:
        """(C, C): log T of one factor between the values of its variable."""
        p, _, f = self.owner[which]
        return self.data.kernel.log_factor_table(self.data.kernel.parts[p], which, f, beta)

    def pairs(self, which: int) -> Rows:
        """(N, N): where in that table, read row by row, each pair of data rows is."""
        p, v, _ = self.owner[which]
        column = self.data.rows[:, self.data.kernel.parts[p].variables[v]]
        values = len(self.log_table(which, 1.0))
        return np.asarray(column[:, np.newaxis] * values + column[np.newaxis, :])


def log_likelihood(factor: Factor, centred: Floats) -> float:
    half = factor.half_solve(centred)
    return float(-0.5 * (half @ half + factor.log_det))


def log_horseshoe_beta(log_beta: float) -> float:
    return float(np.log(np.log1p(2.0 / (np.exp(log_beta) / 5.0) ** 2)))


def log_horseshoe_noise(log_noise: float) -> float:
    return float(np.log(np.log1p((0.1 / np.exp(log_noise)) ** 2)))


def amplitude_prior(kernel: Kernel, variance: float) -> tuple[float, float]:
    """Centre and sd of the normal prior of log amplitude."""
    log_min = log_max = 0.0
    for part in kernel.parts:
        for f in range(part.factors.shape[1]):
            lam = np.concatenate([[0.0], part.lam[part.owner == f]])
            log_mean = np.log(np.exp(-lam).mean())
            log_min += len(part.factors) * (-lam.max() - log_mean)
            log_max += len(part.factors) * (-lam.min() - log_mean)
    low, high = np.log(variance) - log_max, np.log(variance) - log_min
    return float(0.5 * (low + high)), float(max(high - low, 1e-3) / 4)


def slice_update(
    log_density: Callable[[float], float], start: float, *, width: float, rng: np.random.Generator
) -> float:
    """One update of a coordinate by slice sampling with doubling (Neal 2003, figs. 4 to 6). The
    density is zero if the covariance matrix cannot be factored."""

    def density(value: float) -> float:
        try:
            return log_density(value)
        except NumericalError:
            return -np.inf

    level = density(start) + np.log(rng.uniform())
    left = start - width * rng.uniform()
    right = left + width
    inside_left, inside_right = density(left) > level, density(right) > level
    for _ in range(DOUBLINGS):
        if not (inside_left or inside_right):
            break
        if rng.uniform() < 0.5:
            left -= right - left
            inside_left = density(left) > level
        else:
            right += right - left
            inside_right = density(right) > level
    low, high = left, right
    while high - low > 1e-12 * max(1.0, abs(start)):
        proposal = low + rng.uniform() * (high - low)
        if density(proposal) > level and _acceptable(
            density, start, proposal, level, left, right, width
        ):
            return float(proposal)
        if proposal < start:
            low = proposal
        else:
            high = proposal
    return start


def _acceptable(
    density: Callable[[float], float],
    start: float,
    proposal: float,
    level: float,
    left: float,
    right: float,
    width: float,
) -> bool:
    """Whether doubling from `proposal` could have given the same interval."""
    differs = False
    while right - left > 1.1 * width:
        middle = 0.5 * (left + right)
        differs = differs or (start < middle <= proposal) or (proposal < middle <= start)
        if proposal < middle:
            right = middle
        else:
            left = middle
        if differs and not density(left) > level and not density(right) > level:
            return False
    return True
