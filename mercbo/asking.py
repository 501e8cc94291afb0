"""How an `ask` chooses its points from what is known: `Asking`, made anew for each call.

Failed points that are to be tried again come first, then the initial design, then the model's
points: each has a draw of its own, by random numbers that follow from its number in the run, and
is the best of its acquisition that is new. The points chosen earlier in the same batch count as
pending, so that a batch is what as many single asks would be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercbo.acquisition import CLIMBS, lowest_new
from mercbo.arrays import Rows, keys
from mercbo.design import space_filling
from mercbo.encoding import Encoding
from mercbo.failures import Always, Works
from mercbo.feasible import Feasible
from mercbo.history import History
from mercbo.kernel import Kernel
from mercbo.model import Model
from mercbo.quadratic import Draw
from mercbo.samples import Sample
from mercbo.scores import Situation
from mercbo.space import Space
from mercbo.surrogate import Surrogate

log = logging.getLogger(__name__)

# Pending points from which on "auto" draws by Thompson: fantasies get costly and much alike.
FEW_PENDING = 8
# Best points measured whose lowest value in a draw is the level that an evaluation should beat.
LEADERS = 5


@dataclass(frozen=True)
class Tools:
    """What the points of a run are chosen with; the same all along."""

    space: Space
    encoding: Encoding
    native: Encoding
    kernel: Kernel
    sampler: Any
    model: Model
    acquisition: str
    sign: float  # times a value: lower is better
    n_initial: int
    repeats: bool  # whether a point with a result may come again

    def problem(self, sample: Sample, barred: Rows, feasible: Feasible) -> Draw:
        """A drawn function as the problem of finding its minimum."""
        return Draw(self.space, self.encoding, self.native, sample, barred, feasible)


@dataclass(frozen=True)
class Asking:
    """The choice of points, given a history; the model of it is made when it is first needed."""

    tools: Tools
    history: History
    surrogate: Callable[[], Surrogate]
    works: Callable[[], Works]
    stream: Callable[[int], np.random.Generator]  # of a point, by its number in the run

    def choose(self, first: int, count: int, feasible: Feasible) -> Rows:
        """`count` new rows, the first of which has the number `first`; fewer where no more are
        left."""
        rows: list[Rows] = []
        seen = set(self.seen)
        for number in range(first, first + count):
            row = self._suggest(number, feasible, seen | self._settled(len(rows)), rows)
            if row is None and self.tools.repeats:
                row = self._suggest(number, feasible, seen, rows)
            if row is None:
                break
            rows.append(row)
            seen.update(keys(self.tools.space.group.with_images(row[np.newaxis])))
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.tools.space))

    def modelled(self, chosen: Rows) -> bool:
        """Whether the model was used for some rows that were just chosen: points to try again come
        first, so the last one tells."""
        waiting = len(self.history.pending) + len(chosen) - 1
        return not self._designing(waiting) and keys(chosen)[-1] not in self.history.retries

    @cached_property
    def seen(self) -> set[bytes]:
        """Points that must not be asked for, and what they are by the symmetries of the space."""
        group = self.tools.space.group
        return group.keys_with_images(self.history.seen(repeats=self.tools.repeats))

    @cached_property
    def incumbents(self) -> Rows:
        """Points measured so far, best first."""
        order = np.argsort(self.tools.sign * self.history.values, kind="stable")
        return np.asarray(self.history.rows[order])

    @cached_property
    def _waiting(self) -> Rows:
        return self.history.stack(self.history.pending)

    # -- which kind of point -------------------------------------------------------------------

    def _designing(self, waiting: int) -> bool:
        """Whether the next point, with `waiting` ones pending, belongs to the initial design."""
        told = len(self.history)
        return told == 0 or told + waiting < self.tools.n_initial

    def _settled(self, batch: int) -> set[bytes]:
        """Where repeats are allowed, the points that measuring again would tell little about."""
        if not self.tools.repeats or len(self.history) == 0:
            return set()
        designing = self._designing(len(self.history.pending) + batch)
        settled = set(keys(self.history.rows)) if designing else self.surrogate().settled
        return self.tools.space.group.keys_with_images(settled)

    def _suggest(
        self, number: int, feasible: Feasible, seen: set[bytes], batch: Sequence[Rows]
    ) -> Rows | None:
        again = self._retry(feasible, seen)
        if again is not None:
            return again
        rng = self.stream(number)
        waiting = len(self.history.pending) + len(batch)
        if self._designing(waiting):
            placed = [self.history.rows, self._waiting, *(row[np.newaxis] for row in batch)]
            known = self.tools.space.group.with_images(np.concatenate(placed))
            return space_filling(feasible, seen, known, self.works(), rng=rng)
        draw = self.draw(number, feasible, batch, rng=rng)
        name = self.acquires(waiting)
        score = self.situation(batch, rng=rng).score(name, draw.sample, rng=rng)
        return lowest_new(
            draw, score, self.tools.kernel, self.tools.sampler, self.incumbents, seen,
            climbs=None if name == "thompson" else CLIMBS, rng=rng,
        )  # fmt: skip

    def _retry(self, feasible: Feasible, seen: set[bytes]) -> Rows | None:
        """A failed point that is to be asked for again and may be."""
        for found, row in self.history.retries.items():
            if found not in seen and feasible.region.allows(row[np.newaxis])[0]:
                return row
        return None

    # -- the model's points --------------------------------------------------------------------

    def acquires(self, waiting: int) -> str:
        """The acquisition that decides, with `waiting` points pending."""
        if self.tools.acquisition != "auto":
            return self.tools.acquisition
        greedy = waiting < FEW_PENDING and self.tools.model.posterior == "projected"
        # improvement is expected most where nothing is known, and that is where all have failed
        greedy = greedy and isinstance(self.works(), Always)
        log.debug("%d pending: %s", waiting, "expected improvement" if greedy else "Thompson")
        return "ei" if greedy else "thompson"

    def draw(
        self,
        number: int,
        feasible: Feasible,
        batch: Sequence[Rows] = (),
        *,
        rng: np.random.Generator,
    ) -> Draw:
        """The function that is drawn for a point, by its number in the run."""
        posteriors = self.surrogate().posteriors
        sample = posteriors[number % len(posteriors)].draw(rng=rng)
        barred = np.concatenate([self._barred, *(row[np.newaxis] for row in batch)])
        return self.tools.problem(sample, self.tools.space.group.with_images(barred), feasible)

    @cached_property
    def _barred(self) -> Rows:
        """The rows that must not be asked for, each once."""
        history = self.history
        told = history.rows[:0] if self.tools.repeats else np.unique(history.rows, axis=0)
        return np.concatenate([told, history.stack(history.failed), self._waiting])

    def situation(self, batch: Sequence[Rows] = (), *, rng: np.random.Generator) -> Situation:
        return Situation(
            self.surrogate().posteriors,
            np.concatenate([self._waiting, *(row[np.newaxis] for row in batch)]),
            self.incumbents[:LEADERS],
            self.works(),
            partial(self.minimum, rng=rng),
        )

    def minimum(self, sample: Sample, *, rng: np.random.Generator) -> float:
        """The lowest value of a drawn function on the whole space, also where an ask holds some
        variables: the run is after that of the objective."""
        tools = self.tools
        draw = tools.problem(sample, self.history.rows[:0], tools.space.feasible)
        row = lowest_new(draw, sample, tools.kernel, tools.sampler, self.incumbents, (), rng=rng)
        assert row is not None  # nothing is barred
        return float(sample.path(row[np.newaxis])[0])
