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
W0 F' diag(v) F between factors. With windows (`kernels/windows.py`), a coefficient has the prior
variances that it has under each kernel of the sum added up, and so does what the data add to it.
What is pooled (`kernels/pooling.py`) is of order <= 2 itself: its part of a draw is added to the
coefficients. What stretches of letters are worth (`kernels/motifs.py`) is drawn apart, as it is
divided by a root of its own at every point.

All of this is in the space of the data, N x N, whose factors grow with the results
(`linalg.Factors`). The space of the d weights is used nowhere: the projected posterior has terms of
all orders and no finite d, and for the truncated one at order 2, d is about n^2 / 2, which at 100
variables is 5,000, no less than the longest histories.

With hierarchical weights, the prior variances of theta are beta_i and beta_i beta_j in place of 1
(paper: Upsilon); the part of the process above order m stays that of the diffusion kernel.

With `Model(terms=...)` a draw also has some terms of order 3 or 4 (`drawing/higher.py`): Phi then
is that of order <= 2 and of these, and all else holds as it is.

Where the space has symmetries, what is drawn is the averaged function h of `kernels/averaging.py`,
of which the data are y r: its values hold in the acquisition problem, and paths are divided by r
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, sum_of
from mercbo.drawing.higher import Terms, WithTerms, select
from mercbo.drawing.prediction import Predictor, covariances_of
from mercbo.drawing.samples import (
    GeneralSample,
    Higher,
    KernelSum,
    KernelSums,
    Lift,
    QuadraticSample,
    Sample,
)
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
from mercbo.inference import Data, Hyper, Term, diffusions, full_factor, motifs_of, pools_of
from mercbo.kernels.motifs import MotifSum
from mercbo.linalg import Factor, Factors, cholesky
from mercbo.model import Model

# The prior variance at many points is taken from square blocks of this size.
CHUNK = 256
# Terms of a draw of order above 2, which are held one by one for every row looked at.
MOST_TERMS = 100_000
# Draws whose weights at the data are solved for together.
TOGETHER = 8


@dataclass(frozen=True)
class WithMotifs:
    """A draw a priori of order <= 2, and what stretches of letters are worth in it."""

    low: Coefficients
    worth: Floats  # (codes,)


# A draw a priori: coefficients of order <= 2, perhaps with motifs or some terms above, or theta
# (d,) of all terms; and with it the white noise (N,) of its part above.
Prior = Coefficients | WithMotifs | WithTerms | Floats
Begun = tuple[Prior, Floats]


class Posterior:
    """The posterior of the standardised objective given `data`, `hyper` held fixed."""

    def __init__(self, model: Model, data: Data, hyper: Hyper) -> None:
        self.model = model
        self.data = data
        self.hyper = hyper
        self.kernel = data.kernel
        self.summands = diffusions(self.kernel, hyper)
        self.pools = pools_of(self.kernel, hyper)
        self.motifs = motifs_of(self.kernel, hyper)
        self.terms: list[Term] = [*self.summands, *self.pools, *self.motifs]
        self.w, self.tables = self.summands[0].w, self.summands[0].tables
        self.lift = Lift.of(self.kernel, self.tables, hyper.mean, data.rows)
        # the amplitude of what is drawn
        self.amplitude = hyper.amplitude / (1.0 if self.lift is None else self.lift.reference**2)
        self.scale = float(self.amplitude * np.exp(self.kernel.log_scale(self.w)))  # W0
        self.centred = data.y - hyper.mean
        # (D,) prior variance of a main coefficient; that of a pair is the product of two
        hierarchical = model.weights == "hierarchical"
        self.spread = hyper.beta[self.kernel.factor_of] if hierarchical else np.ones_like(self.w)
        # (D,) the weights of F: of a feature that one kernel does not have another may
        self.base = np.max([each.w for each in self.summands], axis=0)
        if self.pools or self.motifs:
            self.base = np.ones_like(self.w)  # these are functions of psi itself

    def without_factors(self) -> Posterior:
        """The same, with nothing computed that is of the size of a covariance."""
        light = Posterior(self.model, replace(self.data, factors=Factors()), self.hyper)
        if self.model.terms is not None:
            light._kept = self._kept  # which takes a factor to find
        return light

    # -- covariances ---------------------------------------------------------------------------

    def _drawn(self, rows: Rows, hot: Floats, spread: Floats | float) -> Floats:
        """Covariance of the part of order <= m of what is drawn, but for motifs."""
        w, scale = self.w * spread, self.scale
        if self.model.interactions is not None:
            return paired_gram(self.kernel, w, scale, self._pairs, rows, hot)
        if self.model.terms is None:
            order, windows = self.model.order, self.summands[1:]
            of = [(w, scale), *((each.w, each.scale) for each in windows)]
            drawn = [self.kernel.truncated_gram(*each, order, rows, hot) for each in of]
            return sum_of([*drawn, *(pool.gram(rows, hot) for pool in self.pools)])
        left = self._kept.products(single(self.kernel, w, rows))
        right = self._kept.products(single_of_hot(self.kernel, w, hot))
        return self.kernel.truncated_gram(w, scale, 2, rows, hot) + scale * left @ right.T

    def _low(self, rows: Rows, hot: Floats, spread: Floats | float) -> Floats:
        """Covariance of the part of order <= m of the function."""
        drawn = self._drawn(rows, hot, spread)
        if self.lift is None:
            return sum_of([drawn, *(motif.low_gram(rows, hot) for motif in self.motifs)])
        right = self.lift.roots(self.kernel.rows_of(hot))
        return np.asarray(drawn / self.lift.roots(rows)[:, np.newaxis] / right)

    def _covariance(self, rows: Rows, hot: Floats) -> Floats:
        """Covariance of the modelled function: all orders, or only those of the features."""
        if self.model.posterior == "truncated":
            return self._low(rows, hot, self.spread)
        full = sum_of(each.gram(rows, hot) for each in self.terms)
        if self.model.weights == "hierarchical":
            full += self._low(rows, hot, self.spread) - self._low(rows, hot, 1.0)
        return full

    def _factor(self, name: str, covariance: Callable[[Rows, Floats], Floats]) -> Factor:
        """Of a covariance of the data, and D."""
        data, model = self.data, self.model
        kept = self._kept.sets if name == "above" and model.terms is not None else ()
        return data.factors.factor(
            (name, model, *kept, *self.hyper.covariance),
            data.rows,
            data.noise(self.hyper.noise),
            lambda part: covariance(data.rows[part], data.hot[: part.stop]),
        )

    @cached_property
    def _sigma(self) -> Factor:
        if self.model.posterior == "projected" and self.model.weights == "identity":
            return full_factor(self.data, self.hyper, self.terms)
        return self._factor("sigma", self._covariance)

    @cached_property
    def _above(self) -> Factor:
        """Factor of Sigma - Phi Phi', the covariance of what a draw of order <= m leaves out; where
        features are the whole model, that is D alone."""

        def left_out(rows: Rows, hot: Floats) -> Floats:
            return self._covariance(rows, hot) - self._low(rows, hot, self.spread)

        return self._factor("above", left_out)

    @property
    def jitter(self) -> float:
        """Jitter on the diagonal of Sigma, relative to its mean."""
        return self._sigma.jitter

    def _eta(self, white: Floats) -> Floats:
        """eta of each draw, (N, draws), from its white noise."""
        if self.model.posterior == "truncated":
            return np.sqrt(self.data.noise(self.hyper.noise))[:, np.newaxis] * white
        return np.asarray(self._above.lower @ white)

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
        covariances = covariances_of(
            self.kernel, self.summands, self.pools, self.motifs, self.data.hot
        )
        return Predictor(covariances, self.hyper.mean, self._sigma, alpha)

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
            return sum_of(each.diagonal(rows) for each in self.terms)
        hot = self.kernel.onehot(rows)
        blocks = [
            np.diag(self._covariance(rows[i : i + CHUNK], hot[i : i + CHUNK]))
            for i in range(0, len(rows), CHUNK)
        ]
        return np.concatenate([np.zeros(0), *blocks])

    # -- draws ---------------------------------------------------------------------------------

    def draw(self, *, rng: np.random.Generator, turn: int = 0) -> Sample:
        """One function from the posterior; the same, to the last bit, as in a block of draws in
        which it has the same turn."""
        return self.draws([rng], first=turn)[0]

    def draws(self, rngs: Sequence[np.random.Generator], *, first: int = 0) -> list[Sample]:
        """Functions by a generator each, which take the turns `first`, `first` + 1 and so on."""
        begun = [self.begin(rng) for rng in rngs]
        found = self.weights(begun, first=first).T
        return [self.sample(prior, v) for (prior, _), v in zip(begun, found, strict=True)]

    def begin(self, rng: np.random.Generator) -> Begun:
        """All that is random of one draw: its part of order <= m a priori, and white noise."""
        prior: Prior
        if self.model.terms is not None:
            theta = self._root * rng.standard_normal(len(self._kept))
            prior = WithTerms(self._prior_coefficients(rng), theta)
        elif self.model.order > 2:
            prior = rng.standard_normal(self._terms)
        else:
            low = self._prior_coefficients(rng)
            prior = WithMotifs(low, self.motifs[0].prior_worth(rng)) if self.motifs else low
        return prior, rng.standard_normal(len(self.data))

    def weights(self, begun: Sequence[Begun], *, first: int = 0) -> Floats:
        """v of each draw, (N, draws): what costs N^2 a draw, `TOGETHER` at a time.

        A product of that many columns takes hardly longer than one of a single column. They are
        always as many, and a draw's column is that of its turn, so that rounding does not depend
        on how many draws are made at once.
        """
        blocks, at = [], 0
        while at < len(begun):
            skip = (first + at) % TOGETHER
            part = begun[at : at + TOGETHER - skip]
            blocks.append(self._block(part, skip)[:, skip : skip + len(part)])
            at += len(part)
        return np.concatenate(blocks, axis=1)

    def _block(self, begun: Sequence[Begun], skip: int) -> Floats:
        at_data = np.zeros((len(self.data), TOGETHER), order="F")
        white = np.zeros_like(at_data)
        for column, (prior, noise) in enumerate(begun, start=skip):
            at_data[:, column] = self._at_data(prior)
            white[:, column] = noise
        if self.lift is None:
            return self._sigma.solve(self.centred[:, np.newaxis] - at_data - self._eta(white))
        # what is drawn is the function times its roots
        roots = self.lift.roots(self.data.rows)[:, np.newaxis]
        right = self.centred[:, np.newaxis] - at_data / roots - self._eta(white)
        return np.asarray(self._sigma.solve(right) / roots)

    def sample(self, prior: Prior, v: Floats) -> Sample:
        """The draw that begins with `prior` and has the weights `v` (N,) at the data."""
        if isinstance(prior, WithTerms):
            return self._quadratic_sample(prior.low, v, prior.theta)
        if isinstance(prior, WithMotifs):
            return self._with_motifs(self._quadratic_sample(prior.low, v), prior.worth, v)
        if isinstance(prior, Coefficients):
            return self._quadratic_sample(prior, v)
        return self._general_sample(prior, v)

    def _at_data(self, prior: Prior) -> Floats:
        if isinstance(prior, WithTerms):
            return prior.low.value(self._singles) + self._kept_at_data @ prior.theta
        if isinstance(prior, WithMotifs):
            (motif,) = self.motifs
            return prior.low.value(self._singles) + motif.at(self.data.rows, prior.worth)
        if isinstance(prior, Coefficients):
            return prior.value(self._singles)
        return np.asarray(self._phi @ prior)

    def _with_motifs(self, sample: QuadraticSample, worth: Floats, v: Floats) -> Sample:
        """A sample with what stretches of letters are worth a priori (codes,) and by the data."""
        (motif,) = self.motifs
        worth = worth + motif.data_worth(self.data.hot, v)
        low = sample.low + motif.low_coefficients(worth)
        if sample.data_part is None:
            return replace(sample, low=low, rest=low)
        parts = [sample.data_part, MotifSum(motif, worth)]
        return replace(sample, low=low, data_part=KernelSums(parts))

    def _quadratic_sample(
        self, prior: Coefficients, v: Floats, theta: Floats | None = None
    ) -> QuadraticSample:
        mean = Coefficients(self.hyper.mean, np.zeros_like(self.w), np.zeros_like(prior.pair))
        low = prior + self._data_coefficients(v, self._main_spread, self._pair_spread) + mean
        for pool in self.pools:
            low = low + pool.data_coefficients(self.data.hot, v)
        higher = rest_of_higher = None
        if theta is not None:
            told = self.scale * (self._kept_at_data.T @ v)
            higher = Higher(self.kernel, self.w, self._kept, theta + told)
            rest_of_higher = Higher(self.kernel, self.w, self._kept, theta)
        if not self.model.refines:
            return QuadraticSample(self.kernel, self.base, low, low, None, higher=higher)
        rest = low - self._data_coefficients(v, *self._full_spread)
        return QuadraticSample(
            self.kernel, self.base, low, rest, self._kernel_sum(v), self.lift, higher,
            rest_of_higher,
        )  # fmt: skip

    def _kernel_sum(self, v: Floats) -> KernelSum | KernelSums:
        """k(x, X) v, of all orders."""
        whole = self._whole_sum(v)
        own = [
            KernelSum(self.kernel, each.tables, self.data.hot, each.amplitude * v)
            for each in self.summands[1:]
        ]
        return KernelSums([whole, *own]) if own else whole

    def _whole_sum(self, v: Floats) -> KernelSum:
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
        return single(self.kernel, self.base, self.data.rows)

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
        spread = sum_of(share * np.outer(ratio, ratio) for share, ratio in self._shares)
        return self._pairs * spread

    @cached_property
    def _main_spread(self) -> Floats:
        """(D,): prior variance of each coefficient of one factor over W0."""
        return sum_of(share * ratio for share, ratio in self._shares)

    @property
    def _constant_spread(self) -> float:
        """Prior variance of the constant over W0."""
        return sum(share for share, _ in self._shares)

    @cached_property
    def _shares(self) -> list[tuple[float, Floats]]:
        """Of each kernel its W0 over that of all variables, and its weights (D,) over those of F:
        the prior variance of a coefficient is their product, that of a pair has two weights."""
        if len(self.terms) == 1:
            return [(1.0, self.spread)]
        base = np.maximum(self.base, np.finfo(np.float64).tiny)
        return [(each.scale / self.scale, each.w / base) for each in self.summands]

    @property
    def _full_spread(self) -> tuple[Floats, Floats]:
        """(D,) and (D, D): the same of what the kernel of all orders says of orders <= m."""
        if self.model.weights == "identity":
            return self._main_spread, self._pair_spread
        return np.ones_like(self.w), (self._pair_spread > 0).astype(np.float64)

    @cached_property
    def _pairs(self) -> Mask:
        """(D, D): which products of two features a draw has."""
        return pair_mask(self.kernel, self.model.interactions)

    def _prior_coefficients(self, rng: np.random.Generator) -> Coefficients:
        root, d = self._root, len(self.w)
        constant = float(root * np.sqrt(self._constant_spread) * rng.standard_normal())
        main = root * np.sqrt(self._main_spread) * rng.standard_normal(d)
        upper = np.triu(rng.standard_normal((d, d)), 1)
        pair = root * np.sqrt(self._pair_spread) * (upper + upper.T)
        drawn = Coefficients(constant, *self.kernel.symmetrised(main, pair))
        return sum((pool.prior_coefficients(rng) for pool in self.pools), drawn)

    def _data_coefficients(self, v: Floats, spread: Floats, pairs: Floats) -> Coefficients:
        """Phi' v, as coefficients of F, for prior variances `spread` (D,) and `pairs` (D, D)."""
        singles = self._singles
        main = self.scale * spread * (singles.T @ v)
        pair = self.scale * pairs * ((singles * v[:, np.newaxis]).T @ singles)
        constant = float(self.scale * self._constant_spread * v.sum())
        return Coefficients(constant, *self.kernel.symmetrised(main, pair))

    @cached_property
    def _terms(self) -> int:
        count = term_count(self.kernel.factor_of, self.model.order)
        if count > MOST_TERMS:
            raise SettingError(
                f"order={self.model.order} has {count:,} Mercer terms on this space, at most "
                f"{MOST_TERMS:,} are drawn; use a lower order"
            )
        return count

    @cached_property
    def _phi(self) -> Floats:
        return self._features(self.data.rows)

    def _general_sample(self, prior: Floats, v: Floats) -> Sample:
        theta = prior + self._phi.T @ v

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
