"""`minimize` and `maximize`: the whole loop of ask, evaluate and tell, on any executor.

A worker gets the next point as soon as its evaluation is done; no worker waits for a batch to be
complete. `campaign.py` has the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from mercbo.errors import SettingError, StateError, choose, whole
from mercbo.loop.campaign import Campaign, Evaluation, Plan, Result
from mercbo.loop.executors import Objective, Pool, as_pool, own_pool
from mercbo.loop.progress import reporter
from mercbo.optimizer import Optimizer
from mercbo.space import Space

Callback = Callable[[Evaluation], object]
Catch = type[Exception] | tuple[type[Exception], ...]
# Seconds beyond which a time limit is none: no clock of the system can be set to so many.
LONGEST = 1e8


def minimize(
    f: Objective,
    space: Space,
    *,
    budget: int,
    batch: int | None = None,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    catch: Catch = (),
    callback: Callback | None = None,
    progress: bool = True,
    storage: str | None = None,
    adopt: str = "gone",
    seed: int | None = None,
    **settings: Any,
) -> Result:
    """Search the space for the point with the lowest value of `f`.

    Parameters
    ----------
    f
        The objective. It takes a point, a dict of plain values, and returns a number, or a pair of
        a number and the standard deviation of its error. None or NaN means that the evaluation
        failed.
    space
        The points to choose from.
    budget
        The number of evaluations of the run. Failures count, and so do the evaluations before a
        resumption.
    batch
        The number of points that are evaluated at once. Default: the number of workers, and more
        if workers would have to wait for `ask`.
    workers
        The number of processes to evaluate in. They belong to `minimize`: it kills a process that
        does not stop at the time limit, and all of them at the end. As for every process pool, `f`
        must be defined at the top of a module, and a script needs
        ``if __name__ == "__main__":``.
    executor
        An executor of yours to evaluate in, instead of `workers`: a thread or process pool, a
        `dask.distributed` client or its executor, or an object with the `submit` of
        `concurrent.futures`. `minimize` never kills its workers and never shuts it down. If a
        worker of a process pool dies, the pool is broken; `minimize` then goes on in a pool of its
        own with the same settings. Without `workers` and `executor`, evaluations run one after the
        other in this thread.
    timeout
        The seconds that an evaluation may take; a longer one counts as failed. An evaluation in
        this thread, with `workers` or in a process pool is interrupted (by SIGALRM). Compiled code
        may not notice; with `workers` the process is then killed. Threads and Dask workers cannot
        be interrupted: a late result is ignored, and the worker is busy until then. With `workers`
        and executors, the time counts from the moment that a worker begins the evaluation.
    retries
        How often an evaluation that raised or took too long is repeated before it counts as failed.
    catch
        An exception type, or a tuple of types, that means a failed evaluation. By default, any
        exception counts as a failure, except at the start of a run without results: if all
        evaluations of the first batch (without workers: the first evaluation) raise the same type
        of exception, `minimize` raises it. `f` is then wrong, not the point. Exceptions in `catch`
        are never raised; ``catch=Exception`` raises none.
    callback
        Called after each evaluation with an `Evaluation`. The run ends if it returns True.
    progress
        Show a bar on the standard error (if rich is installed) or log lines.
    storage
        A database URL that keeps the run. If the run exists, it goes on.
    adopt
        Which pending points of a stored run to evaluate as well: "gone", those of processes that
        have ended; "all", also those of other machines, where this cannot be known; or "none".
    seed, settings
        Options of `Optimizer`: `backend`, `model`, `acquisition`, `repeats`, `n_initial`,
        `target_bounds`. A value outside the bounds counts as an exception, a `ResultError`.

    Returns
    -------
    Result
        The best point, all results and all failures. If the objective raises or Ctrl-C ends the
        run, results told before are in `storage`, and points without a result stay pending there:
        the same call evaluates them first. If `ask` or the executor fails, points without a result
        are cancelled.

    Raises
    ------
    ExecutorError
        The executor accepts no evaluations, for example because it is shut down. If that happens
        after the first result, the run ends with ``stopped="executor"`` instead.

    >>> result = minimize(lambda point: sum(point.values()), Space.binary(6), budget=20, seed=0,
    ...                   progress=False)
    >>> result.best.value
    0.0
    """
    plan = _planned(f, budget, batch, timeout, retries, catch, callback, adopt)
    given = _directed("minimize", {"seed": seed, **settings})
    return _optimize(plan, space, workers, executor, storage, progress, given)


def maximize(
    f: Objective,
    space: Space,
    *,
    budget: int,
    batch: int | None = None,
    workers: int | None = None,
    executor: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    catch: Catch = (),
    callback: Callback | None = None,
    progress: bool = True,
    storage: str | None = None,
    adopt: str = "gone",
    seed: int | None = None,
    **settings: Any,
) -> Result:
    """Search the space for the point with the highest value of `f`. Options are those of
    `minimize`."""
    plan = _planned(f, budget, batch, timeout, retries, catch, callback, adopt)
    given = _directed("maximize", {"seed": seed, **settings})
    return _optimize(plan, space, workers, executor, storage, progress, given)


def _directed(direction: str, settings: dict[str, Any]) -> dict[str, Any]:
    if settings.get("direction", direction) != direction:
        raise SettingError(f"{direction}(direction={settings['direction']!r}): the name says it")
    return {**settings, "direction": direction}


def _optimize(
    plan: Plan,
    space: Space,
    workers: int | None,
    executor: Any,
    storage: str | None,
    progress: bool,
    settings: dict[str, Any],
) -> Result:
    with closing(_pool(workers, executor)) as pool:
        pool.check(plan.f, plan.timeout)
        if plan.batch is None and pool.size is None:
            raise SettingError(
                f"executor={executor!r} does not say how many workers it has: give batch="
            )
        opt = _optimizer(space, storage, settings)
        with reporter(progress, plan.budget) as shown:
            return Campaign(plan, opt, pool).run(shown)


def _pool(workers: int | None, executor: Any) -> Pool:
    if workers is None:
        return as_pool(executor)
    if executor is not None:
        raise SettingError(f"workers={workers!r}, executor={executor!r}: give only one of them")
    return own_pool(whole("workers", workers))


def _planned(
    f: Objective,
    budget: int,
    batch: int | None,
    timeout: float | None,
    retries: int,
    catch: Catch,
    callback: Callback | None,
    adopt: str,
) -> Plan:
    """The options of a run, checked."""
    for name, called in (("f", f), ("callback", callback)):
        if not callable(called) and not (name == "callback" and called is None):
            raise SettingError(f"{name}={called!r} cannot be called")
    budget, retries = whole("budget", budget), whole("retries", retries, least=0)
    if batch is not None:
        batch = whole("batch", batch)
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout > 0):
        raise SettingError(f"timeout={timeout!r} is not a number of seconds above 0")
    if timeout is not None and timeout > LONGEST:
        timeout = None
    types = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(each, type) and issubclass(each, Exception) for each in types):
        raise SettingError(f"catch={catch!r}: expected a type of Exception, or a tuple of such")
    choose("adopt", adopt, ["gone", "all", "none"])
    return Plan(f, budget, batch, timeout, retries, types, callback, adopt)


def _optimizer(space: Space, storage: str | None, settings: dict[str, Any]) -> Optimizer:
    """A new run, or the stored one if it is of this space and of these settings."""
    if storage is None:
        return Optimizer(space, **settings)
    from mercbo.record.store import Store

    if not Store.exists(storage):
        try:
            return Optimizer(space, storage=storage, **settings)
        except StateError:
            if not Store.exists(storage):  # else another process was faster
                raise
    return _reopened(space, storage, settings)


def _reopened(space: Space, storage: str, settings: dict[str, Any]) -> Optimizer:
    wanted = Optimizer(space, **settings)
    backend = None if isinstance(wanted.backend, str) else wanted.backend
    where = {predicate.name: predicate.predicate for predicate in space.region.predicates}
    opt = Optimizer.open(storage, backend=backend, where=where or None)
    if opt.space != space:
        raise StateError(f"{opt._log.name}: holds a run in another space, {opt.space!r}")
    mine, theirs = wanted.to_dict(), opt.to_dict()
    for name, given in settings.items():
        entry = "entropy" if name == "seed" else name
        if given is not None and mine[entry] != theirs[entry]:
            raise StateError(
                f"{opt._log.name}: holds a run with {name}={theirs[entry]!r}, not {mine[entry]!r}"
            )
    return opt
