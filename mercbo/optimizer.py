"""`Optimizer`: ask, tell, draw, predict, best, save, load. The only class with a state.

The walk of an `ask`: history -> index rows and standardised y -> hyper-parameters (`model.py`)
-> posterior -> draw -> acquisition problem -> backend -> repaired, polished, refined -> the best
that is new -> a dict of the user's values, marked pending. A `tell` checks and appends; it does no
model work. Every change is an event (`record/events.py`): `_record` writes it to the run's log,
if there is a store, and then puts the state that follows from it in place. A call that raises
changes nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mercbo import backend as backends
from mercbo.acquisition import Choice
from mercbo.arrays import Rows
from mercbo.asking.choice import Asking, described
from mercbo.asking.design import diversity
from mercbo.asking.failures import Always, Works
from mercbo.asking.scores import ACQUISITIONS
from mercbo.asking.seeking import Tools
from mercbo.asking.steps import learn_works
from mercbo.domain.variables import Point
from mercbo.drawing.surrogate import Surrogate
from mercbo.encoding import Encoding
from mercbo.errors import PointError, SettingError, choose, whole
from mercbo.inference import Fit
from mercbo.kernel import Kernel
from mercbo.kernels.averaging import kernel_of
from mercbo.linalg import Factors, threads_for
from mercbo.locking import Synchronized, synchronized
from mercbo.loop.executors import as_pool
from mercbo.model import Model
from mercbo.quadratic import Draw, is_wide
from mercbo.record import refusals, snapshot
from mercbo.record.events import Entry, Event, Log, Nowhere, State, Taken
from mercbo.record.fits import fit_schema
from mercbo.record.frames import IN_FRAME, pandas, records_frame, take_apart, to_frame
from mercbo.record.history import History, Marked, mark, without
from mercbo.record.observations import (
    Observation,
    Prediction,
    Record,
    best_of,
    marked_points,
    observed,
    recorded,
)
from mercbo.record.results import read_bounds, read_errors, read_notes, read_values
from mercbo.record.streams import Streams
from mercbo.record.suggestions import Suggestions
from mercbo.record.transaction import Transaction
from mercbo.space import Predicates, Space, is_single

if TYPE_CHECKING:
    from mercbo.explaining.explain import Explanation

log = logging.getLogger(__name__)

# How often an ask that lost a point to another process tries again before it makes them wait.
RACES = 4


class Optimizer(Synchronized):
    """Suggests points of a combinatorial space and learns from their results.

    Parameters
    ----------
    space
        What may be suggested.
    direction
        "minimize" or "maximize".
    backend
        Who solves the acquisition problems: a name ("graph-cut", "annealing", any registered
        by the entry-point group ``mercbo.backends``) or any dimod sampler. By default "graph-cut",
        which is not called for problems of more than 1,500 bits. A backend that is passed here is
        called for every problem that has a BQM; a warning says if there is none.
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
        that, where evaluations have failed and banned steps do not explain it, and for the paper's
        truncated posterior.
    repeats
        "never" asks for no point twice. "allow" is for noisy objectives: a point with a result may
        be asked for again where the model gains most from that, and `best` goes by the model.
    n_initial
        Points of a space-filling random design before the model takes over; told results count.
        By default the number of variables, but at least 5 and at most 20.
    target_bounds
        The lowest and the highest result that is possible, such as (0, 100) for a yield in
        percent; either may be None. `tell` rejects a result outside.
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
        backend: object = None,
        model: Model | None = None,
        acquisition: str = "auto",
        repeats: str = "never",
        n_initial: int | None = None,
        target_bounds: tuple[float | None, float | None] | None = None,
        seed: int | None = None,
        storage: str | None = None,
    ) -> None:
        refusals.check_kinds(space, model)
        self.space = space
        self.direction = choose("direction", direction, ["minimize", "maximize"])
        self.backend = backends.DEFAULT if backend is None else backend
        self.model = model or Model()
        self.acquisition = choose("acquisition", acquisition, ACQUISITIONS)
        self.repeats = choose("repeats", repeats, ["never", "allow"])
        self.n_initial = refusals.initial(n_initial, space)
        self.target_bounds = read_bounds(target_bounds)
        refusals.check_together(space, self.model)
        self._sampler = backends.resolve(self.backend)
        self._backend_given = backend is not None
        if self._backend_given:
            refusals.warn_of_unused(space, self.model, self.backend)
        self._streams = Streams.of(seed)
        self._state = State(History.empty(len(space)))
        # What the last ask chose and by which model, and the same of the ask that is under way.
        self._suggested: tuple[list[Choice], Surrogate | None] = ([], None)
        self._considered: tuple[list[Choice], Surrogate | None] = ([], None)
        self._log: Log = Nowhere()
        self._transaction: Transaction | None = None
        self._forget_models()
        if storage is not None:
            self._keep_in(storage)

    # -- history -------------------------------------------------------------------------------

    @property
    def observations(self) -> list[Observation]:
        """Every result told, in the order told; replicates of a point stay separate."""
        return observed(self.space, self._history_now())

    @property
    def pending(self) -> list[Point]:
        """Points asked for and not yet told."""
        history = self._history_now()
        return marked_points(self.space, history, history.pending)

    @property
    def failed(self) -> list[Point]:
        """Points whose result was NaN or None."""
        history = self._history_now()
        return marked_points(self.space, history, history.failed)

    @property
    def best_observed(self) -> Observation:
        """The observation with the best single value."""
        history = self._history_now()
        refusals.need_results(history, "there is no best")
        return best_of(self.space, history.rows, history.values, self._sign)

    @property
    def best(self) -> Observation:
        """The best point measured: by its value, or, if repeats are allowed, by the model's mean,
        which a lucky measurement moves less."""
        if self.repeats == "never":
            return self.best_observed
        history = self._history_now()
        refusals.need_results(history, "there is no best")
        rows = np.unique(history.rows, axis=0)
        mean = self.predict(self.space.points(rows)).mean
        return best_of(self.space, rows, mean, self._sign)

    def records(self) -> list[Record]:
        """One record per result, failure and pending point: point, value, standard deviation,
        state, batch, time and notes."""
        return recorded(self.space, self._history_now())

    def to_frame(self) -> Any:
        """The records as a pandas DataFrame: a column per variable, then value, std, state, batch,
        time, and a column per name in the notes."""
        return records_frame(self.space, self.records())

    @synchronized
    def _history_now(self) -> History:
        """The history after catching up with other processes."""
        self._catch_up()
        return self._history

    @property
    def _history(self) -> History:
        return self._state.history

    def __repr__(self) -> str:
        history = self._history
        return (
            f"Optimizer({len(self.space)} variables, {self.direction}, {len(history)} results, "
            f"{len(history.failed)} failed, {len(history.pending)} pending)"
        )

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "minimize" else -1.0

    # -- tell and correct ----------------------------------------------------------------------

    @synchronized
    def tell(
        self, points: object, values: object = IN_FRAME, *, std: object = None, notes: object = None
    ) -> None:
        """Report results: one point and its value, or several points and as many values.

        Points may be dicts, rows of values in the space's order or a DataFrame, in any order,
        asked for or not. NaN or None marks a failed evaluation: the point is not suggested again,
        and the model does not regress on it. A point told again keeps all its results, and a point
        with a result has not failed. Telling a point also clears pending points that are symmetric
        to it.

        `std` is the standard deviation of the measurement error, if it is known: one per result, or
        one for all. `notes` are the user's own entries, such as a well or an operator: one mapping
        per result. `records` and `to_frame` return them; no suggestion depends on them.

        In a DataFrame `values` and `std` may be names of columns; ``tell(frame)`` takes the only
        column that is no variable. The index does not matter.

        If anything is wrong with the call, nothing of it is kept.
        """
        points, values, std = take_apart(self.space, points, values, std)
        rows = self.space.feasible_rows(points)
        results = read_values(points, values, len(rows), bounds=self.target_bounds)
        errors = read_errors(points, std, len(rows))
        noted = read_notes(points, notes, len(rows))

        def told() -> Event:
            answers = self._images_pending(rows)
            return Event.told(rows, results, errors, answers=answers, notes=noted)

        self._record(told)

    def _images_pending(self, rows: Rows) -> Rows | None:
        """The pending points that are images of some rows, and not rows themselves."""
        history, group = self._history, self.space.group
        if group.is_trivial or not history.pending:
            return None
        images = group.with_images(rows)
        return images[history.are(images, without(history.pending, mark(rows)))]

    @synchronized
    def amend(
        self, point: object, value: object, *, std: object = None, notes: object = None
    ) -> None:
        """Correct the result of a point: `value` takes the place of all that it was told, a
        failure included; NaN or None makes it a failure.

        `std` is its standard deviation. None keeps the one that was told, where the point had one
        result; NaN says that none is known. `notes` is a mapping that replaces the notes of the
        result; None keeps them, of several results those of the first.

        A point that was told as one of its images, by the symmetries of the space, stands for that
        one; so it does in `forget`, `cancel` and `retry`."""
        row = refusals.one(self.space, point)
        self._catch_up()  # another process may have told the result
        row = refusals.meant(self.space, self._state, Event("amend", row)).rows
        refusals.check_event(self.space, self._state, Event("amend", row))
        if not is_single(point):
            raise PointError("one point was wanted, a list came")
        result = read_values(point, value, 1, bounds=self.target_bounds)
        error = read_errors(point, std, 1)
        noted = read_notes(point, notes, 1)

        def amended() -> Event:
            kept = self._history.error_of(row) if std is None and not np.isnan(result[0]) else None
            errors = error if kept is None else np.array([kept])
            return Event("amend", row, result, errors, notes=noted)

        self._record(amended)

    @synchronized
    def forget(self, points: object) -> None:
        """Drop all results and failures of some points; they may be suggested again."""
        self._record(Event("forget", self.space.rows(points)))

    @synchronized
    def cancel(self, points: object) -> None:
        """Say that pending points will not be evaluated; they may be suggested again."""
        self._record(Event("cancel", self.space.rows(points)))

    @synchronized
    def retry(self, points: object) -> None:
        """Take failures back: the points come again, with the next `ask`."""
        self._record(Event("retry", self.space.rows(points)))

    # -- state transitions ---------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Optimizer]:
        """Group calls into one write: all of them happen, or, if the block raises, none.

        No other thread or process changes the run within the block, so a decision that depends on
        the present results stays valid until it is written:

        >>> opt = Optimizer(Space.binary(3), seed=0)
        >>> with opt.transaction():
        ...     if not opt.observations:
        ...         opt.tell({"x0": 0, "x1": 0, "x2": 0}, 1.5)

        Others wait for the end of the block. Keep it short: an `ask` inside it holds the lock for
        as long as the model needs.
        """
        with self._lock:
            transaction = Transaction(self)
            try:
                transaction.begin()
                yield self
                transaction.commit()
            except BaseException:
                transaction.undo()
                raise

    def _record(self, happened: Event | Callable[[], Event]) -> Event:
        """Append an event under the write lock, then apply it; a callable makes the event once the
        lock is held."""
        transaction = Transaction(self)
        try:
            transaction.begin()
            event = happened if isinstance(happened, Event) else happened()
            event = refusals.meant(self.space, self._state, event)
            refusals.check_event(self.space, self._state, event)
            if len(event.rows) > 0:
                state = self._state.after(event)
                self._log.append(event)
                self._state = state
            transaction.commit()
        except BaseException:
            transaction.undo()
            raise
        return event

    @synchronized
    def _catch_up(self) -> None:
        """Apply the events of other processes."""
        if self._transaction is None:  # inside one, no other process can write
            self._follow(self._log.entries(self._state.number))

    def _follow(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            with snapshot.named(f"{self._log.name}: event {entry.number}"):
                event = Event.from_dict(
                    entry.kind, entry.body, self.space.region, self._read_fit, time=entry.at
                )
            self._state = self._state.after(event)

    def _forget_models(self) -> None:
        """Drop what follows from the state and is computed again if needed."""
        # the surrogate, the fit that it started from and the history that it is a model of
        self._surrogate: tuple[Surrogate, Fit | None, History] | None = None
        self._factors = Factors()
        # what the failures of a history say, and the parts of the history that they follow from
        self._failures: tuple[Rows, Marked, Works] | None = None

    def _after_fork(self) -> None:
        super()._after_fork()
        if self._transaction is not None:
            self._state, self._transaction = self._transaction.before, None
        self._forget_models()

    def _read_fit(self, value: object, at: str) -> Fit:
        return fit_schema(self._kernel, self.model)(value, at)

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

    @synchronized
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
        options: dict[str, Any] = {"diversity": refusals.distance(self.space, diversity)}
        if executor is not None:
            options["pool"] = as_pool(executor)
        self._catch_up()
        points = self.space.points(self._claim(lambda: self._choose(count, fixed, **options)))
        self._suggested = self._considered
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
                self._streams = self._streams.apart()
        return self._record(choose).rows

    def _still(self, chosen: Event, before: State) -> Event:
        """What was chosen in an earlier state, if it can be asked for in the present one."""
        images, repeats = self.space.group.with_images, self.repeats == "allow"
        return self._state.still(chosen, before, images, repeats=repeats)

    def _choose(self, count: int, fixed: dict[str, Any] | None, **options: Any) -> Event:
        """The next points to evaluate, as the event of asking for them."""
        feasible = refusals.held(self.space, fixed)
        repeats = self.repeats == "allow"
        refused = partial(refusals.exhausted, feasible, count, fixed=fixed, repeats=repeats)
        asking = self._asking()
        left = feasible.left(asking.seen, count)
        if left < count:
            raise refused(asking.distinct(feasible, left))
        with threads_for(len(self._history)):
            choices = asking.choose(self._state.asked, count, feasible, **options)
        if len(choices) < count:
            raise refused(len(choices), diversity=options.get("diversity", 1))
        chosen, surrogate = np.array([choice.row for choice in choices]), self._known_surrogate()
        self._considered = choices, surrogate
        if surrogate is None or choices[-1].acquisition is None:
            return Event("ask", chosen, fresh=self._state.fresh)
        new = None if surrogate.fit is self._state.committed else surrogate.fit
        return Event("ask", chosen, fit=new, fresh=True)

    def _asking(self) -> Asking:
        """How points are chosen, given the present history."""
        return Asking(
            self._tools, self._history, self._model_of_now, self._works, self._streams.asking,
            self._state.answered,
        )  # fmt: skip

    def _works(self) -> Works:
        """How likely evaluations are to work, by the present history."""
        history = self._history
        if self.model.failures == "ignore":
            return Always(self._kernel)
        known = self._failures
        if known is None or known[0] is not history.rows or known[1] is not history.failed:
            # a model of its own, which knows nothing of symmetries
            works = learn_works(Kernel(self._encoding), history.rows, history.stack(history.failed))
            known = self._failures = (history.rows, history.failed, works)
        return known[2]

    @property
    @synchronized
    def last_suggestions(self) -> Suggestions:
        """Why the last `ask` suggested its points: one `Suggestion` each, in their order. Empty
        before the first `ask`; not kept in files. ``.to_frame()`` makes a DataFrame."""
        choices, surrogate = self._suggested
        with threads_for(len(self._history)):  # predict here, not in ask, to keep ask fast
            return Suggestions(self.space, described(self.space, choices, surrogate))

    # -- the model -----------------------------------------------------------------------------

    @synchronized
    def draw(self, *, rng: np.random.Generator | None = None) -> Draw:
        """One posterior sample as an acquisition problem: `.bqm`, `.cqm`, `.value(point)` ...

        By default the draw that the next ``ask()`` will use (to suggest its minimum, or to start
        from there), the same until then; pass a generator for others, each under any of the sampled
        hyper-parameters. Without results it is a draw from the prior.
        """
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise SettingError(f"rng={rng!r} is not a numpy.random.Generator")
        self._catch_up()
        number = self._state.asked if rng is None else None
        rng = self._streams.asking(self._state.asked) if rng is None else rng
        with threads_for(len(self._history)):
            return self._asking().draw(number, self.space.feasible, rng=rng)

    def diversity(self, points: object) -> float:
        """In how many variables two of the points differ, on average over all pairs."""
        return diversity(self.space.rows(points))

    @synchronized
    def predict(self, points: object) -> Prediction:
        """Mean and standard deviation of the objective, without noise, at one or more points.

        Where a few results are wild, such as a 1e12 among ordinary ones, any chance of another
        would drown all else: there it is the median, and half of the width of the middle 68%."""
        self._catch_up()
        refusals.need_results(self._history, "nothing can be predicted")
        rows = self.space.rows(points)
        with threads_for(len(self._history)):
            return self._model_of_now().prediction(rows)

    @synchronized
    def explain(self, point: object = None, *, level: float = 0.95) -> Explanation:
        """What the model has learned: effects and interactions with intervals, importance, and
        leave-one-out predictions; with a point, also why that one."""
        from mercbo.explaining.explain import (
            explain,  # it takes a part of the time of `import mercbo`
        )

        self._catch_up()
        refusals.need_results(self._history, "there is nothing to explain")
        if not self.space.group.is_trivial:
            raise SettingError("a model with symmetries is not a product, and is not explained")
        row = None if point is None else refusals.one(self.space, point)[0]
        with threads_for(len(self._history)):
            now, told = self._model_of_now(), self._history
            averaged = now.averaged(rng=self._streams.explaining(len(told)))
            return explain(
                self.space, averaged, now.units, self.direction, told.rows, told.values,
                level=level, row=row,
            )  # fmt: skip

    def _model_of_now(self) -> Surrogate:
        """The model of the present results, fitted once; only an ask commits the fit."""
        known = self._known_surrogate()
        if known is None:
            known = Surrogate(
                self.model, self._kernel, self._history, self._sign, self._state.committed,
                keep=self._state.fresh, factors=self._factors,
                rng=self._streams.fitting(len(self._history)),
            )  # fmt: skip
            self._surrogate = known, self._state.committed, self._history
        return known

    def _known_surrogate(self) -> Surrogate | None:
        """The surrogate made before, if it is the one of the present results and fit."""
        if self._surrogate is None:
            return None
        surrogate, start, history = self._surrogate
        same_fit = any(self._state.committed is fit for fit in (start, surrogate.fit))
        return surrogate if same_fit and self._history.same_results(history) else None

    @property
    def _tools(self) -> Tools:
        called = self._backend_given or not is_wide(self._native)
        return Tools(
            self.space, self._encoding, self._native, self._kernel,
            self._sampler if called else None, self.model,
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

    # -- save and load -------------------------------------------------------------------------

    @synchronized
    def to_dict(self) -> dict[str, Any]:
        """The whole state in plain values; `from_dict` goes on from it."""
        self._catch_up()
        return snapshot.described(
            self.space, self._state, direction=self.direction, backend=self.backend,
            backend_given=self._backend_given, model=self.model, acquisition=self.acquisition,
            repeats=self.repeats, n_initial=self.n_initial, target_bounds=self.target_bounds,
            entropy=self._streams.entropy,
        )  # fmt: skip

    @classmethod
    def from_dict(
        cls, state: dict[str, Any], *, backend: object = None, where: Predicates | None = None
    ) -> Optimizer:
        """An optimizer in the state of `to_dict`; `backend` replaces the one it names, `where`
        gives the predicates of the space's `Where` constraints."""
        with snapshot.reading():
            described = snapshot.RUN(state, "")
            opt = cls(**snapshot.settings_of(described, backend, where))
            opt._state = snapshot.state_of(described, opt.space, opt._read_fit)
        return opt

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a JSON file, whole or not at all.

        Predicates (`Where`) cannot be written: a warning names those that `load` will want.
        """
        snapshot.write(path, self.to_dict())
        snapshot.warn_of_predicates(self.space, f"{path} does not hold", "load", stacklevel=3)

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
        with snapshot.named(path):
            opt = cls.from_dict(state, backend=backend, where=where)
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
        from mercbo.record.store import Store

        store = Store.open(storage)
        state = store.beginning()
        with snapshot.named(store.name):
            opt = cls.from_dict(state, backend=backend, where=where)
        opt._log, opt._state = store, replace(opt._state, number=1)
        opt._catch_up()
        return opt

    def _keep_in(self, storage: str) -> None:
        """Begin a stored run with the present state, its first event."""
        from mercbo.record.store import Store, masked

        shown = masked(storage)
        snapshot.warn_of_predicates(self.space, f"{shown} does not hold", "open", stacklevel=4)
        self._log = Store.create(storage, self.to_dict())
        self._state = replace(self._state, number=1)
