"""Sparse linear regression with the horseshoe prior, by Gibbs sampling.

| symbol      | meaning                                           | prior                     |
|-------------|---------------------------------------------------|---------------------------|
| X (N, d), y | columns of mean 0 and variance 1; centred results |                           |
| beta (d,)   | coefficients                                      | N(0, sigma2 tau2 lambda2) |
| lambda2     | (d,) local scales, squared: half-Cauchy           | IG(1/2, 1 / nu)           |
| tau2        | global scale, squared: half-Cauchy                | IG(1/2, 1 / xi)           |
| sigma2      | variance of the noise                             | 1 / sigma2                |
| nu, xi      | auxiliaries that make every conditional an IG     | IG(1/2, 1)                |

The hierarchy and its conditionals are Makalic and Schmidt's (IEEE Signal Processing Letters 23,
2016); beta given the scales is drawn by the method of Bhattacharya, Chakraborty and Mallick
(Biometrika 103, 2016) where d > N, whose cost is of order N^2 d, and by a d x d factor otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mercbo.arrays import Floats, Index

# Scales stay within what a double can square and invert.
LEAST, MOST = 1e-12, 1e12
# Noise of y of variance 1 below this is rounding, and would make the systems singular.
LEAST_NOISE = 1e-6


@dataclass(frozen=True)
class Scales:
    """One state of the chain: all but beta, which is drawn first."""

    sigma2: float
    tau2: float
    lambda2: Floats  # (d,)
    nu: Floats  # (d,)
    xi: float

    @classmethod
    def start(cls, d: int) -> Scales:
        return cls(1.0, 1.0, np.ones(d), np.ones(d), 1.0)

    def take(self, chosen: Index) -> Scales:
        """The scales of some coefficients."""
        return replace(self, lambda2=self.lambda2[chosen], nu=self.nu[chosen])

    def put(self, chosen: Index, part: Scales) -> Scales:
        """These scales with a part of them replaced: the inverse of `take`."""
        lambda2, nu = self.lambda2.copy(), self.nu.copy()
        lambda2[chosen], nu[chosen] = part.lambda2, part.nu
        return replace(part, lambda2=lambda2, nu=nu)


def gibbs(
    X: Floats, y: Floats, scales: Scales, sweeps: int, *, rng: np.random.Generator
) -> tuple[Floats, Scales]:
    """The last beta and scales of `sweeps` sweeps."""
    beta = np.zeros(X.shape[1])
    square = X.T @ X if X.shape[1] <= len(y) else None
    for _ in range(sweeps):
        beta = draw_beta(X, y, scales, square, rng=rng)
        scales = draw_scales(X, y, beta, scales, rng=rng)
    return beta, scales


def draw_beta(
    X: Floats, y: Floats, scales: Scales, square: Floats | None, *, rng: np.random.Generator
) -> Floats:
    """One draw of N(A^-1 X'y, sigma2 A^-1), A = X'X + diag(1 / (tau2 lambda2))."""
    prior = np.clip(scales.tau2 * scales.lambda2, LEAST, MOST)  # (d,) variance over sigma2
    root = np.sqrt(scales.sigma2)
    if square is None:
        # u ~ N(0, D), v ~ N(X u, I); beta = u + D X' (X D X' + I)^-1 (y - v), over sigma
        u = np.sqrt(prior) * rng.standard_normal(len(prior))
        v = X @ u + rng.standard_normal(len(y))
        half = X * np.sqrt(prior)  # a product with its own transpose takes half the time
        system = cho_factor(half @ half.T + np.eye(len(y)), lower=True, overwrite_a=True)
        return np.asarray(root * (u + prior * (X.T @ cho_solve(system, y / root - v))))
    factor = np.linalg.cholesky(square + np.diag(1.0 / prior))
    half = solve_triangular(factor, X.T @ y, lower=True)
    noise = root * rng.standard_normal(len(prior))
    return np.asarray(solve_triangular(factor, half + noise, lower=True, trans=1))


def draw_scales(
    X: Floats, y: Floats, beta: Floats, scales: Scales, *, rng: np.random.Generator
) -> Scales:
    """All scales given beta, one after another."""
    size, d = X.shape
    over = np.clip(scales.tau2 * scales.lambda2, LEAST, MOST)
    left = y - X @ beta
    rate = 0.5 * float(left @ left) + 0.5 * float((beta**2 / over).sum())
    sigma2 = max(float(inverse_gamma(0.5 * (size + d), rate, rng)), LEAST_NOISE)
    lambda2 = inverse_gamma(1.0, 1.0 / scales.nu + beta**2 / (2 * scales.tau2 * sigma2), rng)
    rate = 1.0 / scales.xi + float((beta**2 / lambda2).sum()) / (2 * sigma2)
    tau2 = float(inverse_gamma(0.5 * (d + 1), rate, rng))
    return replace(
        scales,
        sigma2=sigma2,
        lambda2=lambda2,
        tau2=tau2,
        nu=inverse_gamma(1.0, 1.0 + 1.0 / lambda2, rng),
        xi=float(inverse_gamma(1.0, 1.0 + 1.0 / tau2, rng)),
    )


def inverse_gamma(shape: float, rate: Floats | float, rng: np.random.Generator) -> Floats:
    """IG(shape, rate): the rate over a gamma draw, one for each entry of `rate`."""
    drawn = np.maximum(rng.gamma(shape, size=np.shape(rate)), 1e-300)
    return np.asarray(np.clip(rate / drawn, LEAST, MOST))
