"""The fit of a kernel with windows (`windows.py`), and whether it is worth them.

Coordinates of the density are those of `inference.py` and three more:
z = (log c_1 .. log c_n, log amplitude, log noise, log a, log f, logit r).

- log a ~ N(log 0.1, 1.5^2), for standardised y.
- log f ~ N(0, 1.5^2): at f = 1 a window in which all differs is as far off as where all variables
  differ.
- logit r ~ N(0, 1.5^2).

Where nothing speaks for windows, the density at its mode is about that without them; where
neighbours act together, it is higher by as much as a nat per result.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from mercbo.arrays import Floats
from mercbo.inference import (
    COLD_ITERATIONS,
    SCREENING,
    WARM_ITERATIONS,
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
from mercbo.windows import CONTRASTS, Windows, distances, sight

log = logging.getLogger(__name__)

CENTRES, SD = np.array([np.log(0.1), 0.0, 0.0]), 1.5
# Of log a, log f and logit r. Beyond these windows are nothing, or a single variable or all of it.
BOUNDS = ((np.log(1e-4), np.log(1e3)), (np.log(1e-2), np.log(1e2)), (-4.0, 4.0))
# Where a fit with windows begins: a fair part of the variance, in windows of a few variables.
START = np.array([np.log(0.3), np.log(2.0), 0.0])
# By how much log p must be higher with windows, which has three more coordinates.
COST = 3.0
# Neighbours of fewer variables are most of the space; with more, a fit takes too long.
FEWEST, MOST = 6, 100
# Fewer results than this say nothing of neighbours.
LEAST_RESULTS = 10
# A density with windows takes some ten times as long as one without: so many results at most, the
# better half of them, decide whether there are windows, and so many are fitted then.
MOST_TRIED, MOST_FITTED = 150, 200


def bounds(kernel: Kernel) -> Floats:
    return np.concatenate([bounds_of(kernel.n), BOUNDS])


def unpacked(kernel: Kernel, z: Floats, mean: float = 0.0) -> Hyper:
    amplitude, sharpness, logit = z[-3:].tolist()
    reach = 1.0 / (1.0 + np.exp(-logit))
    windows = Windows(float(np.exp(amplitude)), float(np.exp(sharpness)), float(reach))
    return replace(unpack(kernel, z[:-3], mean), windows=windows)


def packed(kernel: Kernel, hyper: Hyper) -> Floats:
    """The inverse of `unpacked`."""
    windows = hyper.windows
    assert windows is not None
    logit = np.log(windows.reach) - np.log1p(-windows.reach)
    more = [np.log(windows.amplitude), np.log(windows.sharpness), logit]
    return np.concatenate([pack(kernel, hyper), more])


def windowed_density(data: Data, z: Floats) -> Level:
    """As `inference.log_density`, with windows.

    With g_ij the derivative by log c_ij, that by log c_j has the sum of g_ij over the windows, that
    by log f the sum of all, and that by logit r the sum of g_ij d log R_ij / d logit r.
    """
    kernel, n = data.kernel, data.kernel.n
    hyper = unpack(kernel, z[:-3])
    amplitude, sharpness = np.exp(z[-3:-1])
    reach = 1.0 / (1.0 + np.exp(-z[-1]))
    away = distances(kernel)
    seen = sight(away, reach)
    wanted = sharpness * n * seen * np.exp(z[:n])  # (C, n)
    betas = [kernel.beta(contrast) for contrast in np.clip(wanted, *CONTRASTS)]
    share = amplitude / len(betas)
    whole = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), data.rows, data.hot)
    grams = [share * kernel.gram(kernel.log_tables(b), data.rows, data.hot) for b in betas]
    windows = np.sum(grams, axis=0)
    value, mean, pull, by_noise = likelihood(data, whole + windows, hyper.noise)
    by_contrast = kernel.slopes(hyper.beta, hyper.amplitude, pull, whole, data.rows, data.hot)
    by_window = np.array(
        [
            kernel.slopes(b, share, pull, gram, data.rows, data.hot)
            for b, gram in zip(betas, grams, strict=True)
        ]
    )
    by_window[(wanted < CONTRASTS[0]) | (wanted > CONTRASTS[1])] = 0.0
    by_reach = (away - (seen * away).sum(axis=1, keepdims=True)) * (1.0 - reach)
    slopes = [
        by_contrast + by_window.sum(axis=0),
        [(pull * whole).sum(), by_noise, (pull * windows).sum()],
        [by_window.sum(), (by_window * by_reach).sum()],
    ]
    prior_value, prior_gradient = log_prior(z[:-3])
    apart = (z[-3:] - CENTRES) / SD
    gradient = 0.5 * np.concatenate(slopes) + np.append(prior_gradient, -apart / SD)
    return float(value + prior_value - 0.5 * apart @ apart), gradient, mean


def is_possible(data: Data) -> bool:
    """Whether windows are tried at all."""
    enough = len(data) >= LEAST_RESULTS and FEWEST <= data.kernel.variables <= MOST
    return enough and len(data.kernel.images(data.rows[:1])) == 1


def with_windows(data: Data, plain: Fit, before: Hyper | None) -> Fit:
    """`plain`, or a fit with windows where that explains the results better. `before` is an earlier
    state with windows, where there is one."""
    if not is_possible(data):
        return plain
    tried, kernel = data.at_most(MOST_TRIED), data.kernel
    start = pack(kernel, plain.hypers[0])
    # without windows as much effort as with them
    reached = [climb(tried, z, SCREENING) for z in (start, cold_starts(kernel)[0])]
    level, start = climb(tried, max(reached, key=lambda pair: pair[0])[1], COLD_ITERATIONS)
    starts = [np.append(start, START), np.append(cold_starts(kernel)[0], START)]
    if before is not None:
        starts.append(packed(kernel, before))
    reached = [climbed(tried, z, SCREENING) for z in starts]
    best = max(reached, key=lambda pair: pair[0])
    value, z = climbed(tried, best[1], COLD_ITERATIONS)
    log.debug("evidence of windows: %+.1f", value - level)
    if not value > level + COST:
        return plain
    found = replace(plain, hypers=(unpacked(kernel, z),), seen=len(data))
    return refitted(data, found) if len(tried) < len(data) else with_best_mean(data, found)


def fit_warm(data: Data, previous: Fit) -> Fit:
    """A fit with windows that goes on from one."""
    if is_recent(previous, data):
        return with_best_mean(data, previous)
    return replace(refitted(data, previous), seen=len(data))


def refitted(data: Data, fit: Fit) -> Fit:
    """A few iterations from where a fit stands."""
    start = packed(data.kernel, fit.hypers[0])
    value, z = climbed(data.at_most(MOST_FITTED), start, WARM_ITERATIONS)
    found = unpacked(data.kernel, z) if np.isfinite(value) else fit.hypers[0]
    return with_best_mean(data, replace(fit, hypers=(found,)))


def with_best_mean(data: Data, fit: Fit) -> Fit:
    return replace(fit, hypers=(with_mean(data, fit.hypers[0]),))


def climbed(data: Data, start: Floats, iterations: int) -> tuple[float, Floats]:
    return climb(data, start, iterations, density=windowed_density, bounds=bounds(data.kernel))
