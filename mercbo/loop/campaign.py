"""The loop behind `minimize`: points go out to workers, results come back, until it ends.

A point is asked for (or adopted from a process that is gone), sent as a job, and told when its
future is done. Jobs that raised or took too long are sent again as often as wanted. Where a worker
process died, the pool is made anew and what was out is sent again; a point that was out at two
such deaths is then tried alone, and has failed if it ends its worker once more.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercbo.arrays import Rows, keys
from mercbo.domain.variables import Point
from mercbo.errors import NoneFound, ResultError, SpaceExhausted
from mercbo.loop.executors import Objective, Pool, is_lost
from mercbo.loop.progress import Progress
from mercbo.optimizer import Optimizer
from mercbo.record.events import Event, Nowhere
from mercbo.record.observations import Observation
from mercbo.record.processes import is_gone, this_process
from mercbo.record.results import read_answer

log = logging.getLogger(__name__)

# Seconds between two looks at the clock while results are waited for.
LOOK = 0.2
# A worker that does not stop at the time limit by itself is given as long again, and this.
GRACE = 2.0
# Deaths of workers at which a point was out, from which on it is tried alone.
SUSPECT = 2
# Weight of the last measurement in the running means of how long things take.
RECENT = 0.2
# Standard deviations beyond the mean up to which the time of an ask is reckoned with.
SLOW = 2.0
# Workers that become free during an ask, from which on points are asked for ahead of time.
NOTICED = 0.05
# First evaluations that have all raised, from which on the function is at fault and not the points.
FAULTY = 20


@dataclass(frozen=True)
class Failure:
    """A point whose evaluation failed, and why; "" where another process knew."""

    point: Point
    reason: str


@dataclass(frozen=True)
class Evaluation:
    """What a callback is given: one finished evaluation; `value` is None where it failed."""

    point: Point
    value: float | None
    reason: str
    seconds: float
    optimizer: Optimizer = field(repr=False)


@dataclass(frozen=True)
class Result:
    """What a run came to. `stopped` says why it ended: "budget", "exhausted" (no point is left),
    "failing" (the first 20 evaluations all raised), "callback" or "interrupted"."""

    best: Observation | None
    observations: tuple[Observation, ...]
    failures: tuple[Failure, ...]
    stopped: str
    seconds: float
    optimizer: Optimizer

    def __repr__(self) -> str:
        return (
            f"Result(best={self.best!r}, {len(self.observations)} results, "
            f"{len(self.failures)} failures, stopped={self.stopped!r}, {self.seconds:.1f} s)"
        )


@dataclass(frozen=True)
class Plan:
    """What was wanted of a run."""

    f: Objective
    budget: int
    batch: int | None = None
    timeout: float | None = None
    retries: int = 0
    callback: Callable[[Evaluation], object] | None = None
    adopt: str = "gone"


@dataclass
class Job:
    """A point on its way: how often it was tried again and lost, and since when it is out."""

    point: Point
    tries: int = 0
    losses: int = 0
    sent: float = 0.0
    started: float | None = None
    value: float | None = None
    std: float = np.nan
    reason: str = ""
    raised: bool = False

    @property
    def is_suspect(self) -> bool:
        return self.losses >= SUSPECT


class Campaign:
    """One call of `minimize`."""

    def __init__(self, plan: Plan, opt: Optimizer, pool: Pool) -> None:
        self._plan, self._opt, self._pool = plan, opt, pool
        self._out: dict[Future[Any], Job] = {}
        # to be sent (again); done and to be told; given up, but still holding a worker
        self._waiting: deque[Job] = deque()
        self._done: list[Job] = []
        self._stuck: set[Future[Any]] = set()
        self._reasons: dict[bytes, str] = {}
        self._stopped = ""
        self._ended = self._raised = 0  # evaluations of this call, and those of them that raised
        self._vain = 0  # failures of points that have a result, of which a history keeps nothing
        # running means, in seconds: of asking for a point, of evaluating one; and the variance of
        # the first
        self._asking = self._evaluating = self._asking_spread = 0.0

    def run(self, shown: Progress) -> Result:
        began = time.monotonic()
        try:
            if self._is_interrupted(shown):
                self._interrupted()
        except BaseException:
            self._let_go()
            raise
        finally:
            self._pool.close()
        self._report(shown)
        return self._result(time.monotonic() - began)

    def _is_interrupted(self, shown: Progress) -> bool:
        """Work to the end, or to Ctrl-C. It may come within a turn of the store, which is over only
        once nothing refers to the frames of the exception: so it is handled outside of it."""
        try:
            self._adopt(mine=True)
            self._work(shown)
        except KeyboardInterrupt:
            return True
        return False

    def _work(self, shown: Progress) -> None:
        while True:
            self._fill()
            self._report(shown)
            if self._out or (self._stuck and not self._stopped and self._left() > 0):
                self._settle(self._pool.finished(LOOK))
                self._check_clock()
            elif self._stopped or not self._adopt():
                return

    # -- out -----------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Give every free worker a point."""
        self._send_waiting()
        if self._waiting or self._stopped or any(job.is_suspect for job in self._out.values()):
            return
        wanted = min(self._room() - len(self._out), self._left())
        if wanted > 0:
            self._waiting.extend(map(Job, self._asked(wanted)))
            self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self._may_send(self._waiting[0]):
            job = self._waiting[0]
            self._send(job)
            if self._waiting and self._waiting[0] is job:  # a callback may have ended the run
                self._waiting.popleft()

    def _may_send(self, job: Job) -> bool:
        if self._stopped or any(out.is_suspect for out in self._out.values()):
            return False
        return not self._out if job.is_suspect else len(self._out) < self._room()

    def _room(self) -> int:
        """How many jobs may be out."""
        if self._plan.batch is not None:
            return self._plan.batch - len(self._stuck)
        size = self._pool.size or 1
        ahead = 0
        if size > 1 and self._evaluating and (self._plan.timeout is None or self._pool.tells_start):
            freed = size * self._slow_ask / self._evaluating  # while one point is asked for
            ahead = min(int(freed + 1 - NOTICED), size)
        return size + ahead - len(self._stuck)

    def _left(self) -> int:
        """Points of the budget that nobody is at."""
        return self._plan.budget - self._evaluated() - len(self._opt._history.pending)

    def _asked(self, count: int) -> list[Point]:
        began = time.monotonic()
        try:
            points = self._opt.ask(count)
        except SpaceExhausted as error:
            if error.left > 0:
                return self._asked(error.left)
            if isinstance(error, NoneFound):
                if not self._out and self._evaluated() == 0:
                    raise
                log.warning("%s", error)
            if not self._out:
                self._stopped = "exhausted"
            return []
        self._note_ask((time.monotonic() - began) / count)
        return points

    def _note_ask(self, seconds: float) -> None:
        off = (seconds - self._asking) ** 2 if self._asking else 0.0
        self._asking = _mean(self._asking, seconds)
        self._asking_spread = (1 - RECENT) * self._asking_spread + RECENT * off

    @property
    def _slow_ask(self) -> float:
        """The seconds of an ask that takes long, as one with a fit does: without such points ahead,
        each fit would leave workers idle."""
        return float(self._asking + SLOW * np.sqrt(self._asking_spread))

    def _send(self, job: Job) -> None:
        job.sent, job.started = time.monotonic(), None
        point = dict(job.point)  # the objective may do with it as it likes
        try:
            future = self._pool.submit(self._plan.f, point, self._plan.timeout)
        except BrokenExecutor:  # it broke since the last look
            self._settle_anew()
            future = self._pool.submit(self._plan.f, point, self._plan.timeout)
        self._out[future] = job

    # -- back ----------------------------------------------------------------------------------

    def _settle(self, finished: Iterable[Future[Any]]) -> None:
        """Tell the results, and send again what is to be tried again."""
        known = [future for future in finished if future in self._out]
        self._stuck.difference_update(finished)
        if any(is_lost(future) for future in known) and self._pool.renew():
            known = list(self._out)
        self._take(known, blame=True)
        self._tell()

    def _settle_anew(self) -> None:
        """The same for all that is out, with a pool made anew."""
        self._take(list(self._out) if self._pool.renew() else [], blame=True)
        self._tell()

    def _take(self, futures: Iterable[Future[Any]], *, blame: bool) -> None:
        lost = []
        for future in futures:
            job = self._out.pop(future)
            if is_lost(future):
                lost.append(job)
            else:
                self._read(job, future)
        if not lost:
            return
        log.warning("%d evaluations were lost with their worker", len(lost))
        for job in sorted(lost, key=lambda job: job.is_suspect):
            if job.is_suspect:  # and was alone
                job.reason = "its worker died"
                log.warning("the evaluation of %s ends its worker each time", job.point)
                self._done.append(job)
            else:
                job.losses += blame
                self._waiting.append(job)

    def _read(self, job: Job, future: Future[Any]) -> None:
        error = future.exception()
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self._waiting.append(job)  # workers of this terminal get Ctrl-C as well
            raise KeyboardInterrupt
        self._evaluating = _mean(self._evaluating, time.monotonic() - job.sent)
        if error is None:
            try:
                value, job.std = read_answer(job.point, future.result())
            except ResultError as refused:
                error = refused
            else:
                failed = np.isnan(value)
                job.value = None if failed else value
                job.reason = "it returned None or NaN" if failed else ""
                self._done.append(job)
                return
        self._failed(job, error)

    def _failed(self, job: Job, error: BaseException) -> None:
        """Try again, or leave it at that."""
        job.reason = f"{type(error).__name__}: {error}"
        job.raised = not isinstance(error, TimeoutError)
        again = job.tries < self._plan.retries
        said = f", trying again ({job.tries + 1} of {self._plan.retries})" if again else ""
        log.warning("the evaluation of %s failed%s", job.point, said, exc_info=error)
        job.tries += again
        (self._waiting if again else self._done).append(job)

    def _tell(self) -> None:
        jobs = self._done
        if not jobs:
            return
        points = [job.point for job in jobs]
        known = set(keys(self._opt._history.rows))
        self._vain += sum(job.value is None and self._key(job) in known for job in jobs)
        self._opt.tell(points, [job.value for job in jobs], std=[job.std for job in jobs])
        self._done = []
        for found, job in zip(keys(self._opt.space.rows(points)), jobs, strict=True):
            self._reasons[found] = job.reason
        self._note_raised(jobs)
        for job in jobs:
            seconds = time.monotonic() - job.sent
            evaluation = Evaluation(job.point, job.value, job.reason, seconds, self._opt)
            said = None if self._plan.callback is None else self._plan.callback(evaluation)
            if isinstance(said, (bool, np.bool_)) and said:
                self._stopped = "callback"
        if self._stopped in ("callback", "failing"):
            self._let_go()

    def _note_raised(self, jobs: list[Job]) -> None:
        """End a run without results whose first evaluations all raised: the function is at fault
        then, and not the points, and the budget is better kept until it is mended."""
        self._ended += len(jobs)
        self._raised += sum(job.raised for job in jobs)
        enough = self._raised == self._ended >= FAULTY
        if enough and len(self._opt._history) == 0 and not self._stopped:
            self._stopped = "failing"
            said = "the first %d evaluations all raised, the last one %s; the run ends here"
            log.warning(said, self._ended, jobs[-1].reason)

    def _check_clock(self) -> None:
        """Give up jobs that are over their time and do not stop by themselves."""
        if self._plan.timeout is None:
            return
        now, limit = time.monotonic(), self._plan.timeout
        if self._pool.stops:
            limit = 2 * limit + GRACE
        late = []
        # workers take the oldest first; what is queued behind them has not begun, whatever its
        # future says (a process pool calls the next one running before a worker is free)
        working = len(self._out) if self._pool.size is None else self._pool.size
        for future, job in list(self._out.items())[:working]:
            if job.started is None and not self._pool.tells_start:
                job.started = job.sent if self._pool.size is None else now
            elif job.started is None and future.running():
                job.started = now
            if job.started is not None and now - job.started > limit and not future.done():
                late.append(future)
        if late:
            self._give_up(late)

    def _give_up(self, late: list[Future[Any]]) -> None:
        error = TimeoutError(f"no result within {self._plan.timeout:g} s")
        for future in late:
            if not future.cancel():
                self._stuck.add(future)
            self._failed(self._out.pop(future), error)
        if self._pool.stops and self._pool.renew():  # only killing helps, the others suffer for it
            self._stuck.clear()
            self._take(list(self._out), blame=False)
        elif len(self._stuck) >= (self._pool.size or 1):
            log.warning("every worker is held by an evaluation that is over its time; waiting")
        self._tell()

    # -- beginnings and ends -------------------------------------------------------------------

    def _adopt(self, *, mine: bool = False) -> bool:
        """Take over pending points that nobody evaluates any more; whether there were some."""
        if self._plan.adopt == "none":
            return False
        event = self._opt._record(lambda: Event("adopt", self._orphans(mine=mine)))
        points = self._opt.space.points(event.rows)
        if points:
            log.info("%d pending points are evaluated in another's place", len(points))
        self._waiting.extend(Job(point) for point in points)
        return bool(points)

    def _orphans(self, *, mine: bool) -> Rows:
        """Pending rows whose process is gone; with `mine`, also those of an earlier call here."""
        at_work: dict[bytes, str] = {}
        for entry in self._opt._log.entries(0):
            if entry.kind in ("ask", "adopt"):
                rows = np.array(entry.body["rows"], dtype=np.int64)
                at_work.update(dict.fromkeys(keys(rows), entry.by))
        history = self._opt._history
        orphans = {}
        for found, row in history.pending.items():
            who = at_work.get(found)
            left_here = mine and (who == this_process() or self._plan.adopt == "all")
            if who is None or left_here or is_gone(who):
                orphans[found] = row
        return history.stack(orphans)

    def _interrupted(self) -> None:
        """End on Ctrl-C: keep what is done, let go of what is not."""
        self._stopped = "interrupted"
        gc.collect()  # a statement of the store that was cut off holds its lock while it is around
        done = [f for f in self._out if f.done() and not is_lost(f) and f.exception() is None]
        self._take(done, blame=False)
        self._opt._catch_up()  # what was being told may be in the store already
        pending = self._opt._history.pending
        self._done = [job for job in self._done if self._key(job) in pending]
        self._tell()
        self._let_go()
        kept = f"; make the same call to go on with {self._opt._log.name}" if self._is_kept else ""
        log.warning("interrupted after %d evaluations%s", self._evaluated(), kept)

    def _let_go(self) -> None:
        """Leave nothing behind; without a store, no point is pending any more."""
        for future in list(self._out):
            future.cancel()
        self._out.clear()
        self._waiting.clear()
        if not self._is_kept:
            self._opt.cancel(self._opt.pending)

    @property
    def _is_kept(self) -> bool:
        return not isinstance(self._opt._log, Nowhere)

    def _key(self, job: Job) -> bytes:
        return keys(self._opt.space.rows(job.point))[0]

    def _evaluated(self) -> int:
        self._opt._catch_up()
        return len(self._opt._history) + len(self._opt._history.failed) + self._vain

    def _report(self, shown: Progress) -> None:
        done, history = self._evaluated(), self._opt._history
        best = self._opt.best_observed.value if len(history) > 0 else None
        shown.show(done, len(history.failed), len(self._out), best)

    def _result(self, seconds: float) -> Result:
        opt, failed = self._opt, self._opt._history.failed
        observations = tuple(opt.observations)
        failures = tuple(
            Failure(opt.space.points(row[np.newaxis])[0], self._reasons.get(found, ""))
            for found, row in failed.items()
        )
        best = opt.best if observations else None
        return Result(best, observations, failures, self._stopped or "budget", seconds, opt)


def _mean(before: float, last: float) -> float:
    return last if before == 0 else (1 - RECENT) * before + RECENT * last
