"""Posteriors for an explanation: of a model that leaves open more than the optimizer's, under many
states of its hyper-parameters.

What is suggested next needs one good guess. An interval states what *all* good guesses leave open,
and under a single state it is too narrow. Whatever the model's settings, `opt.explain()` therefore
averages over a chain of Hamiltonian Monte Carlo of its own, on

    y ~ N(0, amplitude * K + B + a W + p S + q S^2 + D),   B = scale * (1 + v S_1 + v^2 S_2)

| symbol  | meaning                                                                 | shape    |
|---------|-------------------------------------------------------------------------|----------|
| K       | the optimizer's product kernel                                          | (N, N)   |
| B       | effects and pairs with variances of their own (`ridges.py`)             | (N, N)   |
| A, B    | variance of all effects, n scale v, and of all pairs, P scale v^2       |          |
| W, a    | windows, where the optimizer's fit has them, and their amplitude        | (N, N)   |
| S, p, q | what is pooled, where the optimizer's fit pools (`kernels/pooling.py`)  | (N, N)   |
| z       | log c_1 .. log c_n, log A, log B, log amplitude, log noise,             | (n + 4,  |
|         | log a, log p, log q as far as there are such terms                      | or more) |

It differs from the model of `inference.py` in this:

- Effects and interactions have variances of their own. In K, an effect has W0 w_i and an
  interaction W0 w_i w_j, and so on: results that speak against high orders then speak against
  effects, which are shrunk too far. With A and B they are shrunk as in a ridge regression with two
  ridges, which are learned. log A ~ N(0, 1.5^2) and log B ~ N(log 0.5, 1.5^2), in units of the
  variance of y.
- log noise ~ N(log 0.1, 1.5^2). The optimizer takes results for nearly exact as long as it can, and
  K has interactions of all orders to follow any noise with.
- Ordered variables may be rough. K has exp(-beta L^g) for them, L the Laplacian of the path, and
  E_i the pseudo-inverse of L^g (a random walk along the values if g = 1), g = 1, 1/2 or 0; at 0 the
  order counts for nothing. With the optimizer's g = 1 a step in an effect is ruled out where its
  slope is small already, w_j being w_1^(lam_j / lam_1). A Metropolis step after each move of the
  chain chooses g: the coordinates z mean the same under each. W and S have L^g in place of L too.
- The mean is integrated over (its variance is `scale`, about 1), not fitted.
- It has the further terms of the optimizer's fit (`fitting/structured.py`), with the same priors.
  Their amplitudes a, p and q are sampled with all else. The contrasts c_ij of the windows, and with
  them sharpness and reach, are held at those of the fit: W is then one matrix for the whole chain,
  as S is, and a step takes no longer than without. If windows followed the contrasts of K, as they
  do in the fit, every step would take some ten times as long; and K, which has B beside it here,
  has other contrasts than in the fit. Intervals leave out how uncertain the shape of windows is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import NumericalError
from mercbo.explaining.further import Further
from mercbo.explaining.ridges import Ridges, sums_at
from mercbo.explaining.stacks import Held, Stack
from mercbo.fitting.kinds import SD
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
    """Posteriors of `data` that count alike, from a chain that begins near `start`, with the
    kinds of further terms that it has."""
    further = Further.of(data.kernel, start, model.learned)
    fitted = data.for_fitting()
    kernels = [data.kernel.rougher(power) for power in POWERS]
    seen = [Seen.of(further, _under(kernel, fitted).compact) for kernel in kernels]
    full = [_under(kernel, data) for kernel in kernels]
    states = _chain(
        seen, opened(data.kernel, start, further), open_bounds(data.kernel, further), rng
    )
    stacks = {which: further.stack(full[which]) for which, _ in states}
    return [open_posterior(model, full[which], z, further, stacks[which]) for which, z in states]


def open_posterior(
    model: Model, data: Data, z: Floats, further: Further, stack: Stack | None
) -> OpenPosterior:
    """The posterior under z; `stack` are the windows of amplitude 1."""
    own, more = np.split(z, [data.kernel.n + 4])
    hyper, ridges = unpacked(data.kernel, own)
    pooled = replace(hyper, pooling=further.pooling(more))
    return OpenPosterior(model, data, pooled, ridges, further.held(stack, more))


def _under(kernel: Kernel, data: Data) -> Data:
    """The same results under another kernel."""
    return Data(kernel, data.rows, data.y, data.error, data.warp)


# -- the density -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Seen:
    """The results that a chain sees under one kernel, and all that its density has of them again
    and again."""

    data: Data
    low: tuple[Floats, Floats]  # S_1 and S_2
    more: Floats  # (T, N, N): W, S, S^2
    centres: Floats  # (T,)

    @classmethod
    def of(cls, further: Further, data: Data) -> Seen:
        low = sums_at(data.kernel, data.rows, data.hot)
        return cls(data, low, further.matrices(data), further.centres)

    def density(self, data: Data, z: Floats) -> Level:
        """log p(z | y) up to a constant, its gradient, and the mean that is left, 0. `data` are
        these results, perhaps on fewer values."""
        kernel, split = data.kernel, data.kernel.n + 4
        hyper, ridges = unpacked(kernel, z[:split])
        gram = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
        constant, effects, pairs = ridges.weighted(*self.low)
        every = gram + constant + effects + pairs
        more = np.exp(z[split:])
        if len(more):
            every += np.tensordot(more, self.more, axes=1)
        factor = cholesky(every + np.diag(data.noise(hyper.noise)))
        alpha = factor.solve(data.y)
        pull = np.outer(alpha, alpha) - factor.inverse()
        weight = pull * gram
        by_contrast = kernel.contract(kernel.log_table_gradients(hyper.beta), weight, data.hot)
        # the scale goes as A^2 / B
        by_scale, by_noise = constant * pull.sum(), np.diagonal(pull)[data.fitted_noise].sum()
        by_parts = [(pull * effects).sum() + 2.0 * by_scale, (pull * pairs).sum() - by_scale]
        by_more = more * np.tensordot(self.more, pull)
        tail = [*by_parts, weight.sum(), hyper.noise * by_noise, *by_more]
        prior, slope = open_prior(z, self.centres)
        value = -0.5 * (data.y @ alpha + factor.log_det) + prior
        return float(value), 0.5 * np.concatenate([by_contrast, tail]) + slope, 0.0


def unpacked(kernel: Kernel, z: Floats) -> tuple[Hyper, Ridges]:
    """Of z without the coordinates of further terms."""
    n = kernel.n
    return unpack(kernel, np.delete(z, [n, n + 1])), Ridges.of(kernel, *np.exp(z[n : n + 2]))


def opened(kernel: Kernel, hyper: Hyper, further: Further) -> Floats:
    """The z from which a chain begins."""
    own, n = pack(kernel, hyper), kernel.n
    return np.concatenate([own[:n], PARTS_CENTRE, own[n:-1], [OPEN_NOISE], further.start(hyper)])


def open_bounds(kernel: Kernel, further: Further) -> Floats:
    """The range of each coordinate of z: A and B stand behind the contrasts and have theirs, 1e-4
    to 12."""
    return np.concatenate([bounds_of(kernel.n + 2), further.bounds])


def open_prior(z: Floats, centres: Floats) -> tuple[float, Floats]:
    """That of `inference.log_prior` for what both have, with the noise's exchanged; and that of
    further terms."""
    own, more = np.split(z, [len(z) - len(centres)])
    n = len(own) - 4
    value, rest = log_prior(np.delete(own, [n, n + 1]))
    old, new, parts = own[-1] - NOISE_CENTRE, own[-1] - OPEN_NOISE, own[n : n + 2] - PARTS_CENTRE
    value += 0.5 * ((old / NOISE_SD) ** 2 - (new / OPEN_NOISE_SD) ** 2)
    rest[-1] += old / NOISE_SD**2 - new / OPEN_NOISE_SD**2
    value -= 0.5 * float(parts @ parts) / PARTS_SD**2
    away = (more - centres) / SD
    slope = np.insert(rest, n, -parts / PARTS_SD**2)
    return float(value - 0.5 * away @ away), np.append(slope, -away / SD)


# -- the chain ---------------------------------------------------------------------------------


def _chain(
    seen: Sequence[Seen], start: Floats, bounds: Floats, rng: np.random.Generator
) -> list[tuple[int, Floats]]:
    """Which of the kernels, and z, of each state that is kept."""
    first = seen[0]
    _, z = climb(first.data, np.clip(start, *bounds.T), CLIMB, density=first.density, bounds=bounds)
    which, level = 0, first.density(first.data, z)
    step = float(HMC_FIRST_STEP * len(z) ** -0.25)
    few = min(1.0, PLENTY / len(first.data))
    warmup, thinning = max(round(few * WARMUP), 10), max(round(few * THINNING), 1)
    kept = []
    for t in range(warmup + STATES * thinning):
        now = seen[which]
        z, level, chance = hmc_step(now.data, z, level, step, bounds, rng=rng, density=now.density)
        which, level = _switched(seen, which, z, level, rng)
        if t < warmup:
            step *= float(np.exp(GAIN * (t + 3) ** -DECAY * (chance - HMC_TARGET)))
        elif (t - warmup) % thinning == thinning - 1:
            kept.append((which, z))
    return kept


def _switched(
    seen: Sequence[Seen], which: int, z: Floats, level: Level, rng: np.random.Generator
) -> tuple[int, Level]:
    """The kernel of ordered variables after a Metropolis step between the three."""
    other = int(rng.integers(len(seen)))
    if other == which or not any(part.graph == "path" for part in seen[0].data.kernel.parts):
        return which, level
    try:
        reached = seen[other].density(seen[other].data, z)
    except NumericalError:
        return which, level
    taken = np.log(rng.uniform()) < reached[0] - level[0]
    return (other, reached) if taken else (which, level)
