"""Random calls on the random spaces of `worlds.py`, and the plainest account of what a run must
then say."""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st
from support.states import without_batches
from support.worlds import World, key

from mercbo import (
    MercboError,
    Model,
    NoResults,
    Observation,
    Optimizer,
    PointError,
    ResultError,
    SettingError,
    SpaceExhausted,
    backend,
    inference,
)
from mercbo.arrays import Rows
from mercbo.domain import feasible
from mercbo.domain.region import Region

# Points that one `ask` may be made to give, at most; each costs a solved acquisition problem.
MOST_ASKED = 5


@contextlib.contextmanager
def quick() -> Iterator[None]:
    """Poor fits, and a search for backends once only: neither is what a law speaks of."""
    poor = {"COLD_STARTS": inference.COLD_STARTS[:1], "SCREENING": 2}
    poor |= {"COLD_ITERATIONS": 3, "WARM_ITERATIONS": 3}
    found = functools.cache(backend.entry_points)
    with mock.patch.multiple(inference, **poor), mock.patch.object(backend, "entry_points", found):
        yield


@contextlib.contextmanager
def without_lists(unlisted: bool) -> Iterator[None]:
    """Small spaces treated as those too large to list, tables apart."""
    if not unlisted:
        yield
        return
    listing = feasible.listing

    def only_tables(region: Region, most: int) -> Rows | None:
        return listing(region, most) if region.table is not None else None

    with (
        mock.patch.object(feasible, "listing", only_tables),
        mock.patch.object(feasible, "RARE", 0),
    ):
        yield


# -- settings and steps ------------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {
        "n_initial": st.integers(1, 5),
        "direction": st.sampled_from(["minimize", "maximize"]),
        "repeats": st.sampled_from(["never", "never", "allow"]),
        "backend": st.sampled_from([*[None] * 12, *["exhaustive"] * 4, "annealing", "cp-sat"]),
        "model": st.sampled_from(
            [
                *[Model()] * 12,
                *[Model(failures="ignore")] * 6,
                Model(inference="hmc"),
                Model(posterior="truncated", weights="hierarchical"),
                Model(order=3),
            ]
        ),
        "seed": st.integers(0, 2**70),
    }
)
PICK = st.integers(0, 999)
# Where a point is taken from, and which one there.
SOURCES = ["pending", "told", "failed", "retried", "new", "any"]
POINT = st.tuples(st.sampled_from(SOURCES), PICK)
RESULT = st.one_of(
    st.integers(-3, 3),
    st.floats(-100, 100),
    st.sampled_from([None, math.nan, np.float32(0.5), 1e12, -1e-12]),
)
NUMBER = st.one_of(st.integers(-3, 3), st.floats(-100, 100))
STD = st.sampled_from([None, None, None, 0, 0.1, np.float64(1.0), 30])
FORM = st.sampled_from(["dict", "list", "tuple", "array"])
COUNT = st.sampled_from([None, None, 1, 2, 3, 4])
STEPS = {
    "look": st.tuples(),
    "reload": st.tuples(),
    "ask": st.tuples(COUNT),
    "fixed": st.tuples(COUNT, st.lists(PICK, max_size=5), PICK, st.booleans()),
    "drain": st.tuples(st.integers(0, 2)),
    "rounds": st.tuples(st.lists(NUMBER, min_size=1, max_size=3), FORM),
    "tell": st.tuples(POINT, RESULT, STD, FORM),
    "tell_many": st.tuples(st.lists(st.tuples(POINT, RESULT, STD), max_size=4), PICK, FORM),
    "fail": st.tuples(PICK, st.booleans()),
    "cancel": st.tuples(st.lists(PICK, min_size=1, max_size=2), FORM),
    "forget": st.tuples(st.lists(POINT, min_size=1, max_size=2), FORM),
    "amend": st.tuples(POINT, RESULT, STD, FORM),
    "retry": st.tuples(st.lists(PICK, min_size=1, max_size=2), FORM),
    "wrong": st.tuples(PICK, PICK, PICK),
}
WEIGHTS = {"rounds": 3, "ask": 2, "reload": 2, "fail": 2, "retry": 2, "wrong": 3}
STEP = st.one_of(
    [
        st.tuples(st.just(name), arguments)
        for name, arguments in STEPS.items()
        for _ in range(WEIGHTS.get(name, 1))
    ]
)


# -- the account -------------------------------------------------------------------------------


class Account:
    """What became of each point, in lists and dicts; a point is the tuple of its values."""

    def __init__(self) -> None:
        self.told: list[tuple[tuple, float, float | None]] = []
        self.failed: dict[tuple, None] = {}
        self.pending: dict[tuple, None] = {}
        self.retries: dict[tuple, None] = {}
        self.asked = 0

    @property
    def known(self) -> set[tuple]:
        return {point for point, _, _ in self.told}

    def seen(self, *, repeats: bool) -> set[tuple]:
        return {*self.failed, *self.pending, *(() if repeats else self.known)}

    def ask(self, points: list[tuple]) -> None:
        self.asked += len(points)
        for point in points:
            self.pending[point] = None
            self.retries.pop(point, None)

    def tell(self, point: tuple, value: float | None, std: float | None) -> None:
        self.pending.pop(point, None)
        self.retries.pop(point, None)
        if value is None or math.isnan(value):
            if point not in self.known:
                self.failed[point] = None
        else:
            self.failed.pop(point, None)
            self.told.append((point, float(value), None if std is None else float(std)))

    def forget(self, point: tuple) -> None:
        self.told = [entry for entry in self.told if entry[0] != point]
        self.failed.pop(point, None)
        self.retries.pop(point, None)

    def amend(self, point: tuple, value: float | None, std: float | None) -> None:
        places = [i for i, entry in enumerate(self.told) if entry[0] == point]
        if std is None and len(places) == 1:
            std = self.told[places[0]][2]
        waiting = dict(self.pending)
        self.forget(point)
        self.tell(point, value, std)
        self.pending = waiting
        if places and point not in self.failed:
            self.told.insert(places[0], self.told.pop())

    def retry(self, point: tuple) -> None:
        del self.failed[point]
        self.retries[point] = None


# -- a walk ------------------------------------------------------------------------------------


class Walk:
    """A run, from its first reload on a second one that is reloaded, and the account of both.

    The second run also asks for points one by one where the first asks for several, and alone is
    looked at and wrongly called: none of this may show.
    """

    def __init__(self, world: World, options: dict, folder: Path, tally: Counter) -> None:
        self.world, self.folder, self.tally = world, folder, tally
        self.repeats = options["repeats"] == "allow"
        self.better = min if options["direction"] == "minimize" else max
        self.names = world.space.names
        self.runs = [Optimizer(world.space, **options)]
        self.account = Account()

    @property
    def last(self) -> Optimizer:
        return self.runs[-1]

    def step(self, name: str, arguments: tuple) -> None:
        getattr(self, name)(*arguments)
        self.check()
        self.tally[name] += 1
        self.tally["steps"] += 1

    # -- points --------------------------------------------------------------------------------

    def point(self, values: tuple) -> dict:
        return dict(zip(self.names, values, strict=True))

    def pick(self, source: str, number: int) -> tuple:
        """A point of some kind, or any point where there is none of the kind."""
        account = self.account
        known = account.seen(repeats=False)
        found = {
            "pending": list(account.pending),
            "told": [point for point, _, _ in account.told],
            "failed": list(account.failed),
            "retried": list(account.retries),
            "new": [key(p) for p in self.world.points if key(p) not in known],
            "any": [],
        }[source] or list(map(key, self.world.points))
        return found[number % len(found)]

    def shown(self, values: tuple, form: str) -> object:
        if form == "dict":
            return dict(reversed(self.point(values).items()))
        if form == "array":
            return np.array(values, dtype=object)
        return values if form == "tuple" else list(values)

    def several(self, points: list[tuple], form: str) -> object:
        shown = [self.shown(values, form) for values in points]
        if form == "array" and points:
            return np.array(points, dtype=object).reshape(len(points), len(self.names))
        return tuple(shown) if form == "tuple" else shown

    # -- checks --------------------------------------------------------------------------------

    def check(self) -> None:
        account = self.account
        observations = [Observation(self.point(p), value) for p, value, _ in account.told]
        pending, failed, retries = (
            [self.point(p) for p in marked]
            for marked in (account.pending, account.failed, account.retries)
        )
        for opt in self.runs:
            # by their repr, which tells 1 from True
            assert repr(opt.observations) == repr(observations)
            assert repr(opt.pending) == repr(pending)
            assert repr(opt.failed) == repr(failed)
            state = opt.to_dict()
            assert state["retries"] == retries
            assert state["errors"] == [std for _, _, std in account.told]
            assert state["asked"] == account.asked
            self.check_best(opt, observations)
        if len(self.runs) > 1:
            assert without_batches(self.runs[0]) == without_batches(self.last)

    def check_best(self, opt: Optimizer, observations: list[Observation]) -> None:
        if not observations:
            for name in ("best", "best_observed"):
                with pytest.raises(NoResults):
                    getattr(opt, name)
            return
        best = self.better(observations, key=lambda o: o.value)
        assert opt.best_observed == best
        if not self.repeats:
            assert opt.best == best

    def refused(self, error: type[Exception], call: Callable[[Optimizer], object]) -> Exception:
        before = self.last.to_dict()
        with pytest.raises(error) as caught:
            call(self.last)
        assert isinstance(caught.value, MercboError)
        assert self.last.to_dict() == before
        return caught.value

    def both(self, call: Callable[[Optimizer], object]) -> None:
        for opt in self.runs:
            call(opt)

    # -- asking --------------------------------------------------------------------------------

    def ask(self, k: int | None, fixed: dict | None = None) -> None:
        count = 1 if k is None else k
        options = {} if fixed is None else {"fixed": fixed}
        wanted = fixed or {}
        among = {key(p) for p in self.world.points if all(p[n] == v for n, v in wanted.items())}
        seen = self.account.seen(repeats=self.repeats)
        left = among - seen
        if not among:
            # what predicates leave is found out by looking for points, as what is used up
            by_search = (PointError, SpaceExhausted) if self.world.predicates else PointError
            self.refused(by_search, lambda opt: opt.ask(count, **options))
            self.tally["impossible"] += 1
            return
        if len(left) < count:
            error = self.refused(SpaceExhausted, lambda opt: opt.ask(count, **options))
            assert error.left == len(left)
            self.tally["exhausted"] += 1
            return
        first = self.runs[0].ask(**options) if k is None else self.runs[0].ask(k, **options)
        asked = [first] if k is None else first
        if len(self.runs) > 1:
            assert [self.last.ask(**options) for _ in range(count)] == asked
            self.tally["compared"] += count
        found = list(map(key, asked))
        assert all(tuple(point) == self.names for point in asked)
        assert len(set(found)) == len(found) == count
        assert set(found) <= left
        again = [point for point in self.account.retries if point in left][:count]
        assert found[: len(again)] == again
        self.tally["modelled"] += len(self.account.told) >= self.runs[0].n_initial
        self.tally["asked again"] += len(again)
        self.tally["repeated"] += len(set(found) & self.account.known)
        self.account.ask(found)

    def fixed(self, k: int | None, picks: list[int], number: int, possible: bool) -> None:
        """An ask with some variables held, as at a point that may come or at one that may not."""
        model = self.point(self.pick("new", number))
        if self.world.others and not possible:
            model = self.world.others[number % len(self.world.others)]
        names = [self.names[pick % len(self.names)] for pick in picks]
        found = {name: model[name] for name in names}
        self.ask(k, found)

    def drain(self, more: int) -> None:
        """An ask for all that is left, or for more than that."""
        seen = self.account.seen(repeats=self.repeats)
        left = sum(key(p) not in seen for p in self.world.points)
        # a space that is not listed gives all that it has before it says that this is all
        counted = more and self.world.space.feasible.listed is not None
        if counted or (left + more and left <= MOST_ASKED):
            self.ask(left + more)

    def rounds(self, values: list[float], form: str) -> None:
        for value in values:
            before = set(self.account.pending)
            self.ask(None)
            for point in set(self.account.pending) - before:
                self.both(lambda opt, p=point, v=value: opt.tell(self.shown(p, form), v))
                self.account.tell(point, value, None)

    # -- telling -------------------------------------------------------------------------------

    def tell(self, source: tuple, value: object, std: object, form: str) -> None:
        point = self.pick(*source)
        self.both(lambda opt: opt.tell(self.shown(point, form), value, std=std))
        self.account.tell(point, value, std)

    def tell_many(self, told: list[tuple], errors: int, form: str) -> None:
        points = [self.pick(*source) for source, _, _ in told]
        values = [value for _, value, _ in told]
        stds = [std for _, _, std in told]
        # known errors: none, one for all, or one for each
        std, stds = [(None, [None] * len(told)), (0.5, [0.5] * len(told)), (stds, stds)][errors % 3]
        self.both(lambda opt: opt.tell(self.several(points, form), values, std=std))
        for entry in zip(points, values, stds, strict=True):
            self.account.tell(*entry)

    def fail(self, number: int, nan: bool) -> None:
        point = self.pick("pending", number)
        self.both(lambda opt: opt.tell(self.point(point), math.nan if nan else None))
        self.account.tell(point, None, None)

    # -- correcting ----------------------------------------------------------------------------

    def correct(self, name: str, points: list[tuple], form: str, allowed: set) -> bool:
        """Call a method with one point or with several; whether that was allowed."""
        alone = len(points) == 1
        shown = self.shown(points[0], form) if alone else self.several(points, form)
        if not set(points) <= allowed:
            self.refused(PointError, lambda opt: getattr(opt, name)(shown))
            return False
        self.both(lambda opt: getattr(opt, name)(shown))
        self.tally[f"did {name}"] += 1
        return True

    def cancel(self, picks: list[int], form: str) -> None:
        points = [self.pick("pending", number) for number in picks]
        if self.correct("cancel", points, form, set(self.account.pending)):
            for point in points:
                self.account.pending.pop(point, None)

    def forget(self, sources: list[tuple], form: str) -> None:
        points = [self.pick(*source) for source in sources]
        if self.correct("forget", points, form, self.account.known | set(self.account.failed)):
            for point in points:
                self.account.forget(point)

    def retry(self, picks: list[int], form: str) -> None:
        points = [self.pick("failed", number) for number in picks]
        if self.correct("retry", points, form, set(self.account.failed)):
            for point in dict.fromkeys(points):
                self.account.retry(point)

    def amend(self, source: tuple, value: object, std: object, form: str) -> None:
        point = self.pick(*source)
        shown = self.shown(point, form)
        if point not in self.account.known | set(self.account.failed):
            self.refused(PointError, lambda opt: opt.amend(shown, value, std=std))
            return
        self.both(lambda opt: opt.amend(shown, value, std=std))
        self.account.amend(point, value, std)
        self.tally["did amend"] += 1

    # -- looking, saving -----------------------------------------------------------------------

    def look(self) -> None:
        before = self.last.to_dict()
        drawn = self.last.draw()
        assert math.isfinite(drawn.value(self.world.points[0]))
        if self.account.told:
            told = [self.point(p) for p in dict.fromkeys(p for p, _, _ in self.account.told)]
            mean, std = self.last.predict(told)
            assert np.isfinite(mean).all()
            assert (std >= 0).all()
            best = self.last.best
            assert best.point in told
            if self.repeats:
                assert best.value == pytest.approx(self.better(mean.tolist()), rel=1e-9, abs=1e-9)
        assert self.last.to_dict() == before

    def reload(self) -> None:
        path = self.folder / "run.json"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.last.save(path)
        assert len(caught) == bool(self.world.predicates)
        back = Optimizer.load(path, where=self.world.predicates)
        assert back.space == self.world.space
        self.runs = [self.runs[0], back]

    # -- wrong calls ---------------------------------------------------------------------------

    def wrong(self, kind: int, number: int, place: int) -> None:
        """One of the calls that must be refused and change nothing."""
        calls = [*self.wrong_points(number, place), *self.wrong_results(number)]
        calls += [*self.wrong_asks(number, place), *self.wrong_corrections(number)]
        self.refused(*calls[kind % len(calls)])

    def wrong_points(self, number: int, place: int) -> Iterator[tuple]:
        good = self.point(self.pick("any", number))
        name = self.names[place % len(self.names)]
        without = {n: v for n, v in good.items() if n != name}
        wrong = [
            {**good, "unknown": 1},
            without,
            {**without, "unknown": 1},
            {**good, name: "no such value"},
            {**good, name: [good[name]]},
            [*good.values(), 0],
            list(without.values()),
            None,
            "text",
        ]
        wrong += [self.world.others[number % len(self.world.others)]] if self.world.others else []
        for point in wrong:
            if point != []:  # no points at all, where there is one variable
                yield PointError, lambda opt, p=point: opt.tell(p, 1.0)
            yield PointError, lambda opt, p=point: opt.tell([good, p], [1.0, 2.0])
            yield PointError, lambda opt, p=point: opt.amend([good, p], 1.0)
            yield PointError, lambda opt, p=point: opt.cancel([good, p])
        yield PointError, lambda opt: opt.forget([good, {}])
        yield PointError, lambda opt: opt.retry([good, {}])
        if self.account.told:
            yield PointError, lambda opt: opt.predict([good, {**good, "unknown": 1}])
        else:
            yield NoResults, lambda opt: opt.predict(good)

    def wrong_results(self, number: int) -> Iterator[tuple]:
        good = self.point(self.pick("any", number))
        wrong = [math.inf, -math.inf, "1", 1j, 10**400, [1.0], object()]
        for value in wrong:
            yield ResultError, lambda opt, v=value: opt.tell(good, v)
            yield ResultError, lambda opt, v=value: opt.tell([good, good], [1.0, v])
        for std in (-1.0, math.inf, "1", [1.0]):
            yield ResultError, lambda opt, s=std: opt.tell(good, 1.0, std=s)
            yield ResultError, lambda opt, s=std: opt.tell([good] * 2, [1.0] * 2, std=[0.1, s])
        yield ResultError, lambda opt: opt.tell([good] * 2, [1.0] * 3)
        yield ResultError, lambda opt: opt.tell([good] * 2, 1.0)
        yield ResultError, lambda opt: opt.tell([good] * 2, [1.0] * 2, std=[0.1] * 3)
        if self.account.told:
            known = self.point(self.pick("told", number))
            for value in wrong:
                yield ResultError, lambda opt, v=value: opt.amend(known, v)
            yield ResultError, lambda opt: opt.amend(known, 1.0, std=-1.0)
            yield PointError, lambda opt: opt.amend([known], [1.0])

    def wrong_asks(self, number: int, place: int) -> Iterator[tuple]:
        name = self.names[place % len(self.names)]
        for k in (0, -1, 1.5, "1", True):
            yield SettingError, lambda opt, k=k: opt.ask(k)
        for fixed in ({"unknown": 1}, {name: "no such value"}, {name: [0]}, [name], name):
            yield PointError, lambda opt, f=fixed: opt.ask(fixed=f)
        if self.world.others and not self.world.predicates:
            other = self.world.others[number % len(self.world.others)]
            yield PointError, lambda opt: opt.ask(2, fixed=other)

    def wrong_corrections(self, number: int) -> Iterator[tuple]:
        known = self.account.known | set(self.account.failed)
        marked = {
            "cancel": set(self.account.pending),
            "retry": set(self.account.failed),
            "forget": known,
            "amend": known,
        }
        for name, fine in marked.items():
            strange = [key(p) for p in self.world.points if key(p) not in fine]
            if not strange:
                continue
            arguments = (1.0,) if name == "amend" else ()
            points = [self.point(strange[number % len(strange)])]
            yield (
                PointError,
                lambda opt, n=name, p=points[0], a=arguments: getattr(opt, n)(p, *a),
            )
            points = [self.point(p) for p in list(fine)[:1]] + points
            yield PointError, lambda opt, n=name, p=points, a=arguments: getattr(opt, n)(p, *a)
