"""`Model`: the statistical choices, frozen and checked; and the fit that they ask for."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mercbo.errors import SettingError, choose
from mercbo.inference import Data, Fit, Hyper, fit_hmc, fit_map, log_evidence, prior
from mercbo.slicing import fit_slice
from mercbo.warp import SHAPES

log = logging.getLogger(__name__)

# Iterations of the fit of each warp, and the evidence by which one must beat none.
WARP_ITERATIONS, WARP_PRIOR = 10, 1.0


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is believed about the objective and how it is inferred.

    order
        Highest order of the Mercer features in a draw. 2 makes every draw a quadratic function
        of bits, which the backends minimise; with other orders above 2 a draw is minimised by
        local search and has no `bqm`.
    posterior
        "projected": the coefficients of order <= `order` under the full Gaussian process, which
        counts higher orders as what they are, correlated and not white noise. "truncated": the
        paper's, which takes the features for the whole model.
    weights
        "identity": prior N(0, I) on the coefficients. "hierarchical": the paper's sparse variant,
        variances beta_i and beta_i beta_j.
    inference
        "map" (the fastest), "hmc" (a few samples per ask), "slice" (the paper's).
    sweeps
        Of slice sampling, for every ask after the first; the paper's code makes 10.
    failures
        "learn": where evaluations have failed, a model of failures keeps suggestions away from
        where more are likely. "ignore": only the failed points themselves are left out.
    warp
        "learn": results go through a monotone warp where the evidence says that they then fit a
        Gaussian process better, as skewed ones do. "none": as they are.
    refine
        After the quadratic problem is solved, descend the sampled function of *all* orders by
        one-variable moves. Only the projected posterior has such a function.
    """

    order: int = 2
    posterior: str = "projected"
    weights: str = "identity"
    inference: str = "map"
    sweeps: int = 10
    refine: bool = True
    failures: str = "learn"
    warp: str = "learn"

    def __post_init__(self) -> None:
        for name in ("order", "sweeps"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise SettingError(f"{name}={number!r} is not a whole number of at least 1")
        choose("posterior", self.posterior, ["projected", "truncated"])
        choose("weights", self.weights, ["identity", "hierarchical"])
        choose("warp", self.warp, ["learn", "none"])
        choose("failures", self.failures, ["learn", "ignore"])
        choose("inference", self.inference, ["map", "hmc", "slice"])
        if not isinstance(self.refine, bool):
            raise SettingError(f"refine={self.refine!r} is not True or False")

    @classmethod
    def paper(cls) -> Model:
        """The choices of the MerCBO paper (it uses identity weights for Ising only)."""
        return cls(
            order=2,
            posterior="truncated",
            weights="hierarchical",
            inference="slice",
            refine=False,
            failures="ignore",
            warp="none",
        )

    @property
    def refines(self) -> bool:
        return self.refine and self.posterior == "projected"

    def fit(self, data: Data, previous: Fit | None, *, rng: np.random.Generator) -> Fit:
        """Hyper-parameters, and the shape of the output warp, for the data, from where the
        previous fit stood."""
        if len(data) == 0 or data.kernel.n == 0:
            return Fit((prior(data.kernel),), seen=0, cold=0)
        if previous is not None and previous.seen == 0:
            previous = None
        shape = previous.warp if previous else None
        fitted = self._fit(data.warped(shape), previous, rng)
        if self.warp == "learn" and (previous is None or previous.is_due(len(data))):
            shape = likeliest(data, fitted.hypers[0], shape)
            if shape != (previous.warp if previous else None):
                fitted = self._fit(data.warped(shape), None, rng)
        return replace(fitted, warp=shape)

    def _fit(self, data: Data, previous: Fit | None, rng: np.random.Generator) -> Fit:
        if self.inference == "slice":
            return fit_slice(data, previous, sweeps=self.sweeps, rng=rng)
        if self.inference == "hmc":
            return fit_hmc(data, previous, rng=rng)
        return fit_map(data, previous)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def likeliest(data: Data, hyper: Hyper, shape: float | None) -> float | None:
    """The shape of the output warp with the most evidence; `hyper` was fitted with `shape`."""
    evidence = {
        other: log_evidence(data.warped(other), hyper, WARP_ITERATIONS)
        - (0.0 if other is None else WARP_PRIOR)
        for other in (None, *SHAPES)
    }
    best = max(evidence, key=lambda other: evidence[other])
    log.debug("evidence of warps %s: %s (was %s)", evidence, best, shape)
    return best
