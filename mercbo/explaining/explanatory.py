"""Posteriors for an explanation: of a model that leaves open more than the optimizer's, under many
states of its hyper-parameters.

What is suggested next needs one good guess. An interval states what *all* good guesses leave open,
and under a single state it is too narrow. Whatever the model's settings, `opt.explain()` therefore
averages over a chain of Hamiltonian Monte Carlo of its own, on

    y ~ N(0, amplitude * K + B + D),   B = scale * (1 + v S_1 + v^2 S_2)   (`ridges.py`).

| symbol | meaning                                                                  | shape    |
|--------|--------------------------------------------------------------------------|----------|
| K      | the optimizer's product kernel                                           | (N, N)   |
| B      | effects and pairs with variances of their own                            | (N, N)   |
| A, B   | variance of all effects, n scale v, and of all pairs, P scale v^2        |          |
| z      | log c_1 .. log c_n, log A, log B, log amplitude, log noise               | (n + 4,) |

It differs from the model of `inference.py` in this:

- Effects and interactions have variances of their own. In K, an effect has W0 w_i and an
  interaction W0 w_i w_j, and so on: results that speak against high orders then speak against
  effects, which are shrunk too far. With A and B they are shrunk as in a ridge regression with two
  ridges, which are learned. log A ~ N(0, 1.5^2) and log B ~ N(log 0.5, 1.5^2), in units of the
  variance of y.
- log noise ~ N(log 0.1, 1.5^2). The optimizer takes results for nearly exact as long as it can, and
  K has interactions of all orders to follow any noise with.
- Ordered variables may be rough. K has exp(-beta L^p) for them, L the Laplacian of the path, and
  E_i the pseudo-inverse of L^p (a random walk along the values if p = 1), p = 1, 1/2 or 0; at 0 the
  order counts for nothing. With the optimizer's p = 1 a step in an effect is ruled out where its
  slope is small already, w_j being w_1^(lam_j / lam_1). A Metropolis step after each move of the
  chain chooses p: the coordinates z mean the same under each.
- The mean is integrated over (its variance is `scale`, about 1), not fitted.
- It has no further terms (`fitting/structured.py`), also where the optimizer's has: effects and
  interactions are the same things, but predictions of single points may be worse than the
  optimizer's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.explaining.ridges import Ridges
from mercbo.explaining.stacks import Held
from mercbo.inference import (
    HMC_FIRST_STEP,
    HMC_TARGET,
    NOISE_CENTRE,
    NOISE_SD,
    Data,
    Hyper,
    Level,
    bounds_of,
    climb,
    hmc_step,
    log_prior,
    pack,
    unpack,
)
from mercbo.kernel import Kernel
from mercbo.linalg import Factor, cholesky
from mercbo.model import Model
from mercbo.posterior import Posterior

OPEN_NOISE, OPEN_NOISE_SD = np.log(0.1), 1.5
# of log A and log B
PARTS_CENTRE, PARTS_SD = np.log([1.0, 0.5]), 1.5
POWERS = (1.0, 0.5, 0.0)
# Iterations of the climb to the mode, moves before the first state that is kept, states, and moves
# from one to the next.
CLIMB, WARMUP, STATES, THINNING = 15, 30, 12, 5
# Above this many results moves are made fewer in proportion: the states are then much alike, and a
# move takes longer.
PLENTY = 150
# The warm-up's changes of the step size shrink as t^-0.7, which is quick and still settles.
GAIN, DECAY = 3.0, 0.7


class OpenPosterior(Posterior):
    """The posterior of K + B and perhaps W, whatever the features of the model's draws are. What
    is pooled is in `hyper`."""

    def __init__(
        self,
        model: Model,
        data: Data,
        hyper: Hyper,
        ridges: Ridges,
        windows: Held | None = None,
    ) -> None:
        full = replace(model, posterior="projected", weights="identity")
        super().__init__(full, data, hyper)
        self.ridges, self.windows = ridges, windows

    def _covariance(self, rows: Rows, hot: Floats) -> Floats:
        constant, effects, pairs = self.ridges.covariances(self.kernel, rows, hot)
        found = super()._covariance(rows, hot) + constant + effects + pairs
        return found if self.windows is None else found + self.windows.gram(rows, hot)

    @cached_property
    def _sigma(self) -> Factor:
        """Of this covariance, which the remembered factors of the optimizer's model are not."""
        data = self.data
        noise = np.diag(data.noise(self.hyper.noise))
        return cholesky(self._covariance(data.rows, data.hot) + noise)

    def _variance(self, rows: Rows) -> Floats:
        hot = self.kernel.onehot(rows)
        pairs = zip(rows[:, np.newaxis], hot[:, np.newaxis], strict=True)
        return np.array([self._covariance(row, own)[0, 0] for row, own in pairs])


def averaged(
    model: Model, data: Data, start: Hyper, *, rng: np.random.Generator
) -> list[Posterior]:
    """Posteriors of `data` that count alike, from a chain that begins near `start`."""
    fitted = data.for_fitting()
    kernels = [data.kernel.rougher(power) for power in POWERS]
    seen = [Data(k, fitted.rows, fitted.y, fitted.error, fitted.warp).compact for k in kernels]
    full = [Data(k, data.rows, data.y, data.error, data.warp) for k in kernels]
    n = data.kernel.n
    own = pack(data.kernel, start)
    opened = np.concatenate([own[:n], PARTS_CENTRE, own[n:-1], [OPEN_NOISE]])
    return [
        OpenPosterior(model, full[which], *unpacked(kernels[which], z))
        for which, z in _chain(seen, opened, rng)
    ]


def unpacked(kernel: Kernel, z: Floats) -> tuple[Hyper, Ridges]:
    n = kernel.n
    return unpack(kernel, np.delete(z, [n, n + 1])), Ridges.of(kernel, *np.exp(z[n : n + 2]))


def open_density(data: Data, z: Floats) -> Level:
    """log p(z | y) up to a constant, its gradient, and the mean that is left, 0."""
    kernel = data.kernel
    hyper, ridges = unpacked(kernel, z)
    gram = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
    constant, effects, pairs = ridges.covariances(kernel, data.rows, data.hot)
    every = gram + constant + effects + pairs
    factor = cholesky(every + np.diag(data.noise(hyper.noise)))
    alpha = factor.solve(data.y)
    pull = np.outer(alpha, alpha) - factor.inverse()
    weight = pull * gram
    by_contrast = kernel.contract(kernel.log_table_gradients(hyper.beta), weight, data.hot)
    # the scale goes as A^2 / B
    by_scale, by_noise = constant * pull.sum(), np.diagonal(pull)[data.fitted_noise].sum()
    by_parts = [(pull * effects).sum() + 2.0 * by_scale, (pull * pairs).sum() - by_scale]
    tail = [*by_parts, weight.sum(), hyper.noise * by_noise]
    prior, slope = open_prior(z)
    value = -0.5 * (data.y @ alpha + factor.log_det) + prior
    return float(value), 0.5 * np.concatenate([by_contrast, tail]) + slope, 0.0


def open_prior(z: Floats) -> tuple[float, Floats]:
    """That of `inference.log_prior` for what both have, with the noise's exchanged."""
    n = len(z) - 4
    value, rest = log_prior(np.delete(z, [n, n + 1]))
    old, new, parts = z[-1] - NOISE_CENTRE, z[-1] - OPEN_NOISE, z[n : n + 2] - PARTS_CENTRE
    value += 0.5 * ((old / NOISE_SD) ** 2 - (new / OPEN_NOISE_SD) ** 2)
    rest[-1] += old / NOISE_SD**2 - new / OPEN_NOISE_SD**2
    value -= 0.5 * float(parts @ parts) / PARTS_SD**2
    return float(value), np.insert(rest, n, -parts / PARTS_SD**2)


def _chain(data: list[Data], start: Floats, rng: np.random.Generator) -> list[tuple[int, Floats]]:
    """Which of the data's kernels, and z, of each state that is kept."""
    # A and B stand behind the contrasts and have their bounds, 1e-4 to 12
    bounds = bounds_of(len(start) - 2)
    _, z = climb(data[0], np.clip(start, *bounds.T), CLIMB, density=open_density)
    which, level = 0, open_density(data[0], z)
    step = float(HMC_FIRST_STEP * len(z) ** -0.25)
    few = min(1.0, PLENTY / len(data[0]))
    warmup, thinning = max(round(few * WARMUP), 10), max(round(few * THINNING), 1)
    kept = []
    for t in range(warmup + STATES * thinning):
        z, level, chance = hmc_step(
            data[which], z, level, step, bounds, rng=rng, density=open_density
        )
        which, level = _switched(data, which, z, level, rng)
        if t < warmup:
            step *= float(np.exp(GAIN * (t + 3) ** -DECAY * (chance - HMC_TARGET)))
        elif (t - warmup) % thinning == thinning - 1:
            kept.append((which, z))
    return kept


def _switched(
    data: list[Data], which: int, z: Floats, level: Level, rng: np.random.Generator
) -> tuple[int, Level]:
    """The kernel of ordered variables after a Metropolis step between the three."""
    other = int(rng.integers(len(data)))
    if other == which or not any(part.graph == "path" for part in data[0].kernel.parts):
        return which, level
    reached = open_density(data[other], z)
    taken = np.log(rng.uniform()) < reached[0] - level[0]
    return (other, reached) if taken else (which, level)
