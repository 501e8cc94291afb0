"""`Model`: the statistical choices, frozen and checked; and the fit that they ask for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from mercbo.arrays import Floats
from mercbo.errors import SettingError, choose, whole
from mercbo.fitting.kinds import KINDS, POOLING, WINDOWS, Kinds, kinds_of
from mercbo.fitting.slicing import fit_slice
from mercbo.fitting.structured import chart_of, fit_warm, with_structure, worth_pooling
from mercbo.fitting.warp import LOGS, NAMES
from mercbo.inference import PLAIN, Data, Fit, Hyper, fit_map, log_evidence, pack, prior, sampled
from mercbo.kernels.interactions import Stated, checked

log = logging.getLogger(__name__)

# Every warp is screened by a few iterations of a fit, and the best few are fitted further.
WARP_SCREENING, WARP_ITERATIONS, WARP_FINALISTS = 3, 8, 4
# Up to so many results and factors "auto" samples hyper-parameters: beyond, results leave little
# open about them, and each sample takes a factorisation of its own. (MAP against samples on
# relocated problems: Ising 0.302 / 0.237 in 16 runs, MaxSAT-40 -42.3 / -43.1 and NK-24-4
# -0.755 / -0.759 in 6 each. On more variables so short a chain does not get around: LABS-30 8.2 /
# 8.4, but LABS-50 8.6 / 7.8 in 5 and 4 runs, where more is better.)
MOST_SAMPLED, MOST_FACTORS = 300, 40
# Where warped results reach this many times farther than their quartiles, a few wild ones have
# come in, and the warp is chosen anew at once. (12 bits, weighted: with 60 results, one of them 60
# quartile distances off, predictions had a correlation of 0.65 with the truth at 1e3.)
STRAINED = 30.0


@dataclass(frozen=True, kw_only=True)
class Model:
    """What is believed about the objective and how it is inferred.

    order
        Highest order of the Mercer features in a draw. 2 makes every draw a quadratic function
        of bits, which the backends minimise; with orders above 2 and without `terms` a draw is
        minimised by local search and has no `bqm`. An order above the number of variables adds
        no features.
    posterior
        "projected": the coefficients of order <= `order` under the full Gaussian process, which
        counts higher orders as what they are, correlated and not white noise. "truncated": the
        paper's, which takes the features for the whole model.
    weights
        "identity": prior N(0, I) on the coefficients. "hierarchical": the paper's sparse variant,
        variances beta_i and beta_i beta_j.
    inference
        "auto": as "hmc" with up to 300 results and 40 factors (variables, or bits of binary-encoded
        ones), as "map" beyond that and where there are windows. "map": the hyper-parameters that
        explain the results best (the fastest). "hmc": an average over a few samples of them.
        "slice": the paper's.
    sweeps
        Of slice sampling, for every ask after the first; the paper's code makes 10.
    failures
        "learn": where evaluations have failed, a model of failures keeps suggestions away from
        where more are likely: one of values that must not follow others, where results say that
        this is the reason, else one of all variables. "ignore": only the failed points themselves
        are left out.
    warp
        "learn": results go through a monotone warp where the evidence says that they then fit a
        Gaussian process better, as skewed ones do. "none": as they are.
    terms
        With an order of 3 or 4: how many interactions of three or four variables a draw keeps
        beside all of order 2, those that explain most by the posterior mean. The draw has a `bqm`
        then, with auxiliary bits for products of two bits; the others are left to refinement, as
        at order 2. None, the default: all of them, by local search.
    interactions
        Which variables interact in a draw: groups of names, two of which interact where a group
        has both, such as the edges of a graph or blocks; "chain" for neighbours in the space's
        order. The draw's problem is as sparse as that, and refinement keeps what the data say of
        the other pairs. None, the default: all pairs. Needs an order of 2.
    trust
        "learn": where the fit says that the landscape is rugged, Thompson draws are minimised
        within reach of the best point only, as far as the model's correlations go; where most of
        what is tried far off fails, within a few changes. "none": on the whole space.
    windows
        "learn": where the evidence says that variables act together with their neighbours in the
        order of the space, as letters of a sequence or stages of a process do, the kernel gets a
        term for each neighbourhood. "none": all pairs of variables are alike beforehand. Learned
        with inference "auto" or "map" and the default posterior, order and weights only, where no
        `interactions` are stated and the space has no symmetries.
    pooling
        "learn": the kernel may have a term for how often each value occurs among variables with the
        same values, as stations with the same treatments or letters of one alphabet. While
        hyper-parameters are sampled, so is how much of it there is; otherwise, and where there are
        windows or motifs, it is there where the evidence is for it. "none": each variable is
        learned alone.
        Learned where windows are.
    motifs
        "learn": the kernel may have a term for what a few letters in a row do wherever they stand
        in a sequence, which is the longest row of six to 64 neighbours, in the order of the space,
        that have the same unordered values. It is there where they have more than two values,
        unless the evidence is against it, and of bits where the evidence is for it; of A, C, G and
        T it may read both strands. "none": every place is learned alone. Learned where windows
        are.
    refine
        After the quadratic problem is solved, descend the sampled function of *all* orders by
        one-variable moves. Only the projected posterior has such a function.
    """

    order: int = 2
    posterior: str = "projected"
    weights: str = "identity"
    inference: str = "auto"
    sweeps: int = 10
    refine: bool = True
    failures: str = "learn"
    warp: str = "learn"
    trust: str = "learn"
    windows: str = "learn"
    pooling: str = "learn"
    motifs: str = "learn"
    interactions: Stated | None = None
    terms: int | None = None

    def __post_init__(self) -> None:
        for name in ("order", "sweeps"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        choose("posterior", self.posterior, ["projected", "truncated"])
        choose("weights", self.weights, ["identity", "hierarchical"])
        choose("warp", self.warp, ["learn", "none"])
        choose("trust", self.trust, ["learn", "none"])
        choose("windows", self.windows, ["learn", "none"])
        choose("pooling", self.pooling, ["learn", "none"])
        choose("motifs", self.motifs, ["learn", "none"])
        choose("failures", self.failures, ["learn", "ignore"])
        choose("inference", self.inference, ["auto", "map", "hmc", "slice"])
        if not isinstance(self.refine, bool | np.bool_):
            raise SettingError(f"refine={self.refine!r} is not True or False")
        object.__setattr__(self, "refine", bool(self.refine))
        if self.terms is not None:
            self._check_terms()
        object.__setattr__(self, "interactions", checked(self.interactions))
        if self.interactions is not None and self.order != 2:
            raise SettingError(f"interactions are of order 2, and order={self.order}")

    def _check_terms(self) -> None:
        object.__setattr__(self, "terms", whole("terms", self.terms))
        if self.order not in (3, 4):
            raise SettingError(f"terms are of order 3 or 4, and order={self.order}")
        if (self.posterior, self.weights) != ("projected", "identity"):
            raise SettingError("terms need posterior='projected' and weights='identity'")

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
            trust="none",
            windows="none",
            pooling="none",
            motifs="none",
        )

    @property
    def refines(self) -> bool:
        return self.refine and self.posterior == "projected"

    def fit(self, data: Data, previous: Fit | None, *, rng: np.random.Generator) -> Fit:
        """Hyper-parameters, and the output warp, for the data, from where the previous fit
        stood."""
        if len(data) == 0 or data.kernel.n == 0:
            return Fit((prior(data.kernel),), seen=0, cold=0)
        if previous is not None and previous.seen == 0:
            previous = None
        was = name = previous.warp if previous else None
        grown = previous is None or previous.is_open(len(data))
        due = grown or is_strained(data.warped(name).y)
        before = previous.hypers[0] if previous and not previous.hypers[0].is_plain else None
        chain = previous
        if previous is not None and before is not None:
            if not due:
                warm = fit_warm(data.warped(name), previous)
                return self._sampled(data.warped(name), warm, previous, rng)
            previous = replace(previous, hypers=(before.plain,))
        fitted = self._fit(data.warped(name), previous, rng)
        if self.warp == "learn" and due:
            # robust families are tried only where there are wild results
            names = NAMES if is_strained(data.y) else LOGS
            name = likeliest(data, fitted.hypers[0], names, pooled=POOLING in self.learned)
            if name != was:
                fitted, chain = self._fit(data.warped(name), None, rng), None
        again = grown or name != was
        if again:
            fitted = with_structure(
                data.warped(name), fitted, before, self.learned, sampled=self._samples(data)
            )
        elif previous is not None and before is not None:
            stale = replace(fitted, hypers=(before,), seen=previous.seen)
            fitted = fit_warm(data.warped(name), stale)
        fitted = self._sampled(data.warped(name), fitted, chain, rng)
        chosen = len(data) if again or previous is None else previous.chosen
        return replace(fitted, warp=name, chosen=chosen)

    @property
    def learned(self) -> Kinds:
        """The kinds of further terms of the kernel that are tried."""
        plain = (self.posterior, self.weights, self.order) == ("projected", "identity", 2)
        fitted = self.inference in ("auto", "map")
        if not (plain and fitted) or self.interactions is not None:
            return ()
        return tuple(kind for kind in KINDS if getattr(self, kind.name) == "learn")

    def _sampled(self, data: Data, fitted: Fit, chain: Fit | None, rng: np.random.Generator) -> Fit:
        """A fit, with samples behind it where hyper-parameters are sampled."""
        kinds = kinds_of(fitted.hypers[0])
        if not self._samples(data) or WINDOWS in kinds:
            return fitted
        return sampled(data, fitted, chain, chart=chart_of(kinds) if kinds else PLAIN, rng=rng)

    def _samples(self, data: Data) -> bool:
        """Whether hyper-parameters are sampled by a chain."""
        few = len(data) <= MOST_SAMPLED and data.kernel.n <= MOST_FACTORS
        return self.inference == "hmc" or (self.inference == "auto" and few)

    def _fit(self, data: Data, previous: Fit | None, rng: np.random.Generator) -> Fit:
        if self.inference == "slice":
            return fit_slice(data, previous, sweeps=self.sweeps, rng=rng)
        return fit_map(data, previous)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def likeliest(
    data: Data, hyper: Hyper, names: Sequence[str], *, pooled: bool = False
) -> str | None:
    """The output warp with the most evidence, none or one of `names`, by fits that start at
    `hyper`. Where results may be `pooled`, also by what that explains: a quadratic function of
    counts is none any more behind a logarithm."""
    tried = {name: data.warped(name).for_screening() for name in (None, *names)}
    # where too many results are the same, a warp is none
    tried = {name: warped for name, warped in tried.items() if warped.warp.name == name}
    start = pack(data.kernel, hyper)
    reached = {name: log_evidence(tried[name], start, WARP_SCREENING) for name in tried}

    worth = dict.fromkeys(tried, 0.0)

    def gain(name: str | None) -> float:
        return reached[name][0] + worth[name] - tried[name].warp.cost(len(tried[name]))

    finalists = sorted(tried, key=gain, reverse=True)[:WARP_FINALISTS]
    for name in finalists:
        reached[name] = log_evidence(tried[name], reached[name][1], WARP_ITERATIONS)
    for name in dict.fromkeys((None, *finalists)) if pooled else ():
        worth[name] = worth_pooling(tried[name], reached[name][1], WARP_ITERATIONS)
    best = max(tried, key=gain)
    log.debug("evidence of warps: %s; %s is chosen", {n: gain(n) for n in tried}, best)
    return best


def is_strained(y: Floats) -> bool:
    """Whether a few results are so far off that the others are all the same beside them."""
    low, quarter, three_quarters, high = np.quantile(y, (0, 0.25, 0.75, 1))
    return bool(high - low > STRAINED * (three_quarters - quarter) > 0)
