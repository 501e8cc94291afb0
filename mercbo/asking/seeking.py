"""The minima of drawn functions, sought here or by the workers of an executor.

Of a point that Thompson sampling chooses, all but the last step depends on its own draw only: its
random numbers follow from its number in the run, and what other points of the batch are comes in
when the lowest new one of its minima is taken (`acquisition.lowest_of`). So the minima of a whole
batch may be sought anywhere and in any order, and the points are the same.

What every search needs is packed once (`Seeker`); a `Task` adds what is a point's own. The weights
of its draw at the data are solved for here, in blocks (`posterior.py`), as that takes the factors
of the covariance, which are too large to send around.
"""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mercbo.acquisition import INCUMBENTS, Minima, minima_of
from mercbo.arrays import Floats, Rows
from mercbo.asking.failures import Works
from mercbo.asking.scores import weighed
from mercbo.asking.trust import Trust
from mercbo.domain.feasible import Feasible
from mercbo.drawing.samples import Sample
from mercbo.encoding import Encoding
from mercbo.errors import SettingError
from mercbo.kernel import Kernel
from mercbo.linalg import threads_for
from mercbo.loop.executors import Pool
from mercbo.model import Model
from mercbo.posterior import TOGETHER, Begun, Posterior
from mercbo.quadratic import Draw
from mercbo.space import Space

log = logging.getLogger(__name__)

# Best points measured whose lowest value in a draw is the level that an evaluation should beat.
LEADERS = 5


@dataclass(frozen=True)
class Tools:
    """What the points of a run are chosen with; the same all along."""

    space: Space
    encoding: Encoding
    native: Encoding
    kernel: Kernel
    sampler: Any | None  # None: the problems have too many bits for the default backend
    model: Model
    acquisition: str
    sign: float  # times a value: lower is better
    n_initial: int
    repeats: bool  # whether a point with a result may come again

    def problem(self, sample: Sample, barred: Rows, feasible: Feasible) -> Draw:
        """A drawn function as the problem of finding its minimum."""
        return Draw(self.space, self.encoding, self.native, sample, barred, feasible)


# -- draws in blocks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """A draw before its function is put together, and its random numbers from there on."""

    posterior: Posterior
    begun: Begun
    weights: Floats  # (N,)
    rng: np.random.Generator

    def sample(self) -> Sample:
        return self.posterior.sample(self.begun[0], self.weights)

    def numbers(self) -> np.random.Generator:
        """The same random numbers each time: a point may be chosen in two attempts."""
        return copy.deepcopy(self.rng)


class Draws:
    """The draws of some points by their numbers, `TOGETHER` of one posterior at a time."""

    def __init__(
        self,
        posteriors: Sequence[Posterior],
        stream: Callable[[int], np.random.Generator],
        stop: int,
    ) -> None:
        """`stop` is the number after the last that may be wanted."""
        self.posteriors = posteriors
        self._stream = stream
        self._stop = stop
        self._known: dict[int, dict[int, Start]] = {}  # the last block of each posterior

    def __getitem__(self, number: int) -> Start:
        state = number % len(self.posteriors)
        if number not in self._known.get(state, ()):
            self._known[state] = self._block(number)
        return self._known[state][number]

    def _block(self, number: int) -> dict[int, Start]:
        """The draws of a number and of those behind it that are solved for together with it."""
        states = len(self.posteriors)
        posterior = self.posteriors[number % states]
        turn = number // states
        end = number + states * (TOGETHER - turn % TOGETHER)
        numbers = range(number, min(self._stop, end), states)
        rngs = [self._stream(each) for each in numbers]
        begun = [posterior.begin(rng) for rng in rngs]
        columns = posterior.weights(begun, first=turn).T
        found = zip(numbers, begun, columns, rngs, strict=True)
        return {each: Start(posterior, *parts) for each, *parts in found}


# -- searches ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """What is a point's own: its random numbers from the beginning, and its draw's weights."""

    state: int  # which of the posteriors
    rng: np.random.Generator
    weights: Floats


@dataclass(frozen=True)
class Seeker:
    """What all searches of one ask need."""

    tools: Tools
    posteriors: Sequence[Posterior]
    feasible: Feasible
    incumbents: Rows  # the best points measured, best first
    works: Works
    trust: Trust | None

    @classmethod
    def of(
        cls,
        tools: Tools,
        posteriors: Sequence[Posterior],
        feasible: Feasible,
        incumbents: Rows,
        works: Works,
        trust: Trust | None,
    ) -> Seeker:
        light = [posterior.without_factors() for posterior in posteriors]
        return cls(tools, light, feasible, incumbents[: max(LEADERS, INCUMBENTS)], works, trust)

    def find(self, task: Task) -> Minima:
        posterior = self.posteriors[task.state]
        prior, _ = posterior.begin(task.rng)
        sample = posterior.sample(prior, task.weights)
        draw = self.tools.problem(sample, self.incumbents[:0], self.feasible)
        score = weighed(sample, self.works, self.incumbents[:LEADERS])
        return minima_of(
            draw, score, self.tools.kernel, self.tools.sampler, self.incumbents,
            trust=self.trust, rng=task.rng,
        )  # fmt: skip


def find_all(shared: Seeker | bytes, tasks: Sequence[Task]) -> list[Minima]:
    """What a worker does."""
    seeker = _unpacked(shared) if isinstance(shared, bytes) else shared
    with threads_for(0):
        return [seeker.find(task) for task in tasks]


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Seeker:
    # the same bytes come with every call of an ask
    found = pickle.loads(packed)
    assert isinstance(found, Seeker)
    return found


def sought(seeker: Seeker, tasks: Mapping[int, Task], pool: Pool) -> Iterator[tuple[int, Minima]]:
    """The minima of each task by its number, in their order, as the workers find them.

    What is lost with a worker is sought here.
    """
    try:
        shared = pool.share(seeker)
    except Exception as error:
        raise SettingError(
            f"executor={pool.executor!r}: what a search needs cannot be sent to other processes "
            f"({error}); ask without an executor, or with one of threads"
        ) from error
    numbers = list(tasks)
    parts = [numbers[i : i + TOGETHER] for i in range(0, len(numbers), TOGETHER)]
    futures: list[Future[list[Minima]]] = []
    try:
        for part in parts:
            futures.append(_submitted(pool, shared, [tasks[i] for i in part]))
        for part, future in zip(parts, futures, strict=True):
            yield from zip(part, _found(future, seeker, [tasks[i] for i in part]), strict=True)
    finally:
        for future in futures:
            future.cancel()


def _submitted(pool: Pool, shared: Any, tasks: Sequence[Task]) -> Future[list[Minima]]:
    try:
        future: Future[list[Minima]] = pool.executor.submit(find_all, shared, tasks)
    except BrokenExecutor as error:
        future = Future()
        future.set_exception(error)
    return future


def _found(future: Future[list[Minima]], seeker: Seeker, tasks: Sequence[Task]) -> list[Minima]:
    try:
        return future.result()
    except (BrokenExecutor, CancelledError) as error:
        log.warning("%d searches were lost with their worker: %r", len(tasks), error)
        return find_all(seeker, tasks)


class Postponed:
    """A function that is put together when it is first looked at."""

    def __init__(self, make: Callable[[], Sample]) -> None:
        self._make = make

    @cached_property
    def _sample(self) -> Sample:
        return self._make()

    def value(self, rows: Rows) -> Floats:
        return self._sample.value(rows)

    def path(self, rows: Rows) -> Floats:
        return self._sample.path(rows)

    def path_neighbours(self, rows: Rows) -> Floats:
        return self._sample.path_neighbours(rows)
