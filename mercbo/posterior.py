"""The posterior under one state of the hyper-parameters: draws, mean and variance.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| F      | weighted single-factor features at the data                                 | (N, D) |
| Phi    | Mercer features of order <= m at the data, scaled by sqrt(W0)               | (N, d) |
| W0     | amplitude * prod_i a_i                                                      |        |
| D      | diagonal of the noise: the fitted one, or the square of a known error       | (N, N) |
| Sigma  | covariance of what is observed: K + D, or Phi Phi' + D                      | (N, N) |
| v      | Sigma^-1 (y - mean - Phi theta0 - eta), one per draw                        | (N,)   |

A draw is theta = theta0 + Phi' v (Matheron's rule), with theta0 from the prior and eta from
N(0, Sigma - Phi Phi'): white noise for the truncated posterior; for the projected one also the
part of the process above order m, which is independent of theta a priori. No d x d matrix is
formed, and at order 2 no Phi either: a draw's pair coefficients are those of theta0 plus
W0 F' diag(v) F between factors.

With hierarchical weights, the prior variances of theta are beta_i and beta_i beta_j in place of 1
(paper: Upsilon); the part of the process above order m stays that of the diffusion kernel.

With `Model(terms=...)` a draw also has some terms of order 3 or 4 (`higher.py`): Phi then is that
of order <= 2 and of these, and all else holds as it is.

Where the space has symmetries, what is drawn is the averaged function h of `averaging.py`, of which
the data are y r: its values hold in the acquisition problem, and paths are divided by r again.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Mask, Rows
from mercbo.errors import SettingError
from mercbo.features import (
    Coefficients,
    mercer,
    pair_mask,
    paired_gram,
    single,
    single_of_hot,
    term_count,
)
from mercbo.higher import Terms, select
from mercbo.inference import Data, Hyper
from mercbo.linalg import Factor, cholesky
from mercbo.model import Model
from mercbo.prediction import Predictor
from mercbo.samples import GeneralSample, Higher, KernelSum, Lift, QuadraticSample, Sample

# The prior variance at many points is taken from square blocks of this size.
CHUNK = 256
# Terms of a draw of order above 2, which are held one by one for every row looked at.
MOST_TERMS = 100_000


class Posterior:
    """The posterior of the standardised objective given `data`, `hyper` held fixed."""

    def __init__(self, model: Model, data: Data, hyper: Hyper) -> None:
        self.model = model
        self.data = data
        self.hyper = hyper
        self.kernel = data.kernel
        self.w = self.kernel.weights(hyper.beta)
        self.tables = self.kernel.log_tables(hyper.beta)
        self.lift = self._made_lift()
        # the amplitude of what is drawn
        self.amplitude = hyper.amplitude / (1.0 if self.lift is None else self.lift.reference**2)
        self.scale = float(self.amplitude * np.exp(self.kernel.log_scale(self.w)))  # W0
        self.centred = data.y - hyper.mean
        # (D,) prior variance of a main coefficient; that of a pair is the product of two
        hierarchical = model.weights == "hierarchical"
        self.spread = hyper.beta[self.kernel.factor_of] if hierarchical else np.ones_like(self.w)

    def _made_lift(self) -> Lift | None:
        """What divides a drawn function, where there are symmetries."""
        roots = self.kernel.roots(self.tables, self.data.rows)
        if roots is None:
            return None
        reference = float(np.sqrt(np.mean(roots**2))) if len(roots) else 1.0
        return Lift(self.kernel, self.tables, self.hyper.mean, reference)

    # -- covariances ---------------------------------------------------------------------------

    def _drawn(self, rows: Rows, hot: Floats, spread: Floats | float) -> Floats:
        """Covariance of the part of order <= m of what is drawn."""
        w, scale = self.w * spread, self.scale
        if self.model.interactions is not None:
            return paired_gram(self.kernel, w, scale, self._pairs, rows, hot)
        if self.model.terms is None:
            return self.kernel.truncated_gram(w, scale, self.model.order, rows, hot)
        left = self._kept.products(single(self.kernel, w, rows))
        right = self._kept.products(single_of_hot(self.kernel, w, hot))
        return self.kernel.truncated_gram(w, scale, 2, rows, hot) + scale * left @ right.T

    def _low(self, rows: Rows, hot: Floats, spread: Floats | float) -> Floats:
        """Covariance of the part of order <= m of the function."""
        drawn = self._drawn(rows, hot, spread)
        if self.lift is None:
            return drawn
        right = self.lift.roots(self.kernel.rows_of(hot))
        return np.asarray(drawn / self.lift.roots(rows)[:, np.newaxis] / right)

    def _covariance(self, rows: Rows, hot: Floats) -> Floats:
        """Covariance of the modelled function: all orders, or only those of the features."""
        if self.model.posterior == "truncated":
            return self._low(rows, hot, self.spread)
        full = self.hyper.amplitude * self.kernel.gram(self.tables, rows, hot)
        if self.model.weights == "hierarchical":
            full += self._low(rows, hot, self.spread) - self._low(rows, hot, 1.0)
        return full

    @cached_property
    def _signal(self) -> Floats:
        return self._covariance(self.data.rows, self.data.hot)

    @cached_property
    def _white(self) -> Floats:
        """D."""
        return np.diag(self.data.noise(self.hyper.noise))

    @cached_property
    def _sigma(self) -> Factor:
        return cholesky(self._signal + self._white)

    @cached_property
    def _eta(self) -> Factor:
        """Factor of Sigma - Phi Phi', the covariance of what a draw of order <= m leaves out."""
        if self.model.posterior == "truncated":
            return Factor(np.sqrt(self._white))
        low = self._low(self.data.rows, self.data.hot, self.spread)
        return cholesky(self._signal - low + self._white)

    # -- prediction ----------------------------------------------------------------------------

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free function at `rows`, in standardised units."""
        mean, variance = self.means(rows, self.data.y[:, np.newaxis])
        return mean[:, 0], variance

    def means(self, rows: Rows, results: Floats) -> tuple[Floats, Floats]:
        """Means (R, S) given each column of `results` (N, S) in place of y, and variance (R,)."""
        cross = self._covariance(rows, self.data.hot)
        half = self._sigma.half_solve(cross.T)
        variance = self._variance(rows) - np.einsum("nr,nr->r", half, half)
        alpha = self._sigma.solve(results - self.hyper.mean)
        return self.hyper.mean + cross @ alpha, np.maximum(variance, 0.0)

    @property
    def full(self) -> Posterior:
        """The posterior of the full process, whatever the features of the draws are."""
        if self.model.posterior == "projected" and self.model.weights == "identity":
            return self
        return Posterior(
            replace(self.model, posterior="projected", weights="identity"), self.data, self.hyper
        )

    def predictor(self, results: Floats) -> Predictor:
        """Moments of the full process (see `full`), each column of `results` (N, S) being y."""
        alpha = self._sigma.solve(results - self.hyper.mean)
        return Predictor(
            self.kernel, self.tables, self.hyper.amplitude, self.hyper.mean, self.data.hot,
            self._sigma, alpha,
        )  # fmt: skip

    def awaiting(self, pending: Rows) -> Predictor:
        """Moments of the full process with awaited results at their means, which changes only
        the variance."""
        if len(pending) == 0:
            return self.predictor(self.data.y[:, np.newaxis])
        told = self.given(pending, self.predict(pending)[0])
        return told.predictor(told.data.y[:, np.newaxis])

    def results_at(self, rows: Rows, count: int, *, rng: np.random.Generator) -> Floats:
        """(R, count): results, noise included, drawn jointly at some rows."""
        mean, _ = self.predict(rows)
        half = self._sigma.half_solve(self._covariance(rows, self.data.hot).T)
        between = self._covariance(rows, self.kernel.onehot(rows)) - half.T @ half
        noisy = cholesky(between + self.hyper.noise * np.eye(len(rows)))
        return mean[:, np.newaxis] + noisy.lower @ rng.standard_normal((len(rows), count))

    def given(self, rows: Rows, values: Floats) -> Posterior:
        """The posterior with results at more rows, the hyper-parameters as they are."""
        return Posterior(self.model, self.data.and_at(rows, values), self.hyper)

    def _variance(self, rows: Rows) -> Floats:
        """(R,): prior variance."""
        if self.model.posterior == "projected" and self.model.weights == "identity":
            return self.hyper.amplitude * self.kernel.diagonal(self.tables, rows)
        hot = self.kernel.onehot(rows)
        blocks = [
            np.diag(self._covariance(rows[i : i + CHUNK], hot[i : i + CHUNK]))
            for i in range(0, len(rows), CHUNK)
        ]
        return np.concatenate([np.zeros(0), *blocks])

    # -- draws ---------------------------------------------------------------------------------

    def draw(self, *, rng: np.random.Generator) -> Sample:
        """One function from the posterior."""
        general = self.model.order > 2 and self.model.terms is None
        return self._draw_general(rng) if general else self._draw_quadratic(rng)

    def _draw_quadratic(self, rng: np.random.Generator) -> Sample:
        start = self._prior_coefficients(rng)
        at_data = start.value(self._singles)
        theta = None
        if self.model.terms is not None:
            theta = self._root * rng.standard_normal(len(self._kept))
            at_data = at_data + self._kept_at_data @ theta
        v = self._weights_of_data(at_data, rng)
        mean = Coefficients(self.hyper.mean, np.zeros_like(self.w), np.zeros_like(start.pair))
        low = start + self._data_coefficients(v, self.spread, self._pair_spread) + mean
        higher = rest_of_higher = None
        if theta is not None:
            told = self.scale * (self._kept_at_data.T @ v)
            higher = Higher(self.kernel, self.w, self._kept, theta + told)
            rest_of_higher = Higher(self.kernel, self.w, self._kept, theta)
        if not self.model.refines:
            return QuadraticSample(self.kernel, self.w, low, low, None, higher=higher)
        plain = (self._pair_spread > 0).astype(np.float64)
        rest = low - self._data_coefficients(v, np.ones_like(self.w), plain)
        return QuadraticSample(
            self.kernel, self.w, low, rest, self._kernel_sum(v), self.lift, higher, rest_of_higher
        )

    def _weights_of_data(self, prior_at_data: Floats, rng: np.random.Generator) -> Floats:
        """v, divided by the roots at the data where there are symmetries: what is drawn is that
        many times the function."""
        eta = self._eta.lower @ rng.standard_normal(len(self.data))
        if self.lift is None:
            return self._sigma.solve(self.centred - prior_at_data - eta)
        roots = self.lift.roots(self.data.rows)
        v = self._sigma.solve(self.centred - prior_at_data / roots - eta)
        return np.asarray(v / roots)

    def _kernel_sum(self, v: Floats) -> KernelSum:
        images = self.kernel.images(self.data.rows)
        hot = self.data.hot
        if len(images) > 1:
            hot = self.kernel.onehot(images.reshape(-1, images.shape[2]))
        weights = np.tile(self.amplitude / len(images) * v, len(images))
        return KernelSum(self.kernel, self.tables, hot, weights)

    @property
    def _root(self) -> float:
        """The prior standard deviation of a coefficient of F and of its products."""
        return float(np.sqrt(self.scale))

    @cached_property
    def _singles(self) -> Floats:
        return single(self.kernel, self.w, self.data.rows)

    @cached_property
    def _kept(self) -> Terms:
        """The terms above order 2 that draws have, by the posterior mean."""
        alpha, count = self._sigma.solve(self.centred), self.model.terms
        assert count is not None
        return select(
            self.kernel, self.w, self._singles, alpha, order=self.model.order, count=count
        )

    @cached_property
    def _kept_at_data(self) -> Floats:
        """(N, T)."""
        return self._kept.products(self._singles)

    @cached_property
    def _pair_spread(self) -> Floats:
        """(D, D): prior variance of each pair coefficient over W0, zero inside a factor."""
        if self.model.order == 1:
            return np.zeros((len(self.w), len(self.w)))
        return self._pairs * np.outer(self.spread, self.spread)

    @cached_property
    def _pairs(self) -> Mask:
        """(D, D): which products of two features a draw has."""
        return pair_mask(self.kernel, self.model.interactions)

    def _prior_coefficients(self, rng: np.random.Generator) -> Coefficients:
        root, d = self._root, len(self.w)
        constant = float(root * rng.standard_normal())
        main = root * np.sqrt(self.spread) * rng.standard_normal(d)
        upper = np.triu(rng.standard_normal((d, d)), 1)
        pair = root * np.sqrt(self._pair_spread) * (upper + upper.T)
        return Coefficients(constant, *self.kernel.symmetrised(main, pair))

    def _data_coefficients(self, v: Floats, spread: Floats, pairs: Floats) -> Coefficients:
        """Phi' v, as coefficients of F, for prior variances `spread` (D,) and `pairs` (D, D)."""
        singles = self._singles
        main = self.scale * spread * (singles.T @ v)
        pair = self.scale * pairs * ((singles * v[:, np.newaxis]).T @ singles)
        return Coefficients(float(self.scale * v.sum()), *self.kernel.symmetrised(main, pair))

    def _draw_general(self, rng: np.random.Generator) -> Sample:
        count = term_count(self.kernel.factor_of, self.model.order)
        if count > MOST_TERMS:
            raise SettingError(
                f"order={self.model.order} has {count:,} Mercer terms on this space, at most "
                f"{MOST_TERMS:,} are drawn; use a lower order"
            )
        phi = self._features(self.data.rows)
        theta = rng.standard_normal(count)
        v = self._weights_of_data(phi @ theta, rng)
        theta = theta + phi.T @ v

        def low(rows: Rows) -> Floats:
            return self.hyper.mean + self._features(rows) @ theta

        def beyond(rows: Rows) -> Floats:
            return self._kernel_sum(v).value(rows) - self._drawn(rows, self.data.hot, 1.0) @ v

        if not self.model.refines:
            return GeneralSample(self.kernel, low, None)
        return GeneralSample(self.kernel, low, beyond, self.lift)

    def _features(self, rows: Rows) -> Floats:
        images = self.kernel.images(rows)
        return sum(map(self._own_features, images[1:]), self._own_features(images[0])) / len(images)

    def _own_features(self, rows: Rows) -> Floats:
        singles = single(self.kernel, self.w * self.spread, rows)
        phi = mercer(singles, self.kernel.factor_of, self.model.order)
        return self._root * phi
