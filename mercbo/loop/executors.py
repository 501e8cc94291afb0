"""Executors as pools: where `minimize` evaluates points and `ask` solves its problems.

| executor                                | pool        |
|-----------------------------------------|-------------|
| None                                    | `Inline`    |
| a process pool                          | `Processes` |
| a process pool of loky or joblib        | `Loky`      |
| a Dask client or its executor           | `Dask`      |
| threads, or any other with a `submit`   | `Pool`      |

A worker needs the code of the objective only. A time limit in a process pool also needs mercbo.

A pool that the user passed is never killed or shut down. A pool of `minimize` itself is.
"""

from __future__ import annotations

import pickle
import queue
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mercbo.domain.variables import Point
from mercbo.errors import ExecutorError, SettingError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Objective = Callable[[Point], Any]
# Seconds for which a cluster's number of workers is believed.
COUNTED = 2.0
# Seconds between two questions to a cluster about what runs there, and to wait for the answer.
QUESTIONS_APART = 1.0
# Seconds after which a timer that is due rings: 0 would switch it off.
AT_ONCE = 1e-6


# -- time limits -------------------------------------------------------------------------------


class TimedOut(TimeoutError):
    """An evaluation that took longer than its time limit."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"no result within {self.seconds:g} s"


class Ring(BaseException):
    """The interrupt of an `Alarm`: not an `Exception`, so that no ``except Exception`` of the
    objective stops it."""

    def __init__(self, alarm: Alarm) -> None:
        super().__init__()
        self.alarm = alarm


class Alarm:
    """A time limit by SIGALRM. A handler and a timer that the caller has set go on: the timer rings
    when it is due, also within the limit."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._due = float("inf")  # when the caller's timer rings
        self._interval = 0.0
        self._handler: Any = signal.getsignal(signal.SIGALRM)

    def take(self) -> None:
        """Put this alarm in the place of the caller's handler and timer."""
        left, self._interval = signal.setitimer(signal.ITIMER_REAL, 0)
        self._due = time.monotonic() + left if left else float("inf")
        self._handler = signal.signal(signal.SIGALRM, self._ring)
        self._arm(min(self._due, self._end))

    def stop(self) -> None:
        self._end = float("inf")

    def give_back(self) -> None:
        """Set the caller's handler and timer again, the timer to the time that is left."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._handler)
        self._arm(self._due, self._interval)

    def _ring(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._due <= min(now, self._end):
            self._due = now + self._interval if self._interval else float("inf")
            self.give_back()
            try:
                if callable(self._handler):
                    self._handler(number, frame)
                else:  # the default, which ends the process, or none
                    signal.raise_signal(number)
            finally:
                self.take()
        elif now >= self._end:
            raise Ring(self)
        else:  # a signal from elsewhere
            self._arm(min(self._due, self._end))

    def _arm(self, end: float, interval: float = 0.0) -> None:
        if end < float("inf"):
            left = max(end - time.monotonic(), AT_ONCE)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """Return `call()`, or raise `TimedOut` when the time is over. Only the main thread of a process
    can be interrupted so; in other threads there is no limit."""
    if not can_interrupt():
        return call()
    alarm = Alarm(seconds)
    try:
        try:
            alarm.take()
            return call()
        finally:
            alarm.stop()
    except Ring as ring:
        if ring.alarm is not alarm:  # the limit of a caller
            raise
        raise TimedOut(seconds) from ring
    finally:
        alarm.give_back()


def can_interrupt() -> bool:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        return False
    return signal.getsignal(signal.SIGALRM) is not None  # None: not set by Python, cannot be reset


def limited(f: Objective, seconds: float, point: Point, *, mark: str | None = None) -> Any:
    """`f(point)` within a time limit. The file `mark` says that the evaluation has begun."""
    if mark is not None:
        with suppress(OSError):
            Path(mark).touch()
    return within(seconds, partial(f, point))


# -- pools -------------------------------------------------------------------------------------


class Pool:
    """An executor: `submit` sends a call, `finished` returns the futures that are done."""

    # True: `minimize` made this pool, may kill its workers and must close it
    own = False
    # True: workers end an evaluation themselves at the time limit
    stops = False

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self._done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()

    @property
    def size(self) -> int | None:
        """The number of evaluations that run at once; None if the executor does not say."""
        for name in ("_max_workers", "num_workers"):
            number = getattr(self.executor, name, None)
            if isinstance(number, int) and number > 0:
                return number
        return None

    def check(self, f: Objective, timeout: float | None) -> None:
        """Raise an error if `f` cannot be evaluated here."""

    def submit(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        """Send an evaluation; `finished` will return its future."""
        future = self._send(f, point, timeout)
        future.add_done_callback(self._done.put)
        return future

    def _send(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        del timeout
        return self.call(f, point)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Send a call.

        Raises `BrokenExecutor` if a worker died, and `ExecutorError` if the executor takes no
        calls for another reason.
        """
        try:
            future = self._call(function, *arguments)
        except (BrokenExecutor, ExecutorError):
            raise
        except Exception as error:
            raise ExecutorError(
                f"{self.executor!r} does not accept calls: {summary(error)}"
            ) from error
        if not hasattr(future, "add_done_callback"):
            raise ExecutorError(f"{self.executor!r}: submit returned {future!r}, not a future")
        return future

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = self.executor.submit(function, *arguments)
        return future

    def result(self, future: Future[Any]) -> Any:
        """Wait for the result of a call."""
        return future.result()

    def share(self, value: Any) -> Any:
        """A value in the form in which many calls can use it: pickled once, except for threads."""
        return value if isinstance(self.executor, ThreadPoolExecutor) else pickle.dumps(value)

    def finished(self, seconds: float) -> list[Future[Any]]:
        """The futures that are done since the last call; waits for the first one."""
        found = []
        try:
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            return found

    def begun(self, futures: Collection[Future[Any]]) -> list[Future[Any]]:
        """Those of the futures whose evaluation has begun."""
        return [future for future in futures if future.running()]

    def abandon(self, future: Future[Any]) -> None:
        """Give up an evaluation that has begun; its worker stays busy until it ends."""
        future.cancel()

    def renew(self) -> None:
        """Replace workers that are broken or stuck. No future of before has a result afterwards."""
        raise ExecutorError(f"{self.executor!r} is broken")

    def close(self) -> None:
        """Release what `minimize` made; the user's executor stays as it is."""


class Inline(Pool):
    """No executor: `finished` evaluates one point in this thread."""

    stops = True
    size = 1

    def __init__(self) -> None:
        super().__init__(None)
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def check(self, f: Objective, timeout: float | None) -> None:  # noqa: ARG002
        if timeout is not None and not can_interrupt():
            raise SettingError(
                f"timeout={timeout!r} needs workers= or an executor: without them only the main "
                "thread of a Unix process can be interrupted"
            )

    def _send(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        call = partial(f, point) if timeout is None else partial(limited, f, timeout, point)
        future: Future[Any] = Future()
        self._waiting.append((future, call))
        return future

    def finished(self, seconds: float) -> list[Future[Any]]:
        future, call = self._waiting.popleft()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)
        return super().finished(seconds)


class Processes(Pool):
    """A process pool. A broken one is replaced by a pool of `minimize` with the same settings."""

    stops = True

    def __init__(self, executor: ProcessPoolExecutor, *, own: bool = False) -> None:
        super().__init__(executor)
        self.own = own
        # A worker creates a file when it begins an evaluation with a time limit. `Future.running`
        # is also True for a call that waits for a worker, which may be busy with other work.
        self._marks: WeakKeyDictionary[Future[Any], Path] = WeakKeyDictionary()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = count()

    def check(self, f: Objective, timeout: float | None) -> None:
        try:
            pickle.dumps(f if timeout is None else partial(limited, f, timeout))
        except Exception as error:
            raise SettingError(
                f"{f!r} cannot be sent to other processes ({summary(error)}); define it at the "
                "top of a module, or take an executor that sends any function, such as joblib's "
                "loky"
            ) from None

    def _send(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        if timeout is None:
            return super()._send(f, point, timeout)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="mercbo-", ignore_cleanup_errors=True)
        mark = Path(self._folder.name) / str(next(self._numbers))
        future = self.call(partial(limited, f, timeout, mark=str(mark)), point)
        self._marks[future] = mark
        return future

    def begun(self, futures: Collection[Future[Any]]) -> list[Future[Any]]:
        return [future for future in futures if self._marks[future].exists()]

    def renew(self) -> None:
        if self.own:
            self._kill()
        self.executor, self.own = self._like(), True

    def close(self) -> None:
        if self.own:
            self._kill()
        if self._folder is not None:
            self._folder.cleanup()

    def _kill(self) -> None:
        for process in list((getattr(self.executor, "_processes", None) or {}).values()):
            process.kill()
        self.executor.shutdown(wait=True, cancel_futures=True)

    def _like(self) -> Executor:
        from concurrent.futures import ProcessPoolExecutor

        names = ("max_workers", "mp_context", "initializer", "initargs", "max_tasks_per_child")
        return ProcessPoolExecutor(**self._settings(names))

    def _settings(self, names: Collection[str]) -> dict[str, Any]:
        """The executor's arguments of these names, as far as it has them."""
        held = {name: f"_{name}" for name in names if hasattr(self.executor, f"_{name}")}
        return {name: getattr(self.executor, attribute) for name, attribute in held.items()}


class Loky(Processes):
    """A process pool of loky or joblib, which sends any function."""

    def check(self, f: Objective, timeout: float | None) -> None:
        pass

    def _kill(self) -> None:
        self.executor.shutdown(wait=True, kill_workers=True)

    def _like(self) -> Executor:
        # the plain class: the reusable executor is one for the whole process, and the user's
        plain = next(k for k in type(self.executor).__mro__ if k.__name__ == "ProcessPoolExecutor")
        names = ("max_workers", "timeout", "context", "initializer", "initargs", "env")
        made: Executor = plain(**self._settings(names))
        return made


class Dask(Pool):
    """A Dask cluster of any size, whose workers may come and go."""

    def __init__(self, client: Any, executor: Any) -> None:
        super().__init__(executor)
        self._client = client
        self._tasks: WeakKeyDictionary[Future[Any], Any] = WeakKeyDictionary()
        self._counted: tuple[float, dict[str, int]] = (-COUNTED, {})
        self._asked = -QUESTIONS_APART

    def check(self, f: Objective, timeout: float | None) -> None:
        del f, timeout
        self._check_client()

    def _check_client(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise ExecutorError(f"{self._client!r} is {self._client.status}")

    @property
    def size(self) -> int:
        return max(sum(self._threads().values()), 1)  # a point may wait for the first worker

    def _threads(self) -> dict[str, int]:
        """The number of threads of each worker."""
        now = time.monotonic()
        if now - self._counted[0] > COUNTED and self._client.status == "running":
            with suppress(Exception):  # the connection is lost; `finished` checks for how long
                self._counted = now, dict(self._client.nthreads())
        return self._counted[1]

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        self._check_client()
        if getattr(self.executor, "_shutdown", False):
            raise RuntimeError("cannot schedule new futures after shutdown")
        # pure=False: a task for each call, also if a point is evaluated again
        options = {**getattr(self.executor, "_kwargs", {}), "pure": False}
        task = self._client.submit(function, *arguments, **options)
        future: Future[Any] = Future()
        self._tasks[future] = task
        future.add_done_callback(partial(_cancel_task, task))
        self._client.loop.add_callback(_pass_on, future, task)
        return future

    def finished(self, seconds: float) -> list[Future[Any]]:
        found = super().finished(seconds)
        if not found:
            self._check_client()  # a closed client leaves its futures unfinished
        return found

    def result(self, future: Future[Any]) -> Any:
        while not future.done():  # `wait` does not see a task that is cancelled elsewhere
            wait([future], timeout=QUESTIONS_APART)
            if not future.done():
                self._check_client()
        return future.result()

    def begun(self, futures: Collection[Future[Any]]) -> list[Future[Any]]:
        now = time.monotonic()
        if not futures or self._client.status != "running" or now - self._asked < QUESTIONS_APART:
            return []
        self._asked = now
        running = self._running([self._tasks[future].key for future in futures])
        return [future for future in futures if self._tasks[future].key in running]

    def _running(self, tasks: list[str]) -> set[str]:
        """Those of the tasks that a thread runs. A worker does not answer while compiled code
        holds the GIL; then the tasks that the scheduler has assigned to a free thread."""
        try:
            stacks = self._client.sync(
                self._client.scheduler.call_stack, keys=tasks, callback_timeout=QUESTIONS_APART
            )
            return {task for found in stacks.values() for task in found}
        except Exception:
            threads = self._threads()
        with suppress(Exception):
            assigned = self._client.processing().items()
            fits = [found for worker, found in assigned if len(found) <= threads.get(worker, 0)]
            return {task for found in fits for task in found}
        return set()

    def abandon(self, future: Future[Any]) -> None:
        # Dask forgets a cancelled task at once, although its worker is still busy with it
        pass

    def share(self, value: Any) -> Any:
        return self._client.scatter(value, broadcast=True, hash=False)


def _cancel_task(task: Any, future: Future[Any]) -> None:
    if future.cancelled() and task.status == "pending" and task.client.status == "running":
        task.cancel()


async def _pass_on(future: Future[Any], task: Any) -> None:
    """Pass the outcome of a Dask task on to a future, in the event loop of its client. (Dask's own
    executor leaves the future unfinished if the result is lost with its worker. Callbacks of tasks
    share one thread, which a closed client would block.)"""
    with suppress(InvalidStateError):  # the future was cancelled meanwhile
        try:
            result = await task.result()
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            running = task.client.status == "running"
            unreachable = task.status == "finished" and isinstance(error, OSError)
            if isinstance(error, CancelledError) or not running or unreachable:
                future.cancel()
            else:
                future.set_exception(error)
        else:
            future.set_result(result)


def as_pool(executor: Any) -> Pool:
    """The pool of an executor; `SettingError` if it is not an executor."""
    # multiprocessing, which comes with it, takes a part of the time of `import mercbo`
    from concurrent.futures import ProcessPoolExecutor

    if executor is None:
        return Inline()
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(executor).__mro__}
    if "distributed.ClientExecutor" in kinds:
        return Dask(executor._client, executor)
    if "distributed.Client" in kinds:
        return Dask(executor, executor.get_executor())
    if isinstance(executor, ProcessPoolExecutor):
        return Processes(executor)
    if kinds & {"joblib.ProcessPoolExecutor", "loky.ProcessPoolExecutor"}:
        return Loky(executor)
    if not callable(getattr(executor, "submit", None)):
        raise SettingError(
            f"executor={executor!r}: expected a thread or process pool, a Dask client, or an "
            "object with the submit of concurrent.futures"
        )
    return Pool(executor)


def own_pool(workers: int) -> Pool:
    """A pool of processes that belongs to `minimize`."""
    from concurrent.futures import ProcessPoolExecutor

    return Processes(ProcessPoolExecutor(workers), own=True)


def is_lost(future: Future[Any]) -> bool:
    """True if the evaluation was lost with its worker: it neither ended nor raised."""
    if future.cancelled() or not future.done():
        return True
    error = future.exception()
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "ShutdownExecutorError"


def is_broken(future: Future[Any]) -> bool:
    """True if the evaluation was lost because a worker of its pool died."""
    ended = future.done() and not future.cancelled()
    return ended and isinstance(future.exception(), BrokenExecutor)


def deadly(point: Point, future: Future[Any]) -> ExecutorError:
    """The error of an evaluation with which its pool breaks each time."""
    cause = future.exception() if is_broken(future) else None
    said = "" if cause is None else f": {summary(cause)}"
    error = ExecutorError(f"the pool breaks each time it evaluates {point}{said}")
    error.__cause__ = cause
    return error


def summary(error: BaseException) -> str:
    """The type and the message of an exception, also of one whose `__str__` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}: <its __str__ raises>"
