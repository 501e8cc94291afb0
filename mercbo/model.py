"""`Model`: the statistical choices, frozen and checked; and the fit that they ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mercbo.errors import SettingError, choose
from mercbo.inference import Data, Fit, fit_hmc, fit_map, prior
from mercbo.slicing import fit_slice


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

    def __post_init__(self) -> None:
        for name in ("order", "sweeps"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise SettingError(f"{name}={number!r} is not a whole number of at least 1")
        choose("posterior", self.posterior, ["projected", "truncated"])
        choose("weights", self.weights, ["identity", "hierarchical"])
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
        )

    @property
    def refines(self) -> bool:
        return self.refine and self.posterior == "projected"

    def fit(self, data: Data, previous: Fit | None, *, rng: np.random.Generator) -> Fit:
        """Hyper-parameters for the data, from where the previous fit stood."""
        if len(data) == 0 or data.kernel.n == 0:
            return Fit((prior(data.kernel),), seen=0, cold=0)
        if previous is not None and previous.seen == 0:
            previous = None
        if self.inference == "slice":
            return fit_slice(data, previous, sweeps=self.sweeps, rng=rng)
        if self.inference == "hmc":
            return fit_hmc(data, previous, rng=rng)
        return fit_map(data, previous)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
