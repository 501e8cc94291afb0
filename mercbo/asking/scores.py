"""Which function an ask descends, by the name of its acquisition.

| name       | score                                               | where evaluations failed  |
|------------|-----------------------------------------------------|---------------------------|
| "thompson" | the drawn function itself                           | its gain times the chance |
| "ei"       | minus log expected improvement (`improvement.py`)   | discounted by the chance  |
| "ei-liar"  | the same, pending points taken for the best so far  | discounted by the chance  |
| "mes"      | minus log information on the minimum (`entropy.py`) | discounted by the chance  |
| "lcb"      | a lower confidence bound (`bound.py`)               | its gain times the chance |

A logarithm of a gain takes the logarithm of the chance; a value in the units of the objective is
turned into a gain below the level of the leaders first (`failures.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Rows
from mercbo.asking.bound import Bound
from mercbo.asking.entropy import Entropy
from mercbo.asking.failures import Always, Discounted, Weighed, Works
from mercbo.asking.improvement import Improvement
from mercbo.drawing.samples import Sample
from mercbo.posterior import Posterior


@dataclass(frozen=True)
class Situation:
    """What an ask knows when it chooses a point."""

    posteriors: Sequence[Posterior]
    pending: Rows  # asked for, by others or earlier in the same batch, and not told
    leaders: Rows  # best points measured: their lowest score is the level that a gain is below
    works: Works
    minimum: Callable[[Sample], float]  # the lowest value of a drawn function

    def score(self, name: str, drawn: Sample, *, rng: np.random.Generator) -> Sample:
        return SCORES[name](self, drawn, rng)

    def weighed(self, score: Sample) -> Sample:
        """Of a score in the units of the objective."""
        return weighed(score, self.works, self.leaders)

    def discounted(self, score: Sample) -> Sample:
        """Of minus the logarithm of a gain."""
        return score if isinstance(self.works, Always) else Discounted(score, self.works)


def weighed(score: Sample, works: Works, leaders: Rows) -> Sample:
    """A score in the units of the objective, with its gain below that of the leaders times the
    chance that an evaluation works."""
    if isinstance(works, Always):
        return score
    return Weighed(score, works, float(score.path(leaders).min()))


def _thompson(now: Situation, drawn: Sample, _: np.random.Generator) -> Sample:
    return now.weighed(drawn)


def _improvement(now: Situation, _: Sample, rng: np.random.Generator) -> Sample:
    return now.discounted(Improvement.of(now.posteriors, now.pending, rng=rng))


def _liar(now: Situation, _: Sample, rng: np.random.Generator) -> Sample:
    return now.discounted(Improvement.of(now.posteriors, now.pending, liar=True, rng=rng))


def _entropy(now: Situation, _: Sample, rng: np.random.Generator) -> Sample:
    return now.discounted(Entropy.of(now.posteriors, now.pending, now.minimum, rng=rng))


def _bound(now: Situation, _: Sample, __: np.random.Generator) -> Sample:
    return now.weighed(Bound.of(now.posteriors, now.pending))


SCORES: dict[str, Callable[[Situation, Sample, np.random.Generator], Sample]] = {
    "thompson": _thompson,
    "ei": _improvement,
    "ei-liar": _liar,
    "mes": _entropy,
    "lcb": _bound,
}
ACQUISITIONS = ["auto", *SCORES]
