"""The fit of a kernel with further terms (`kinds.py`), and which of them are worth it.

Where nothing speaks for a term, the density at its mode is about that without it; where neighbours
act together or like variables do alike, it is higher by as much as a nat per result. Windows are
chosen by that, and so is pooling where one state of the hyper-parameters has to stand for all;
where these are sampled, pooling is always there, and is averaged over. Motifs are chosen likewise
where there are bits. Where there are letters they are there: a row of like variables of more than
two values is a sequence more often than not, so there must be evidence against them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mercbo.arrays import Floats
from mercbo.fitting.kinds import (
    KINDS,
    MOTIFS,
    POOLING,
    SD,
    STRANDS,
    WINDOWS,
    Kind,
    Kinds,
    kinds_of,
)
from mercbo.inference import (
    COLD_ITERATIONS,
    SCREENING,
    WARM_ITERATIONS,
    Chart,
    Data,
    Fit,
    Hyper,
    Level,
    bounds_of,
    climb,
    cold_starts,
    is_recent,
    likelihood,
    log_prior,
    pack,
    unpack,
    with_mean,
)
from mercbo.kernel import Kernel
from mercbo.kernels.pooling import is_poolable
from mercbo.kernels.reading import Reading

log = logging.getLogger(__name__)

# By how much log p must be higher with a term, which has two or three more coordinates.
COST = 3.0
# By how much it may be lower with motifs where there are letters, three to one. (With 60 to 120
# results of local searches it was between -1.1 and 2.7 on four simulated microarrays, where motifs
# help, and between -1.3 and -3.2 on four Ehrlich functions, whose motifs are full of gaps.)
LOSS = 1.2
# Neighbours of fewer variables are most of the space; with more, a fit takes too long.
FEWEST, MOST = 6, 100
# Fewer results than this say nothing of neighbours or of what variables have in common.
LEAST_RESULTS = 10
# A density with windows takes some ten times as long as one without: so many results at most, the
# better half of them, decide which terms there are, and so many are fitted with windows then.
MOST_TRIED, MOST_FITTED = 150, 200


# -- the density -------------------------------------------------------------------------------


def bounds(kernel: Kernel, kinds: Kinds) -> Floats:
    return np.concatenate([bounds_of(kernel.n), *(kind.bounds for kind in kinds)])


def packed(kernel: Kernel, hyper: Hyper) -> Floats:
    own = [kind.pack(getattr(hyper, kind.name)) for kind in kinds_of(hyper)]
    return np.concatenate([pack(kernel, hyper), *own])


def unpacked(kernel: Kernel, z: Floats, mean: float, kinds: Kinds) -> Hyper:
    """The inverse of `packed`."""
    base, *own = _split(kernel, z, kinds)
    terms = {kind.name: kind.unpack(each) for kind, each in zip(kinds, own, strict=True)}
    return replace(unpack(kernel, base, mean), **terms)  # type: ignore[arg-type]


def _split(kernel: Kernel, z: Floats, kinds: Kinds) -> list[Floats]:
    """The coordinates of the kernel of all variables, then those of each kind."""
    ends = kernel.n + 2 + np.cumsum([0, *(len(kind.start) for kind in kinds)])
    return [np.asarray(part) for part in np.split(z, ends[:-1])]


def structured_density(data: Data, z: Floats, kinds: Kinds) -> Level:
    """As `inference.log_density`, with further terms."""
    kernel = data.kernel
    base, *own = _split(kernel, z, kinds)
    hyper = unpack(kernel, base)
    whole = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
    added = [
        kind.added(data, base[: kernel.n], each) for kind, each in zip(kinds, own, strict=True)
    ]
    total = sum((gram for gram, _ in added), whole)
    value, mean, pull, by_noise = likelihood(data, total, hyper.noise)
    by_contrast = kernel.slopes(hyper.beta, hyper.amplitude, pull, whole, data.rows, data.hot)
    tail = [(pull * whole).sum(), by_noise]
    for _, slopes in added:
        by_contrasts, by_own = slopes(pull)
        by_contrast = by_contrast + by_contrasts
        tail += by_own
    prior_value, prior_slope = log_prior(base)
    centres = np.concatenate([np.zeros(0), *(kind.centres for kind in kinds)])
    apart = (z[len(base) :] - centres) / SD
    gradient = 0.5 * np.append(by_contrast, tail) + np.append(prior_slope, -apart / SD)
    return float(value + prior_value - 0.5 * apart @ apart), gradient, mean


def chart_of(kinds: Kinds) -> Chart:
    return Chart(
        partial(structured_density, kinds=kinds),
        partial(bounds, kinds=kinds),
        packed,
        partial(unpacked, kinds=kinds),
    )


# -- which terms there are ---------------------------------------------------------------------


def possible(data: Data, kinds: Kinds) -> Kinds:
    """Those of some kinds that are tried at all."""
    kernel = data.kernel
    if len(data) < LEAST_RESULTS or len(kernel.images(data.rows[:1])) > 1:
        return ()
    reading = Reading.of(kernel)
    can = {
        WINDOWS: FEWEST <= kernel.variables <= MOST,
        MOTIFS: reading is not None,
        STRANDS: reading is not None and reading.opposite is not None,
        POOLING: is_poolable(kernel),
    }
    return tuple(kind for kind in kinds if can[kind])


def with_structure(
    data: Data,
    plain: Fit,
    before: Hyper | None,
    kinds: Kinds = KINDS,
    *,
    sampled: bool = False,
) -> Fit:
    """`plain`, or a fit with those of some kinds of terms that explain the results better.

    `before` is an earlier state with terms, where there is one. Pooling is tried first: it is much
    the cheapest, and what all like variables do is not what neighbours do together.

    Where hyper-parameters are going to be `sampled`, those of pooling are too unless there are
    windows or motifs, and nothing has to be chosen: the samples say how much of it there is. By
    evidence (`COST`) it would come too late where it matters most, while results are few. Motifs
    of letters are there until the evidence is against them, for the same reason.
    """
    kinds = possible(data, kinds)
    if not kinds:
        return plain
    tried = data.at_most(MOST_TRIED)
    z, taken = _chosen(tried, plain.hypers[0], before, kinds, sampled=sampled)
    if not taken:
        return plain
    hyper = unpacked(data.kernel, z, 0.0, taken)
    found = replace(plain, hypers=(hyper,), seen=len(data))
    return refitted(data, found) if len(tried) < len(data) else with_best_mean(data, found)


def _chosen(
    data: Data, plain: Hyper, before: Hyper | None, kinds: Kinds, *, sampled: bool
) -> tuple[Floats, Kinds]:
    """The coordinates of the best fit, and the kinds of terms that it has."""
    kernel = data.kernel
    # without terms as much effort as with them
    begin = pack(kernel, plain), cold_starts(kernel)[0]
    reached = [climb(data, z, SCREENING) for z in begin]
    level, z = climb(data, max(reached, key=lambda pair: pair[0])[1], COLD_ITERATIONS)
    taken: Kinds = ()
    assumed: Kinds = ()
    fits: dict[Kinds, tuple[float, Floats]] = {}
    for alternatives in _in_turn(kinds) if np.isfinite(level) else ():
        for kind in alternatives:
            fits[_joined(taken, kind)] = _tried(data, kind, z, taken, before)
        kind = max(alternatives, key=lambda kind: fits[_joined(taken, kind)][0])
        value, found = fits[_joined(taken, kind)]
        log.debug("evidence of %s: %+.1f", kind.name, value - level)
        if value > level + COST:
            level, z, taken = value, found, _joined(taken, kind)
        elif _is_assumed(kernel, kind, value - level, sampled=sampled):
            assumed = _joined(assumed, kind)
    # Pooling stands alone where there is no evidence for it. With windows nothing is sampled; with
    # motifs it only has sequences of one letter tried first (9 simulated microarrays: 0.469 after
    # 60 evaluations without it, 0.443 with it, level after 100).
    if any(kind is not POOLING for kind in (*taken, *assumed)):
        assumed = tuple(kind for kind in assumed if kind is not POOLING)
    if not assumed:
        return z, taken
    wanted = _joined(taken, *assumed)
    if wanted not in fits:
        fits[wanted] = _best(data, [_begin(kernel, z, taken, wanted)], wanted)
    value, found = fits[wanted]
    return (found, wanted) if np.isfinite(value) else (z, taken)


def _in_turn(kinds: Kinds) -> list[Kinds]:
    """Which kinds are tried one after the other, and which in place of each other."""
    turns = [(POOLING,), (MOTIFS, STRANDS), (WINDOWS,)]
    some = [tuple(kind for kind in turn if kind in kinds) for turn in turns]
    return [turn for turn in some if turn]


def _joined(kinds: Kinds, *more: Kind) -> Kinds:
    return tuple(kind for kind in KINDS if kind in kinds or kind in more)


def _tried(
    data: Data, kind: Kind, z: Floats, taken: Kinds, before: Hyper | None
) -> tuple[float, Floats]:
    """The density that is reached with one more kind of term, and where."""
    kernel, more = data.kernel, _joined(taken, kind)
    begin = [_begin(kernel, z, taken, more), _begin(kernel, cold_starts(kernel)[0], (), more)]
    if before is not None and kinds_of(before) == more:
        begin.append(packed(kernel, before))
    return _best(data, begin, more)


def _is_assumed(kernel: Kernel, kind: Kind, gain: float, *, sampled: bool) -> bool:
    """Whether a kind of term is there without evidence for it: pooling where its amplitudes are
    sampled, and motifs where there are letters, more than two values of each variable, and the log
    density does not lose too much by them."""
    if kind is POOLING:
        return sampled
    reading = Reading.of(kernel) if kind.name == MOTIFS.name else None
    return reading is not None and reading.size > 2 and gain > -LOSS


def worth_pooling(data: Data, start: Floats, iterations: int) -> float:
    """By how much the log density near `start`, plain coordinates, is higher with pooling than
    without, beyond its cost; 0 where it is not."""
    if not possible(data, (POOLING,)):
        return 0.0
    plain, _ = climb(data, start, iterations)
    pooled, _ = climbed(data, np.append(start, POOLING.start), iterations, (POOLING,))
    gain = pooled - plain - COST
    return float(gain) if np.isfinite(plain) and gain > 0 else 0.0


def _begin(kernel: Kernel, z: Floats, taken: Kinds, kinds: Kinds) -> Floats:
    """A start for some kinds from coordinates with fewer of them."""
    base, *own = _split(kernel, z, taken)
    known = dict(zip((kind.name for kind in taken), own, strict=True))
    return np.concatenate([base, *(known.get(kind.name, kind.start) for kind in kinds)])


def _best(data: Data, begin: Sequence[Floats], kinds: Kinds) -> tuple[float, Floats]:
    reached = [climbed(data, z, SCREENING, kinds) for z in begin]
    best = max(reached, key=lambda pair: pair[0])
    return climbed(data, best[1], COLD_ITERATIONS, kinds)


def fit_warm(data: Data, previous: Fit) -> Fit:
    """A fit with further terms that goes on from one."""
    if is_recent(previous, data):
        return with_best_mean(data, previous)
    return replace(refitted(data, previous), seen=len(data))


def refitted(data: Data, fit: Fit) -> Fit:
    """A few iterations from where a fit stands."""
    hyper = fit.hypers[0]
    kinds, start = kinds_of(hyper), packed(data.kernel, hyper)
    fitted = data.at_most(MOST_FITTED) if WINDOWS in kinds else data.for_fitting()
    value, z = climbed(fitted, start, WARM_ITERATIONS, kinds)
    found = unpacked(data.kernel, z, 0.0, kinds) if np.isfinite(value) else hyper
    return with_best_mean(data, replace(fit, hypers=(found,)))


def with_best_mean(data: Data, fit: Fit) -> Fit:
    return replace(fit, hypers=(with_mean(data, fit.hypers[0]),))


def climbed(data: Data, start: Floats, iterations: int, kinds: Kinds) -> tuple[float, Floats]:
    chart = chart_of(kinds)
    return climb(data, start, iterations, density=chart.density, bounds=chart.bounds(data.kernel))
