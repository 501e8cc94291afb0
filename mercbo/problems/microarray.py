"""DNA binding as a microarray measures it, simulated: 8 letters, drawn transcription factors.

A protein binding microarray (Berger et al. 2006) has some 40,000 probes of 36 letters. The protein
lights up the probes that have its motif, on either strand, and the score of an 8-mer says how
bright the probes with it are: the area under the ROC curve of the brighter half of these against
the brighter half of all, less a half. So it matters little where in an 8-mer the motif stands, half
a motif counts for something, scores pile up below 0.5, and the noise of the probes is in the table.
Real tables (`dna.py`) have all that, and nearly the same quantiles as the drawn ones.

| symbol  | meaning                                                       | shape   |
|---------|---------------------------------------------------------------|---------|
| W       | length of the motif, 6 to 10                                  |         |
| penalty | energy of a letter at a place of the motif, 0 for the best    | (W, 4)  |
| bright  | log brightness of each probe                                  | (P,)    |
"""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Categorical
from mercbo.problems.base import Problem, random_initial
from mercbo.problems.dna import LENGTH, LETTERS, PLACES, look_up, reverse_complement
from mercbo.space import Space

PROBES, PROBE_LENGTH = 41_000, 36
SHORTEST, LONGEST = 6, 10
# How often a factor binds in a second way, and how much weaker.
SECOND, WEAKER = 0.4, (0.5, 2.0)
# Energy at which half of the places are taken; light without any protein; noise of the log light.
HALF, DARK, NOISE = 1.0, 0.05, 0.25
# A motif at the far end of a probe, near the glass, is this much less bright.
FAR = 0.4
BUDGET = 120


def drawn_penalty(width: int, rng: np.random.Generator) -> Floats:
    """(W, 4): the middle of a motif matters more than its ends."""
    middle = np.sin(np.pi * (np.arange(width) + 1) / (width + 1))
    depth = 1.6 * rng.gamma(2.0, 1.0, width) * middle
    penalty = depth[:, np.newaxis] * (0.5 + rng.random((width, 4)))
    penalty[np.arange(width), rng.integers(0, 4, width)] = 0.0
    return np.asarray(penalty)


def light(probes: Rows, penalty: Floats, offset: float) -> Floats:
    """(P,): the places of both strands that are taken by the protein, near ones counting more."""
    places = probes.shape[1] - len(penalty) + 1
    nearness = np.linspace(1.0, FAR, places)
    total = np.zeros(len(probes))
    for strand in (probes, reverse_complement(probes)):
        energy = np.full((len(probes), places), offset - HALF)
        for i, row in enumerate(penalty):
            energy += row[strand[:, i : i + places]]
        total += (nearness / (1.0 + np.exp(energy))).sum(axis=1)
    return total


def scores(probes: Rows, bright: Floats) -> Floats:
    """(65536,): the score of each 8-mer, -0.5 to 0.5; an 8-mer on no probe has -0.5."""
    order = np.argsort(-bright)  # brightest first
    windows = sliding_window_view(probes[order], LENGTH, axis=1)
    # an 8-mer and its reverse complement are on the same probes: the lower number stands for both
    mer = np.minimum(windows @ PLACES, (3 - windows) @ PLACES[::-1]).astype(np.uint16)
    probe = np.repeat(np.arange(len(probes)), mer.shape[1])
    by_mer = np.argsort(mer.ravel(), kind="stable")  # brightest first within each
    mer, probe = mer.ravel()[by_mer], probe[by_mer]
    count = np.bincount(mer, minlength=4**LENGTH)
    first = np.cumsum(count) - count
    upper = np.arange(len(mer)) - first[mer] < np.maximum(1, count // 2)[mer]
    # the share of the brighter half of all probes that is dimmer than this one
    beaten = np.maximum(0.0, 1.0 - 2.0 * probe / len(probes))
    total = np.bincount(mer[upper], weights=beaten[upper], minlength=4**LENGTH)
    mean = total / np.maximum(1, count // 2)
    rows = np.stack(np.unravel_index(np.arange(4**LENGTH), [4] * LENGTH), axis=1)
    stands = np.minimum(rows @ PLACES, reverse_complement(rows) @ PLACES)
    return np.asarray(mean[stands] - 0.5)


@lru_cache(maxsize=4)
def score_table(run: int) -> Floats:
    """The table of a run's factor."""
    rng = np.random.default_rng([run, 17])
    probes = rng.integers(0, 4, (PROBES, PROBE_LENGTH))
    width = int(rng.integers(SHORTEST, LONGEST + 1))
    total = light(probes, drawn_penalty(width, rng), 0.0)
    if rng.random() < SECOND:
        total += light(probes, drawn_penalty(width, rng), rng.uniform(*WEAKER))
    bright = np.log(total + DARK) + rng.normal(0.0, NOISE, PROBES)
    table = scores(probes, bright)
    table.flags.writeable = False  # it is remembered
    return table


def microarray(run: int, data: Path | None = None) -> Problem:  # noqa: ARG001
    """The factor of a run."""
    space = Space({f"base{i}": Categorical(list(LETTERS)) for i in range(LENGTH)})
    table = score_table(run)
    return Problem(
        "microarray", space, partial(look_up, table=table),
        random_initial(space, np.random.default_rng([run, 18])),
        "Berger et al. 2006", -float(table.max()), BUDGET,
    )  # fmt: skip
