"""`Optimizer`: ask, tell, draw, predict, best, save, load. The only class with a state.

The walk of an `ask`: history -> index rows and standardised y -> hyper-parameters (`model.py`)
-> posterior -> draw -> acquisition problem -> backend -> repaired, polished, refined -> the best
that is new -> a dict of the user's values, marked pending. A `tell` checks and appends; it does no
model work.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from mercbo import backend as backends
from mercbo import snapshot
from mercbo.acquisition import thompson
from mercbo.arrays import Floats, Rows
from mercbo.design import keys, space_filling
from mercbo.encoding import Encoding
from mercbo.errors import (
    BackendError,
    NoResults,
    ResultError,
    SettingError,
    SpaceExhausted,
    StateError,
    choose,
)
from mercbo.inference import Data, Fit
from mercbo.kernel import Kernel
from mercbo.linalg import threads_for
from mercbo.model import Model
from mercbo.posterior import Posterior
from mercbo.quadratic import Draw
from mercbo.space import Point, Space, is_single

# First entry of a spawn key: which of the optimizer's independent random streams.
ASKING, FITTING = 0, 1
# Bounds of the default number of initial points, which otherwise is that of the variables.
FEWEST_INITIAL, MOST_INITIAL = 5, 20


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
    n_initial
        Points of a space-filling random design before the model takes over; told results count.
        By default the number of variables, but at least 5 and at most 20.
    seed
        The same seed and history give the same suggestions. None draws a fresh one.

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
        n_initial: int | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise SettingError(f"space={space!r} is not a Space")
        if model is not None and not isinstance(model, Model):
            raise SettingError(f"model={model!r} is not a Model")
        self.space = space
        self.direction = choose("direction", direction, ["minimize", "maximize"])
        self.backend = backend
        self.model = model or Model()
        self.n_initial = _default_initial(len(space))
        if n_initial is not None:
            self.n_initial = _count("n_initial", n_initial)
        self._sampler = backends.resolve(backend)
        self._entropy = _entropy(seed)
        self._asked = 0
        self._rows = np.zeros((0, len(space)), dtype=np.int64)
        self._values = np.zeros(0)
        self._failed: dict[bytes, Rows] = {}
        self._pending: dict[bytes, Rows] = {}
        # The fit of the last ask, where the next one starts, and whether no result came since.
        self._committed: Fit | None = None
        self._fresh = False
        self._surrogate: Surrogate | None = None

    # -- history -------------------------------------------------------------------------------

    @property
    def observations(self) -> list[Observation]:
        """Every result told, in the order told; replicates of a point stay apart."""
        points = self.space.points(self._rows)
        return [Observation(p, float(v)) for p, v in zip(points, self._values, strict=True)]

    @property
    def pending(self) -> list[Point]:
        """Points asked for and not yet told."""
        return self._points_of(self._pending)

    @property
    def failed(self) -> list[Point]:
        """Points whose result was NaN or None."""
        return self._points_of(self._failed)

    @property
    def best(self) -> Observation:
        """The observation with the best single value."""
        if len(self._values) == 0:
            raise NoResults("no result has been told yet, so there is no best")
        where = int(np.argmin(self._sign * self._values))
        point = self.space.points(self._rows[where : where + 1])[0]
        return Observation(point, float(self._values[where]))

    def __repr__(self) -> str:
        return (
            f"Optimizer({len(self.space)} variables, {self.direction}, "
            f"{len(self._values)} results, {len(self._failed)} failed, "
            f"{len(self._pending)} pending)"
        )

    def _points_of(self, rows: dict[bytes, Rows]) -> list[Point]:
        return self.space.points(self._stack(rows))

    def _stack(self, rows: dict[bytes, Rows]) -> Rows:
        return np.array(list(rows.values()), dtype=np.int64).reshape(len(rows), len(self.space))

    @property
    def _sign(self) -> float:
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def _seen(self) -> set[bytes]:
        return {*keys(self._rows), *self._failed, *self._pending}

    # -- tell ----------------------------------------------------------------------------------

    def tell(self, points: object, values: object) -> None:
        """Report results: one point and its value, or several and as many values.

        Points may be dicts, rows of values in the space's order or a DataFrame, in any order,
        asked for or not. NaN or None marks a failed evaluation: the point is not suggested again
        and not regressed on. A point told again keeps all its results. Where anything is wrong
        with the call, nothing of it is kept.
        """
        rows = self.space.rows(points)
        results = self._results(points, values)
        if len(rows) != len(results):
            raise ResultError(f"{len(rows)} points came with {len(results)} results")
        good = ~np.isnan(results)
        told = keys(rows)
        for found, row, fine in zip(told, rows, good, strict=True):
            self._pending.pop(found, None)
            if fine:
                self._failed.pop(found, None)
            else:
                self._failed[found] = row
        if good.any():
            self._rows = np.concatenate([self._rows, rows[good]])
            self._values = np.concatenate([self._values, results[good]])
            self._surrogate = None
            self._fresh = False

    def _results(self, points: object, values: object) -> Floats:
        if is_single(points):
            if _is_listed(values) and not isinstance(values, (str, bytes)):
                raise ResultError(f"one point takes one result, a list came: {values!r}")
            return np.array([_result(values, "")])
        if isinstance(values, (str, bytes, Mapping, Set)) or not _is_listed(values):
            raise ResultError(f"a list of points needs a list of results, got {values!r}")
        listed = list(values)  # type: ignore[call-overload]
        return np.array([_result(v, f"result {i}: ") for i, v in enumerate(listed)], dtype=float)

    # -- ask -----------------------------------------------------------------------------------

    @overload
    def ask(self) -> Point: ...

    @overload
    def ask(self, k: int) -> list[Point]: ...

    def ask(self, k: int | None = None) -> Point | list[Point]:
        """The next point to evaluate, or a list of the next `k`; they are pending until told.

        No point comes back that was told, failed or is pending. Where fewer than `k` such points
        are left, `SpaceExhausted` is raised and nothing is marked. ``ask(k)`` gives what `k` calls
        of ``ask()`` would.
        """
        count = 1 if k is None else _count("k", k)
        seen = self._seen
        left = self.space.size - len(seen)
        if left < count:
            raise SpaceExhausted(
                f"{count} asked for, {left} left: all other of the {self.space.size} points "
                "are told, failed or pending",
                left=left,
            )
        rows: list[Rows] = []
        modelled = not self._designing(len(self._pending) + count - 1)
        with threads_for(len(self._values)):
            for number in range(self._asked, self._asked + count):
                row = self._suggest(number, seen, rows)
                rows.append(row)
                seen.update(keys(row[np.newaxis]))
        chosen = np.stack(rows)
        self._pending.update(zip(keys(chosen), rows, strict=True))
        self._asked += count
        if modelled and self._surrogate is not None:
            self._committed, self._fresh = self._surrogate.fit, True
        points = self.space.points(chosen)
        return points[0] if k is None else points

    def _designing(self, waiting: int) -> bool:
        """Whether the next point, with `waiting` ones pending, belongs to the initial design."""
        return len(self._values) == 0 or len(self._values) + waiting < self.n_initial

    def _suggest(self, number: int, seen: set[bytes], batch: Sequence[Rows]) -> Rows:
        rng = self._rng(ASKING, number)
        if self._designing(len(self._pending) + len(batch)):
            placed = [self._rows, self._stack(self._pending), *(r[np.newaxis] for r in batch)]
            return space_filling(self.space, seen, np.concatenate(placed), rng=rng)
        draw = self._draw(number, rng)
        return thompson(draw, self._kernel, self._sampler, self._incumbents, seen, rng=rng)

    # -- the model -----------------------------------------------------------------------------

    def draw(self, *, rng: np.random.Generator | None = None) -> Draw:
        """One posterior sample as an acquisition problem: `.bqm`, `.cqm`, `.value(point)` ...

        By default the draw that the next ``ask()`` will use, the same until then; pass a
        generator for others. Without results it is a draw from the prior.
        """
        with threads_for(len(self._values)):
            return self._draw(self._asked, self._rng(ASKING, self._asked) if rng is None else rng)

    def predict(self, points: object) -> Prediction:
        """Mean and standard deviation of the objective, without noise, at one or more points."""
        if len(self._values) == 0:
            raise NoResults("no result has been told yet, so nothing can be predicted")
        rows = self.space.rows(points)
        with threads_for(len(self._values)):
            pairs = [posterior.predict(rows) for posterior in self._model_of_now().posteriors]
        means, variances = np.array([m for m, _ in pairs]), np.array([v for _, v in pairs])
        variance = variances.mean(axis=0) + means.var(axis=0)
        size, centre, spread = self._units
        mean = self._sign * (centre + spread * means.mean(axis=0)) * size
        return Prediction(mean, spread * np.sqrt(variance) * size)

    def _draw(self, number: int, rng: np.random.Generator) -> Draw:
        posteriors = self._model_of_now().posteriors
        sample = posteriors[number % len(posteriors)].draw(rng=rng)
        seen = [
            np.unique(self._rows, axis=0),
            self._stack(self._failed),
            self._stack(self._pending),
        ]
        return Draw(self.space, self._encoding, self._native, sample, np.concatenate(seen))

    def _model_of_now(self) -> Surrogate:
        """The model of the present results, fitted once; only an ask commits the fit."""
        if self._surrogate is None:
            # Through `size`, so that the largest floats do not overflow.
            size, centre, spread = self._units
            y = (self._sign * self._values / size - centre) / spread
            data = Data(self._kernel, self._rows, y)
            if self._fresh and self._committed is not None:
                fit = self._committed
            else:
                rng = self._rng(FITTING, len(y))
                fit = self.model.fit(data, self._committed, rng=rng)
            self._surrogate = Surrogate(self.model, data, fit)
        return self._surrogate

    @property
    def _units(self) -> tuple[float, float, float]:
        """Size of the results, and centre and spread of the results over their size."""
        if len(self._values) == 0:
            return 1.0, 0.0, 1.0
        size = float(np.abs(self._values).max()) or 1.0
        y = self._sign * self._values / size
        spread = float(np.std(y))
        # A spread below rounding is no spread.
        return size, float(np.mean(y)), spread if spread > 1e-14 else 1.0

    @property
    def _incumbents(self) -> Rows:
        """Points measured so far, best first."""
        return self._rows[np.argsort(self._sign * self._values, kind="stable")]

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding(self.space)

    @cached_property
    def _native(self) -> Encoding:
        native = Encoding(self.space, native=True)
        return self._encoding if native.labels == self._encoding.labels else native

    @cached_property
    def _kernel(self) -> Kernel:
        return Kernel(self._encoding)

    def _rng(self, *stream: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=stream))

    # -- save and load -------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The whole state in plain values; `from_dict` goes on from it."""
        return {
            "space": self.space.to_dict(),
            "direction": self.direction,
            "backend": self.backend if isinstance(self.backend, str) else None,
            "model": self.model.to_dict(),
            "n_initial": self.n_initial,
            "entropy": self._entropy,
            "asked": self._asked,
            "points": self.space.points(self._rows),
            "values": self._values.tolist(),
            "failed": self.failed,
            "pending": self.pending,
            "fit": self._committed.to_dict() if self._committed else None,
            "fresh": self._fresh,
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], *, backend: object = None) -> Optimizer:
        """An optimizer in the state of `to_dict`; `backend` replaces the one it names."""
        try:
            return cls._rebuilt(state, backend)
        except (StateError, BackendError):
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"not the whole state of a run ({error!r})") from error

    @classmethod
    def _rebuilt(cls, state: dict[str, Any], backend: object) -> Optimizer:
        named = state["backend"] if backend is None else backend
        if named is None:
            raise StateError(
                "the run used a sampler object as its backend, which a file cannot hold; "
                "pass it again: backend=..."
            )
        space = Space.from_dict(state["space"])
        opt = cls(
            space,
            direction=state["direction"],
            backend=named,
            model=Model(**state["model"]),
            n_initial=state["n_initial"],
            seed=state["entropy"],
        )
        if state["points"]:
            opt.tell(state["points"], state["values"])
        for name, home in (("failed", opt._failed), ("pending", opt._pending)):
            rows = space.rows(state[name])
            home.update(zip(keys(rows), rows, strict=True))
        opt._asked = _count("asked", state["asked"], least=0)
        _count("entropy", state["entropy"], least=0)
        opt._committed = Fit.from_dict(state["fit"]) if state["fit"] else None
        if opt._committed and {len(h.beta) for h in opt._committed.hypers} != {opt._kernel.n}:
            raise StateError("its fit does not belong to its space")
        opt._fresh = bool(state["fresh"])
        return opt

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to a JSON file, whole or not at all."""
        snapshot.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, backend: object = None) -> Optimizer:
        """Read a run back: its next suggestion is the one that the saved run would have given."""
        state = snapshot.read(path)
        try:
            return cls.from_dict(state, backend=backend)
        except StateError as error:
            raise StateError(f"{path}: {error}") from error


class Surrogate:
    """A fit and the posteriors that follow from it, built when they are first used."""

    def __init__(self, model: Model, data: Data, fit: Fit) -> None:
        self.fit = fit
        drawn = fit.hypers[1:] or fit.hypers
        self.posteriors = [Posterior(model, data, hyper) for hyper in drawn]


def _default_initial(variables: int) -> int:
    return min(max(variables, FEWEST_INITIAL), MOST_INITIAL)


def _count(name: str, given: int | None, *, least: int = 1) -> int:
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < least:
        raise SettingError(f"{name}={given!r} is not a whole number of at least {least}")
    return int(given)


def _entropy(seed: int | None) -> int:
    if seed is None:
        drawn = np.random.SeedSequence().entropy
        assert isinstance(drawn, int)
        return drawn
    return _count("seed", seed, least=0)


def _is_listed(value: object) -> bool:
    """Whether `value` holds several: a list, an array that is not 0-d, a Series."""
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _result(value: object, where: str) -> float:
    """A told result as a float; NaN and None say that the evaluation failed."""
    if value is None:
        return math.nan
    if isinstance(value, (str, bytes, complex, np.complexfloating)) or _is_listed(value):
        raise ResultError(f"{where}{value!r} is not a number")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ResultError(f"{where}{value!r} is not a number") from None
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ResultError(f"{where}{value!r} is infinite; tell NaN or None for a failed evaluation")
    return number
