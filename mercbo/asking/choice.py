"""How an `ask` chooses its points from what is known: `Asking`, made anew for each call.

Failed points that are to be tried again come first, then the initial design, then the model's
points: each has a draw of its own, by random numbers that follow from its number in the run, and
is the best of its acquisition that is new. The points chosen earlier in the same batch count as
pending, so that a batch is what as many single asks would be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from mercbo import backend
from mercbo.acquisition import CLIMBS, Choice, Minima, is_short, lowest_new, lowest_of, minima_of
from mercbo.arrays import Rows, keys
from mercbo.asking.design import space_filling
from mercbo.asking.failures import Always, Works
from mercbo.asking.scores import Situation, weighed
from mercbo.asking.seeking import LEADERS, Draws, Postponed, Seeker, Task, Tools, sought
from mercbo.asking.steps import StepModel
from mercbo.asking.trust import Trust, radius
from mercbo.domain.feasible import Feasible
from mercbo.drawing.samples import Sample
from mercbo.drawing.surrogate import Surrogate
from mercbo.linalg import threads_for
from mercbo.loop.executors import Pool
from mercbo.quadratic import Draw
from mercbo.record.history import History
from mercbo.record.suggestions import Suggestion
from mercbo.space import Space

log = logging.getLogger(__name__)

# Pending points from which on "auto" draws by Thompson: fantasies get costly and much alike.
FEW_PENDING = 8
# Descents on a score of moments (`acquisition.CLIMBS`) beyond so many results, where each step
# takes that number squared for every neighbour.
MANY, FEW_CLIMBS = 1000, 3
# One in so many points is also sought around the best ones (`acquisition.near_starts`). Late in a
# run EI is mostly highest there; but with every point sought there, more runs stay where they are.
# (MaxSAT-28, optimum found without it in 6 of 9 runs, in every second point in 10 of 10, in each in
# 9 of 10; one instance of Ising in 12, 11 and 8 of 15.)
NEAR = 2
# Sources of points that no acquisition function chooses, beside those of `acquisition.py`.
DESIGN, RETRY = "initial design", "retry"


@dataclass(frozen=True)
class Asking:
    """The choice of points, given a history; the model of it is made when it is first needed."""

    tools: Tools
    history: History
    surrogate: Callable[[], Surrogate]
    works: Callable[[], Works]
    stream: Callable[[int], np.random.Generator]  # of a point, by its number in the run
    answered: int  # results and failures that were asked for

    def choose(
        self,
        first: int,
        count: int,
        feasible: Feasible,
        *,
        diversity: int = 1,
        pool: Pool | None = None,
    ) -> list[Choice]:
        """`count` new rows, the first of which has the number `first`; fewer where no more are
        left. They differ in at least `diversity` variables from each other and from what is
        pending. The workers of `pool` seek minima, where that is possible."""
        batch = Batch(self, feasible, first, first + count, diversity, pool)
        for _ in range(count):
            choice = self._suggest(batch, batch.seen | self._settled(len(batch.choices)))
            if choice is None and self.tools.repeats:
                choice = self._suggest(batch, batch.seen)
            if choice is None:
                break
            batch.add(choice)
        return batch.choices

    @cached_property
    def seen(self) -> set[bytes]:
        """Points that must not be asked for, and what they are by the symmetries of the space."""
        group = self.tools.space.group
        return group.keys_with_images(self.history.seen(repeats=self.tools.repeats))

    def distinct(self, feasible: Feasible, left: int) -> int:
        """How many of the last `left` rows that may be asked for are no images of one another;
        all of them where they are too many to list."""
        group = self.tools.space.group
        if group.is_trivial or feasible.listed is None:
            return left
        return group.orbit_count(feasible.unseen(self.seen, left, rng=np.random.default_rng(0)))

    @cached_property
    def incumbents(self) -> Rows:
        """Points measured so far, each once, best first by the mean of its results."""
        rows, values = self.history.rows, self.tools.sign * self.history.values
        once, which, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        if len(once) < len(rows):
            # of each result its share, as a sum of large ones might overflow
            shares = values / counts[which.ravel()]
            means = np.bincount(which.ravel(), weights=shares)
            return np.asarray(once[np.argsort(means, kind="stable")])
        return np.asarray(rows[np.argsort(values, kind="stable")])

    @cached_property
    def waiting(self) -> Rows:
        """Points asked for and not told."""
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

    def _suggest(self, batch: Batch, seen: set[bytes]) -> Choice | None:
        if batch.is_full(seen):
            return None
        again = self._retry(batch)
        if again is not None:
            return Choice(again, RETRY)
        waiting = len(self.history.pending) + len(batch.choices)
        if self._designing(waiting):
            rng = self.stream(batch.number)
            placed = np.concatenate([self.history.rows, self.waiting, batch.chosen])
            placed = self.tools.space.group.with_images(placed)
            row = space_filling(batch.feasible, seen, placed, self.works(), rng=rng)
            return None if row is None else Choice(row, DESIGN)
        name = self.acquires(waiting)
        by_draw = name == "thompson" and not is_short(batch.feasible, len(seen))
        found = self._thompson(batch, seen) if by_draw else self._by(name, batch, seen)
        return None if found is None else replace(found, acquisition=name)

    def _retry(self, batch: Batch) -> Rows | None:
        """A failed point that is to be asked for again and may be; also where an image of it by the
        symmetries of the space has a result."""
        taken = self.history.seen(repeats=self.tools.repeats).union(keys(batch.chosen))
        for found, row in self.history.retries.items():
            if found not in taken and batch.feasible.region.allows(row[np.newaxis])[0]:
                return row
        return None

    # -- the model's points --------------------------------------------------------------------

    def acquires(self, waiting: int) -> str:
        """The acquisition that decides, with `waiting` points pending."""
        if self.tools.acquisition != "auto":
            return self.tools.acquisition
        greedy = waiting < FEW_PENDING and self.tools.model.posterior == "projected"
        # improvement is expected most where nothing is known, and that is where all have failed,
        # unless it is known why they fail (ehrlich-20: EI found the optimum in 10 of 12 runs then,
        # Thompson in 8)
        greedy = greedy and isinstance(self.works(), (Always, StepModel))
        log.debug("%d pending: %s", waiting, "expected improvement" if greedy else "Thompson")
        return "ei" if greedy else "thompson"

    def _thompson(self, batch: Batch, seen: set[bytes]) -> Choice | None:
        found = batch.found()
        score = Postponed(lambda: self.weighed(batch.draws[batch.number].sample()))
        return lowest_of(found, score, self.tools.kernel, batch.feasible, seen)

    def weighed(self, sample: Sample) -> Sample:
        """What Thompson sampling descends."""
        return weighed(sample, self.works(), self.incumbents[:LEADERS])

    def _by(self, name: str, batch: Batch, seen: set[bytes]) -> Choice | None:
        """The best new row by an acquisition that may take what is pending into account."""
        tools, sample, rng = self.tools, *self._drawn(batch)
        draw = self.problem(sample, batch.feasible, batch.chosen)
        score = self.situation(batch.chosen, rng=rng).score(name, draw.sample, rng=rng)
        return lowest_new(
            draw,
            score,
            tools.kernel,
            tools.sampler,
            self.incumbents,
            seen,
            climbs=CLIMBS if len(self.history) <= MANY else FEW_CLIMBS,
            near=batch.number % NEAR == 0,
            rng=rng,
        )

    def _drawn(self, batch: Batch) -> tuple[Sample, np.random.Generator]:
        """The next point's draw and random numbers. Without a backend the draw may never be looked
        at, and making it takes long."""
        number = batch.number
        if self.tools.sampler is not None:
            return batch.draws[number].sample(), batch.draws[number].numbers()
        return Postponed(lambda: batch.draws[number].sample()), self.stream(number)

    def draw(self, number: int | None, feasible: Feasible, *, rng: np.random.Generator) -> Draw:
        """The function that is drawn for a point, whose number in the run says under which of the
        states of the hyper-parameters; without a number, under any."""
        posteriors = self.surrogate().posteriors
        number = int(rng.integers(len(posteriors))) if number is None else number
        drawn = Draws(posteriors, lambda _: rng, number + 1)[number]
        return self.problem(drawn.sample(), feasible, self.history.rows[:0])

    def problem(self, sample: Sample, feasible: Feasible, batch: Rows) -> Draw:
        barred = np.concatenate([self._barred, batch])
        return self.tools.problem(sample, self.tools.space.group.with_images(barred), feasible)

    @cached_property
    def _barred(self) -> Rows:
        """The rows that must not be asked for, each once."""
        history = self.history
        told = history.rows[:0] if self.tools.repeats else np.unique(history.rows, axis=0)
        return np.concatenate([told, history.stack(history.failed), self.waiting])

    def situation(self, batch: Rows | None = None, *, rng: np.random.Generator) -> Situation:
        pending = self.waiting if batch is None else np.concatenate([self.waiting, batch])
        return Situation(
            self.surrogate().posteriors,
            pending,
            self.incumbents[:LEADERS],
            self.works(),
            partial(self.minimum, rng=rng),
        )

    def minimum(self, sample: Sample, *, rng: np.random.Generator) -> float:
        """The lowest value of a drawn function on the whole space, also where an ask holds some
        variables: the run is after that of the objective."""
        tools = self.tools
        draw = tools.problem(sample, self.history.rows[:0], tools.space.feasible)
        found = lowest_new(draw, sample, tools.kernel, tools.sampler, self.incumbents, (), rng=rng)
        assert found is not None  # nothing is barred
        return float(sample.path(found.row[np.newaxis])[0])


class Batch:
    """The points that one call has chosen so far, and the draws of those to come."""

    def __init__(
        self,
        asking: Asking,
        feasible: Feasible,
        first: int,
        stop: int,
        diversity: int,
        pool: Pool | None,
    ) -> None:
        self.number = first  # of the point that is chosen next
        self.choices: list[Choice] = []
        self.seen = set(asking.seen)
        self._asking = asking
        self._stop = stop
        self._whole = feasible
        self._diversity = diversity
        # the search knows nothing of what is chosen before, unless points are to differ from it,
        # or an exact solver is told of it
        alone = diversity > 1 or backend.is_exact(asking.tools.sampler)
        self._pool = None if alone else pool
        self._sought: Iterator[tuple[int, Minima]] | None = None
        self._found: dict[int, Minima] = {}
        self._apart: Feasible | None = None

    @property
    def chosen(self) -> Rows:
        width = self._asking.history.rows.shape[1]
        rows = [choice.row for choice in self.choices]
        return np.array(rows, dtype=np.int64).reshape(len(rows), width)

    def add(self, choice: Choice) -> None:
        self.choices.append(choice)
        self.seen.update(keys(self._asking.tools.space.group.with_images(choice.row[np.newaxis])))
        self._found.pop(self.number, None)
        self._apart = None
        self.number += 1

    @property
    def feasible(self) -> Feasible:
        """What the next point may be, seen or not."""
        if self._diversity == 1:
            return self._whole
        if self._apart is None:
            placed = np.concatenate([self._asking.waiting, self.chosen])
            self._apart = self._whole.apart(placed, self._diversity)
        return self._apart

    @cached_property
    def _trust(self) -> Trust | None:
        """Where draws are minimised; None for the whole space."""
        asking = self._asking
        incumbents, history = asking.incumbents, asking.history
        centres = incumbents[self._whole.region.allows(incumbents)][:1]
        if asking.tools.model.trust == "none" or len(centres) == 0:
            return None
        changes = history.rows.shape[1]
        if asking.tools.model.failures == "learn":
            failed = history.stack(history.failed)
            designed, answered = asking.tools.n_initial, asking.answered
            changes = radius(history.rows, failed, designed, answered=answered)
        if changes < history.rows.shape[1]:
            log.debug("most points fail: draws are minimised within %d changes", changes)
            return Trust.within(changes, centres[0], asking.tools.kernel)
        return Trust.around(centres[0], self.draws.posteriors)

    def is_full(self, seen: set[bytes]) -> bool:
        """Whether no point is left that differs enough from the others."""
        if self._diversity == 1:
            return False
        return len(self.feasible.unseen(seen, 1, rng=np.random.default_rng(0))) == 0

    @cached_property
    def draws(self) -> Draws:
        return Draws(self._asking.surrogate().posteriors, self._asking.stream, self._stop)

    def found(self) -> Minima:
        """The minima of the next point's draw, sought by the workers of a pool or here."""
        while self.number not in self._found:
            if self._pool is None:
                self._found[self.number] = self._minima()
                break
            if self._sought is None:
                self._sought = self._seek(self._pool)
            number, minima = next(self._sought)
            self._found[number] = minima
        return self._found[self.number]

    def _minima(self) -> Minima:
        asking, start = self._asking, self.draws[self.number]
        with threads_for(0):  # all that is large is done
            draw = asking.problem(start.sample(), self.feasible, self.chosen)
            return minima_of(
                draw, asking.weighed(draw.sample), asking.tools.kernel, asking.tools.sampler,
                asking.incumbents, trust=self._trust, rng=start.numbers(),
            )  # fmt: skip

    def _seek(self, pool: Pool) -> Iterator[tuple[int, Minima]]:
        """From the next point on, all: the acquisition is Thompson's from there on."""
        asking, states = self._asking, len(self.draws.posteriors)
        seeker = Seeker.of(
            asking.tools, self.draws.posteriors, self.feasible, asking.incumbents, asking.works(),
            self._trust,
        )  # fmt: skip
        tasks = {
            number: Task(number % states, asking.stream(number), self.draws[number].weights)
            for number in range(self.number, self._stop)
        }
        return sought(seeker, tasks, pool)


# -- records -----------------------------------------------------------------------------------


def described(
    space: Space, choices: Sequence[Choice], surrogate: Surrogate | None
) -> list[Suggestion]:
    """A record for each choice, with the prediction of the model if the model made the choice."""
    rows = np.array([choice.row for choice in choices], dtype=np.int64).reshape(-1, len(space))
    records = [
        Suggestion(point, choice.source, choice.acquisition, choice.value, note=choice.note)
        for point, choice in zip(space.points(rows), choices, strict=True)
    ]
    by_model = [i for i, choice in enumerate(choices) if choice.acquisition is not None]
    if surrogate is None or not by_model:
        return records
    mean, std = surrogate.prediction(rows[by_model])
    jitter = f"jitter {surrogate.jitter:g} on the covariance" if surrogate.jitter else ""
    for i, m, s in zip(by_model, mean.tolist(), std.tolist(), strict=True):
        note = "; ".join(filter(None, [records[i].note, jitter]))
        records[i] = replace(records[i], mean=m, std=s, note=note)
    return records
