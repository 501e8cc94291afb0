"""The kinds of further terms that a kernel may have: windows (`kernels/windows.py`), motifs
(`kernels/motifs.py`) and pooling (`kernels/pooling.py`), as a fit sees them.

Each kind adds coordinates to those of `inference.py`:

z = (log c_1 .. log c_n, log amplitude, log noise, then those of each kind that is there)

| kind    | coordinates | prior, for standardised y                                               |
|---------|-------------|-------------------------------------------------------------------------|
| windows | log a       | N(log 0.1, 1.5^2)                                                       |
|         | log f       | N(0, 1.5^2): at f = 1 a window in which all differs is as far off as    |
|         |             | where all variables differ                                              |
|         | logit r     | N(0, 1.5^2)                                                             |
| motifs  | log a       | N(log 0.3, 1.5^2)                                                       |
|         | log c       | N(log 0.7, 1.5^2): a letter that differs halves what a stretch tells    |
| pooling | log p       | N(log 0.1, 1.5^2)                                                       |
|         | log q       | N(log 0.03, 1.5^2)                                                      |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from mercbo.arrays import Floats
from mercbo.inference import Data, Hyper
from mercbo.kernels.motifs import Motifs, normalised
from mercbo.kernels.pooling import Pool, Pooling
from mercbo.kernels.stacking import contracted, products
from mercbo.kernels.windows import CONTRASTS, Windows, distances, sight

# Of every coordinate of a further term.
SD = 1.5
# From what twice the log likelihood gains by the entries of the covariance: what it gains by the
# log of each contrast (n,), and by a term's own coordinates.
Slopes: TypeAlias = Callable[[Floats], tuple[Floats, list[float]]]


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of further term: its coordinates, and what it adds to the covariance."""

    name: str  # of the field of `Hyper`
    centres: Floats
    bounds: Sequence[tuple[float, float]]  # beyond these the term is nothing, or all there is
    start: Floats  # where a fit begins
    added: Callable[[Data, Floats, Floats], tuple[Floats, Slopes]]  # log c, its own coordinates
    pack: Callable[[Any], list[float]]
    unpack: Callable[[Floats], Windows | Motifs | Pooling]
    # whether a state's term is of this kind, where several have the name
    is_own: Callable[[Any], bool] = lambda _: True

    def is_in(self, hyper: Hyper) -> bool:
        term = getattr(hyper, self.name)
        return term is not None and self.is_own(term)


# -- windows -----------------------------------------------------------------------------------


def _reach(logit: float) -> float:
    return float(1.0 / (1.0 + np.exp(-logit)))


def window_part(data: Data, log_contrast: Floats, own: Floats) -> tuple[Floats, Slopes]:
    """With g_ij the derivative by log c_ij, that by log c_j has the sum of g_ij over the windows,
    that by log f the sum of all, and that by logit r the sum of g_ij d log R_ij / d logit r."""
    kernel = data.kernel
    amplitude, sharpness = np.exp(own[:2])
    reach, away = _reach(own[2]), distances(kernel)
    seen = sight(away, reach)
    wanted = sharpness * kernel.n * seen * np.exp(log_contrast)  # (C, n)
    betas = kernel.beta(np.clip(wanted, *CONTRASTS))
    grams = products(kernel, kernel.log_tables(betas), data.rows, data.hot)  # (C, N, N)
    grams *= amplitude / len(betas)
    total = grams.sum(axis=0)

    def slopes(pull: Floats) -> tuple[Floats, list[float]]:
        by_window = contracted(kernel, kernel.log_table_gradients(betas), pull, grams, data.hot)
        by_window[(wanted < CONTRASTS[0]) | (wanted > CONTRASTS[1])] = 0.0
        by_reach = (away - (seen * away).sum(axis=1, keepdims=True)) * (1.0 - reach)
        own = [(pull * total).sum(), by_window.sum(), (by_window * by_reach).sum()]
        return by_window.sum(axis=0), own

    return total, slopes


def _window_coordinates(windows: Windows) -> list[float]:
    logit = np.log(windows.reach) - np.log1p(-windows.reach)
    return [float(np.log(windows.amplitude)), float(np.log(windows.sharpness)), float(logit)]


def _windows(own: Floats) -> Windows:
    return Windows(float(np.exp(own[0])), float(np.exp(own[1])), _reach(own[2]))


WINDOWS = Kind(
    "windows",
    np.array([np.log(0.1), 0.0, 0.0]),
    ((np.log(1e-4), np.log(1e3)), (np.log(1e-2), np.log(1e2)), (-4.0, 4.0)),
    np.array([np.log(0.3), np.log(2.0), 0.0]),
    window_part,
    _window_coordinates,
    _windows,
)


# -- motifs ------------------------------------------------------------------------------------


def motif_part(
    data: Data, log_contrast: Floats, own: Floats, *, strands: int
) -> tuple[Floats, Slopes]:
    amplitude, contrast = np.exp(own)
    t = float(np.exp(-contrast))
    agreed = data.agreements if strands == 1 else data.agreements_of_strands
    gram, by_t = normalised(agreed, t)
    gram *= amplitude
    by_contrast = -contrast * t * amplitude  # d t / d log c, times the amplitude

    def slopes(pull: Floats) -> tuple[Floats, list[float]]:
        own = [(pull * gram).sum(), by_contrast * (pull * by_t).sum()]
        return np.zeros_like(log_contrast), own

    return gram, slopes


def _motif_coordinates(motifs: Motifs) -> list[float]:
    return [float(np.log(motifs.amplitude)), float(np.log(motifs.contrast))]


def _motifs(own: Floats, *, strands: int) -> Motifs:
    return Motifs(float(np.exp(own[0])), float(np.exp(own[1])), strands)


def _motif_kind(strands: int) -> Kind:
    return Kind(
        "motifs",
        np.log([0.3, 0.7]),
        ((np.log(1e-4), np.log(1e3)), (np.log(0.02), np.log(10.0))),
        np.log([0.3, 0.7]),
        partial(motif_part, strands=strands),
        _motif_coordinates,
        partial(_motifs, strands=strands),
        lambda motifs: motifs.strands == strands,
    )


MOTIFS, STRANDS = _motif_kind(1), _motif_kind(2)


# -- pooling -----------------------------------------------------------------------------------


def pooled_part(data: Data, log_contrast: Floats, own: Floats) -> tuple[Floats, Slopes]:
    pooling = _pooling(own)
    totals = Pool(data.kernel, pooling).totals(data.hot)
    similarity = totals @ totals.T
    linear, curved = pooling.linear * similarity, pooling.curved * similarity**2

    def slopes(pull: Floats) -> tuple[Floats, list[float]]:
        return np.zeros_like(log_contrast), [(pull * linear).sum(), (pull * curved).sum()]

    return linear + curved, slopes


def _pooled_coordinates(pooling: Pooling) -> list[float]:
    return [float(np.log(pooling.linear)), float(np.log(pooling.curved))]


def _pooling(own: Floats) -> Pooling:
    return Pooling(float(np.exp(own[0])), float(np.exp(own[1])))


POOLING = Kind(
    "pooling",
    np.log([0.1, 0.03]),
    ((np.log(1e-5), np.log(1e2)), (np.log(1e-5), np.log(1e2))),
    np.log([0.1, 0.03]),
    pooled_part,
    _pooled_coordinates,
    _pooling,
)

# In the order of their coordinates.
KINDS = (WINDOWS, MOTIFS, STRANDS, POOLING)

Kinds: TypeAlias = tuple[Kind, ...]


def kinds_of(hyper: Hyper) -> Kinds:
    return tuple(kind for kind in KINDS if kind.is_in(hyper))
