"""The loop behind `minimize`: send points to workers and tell their results, until the run ends.

A point is asked for (or adopted from a process that is gone), sent as a job, and told when its
future is done. A job that raised or took too long is sent again if retries are left. If a worker
process dies, the pool is replaced and the jobs that were out are sent again. A point that was out
at two such deaths is then tried alone, and has failed if its worker dies once more.

If all jobs of the first batch raise the same type of exception, the objective is wrong, not the
points, and the run raises it. Until then, none of these failures is told.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercbo.arrays import Rows, keys
from mercbo.domain.variables import Point
from mercbo.errors import ExecutorError, MercboError, NoneFound, ResultError, SpaceExhausted
from mercbo.loop.executors import Objective, Pool, TimedOut, deadly, is_broken, is_lost, summary
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


@dataclass(frozen=True)
class Failure:
    """A point whose evaluation failed, and why; "" if another process knew."""

    point: Point
    reason: str


@dataclass(frozen=True)
class Evaluation:
    """The argument of a callback: one finished evaluation; `value` is None if it failed."""

    point: Point
    value: float | None
    reason: str
    seconds: float
    optimizer: Optimizer = field(repr=False)


@dataclass(frozen=True)
class Result:
    """The outcome of a run. `stopped` says why it ended: "budget", "exhausted" (no point is left),
    "executor" (it takes no more evaluations), "callback" or "interrupted"."""

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
    """The options of a run."""

    f: Objective
    budget: int
    batch: int | None = None
    timeout: float | None = None
    retries: int = 0
    catch: tuple[type[Exception], ...] = ()
    callback: Callable[[Evaluation], object] | None = None
    adopt: str = "gone"


@dataclass
class Job:
    """A point on its way. `error` is the exception of an evaluation that failed by one which the
    user does not catch."""

    point: Point
    tries: int = 0
    losses: int = 0
    sent: float = 0.0
    started: float | None = None
    value: float | None = None
    std: float = np.nan
    reason: str = ""
    error: BaseException | None = None

    @property
    def is_suspect(self) -> bool:
        return self.losses >= SUSPECT

    def is_late(self, start: float) -> bool:
        """True if the evaluation began before `start`."""
        return self.started is not None and self.started < start


class Campaign:
    """One call of `minimize`."""

    def __init__(self, plan: Plan, opt: Optimizer, pool: Pool) -> None:
        self._plan, self._opt, self._pool = plan, opt, pool
        self._out: dict[Future[Any], Job] = {}
        # jobs to send (again); done and to be told; given up, but still on a worker
        self._waiting: deque[Job] = deque()
        self._done: list[Job] = []
        self._stuck: set[Future[Any]] = set()
        self._reasons: dict[bytes, str] = {}
        self._stopped = ""
        self._told = 0  # evaluations that this call told
        self._first: list[Job] | None = None  # the first batch
        self._works = False  # True once an evaluation ended otherwise than by an exception
        self._error: Exception | None = None  # why no more points can be asked for or sent
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
            if self._first is None:
                self._first = list(self._out.values())
            self._report(shown)
            if self._out or (self._stuck and not self._stopped and self._left() > 0):
                self._settle(self._finished())
                self._check_clock()
            elif self._stopped or not self._adopt():
                break
        if self._error is not None:
            self._end_with(self._error)

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
            job = self._waiting.popleft()
            job.sent, job.started = time.monotonic(), None
            point = dict(job.point)  # the objective may change it
            try:
                future = self._pool.submit(self._plan.f, point, self._plan.timeout)
            except BrokenExecutor:  # since the last look
                self._waiting.appendleft(job)
                self._settle_all()
            except ExecutorError as error:
                self._waiting.appendleft(job)
                self._wind_down(error)
            else:
                self._out[future] = job

    def _may_send(self, job: Job) -> bool:
        if self._stopped or any(out.is_suspect for out in self._out.values()):
            return False
        return not self._out if job.is_suspect else len(self._out) < self._room()

    def _room(self) -> int:
        """The number of jobs that may be out."""
        if self._plan.batch is not None:
            return self._plan.batch - len(self._stuck)
        size = self._pool.size or 1
        ahead = 0
        if size > 1 and self._evaluating:
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
        except Exception as error:
            self._wind_down(error)
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

    # -- back ----------------------------------------------------------------------------------

    def _finished(self) -> list[Future[Any]]:
        try:
            return self._pool.finished(LOOK)
        except ExecutorError as error:
            self._wind_down(error)
            return list(self._out)

    def _settle(self, finished: Collection[Future[Any]]) -> None:
        """Tell results, and prepare to send again what was lost or is to be tried again."""
        self._stuck.difference_update(finished)
        known = [future for future in finished if future in self._out]
        if any(map(is_broken, known)):
            self._settle_all()
        else:
            self._take(known, blame=False)
            self._tell()

    def _settle_all(self) -> None:
        """The same for all jobs of a broken pool, which is replaced."""
        ended = list(self._out)
        try:
            self._pool.renew()
        except ExecutorError as error:
            self._wind_down(error)
            ended = [future for future in ended if future.done()]
        self._take(ended, blame=True)
        self._tell()

    def _take(self, futures: Iterable[Future[Any]], *, blame: bool) -> None:
        """Read the outcomes. Evaluations that were lost are sent again; with `blame`, each of them
        may be the one that ended its worker."""
        lost = []
        for future in futures:
            job = self._out.pop(future)
            if not is_lost(future):
                self._read(job, future)
            elif blame and job.is_suspect:  # and was alone
                self._fail(job, deadly(job.point, future))
            else:
                lost.append(job)
        if not lost:
            return
        log.warning("%d evaluations were lost with their worker", len(lost))
        for job in sorted(lost, key=lambda job: job.is_suspect):
            job.losses += blame
            self._waiting.append(job)

    def _read(self, job: Job, future: Future[Any]) -> None:
        error = future.exception()
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            self._waiting.append(job)  # Ctrl-C reaches the workers of this terminal as well
            raise KeyboardInterrupt
        self._evaluating = _mean(self._evaluating, time.monotonic() - job.sent)
        if error is None:
            try:
                bounds = self._opt.target_bounds
                value, job.std = read_answer(job.point, future.result(), bounds=bounds)
            except ResultError as refused:
                error = refused
            else:
                failed = np.isnan(value)
                job.value = None if failed else value
                job.reason = "it returned None or NaN" if failed else ""
                self._done.append(job)
                return
        self._retry_or_fail(job, error)

    def _retry_or_fail(self, job: Job, error: BaseException) -> None:
        if job.tries < self._plan.retries:
            job.tries += 1
            said = f", trying again ({job.tries} of {self._plan.retries})"
            log.warning("the evaluation of %s failed%s", job.point, said, exc_info=error)
            self._waiting.append(job)
        else:
            self._fail(job, error)

    def _fail(self, job: Job, error: BaseException) -> None:
        log.warning("the evaluation of %s failed", job.point, exc_info=error)
        job.reason = summary(error)
        job.error = None if isinstance(error, (TimedOut, *self._plan.catch)) else error
        self._done.append(job)

    def _tell(self) -> None:
        jobs = self._done
        if not jobs or self._is_undecided(jobs):
            return
        points = [job.point for job in jobs]
        known = set(keys(self._opt._history.rows))
        self._vain += sum(job.value is None and self._key(job) in known for job in jobs)
        self._opt.tell(points, [job.value for job in jobs], std=[job.std for job in jobs])
        self._done = []
        self._told += len(jobs)
        for found, job in zip(keys(self._opt.space.rows(points)), jobs, strict=True):
            self._reasons[found] = job.reason
        for job in jobs:
            seconds = time.monotonic() - job.sent
            evaluation = Evaluation(job.point, job.value, job.reason, seconds, self._opt)
            said = None if self._plan.callback is None else self._plan.callback(evaluation)
            if isinstance(said, (bool, np.bool_)) and said:
                self._stopped = "callback"
        if self._stopped == "callback":
            self._let_go()

    def _is_undecided(self, done: list[Job]) -> bool:
        """True as long as all jobs of the first batch may raise the same type of exception. Raises
        it if they all did, unless the run has a result."""
        if self._works or len(self._opt._history) > 0 or any(job.error is None for job in done):
            self._works = True
            return False
        first = [job.error for job in self._first or () if job.error is not None]
        if len(set(map(type, first))) > 1:
            self._works = True
            return False
        if self._first is None or len(first) < len(self._first):
            return True
        raised = type(first[0]).__name__
        log.error(
            "the first %d evaluations raised %s; pass catch=%s if it means a failed point",
            len(first), raised, raised,
        )  # fmt: skip
        raise first[0]

    def _check_clock(self) -> None:
        """Give up jobs that are over their time and do not stop by themselves."""
        limit, now = self._plan.timeout, time.monotonic()
        if limit is None:
            return
        for future in self._pool.begun([f for f, job in self._out.items() if job.started is None]):
            self._out[future].started = now
        if self._pool.stops:
            limit = 2 * limit + GRACE
        late = [f for f, job in self._out.items() if job.is_late(now - limit) and not f.done()]
        if late:
            self._give_up(late)

    def _give_up(self, late: list[Future[Any]]) -> None:
        assert self._plan.timeout is not None
        for future in late:
            self._pool.abandon(future)
            self._stuck.add(future)
            self._retry_or_fail(self._out.pop(future), TimedOut(self._plan.timeout))
        if self._pool.own:  # only killing helps; the other evaluations are sent again
            self._pool.renew()
            self._stuck.clear()
            self._take(list(self._out), blame=False)
        elif len(self._stuck) >= (self._pool.size or 1):
            log.warning("every worker is busy with an evaluation that is over its time; waiting")
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
        done = [f for f in self._out if f.done() and not is_lost(f) and f.exception() is None]
        self._take(done, blame=False)
        self._opt._catch_up()  # what was being told may be in the store already
        pending = self._opt._history.pending
        self._done = [job for job in self._done if self._key(job) in pending]
        self._tell()
        self._let_go()
        kept = f"; make the same call to go on with {self._opt._log.name}" if self._is_kept else ""
        log.warning("interrupted after %d evaluations%s", self._evaluated(), kept)

    def _wind_down(self, error: Exception) -> None:
        """Send no more jobs because of an error; those that are out are still told."""
        self._error = self._error or error
        self._stopped = self._stopped or "executor"

    def _end_with(self, error: Exception) -> None:
        """Release the points that nobody evaluates, and raise the error. A run with results that
        has lost its executor returns them instead."""
        idle = [job.point for job in (*self._waiting, *self._done)]
        try:
            self._opt.cancel([point for point in self._opt.pending if point in idle])
        except MercboError as lost:
            raise error from lost
        if self._told == 0 or not isinstance(error, ExecutorError):
            raise error
        log.warning("%s; the run ends here", error)

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
