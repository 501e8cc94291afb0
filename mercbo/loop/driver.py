"""`minimize` and `maximize`: the whole loop of ask, evaluate and tell, on any executor.

As soon as an evaluation is done its worker gets the next point; nobody waits for a generation to
be complete. What goes wrong with an evaluation costs that evaluation only, and with a store a run
that was cut off goes on when the same call is made again. `campaign.py` is the loop itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercbo.errors import SettingError, StateError, choose, whole
from mercbo.loop.campaign import Campaign, Evaluation, Plan, Result
from mercbo.loop.executors import Objective, as_pool
from mercbo.loop.progress import reporter
from mercbo.optimizer import Optimizer
from mercbo.space import Space

Callback = Callable[[Evaluation], object]
# Seconds beyond which a time limit is none: no clock of the system can be set to so many.
LONGEST = 1e8


def minimize(
    f: Objective,
    space: Space,
    *,
    budget: int,
    batch: int | None = None,
    executor: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    callback: Callback | None = None,
    progress: bool = True,
    storage: str | None = None,
    adopt: str = "gone",
    seed: int | None = None,
    **settings: Any,
) -> Result:
    """Look for the point of `space` at which `f` is lowest.

    Parameters
    ----------
    f
        Takes a point, a dict of plain values, and gives a number, or a pair of it and the standard
        deviation of its error, where that is known; None or NaN is a failure.
    space
        Where to look.
    budget
        Evaluations of the run altogether, failures and those before a resumption included.
    batch
        Points that are out at once. By default as many as the executor has workers, and more where
        asking would keep them waiting.
    executor
        Who evaluates: None (here, one at a time), a thread or process pool, a `dask.distributed`
        client or its executor, or anything with the `submit` of `concurrent.futures`.
    timeout
        Seconds that an evaluation may take; it has failed then. Threads and Dask's workers cannot
        be interrupted: their late answers are ignored, and until then they are busy.
    retries
        How often an evaluation that raised or took too long is tried again before it has failed.
    callback
        Called after each evaluation with an `Evaluation`; the run ends where it returns True.
    progress
        Show a bar on the standard error (with rich installed), or log lines.
    storage
        A database URL: the run is kept there, and goes on from there where there is one.
    adopt
        Which pending points of a stored run to evaluate as well: "gone", those whose process has
        ended; "all", since a process on another machine cannot be looked after; or "none".
    seed, settings
        Those of `Optimizer`: `backend`, `model`, `acquisition`, `repeats`, `n_initial`.

    >>> result = minimize(lambda point: sum(point.values()), Space.binary(6), budget=20, seed=0,
    ...                   progress=False)
    >>> result.best.value
    0.0
    """
    plan = _planned(f, budget, batch, timeout, retries, callback, adopt)
    given = _directed("minimize", {"seed": seed, **settings})
    return _optimize(plan, space, executor, storage, progress, given)


def maximize(
    f: Objective,
    space: Space,
    *,
    budget: int,
    batch: int | None = None,
    executor: Any = None,
    timeout: float | None = None,
    retries: int = 0,
    callback: Callback | None = None,
    progress: bool = True,
    storage: str | None = None,
    adopt: str = "gone",
    seed: int | None = None,
    **settings: Any,
) -> Result:
    """Look for the point of `space` at which `f` is highest; all else is as in `minimize`."""
    plan = _planned(f, budget, batch, timeout, retries, callback, adopt)
    given = _directed("maximize", {"seed": seed, **settings})
    return _optimize(plan, space, executor, storage, progress, given)


def _directed(direction: str, settings: dict[str, Any]) -> dict[str, Any]:
    if settings.get("direction", direction) != direction:
        raise SettingError(f"{direction}(direction={settings['direction']!r}): the name says it")
    return {**settings, "direction": direction}


def _optimize(
    plan: Plan,
    space: Space,
    executor: Any,
    storage: str | None,
    progress: bool,
    settings: dict[str, Any],
) -> Result:
    pool = as_pool(executor)
    if plan.batch is None and pool.size is None:
        raise SettingError(
            f"executor={executor!r} does not say how many workers it has: give batch="
        )
    pool.check(plan.f, plan.timeout)
    opt = _optimizer(space, storage, settings)
    with reporter(progress, plan.budget) as shown:
        return Campaign(plan, opt, pool).run(shown)


def _planned(
    f: Objective,
    budget: int,
    batch: int | None,
    timeout: float | None,
    retries: int,
    callback: Callback | None,
    adopt: str,
) -> Plan:
    """The plan, if it makes sense."""
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
    choose("adopt", adopt, ["gone", "all", "none"])
    return Plan(f, budget, batch, timeout, retries, callback, adopt)


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
