"""`Optimizer`: ask, tell, draw, predict, best, save, load. The only class with a state.

The walk of an `ask`: history -> index rows and standardised y -> hyper-parameters (`model.py`)
-> posterior -> draw -> acquisition problem -> backend -> repaired, polished, refined -> the best
that is new -> a dict of the user's values, marked pending. A `tell` checks and appends; it does no
model work. Every change is an event (`events.py`): `_record` writes it to the run's log, where
there is a store, and then puts the state that follows from it in place, so that a call that raises
has changed nothing.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from mercbo import backend as backends
from mercbo import snapshot
from mercbo.arrays import Floats, Rows
from mercbo.asking import Asking
from mercbo.averaging import kernel_of
from mercbo.design import diversity
from mercbo.encoding import Encoding
from mercbo.errors import (
    BackendError,
    MercboError,
    NoResults,
    PointError,
    SettingError,
    SpaceError,
    SpaceExhausted,
    StateError,
    choose,
    whole,
)
from mercbo.events import Entry, Event, Log, Nowhere, State, Taken
from mercbo.executors import as_pool
from mercbo.failures import Always, Works, fit_works
from mercbo.feasible import Feasible, contradicted
from mercbo.frames import IN_FRAME, pandas, take_apart, to_frame
from mercbo.history import History, Marked, mark, without
from mercbo.inference import Fit
from mercbo.interactions import between_variables
from mercbo.kernel import Kernel
from mercbo.linalg import Factors, threads_for
from mercbo.model import Model
from mercbo.quadratic import Draw
from mercbo.results import read_errors, read_values
from mercbo.scores import ACQUISITIONS
from mercbo.seeking import Tools
from mercbo.space import Predicates, Space, is_single
from mercbo.surrogate import Surrogate
from mercbo.variables import Point

if TYPE_CHECKING:
    from mercbo.explain import Explanation

log = logging.getLogger(__name__)

# How often an ask that lost a point to another process tries again before it makes them wait.
RACES = 4
# First entry of a spawn key: which of the optimizer's independent random streams.
ASKING, FITTING, EXPLAINING = 0, 1, 2
# Bounds of the default number of initial points, which otherwise is that of the variables.
FEWEST_INITIAL, MOST_INITIAL = 5, 20


Called = TypeVar("Called", bound=Callable[..., Any])


def alone(method: Called) -> Called:
    """A method of an optimizer that no other thread's call comes between."""

    @wraps(method)
    def waiting(self: Optimizer, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return waiting  # type: ignore[return-value]


@dataclass(frozen=True)
class Observation:
    """A point and its result, in the user's units."""

    point: Point
    value: float


class Prediction(NamedTuple):
    """Mean and standard deviation of the noise-free objective, in the user's units."""

    mean: Floats
    std: Floats


class Optimizer:
    """Suggests points of a combinatorial space and learns from their results.

    Parameters
    ----------
    space
        What may be suggested.
    direction
        "minimize" or "maximize".
    backend
        Who solves the acquisition problems: a name ("graph-cut", "annealing", any registered
        by the entry-point group ``mercbo.backends``) or any dimod sampler.
    model
        The statistical choices; `Model.paper()` for the paper's.
    acquisition
        "thompson": each suggestion minimises a function drawn from the posterior; batches are
        diverse by themselves. "ei": each maximises the expected improvement on the best result,
        where pending points are given drawn results (fantasies) first; "ei-liar" takes them for as
        good as the best so far instead (a constant liar). "mes": each tells most
        about the lowest value there is (max-value entropy search), by the minima of some drawn
        functions. "lcb": each has the lowest mean less two standard deviations. For both, pending
        points count as measured. "auto": "ei" while few points are pending, "thompson" beyond
        that, where evaluations have failed, and for the paper's truncated posterior.
    repeats
        "never" asks for no point twice. "allow" is for noisy objectives: a point with a result may
        be asked for again where the model gains most from that, and `best` goes by the model.
    n_initial
        Points of a space-filling random design before the model takes over; told results count.
        By default the number of variables, but at least 5 and at most 20.
    seed
        The same seed and history give the same suggestions. None draws a fresh one.
    storage
        Where the run is kept, as a database URL such as "sqlite:///run.db": every ask and tell is
        on disk before it returns, `Optimizer.open` goes on from there, and several processes may
        work on one run. Needs ``mercbo[storage]``. None keeps it in memory.

    >>> opt = Optimizer(Space.binary(6), seed=0)
    >>> for _ in range(20):
    ...     point = opt.ask()
    ...     opt.tell(point, sum(point.values()))
    >>> opt.best.value
    0.0
    """

    def __init__(
        self,
        space: Space,
        *,
        direction: str = "minimize",
        backend: object = "graph-cut",
        model: Model | None = None,
        acquisition: str = "auto",
        repeats: str = "never",
        n_initial: int | None = None,
        seed: int | None = None,
        storage: str | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise SettingError(f"space={space!r} is not a Space")
        if model is not None and not isinstance(model, Model):
            raise SettingError(f"model={model!r} is not a Model")
        self.space = space
        self.direction = choose("direction", direction, ["minimize", "maximize"])
        self.backend = backend
        self.model = model or Model()
        self.acquisition = choose("acquisition", acquisition, ACQUISITIONS)
        self.repeats = choose("repeats", repeats, ["never", "allow"])
        self.n_initial = _default_initial(len(space))
        if n_initial is not None:
            self.n_initial = whole("n_initial", n_initial)
        _check_fit_together(self.model, space)
        self._sampler = backends.resolve(backend)
        self._entropy = _entropy(seed)
        self._state = State(History.empty(len(space)))
        # Part of the spawn keys of asks, once another process was seen to ask by the same ones.
        self._lane: tuple[int, ...] = ()
        self._surrogate: Surrogate | None = None
        self._factors = Factors()
        # What the failures of a history say, and the parts of the history that they follow from.
        self._failures: tuple[Rows, Marked, Works] | None = None
        self._log: Log = Nowhere()
        self._lock = threading.RLock()
        if storage is not None:
            self._keep_in(storage)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    # -- history -------------------------------------------------------------------------------

    @property
    def observations(self) -> list[Observation]:
        """Every result told, in the order told; replicates of a point stay apart."""
        self._catch_up()
        points = self.space.points(self._history.rows)
        values = self._history.values.tolist()
        return [Observation(p, v) for p, v in zip(points, values, strict=True)]

    @property
    def pending(self) -> list[Point]:
        """Points asked for and not yet told."""
        self._catch_up()
        return self._points_of(self._history.pending)

    @property
    def failed(self) -> list[Point]:
        """Points whose result was NaN or None."""
        self._catch_up()
        return self._points_of(self._history.failed)

    @property
    def best_observed(self) -> Observation:
        """The observation with the best single value."""
        self._catch_up()
        self._need_results("there is no best")
        where = int(np.argmin(self._sign * self._history.values))
        point = self.space.points(self._history.rows[where : where + 1])[0]
        return Observation(point, float(self._history.values[where]))

    @property
    def best(self) -> Observation:
        """The best point measured: by its value, or, with repeats allowed, by the model's mean,
        which does not fall for a lucky measurement."""
        if self.repeats == "never":
            return self.best_observed
        self._catch_up()
        self._need_results("there is no best")
        rows = np.unique(self._history.rows, axis=0)
        points = self.space.points(rows)
        mean = self.predict(points).mean
        where = int(np.argmin(self._sign * mean))
        return Observation(points[where], float(mean[where]))

    @property
    def _history(self) -> History:
        return self._state.history

    def __repr__(self) -> str:
        history = self._history
        return (
            f"Optimizer({len(self.space)} variables, {self.direction}, {len(history)} results, "
            f"{len(history.failed)} failed, {len(history.pending)} pending)"
        )

    def _points_of(self, marked: Marked) -> list[Point]:
        return self.space.points(self._history.stack(marked))

    def _need_results(self, otherwise: str) -> None:
        if len(self._history) == 0:
            raise NoResults(f"no result has been told yet, so {otherwise}")

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "minimize" else -1.0

    # -- tell and correct ----------------------------------------------------------------------

    @alone
    def tell(self, points: object, values: object = IN_FRAME, *, std: object = None) -> None:
        """Report results: one point and its value, or several and as many values.

        Points may be dicts, rows of values in the space's order or a DataFrame, in any order,
        asked for or not. NaN or None marks a failed evaluation: the point is not suggested again
        and not regressed on. A point told again keeps all its results, and one that has a result
        has not failed. Told of a point, a run with symmetries waits for none of its images any
        more. `std` is the standard
        deviation of the measurement, where it is known: one for each result, or one for all.
        In a DataFrame `values` and `std` may be columns, by name; ``tell(frame)`` takes the only
        column that is no variable. Its index does not matter.
        Where anything is wrong with the call, nothing of it is kept.
        """
        points, values, std = take_apart(self.space, points, values, std)
        rows = self.space.feasible_rows(points)
        results = read_values(points, values, len(rows))
        errors = read_errors(points, std, len(rows))
        self._record(lambda: Event.told(rows, results, errors, answers=self._images_pending(rows)))

    def _images_pending(self, rows: Rows) -> Rows | None:
        """The pending points that are images of some rows, and not rows themselves."""
        history, group = self._history, self.space.group
        if group.is_trivial or not history.pending:
            return None
        images = group.with_images(rows)
        return images[history.are(images, without(history.pending, mark(rows)))]

    @alone
    def amend(self, point: object, value: object, *, std: object = None) -> None:
        """Correct the result of a point: `value` takes the place of all that it was told, a
        failure included; NaN or None makes it a failure."""
        row = self._one(point)
        self._catch_up()  # another process may have told the result
        self._check(Event("amend", row))
        if not is_single(point):
            raise PointError("one point was wanted, a list came")
        result, error = read_values(point, value, 1), read_errors(point, std, 1)
        self._record(Event("amend", row, result, error))

    @alone
    def forget(self, points: object) -> None:
        """Drop all results and failures of some points; they may be suggested again."""
        self._record(Event("forget", self.space.rows(points)))

    @alone
    def cancel(self, points: object) -> None:
        """Say that pending points will not be evaluated; they may be suggested again."""
        self._record(Event("cancel", self.space.rows(points)))

    @alone
    def retry(self, points: object) -> None:
        """Take failures back: the points come again, with the next `ask`."""
        self._record(Event("retry", self.space.rows(points)))

    def _one(self, point: object) -> Rows:
        rows = self.space.rows(point)
        if len(rows) != 1:
            raise PointError(f"one point was wanted, {len(rows)} came")
        return rows

    def _check(self, event: Event) -> None:
        """Complain of the first point that the event cannot happen to."""
        refused, complaint = self._state.refuses(event)
        for number in np.flatnonzero(refused).tolist():
            where = f"point {number}: " if len(event.rows) > 1 else ""
            point = self.space.points(event.rows[number : number + 1])[0]
            raise PointError(f"{where}{point} {complaint}")

    # -- the one road by which the state changes -----------------------------------------------

    def _record(self, happened: Event | Callable[[], Event]) -> Event:
        """Write an event while nobody else does, then go on from what it leads to; a callable
        makes the event at that moment."""
        with self._log.turn(self._state.number) as turn:
            self._follow(turn.news)
            event = happened if isinstance(happened, Event) else happened()
            self._check(event)
            state = self._state.after(event)
            if len(event.rows) > 0:
                turn.append(event)
        if len(event.rows) > 0:
            self._become(state)
        return event

    def _catch_up(self) -> None:
        """Take note of what other processes did to the run."""
        self._follow(self._log.entries(self._state.number))

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            try:
                event = Event.from_dict(entry.kind, entry.body, self.space.sizes)
                self._check_fit(event.fit)
            except StateError as error:
                raise StateError(f"{self._log.name}: event {entry.number}: {error}") from error
            self._become(self._state.after(event))

    def _become(self, state: State) -> None:
        """Go on with another state; the model is made again if its data or its fit changed."""
        before, self._state = self._state, state
        known = self._surrogate and self._surrogate.fit
        refitted = state.committed is not before.committed and state.committed is not known
        if refitted or not before.history.same_results(state.history):
            self._surrogate = None

    def _check_fit(self, fit: Fit | None) -> None:
        if fit and {len(hyper.beta) for hyper in fit.hypers} != {self._kernel.n}:
            raise StateError("its fit does not belong to its space")

    # -- ask -----------------------------------------------------------------------------------

    @overload
    def ask(self, *, fixed: dict[str, Any] | None = None, diversity: int = 1) -> Point: ...

    @overload
    def ask(
        self,
        k: int,
        *,
        fixed: dict[str, Any] | None = None,
        diversity: int = 1,
        executor: Any = None,
    ) -> list[Point]: ...

    @overload
    def ask(
        self,
        k: int | None = None,
        *,
        fixed: dict[str, Any] | None = None,
        diversity: int = 1,
        executor: Any = None,
        as_frame: bool,
    ) -> Any: ...

    @alone
    def ask(
        self,
        k: int | None = None,
        *,
        fixed: dict[str, Any] | None = None,
        diversity: int = 1,
        executor: Any = None,
        as_frame: bool = False,
    ) -> Point | list[Point]:
        """The next point to evaluate, or a list of the next `k`; they are pending until told.

        No point comes back that was told, failed or is pending, and none that breaks a
        constraint. `fixed` holds some variables at given values, for this call. Where fewer than
        `k` such points are left, `SpaceExhausted` is raised and nothing is marked. ``ask(k)``
        gives what `k` calls of ``ask()`` would; with `as_frame` as a pandas DataFrame.

        Each point differs in at least `diversity` variables from the others of the batch and from
        those pending. Points are chosen one after the other: where no further one is far enough
        from those before, `SpaceExhausted` says how many there were.

        The acquisition problems of a large batch by Thompson sampling are solved by the workers of
        `executor`, one that `minimize` takes; the points are the same with any and with none.
        (With an exact solver, and with `diversity`, a point's problem depends on the points before
        it; these are solved here.)
        """
        count = 1 if k is None else whole("k", k)
        if as_frame:
            pandas()  # missing, it is missed before anything is pending
        options: dict[str, Any] = {"diversity": self._distance(diversity)}
        if executor is not None:
            options["pool"] = as_pool(executor)
        self._catch_up()
        points = self.space.points(self._claim(lambda: self._choose(count, fixed, **options)))
        if as_frame:
            return to_frame(self.space, points)  # type: ignore[no-any-return]
        return points[0] if k is None else points

    def _claim(self, choose: Callable[[], Event]) -> Rows:
        """Points chosen and recorded as asked for.

        The choice, which takes long, is made while others may write. Where one of its points was
        taken meanwhile it is made again, by random numbers of this optimizer's own from then on:
        by the common ones, all that ask at once would choose the same.
        """
        for _ in range(RACES):
            chosen, before = choose(), self._state
            try:
                return self._record(partial(self._still, chosen, before)).rows
            except Taken as error:
                log.debug("%s; choosing again", error)
                self._lane = (secrets.randbits(32),)
        return self._record(choose).rows

    def _still(self, chosen: Event, before: State) -> Event:
        """What was chosen in an earlier state, if it can be asked for in the present one."""
        now = self._state
        if now is before:
            return chosen
        if now.has_taken(
            self.space.group.with_images(chosen.rows), repeats=self.repeats == "allow"
        ):
            raise Taken("another process took a point that was about to be suggested")
        if now.history.same_results(before.history):
            return replace(chosen, fresh=chosen.fresh or now.fresh)
        return replace(chosen, fresh=now.fresh and chosen.fit is None)

    def _distance(self, diversity: int) -> int:
        """In how many variables points are to differ, if they can."""
        wanted = whole("diversity", diversity)
        most = int((self.space.sizes > 1).sum())
        if wanted > max(most, 1):
            raise SettingError(f"diversity={wanted}: points of the space differ in at most {most}")
        return wanted

    def _choose(self, count: int, fixed: dict[str, Any] | None, **options: Any) -> Event:
        """The next points to evaluate, as the event of asking for them."""
        feasible = self._feasible(fixed)
        asking = self._asking()
        left = feasible.left(asking.seen, count)
        if left < count:
            raise self._exhausted(count, asking.distinct(feasible, left), fixed, feasible)
        with threads_for(len(self._history)):
            chosen = asking.choose(self._state.asked, count, feasible, **options)
        if len(chosen) < count:
            distance = options.get("diversity", 1)
            raise self._exhausted(count, len(chosen), fixed, feasible, distance)
        if self._surrogate is None or not asking.modelled(chosen):
            return Event("ask", chosen, fresh=self._state.fresh)
        fit = self._surrogate.fit
        new = None if fit is self._state.committed else fit
        return Event("ask", chosen, fit=new, fresh=True)

    def _asking(self) -> Asking:
        """How points are chosen, given the present history."""
        return Asking(self._tools, self._history, self._model_of_now, self._works, self._stream)

    def _feasible(self, fixed: dict[str, Any] | None) -> Feasible:
        """The rows that an ask may choose from."""
        if fixed is None:
            return self.space.feasible
        region = self.space.region
        levels = [int(region.start[i]) + value for i, value in self.space.partial(fixed).items()]
        feasible = self.space.fixed(levels)
        blamed = contradicted(feasible, region, levels)
        if blamed is not None:
            shown = "; ".join(map(repr, blamed))
            cannot = f" cannot hold together with {shown}"
            raise PointError(
                f"fixed={fixed}{cannot if shown else ': no row of the table has these values'}"
            )
        return feasible

    def _exhausted(
        self,
        count: int,
        left: int,
        fixed: dict[str, Any] | None,
        feasible: Feasible,
        diversity: int = 1,
    ) -> MercboError:
        """Why an ask cannot be answered."""
        among = f" with fixed={fixed}" if fixed else ""
        if feasible.region.predicates and feasible.listed is None:
            # no solver sees predicates, so that there is no proof
            return SpaceError(
                f"{count} asked for, {left} found: long search{among} met no other point that "
                f"satisfies {list(feasible.region.predicates)}; say it by other constraints"
            )
        told = "" if self.repeats == "allow" else "told, "
        if diversity > 1:
            return SpaceExhausted(
                f"{count} asked for, {left} found: all other points of the space{among} are {told}"
                f"failed, or differ in less than {diversity} variables from one that is pending or "
                "comes before; ask for fewer, or with a lower diversity",
                left=left,
            )
        return SpaceExhausted(
            f"{count} asked for, {left} left: all other points of the space{among} are {told}"
            "failed or pending",
            left=left,
        )

    def _works(self) -> Works:
        """How likely evaluations are to work, by the present history."""
        history = self._history
        if self.model.failures == "ignore":
            return Always(self._kernel)
        known = self._failures
        if known is None or known[0] is not history.rows or known[1] is not history.failed:
            # a model of its own, which knows nothing of symmetries
            works = fit_works(Kernel(self._encoding), history.rows, history.stack(history.failed))
            known = self._failures = (history.rows, history.failed, works)
        return known[2]

    # -- the model -----------------------------------------------------------------------------

    @alone
    def draw(self, *, rng: np.random.Generator | None = None) -> Draw:
        """One posterior sample as an acquisition problem: `.bqm`, `.cqm`, `.value(point)` ...

        By default the draw that the next ``ask()`` will use (to suggest its minimum, or to start
        from there), the same until then; pass a generator for others. Without results it is a
        draw from the prior.
        """
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise SettingError(f"rng={rng!r} is not a numpy.random.Generator")
        self._catch_up()
        number = self._state.asked
        rng = self._stream(number) if rng is None else rng
        with threads_for(len(self._history)):
            return self._asking().draw(number, self.space.feasible, rng=rng)

    def diversity(self, points: object) -> float:
        """In how many variables two of the points differ, on average over all pairs."""
        return diversity(self.space.rows(points))

    @alone
    def predict(self, points: object) -> Prediction:
        """Mean and standard deviation of the objective, without noise, at one or more points."""
        self._catch_up()
        self._need_results("nothing can be predicted")
        rows = self.space.rows(points)
        with threads_for(len(self._history)):
            surrogate = self._model_of_now()
            mean, std = surrogate.predict(rows)
        return Prediction(surrogate.units.value(mean), surrogate.units.deviation(std))

    @alone
    def explain(self, point: object = None, *, level: float = 0.95) -> Explanation:
        """What the model has learned: effects and interactions with intervals, importance, and
        leave-one-out predictions; with a point, also why that one."""
        from mercbo.explain import explain  # it takes a part of the time of `import mercbo`

        self._catch_up()
        self._need_results("there is nothing to explain")
        if not self.space.group.is_trivial:
            raise SettingError("a model with symmetries is not a product, and is not explained")
        row = None if point is None else self._one(point)[0]
        with threads_for(len(self._history)):
            now, told = self._model_of_now(), self._history
            averaged = now.averaged(rng=self._rng(EXPLAINING, len(told)))
            return explain(
                self.space, averaged, now.units, self.direction, told.rows, told.values,
                level=level, row=row,
            )  # fmt: skip

    def _model_of_now(self) -> Surrogate:
        """The model of the present results, fitted once; only an ask commits the fit."""
        if self._surrogate is None:
            self._surrogate = Surrogate(
                self.model, self._kernel, self._history, self._sign, self._state.committed,
                keep=self._state.fresh, factors=self._factors,
                rng=self._rng(FITTING, len(self._history)),
            )  # fmt: skip
        return self._surrogate

    @property
    def _tools(self) -> Tools:
        return Tools(
            self.space, self._encoding, self._native, self._kernel, self._sampler, self.model,
            self.acquisition, self._sign, self.n_initial, repeats=self.repeats == "allow",
        )  # fmt: skip

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding(self.space)

    @cached_property
    def _native(self) -> Encoding:
        native = Encoding(self.space, native=True)
        return self._encoding if native.labels == self._encoding.labels else native

    @cached_property
    def _kernel(self) -> Kernel:
        return kernel_of(self._encoding, self.space.group)

    def _stream(self, number: int) -> np.random.Generator:
        """The random numbers of one of the points asked for."""
        return self._rng(ASKING, number)

    def _rng(self, *stream: int) -> np.random.Generator:
        key = (*stream, *self._lane) if stream[0] == ASKING else stream
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=key))

    # -- save and load -------------------------------------------------------------------------

    @alone
    def to_dict(self) -> dict[str, Any]:
        """The whole state in plain values; `from_dict` goes on from it."""
        self._catch_up()
        return {
            "space": self.space.to_dict(),
            "direction": self.direction,
            "backend": self.backend if isinstance(self.backend, str) else None,
            "model": self.model.to_dict(),
            "acquisition": self.acquisition,
            "repeats": self.repeats,
            "n_initial": self.n_initial,
            "entropy": self._entropy,
            "asked": self._state.asked,
            "points": self.space.points(self._history.rows),
            "values": self._history.values.tolist(),
            "errors": [None if np.isnan(e) else e for e in self._history.errors.tolist()],
            "failed": self._points_of(self._history.failed),
            "pending": self._points_of(self._history.pending),
            "retries": self._points_of(self._history.retries),
            "fit": self._state.committed.to_dict() if self._state.committed else None,
            "fresh": self._state.fresh,
        }

    @classmethod
    def from_dict(
        cls,
        state: dict[str, Any],
        *,
        backend: object = None,
        where: Predicates | None = None,
    ) -> Optimizer:
        """An optimizer in the state of `to_dict`; `backend` replaces the one it names, `where`
        gives the predicates of the space's `Where` constraints."""
        try:
            return cls._rebuilt(state, backend, where)
        except (StateError, BackendError):
            raise
        except MercboError as error:
            raise StateError(str(error)) from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"not the whole state of a run ({error!r})") from error

    @classmethod
    def _rebuilt(
        cls, state: dict[str, Any], backend: object, where: Predicates | None
    ) -> Optimizer:
        named = state["backend"] if backend is None else backend
        if named is None:
            raise StateError(
                "the run used a sampler object as its backend, which a file cannot hold; "
                "pass it again: backend=..."
            )
        space = Space.from_dict(state["space"], where=where)
        opt = cls(
            space,
            direction=state["direction"],
            backend=named,
            model=Model(**state["model"]),
            acquisition=state["acquisition"],
            repeats=state["repeats"],
            n_initial=state["n_initial"],
            seed=state["entropy"],
        )
        if state["points"]:
            opt.tell(state["points"], state["values"], std=state["errors"])
        failed, pending, retries = (
            mark(space.feasible_rows(state[name])) for name in ("failed", "pending", "retries")
        )
        history = replace(opt._history, failed=failed, pending=pending, retries=retries)
        asked = whole("asked", state["asked"], least=0)
        whole("entropy", state["entropy"], least=0)
        fit = Fit.from_dict(state["fit"]) if state["fit"] else None
        opt._check_fit(fit)
        opt._state = State(history, asked, fit, bool(state["fresh"]))
        return opt

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a JSON file, whole or not at all.

        Predicates (`Where`) cannot be written: a warning names those that `load` will want.
        """
        snapshot.write(path, self.to_dict())
        self._warn_of_predicates(f"{path} does not hold", "load", stacklevel=3)

    def _warn_of_predicates(self, lacks: str, back: str, *, stacklevel: int) -> None:
        names = [predicate.name for predicate in self.space.region.predicates]
        if names:
            wanted = ", ".join(f"{name!r}: ..." for name in names)
            warnings.warn(
                f"{lacks} the predicate{'s' * (len(names) > 1)} "
                f"{', '.join(map(repr, names))}; {back} it with where={{{wanted}}}",
                stacklevel=stacklevel,
            )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        backend: object = None,
        where: Predicates | None = None,
        storage: str | None = None,
    ) -> Optimizer:
        """Read a run back: its next suggestion is the one that the saved run would have given.

        `backend` takes the place of a sampler object, `where` maps the names of predicates to
        them; both cannot be held by a file. With `storage`, a database URL, the run goes on there.
        """
        state = snapshot.read(path)
        opt = cls._restored(state, path, backend, where)
        if storage is not None:
            opt._keep_in(storage)
        return opt

    @classmethod
    def open(
        cls, storage: str, *, backend: object = None, where: Predicates | None = None
    ) -> Optimizer:
        """Go on with the run in a store, alone or while other processes work on it.

        Its next suggestion is the one that the run would have given if it had never stopped.
        `backend` and `where` are those of `load`.
        """
        from mercbo.store import Store

        store = Store.open(storage)
        opt = cls._restored(store.beginning(), store.name, backend, where)
        opt._log, opt._state = store, replace(opt._state, number=1)
        opt._catch_up()
        return opt

    @classmethod
    def _restored(
        cls, state: dict[str, Any], source: object, backend: object, where: Predicates | None
    ) -> Optimizer:
        try:
            return cls.from_dict(state, backend=backend, where=where)
        except StateError as error:
            raise StateError(f"{source}: {error}") from error

    def _keep_in(self, storage: str) -> None:
        """Begin a stored run with the present state, its first event."""
        from mercbo.store import Store

        self._warn_of_predicates(f"{storage} does not hold", "open", stacklevel=4)
        self._log = Store.create(storage, self.to_dict())
        self._state = replace(self._state, number=1)


def _check_fit_together(model: Model, space: Space) -> None:
    """Refuse a model that is not one of this space."""
    if model.interactions is not None:
        between_variables(model.interactions, tuple(space.variables))
    if space.group.is_trivial:
        return
    if model.inference == "slice":
        raise SettingError(
            "inference='slice' does not tie what symmetries tie; use 'auto', 'map' or 'hmc'"
        )
    if model.terms is not None:
        raise SettingError(
            f"terms={model.terms} are not averaged over symmetries; state none, or leave terms out"
        )


def _default_initial(variables: int) -> int:
    return min(max(variables, FEWEST_INITIAL), MOST_INITIAL)


def _entropy(seed: int | None) -> int:
    if seed is None:
        drawn = np.random.SeedSequence().entropy
        assert isinstance(drawn, int)
        return drawn
    return whole("seed", seed, least=0)
