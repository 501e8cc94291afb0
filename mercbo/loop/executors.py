"""Where evaluations run: the executors that `minimize` and `ask` take, each as a `Pool`.

None (here, one after the other), a thread pool, a process pool (also joblib's loky), a Dask client
or its executor, and anything else with a `submit` that gives `concurrent.futures` futures, such as
mpi4py's. Evaluations are sent as they are, so that a worker needs the function's code, not mercbo;
only a time limit within a process pool needs a few lines of it there.
"""

from __future__ import annotations

import pickle
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from mercbo.domain.variables import Point
from mercbo.errors import SettingError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Objective = Callable[[Point], Any]
# Seconds for which a cluster's number of workers is believed.
COUNTED = 2.0


class TimedOut(TimeoutError):
    """An evaluation that was stopped since it took too long."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise `TimedOut` in what runs within, once the time is over; only a process's main thread
    can be interrupted so, elsewhere nothing happens."""
    if not can_interrupt():
        yield
        return

    def ring(*_: object) -> None:
        raise TimedOut(f"no result within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def can_interrupt() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def limited(f: Objective, seconds: float, point: Point) -> Any:
    """`f(point)` within a time limit."""
    with alarm(seconds):
        return f(point)


class Pool:
    """An executor: calls go in by `submit`, finished futures come out of `finished`."""

    # whether a future's `running` can be believed, so that its time counts from there
    tells_start = True
    # whether workers stop by themselves at the time limit
    stops = False

    def __init__(self, executor: Any) -> None:
        self.executor = executor
        self._done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()

    @property
    def size(self) -> int | None:
        """How many evaluations run at once; None where the executor does not say."""
        for name in ("_max_workers", "num_workers"):
            number = getattr(self.executor, name, None)
            if isinstance(number, int) and number > 0:
                return number
        return None

    def check(self, f: Objective, timeout: float | None) -> None:
        """Refuse what cannot work here."""

    def submit(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        call = partial(limited, f, timeout) if timeout is not None and self.stops else f
        future: Future[Any] = self.executor.submit(call, point)
        future.add_done_callback(self._done.put)
        return future

    def share(self, value: Any) -> Any:
        """A value as it is best sent along with many calls: pickled once, unless it need not be."""
        return value if isinstance(self.executor, ThreadPoolExecutor) else pickle.dumps(value)

    def finished(self, seconds: float) -> list[Future[Any]]:
        """Futures that are done since the last look: waits for the first, takes all."""
        found = []
        try:
            found.append(self._done.get(timeout=seconds))
            while True:
                found.append(self._done.get_nowait())
        except queue.Empty:
            return found

    def renew(self) -> bool:
        """Put new workers in the place of broken or stuck ones. Whether the old ones have ended,
        so that none of the futures will still come to something."""
        raise BrokenExecutor(f"{self.executor!r} broke, and cannot be made anew from here")

    def close(self) -> None:
        """Let go of workers that were made here; the user's own stay."""


class Inline(Pool):
    """No executor: evaluations run here, one each time that a result is waited for."""

    stops = True
    size = 1

    def __init__(self) -> None:
        super().__init__(None)
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def check(self, f: Objective, timeout: float | None) -> None:  # noqa: ARG002
        if timeout is not None and not can_interrupt():
            raise SettingError(
                "timeout= needs an executor here: only the main thread of a Unix process can be "
                "interrupted"
            )

    def submit(self, f: Objective, point: Point, timeout: float | None) -> Future[Any]:
        call = partial(f, point) if timeout is None else partial(limited, f, timeout, point)
        future: Future[Any] = Future()
        self._waiting.append((future, call))
        return future

    def finished(self, seconds: float) -> list[Future[Any]]:  # noqa: ARG002
        future, call = self._waiting.popleft()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)
        return [future]


class Processes(Pool):
    """A process pool; one that broke, since a worker was killed, is replaced by its like."""

    stops = True

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        super().__init__(executor)
        self._mine = False

    def check(self, f: Objective, timeout: float | None) -> None:
        try:
            pickle.dumps(f if timeout is None else partial(limited, f, timeout))
        except Exception as error:
            raise SettingError(
                f"{f!r} cannot be sent to other processes ({error}); define it at the top of a "
                "module, or take an executor that sends any function, such as joblib's loky"
            ) from None

    def renew(self) -> bool:
        old = self.executor
        for process in list((getattr(old, "_processes", None) or {}).values()):
            process.kill()
        old.shutdown(wait=True, cancel_futures=True)
        self.executor, self._mine = self._like(old), True
        return True

    def _like(self, old: Any) -> Executor:
        names = {"_max_workers": "max_workers", "_mp_context": "mp_context",
                 "_initializer": "initializer", "_initargs": "initargs"}  # fmt: skip
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(**{new: getattr(old, name) for name, new in names.items()})

    def close(self) -> None:
        if self._mine:
            self.executor.shutdown(wait=False, cancel_futures=True)


class Loky(Processes):
    """joblib's or loky's reusable pool, which sends any function and knows how to start anew."""

    def check(self, f: Objective, timeout: float | None) -> None:
        pass

    def renew(self) -> bool:
        old = self.executor
        old.shutdown(wait=True, kill_workers=True)
        self.executor = type(old).get_reusable_executor(old._max_workers)[0]
        return True

    def close(self) -> None:
        pass


class Dask(Pool):
    """A cluster of Dask, of any size and with workers that come and go."""

    tells_start = False

    def __init__(self, client: Any, **options: Any) -> None:
        # a pure function would not be called again for a point that is to be tried again
        super().__init__(client.get_executor(**{**options, "pure": False}))
        self._client = client
        self._counted: tuple[float, int] = (-COUNTED, 0)

    @property
    def size(self) -> int:
        now = time.monotonic()
        if now - self._counted[0] > COUNTED:
            self._counted = now, sum(self._client.nthreads().values())
        return max(self._counted[1], 1)  # without workers for now, there is one point to wait with

    def share(self, value: Any) -> Any:
        return self._client.scatter(value, broadcast=True, hash=False)

    def renew(self) -> bool:
        if self._client.status != "running":
            raise BrokenExecutor(f"{self._client!r} is {self._client.status}")
        return False


def as_pool(executor: Any) -> Pool:
    """The pool that an executor makes; a `SettingError` says what was wanted where it is none."""
    # multiprocessing, which comes with it, takes a part of the time of `import mercbo`
    from concurrent.futures import ProcessPoolExecutor

    if executor is None:
        return Inline()
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(executor).__mro__}
    if "distributed.ClientExecutor" in kinds:
        return Dask(executor._client, **executor._kwargs)
    if "distributed.Client" in kinds:
        return Dask(executor)
    if isinstance(executor, ProcessPoolExecutor):
        return Processes(executor)
    if hasattr(type(executor), "get_reusable_executor"):
        return Loky(executor)
    if not callable(getattr(executor, "submit", None)):
        raise SettingError(
            f"executor={executor!r} is no executor: a thread or process pool, a Dask client, or "
            "anything with the submit of concurrent.futures was wanted"
        )
    return Pool(executor)


def is_lost(future: Future[Any]) -> bool:
    """Whether the evaluation was lost with its worker, rather than done or failed."""
    if future.cancelled() or not future.done():
        return True
    error = future.exception()
    return isinstance(error, BrokenExecutor) or type(error).__name__ == "ShutdownExecutorError"
