"""`MercboSampler`: mercbo as a sampler of Optuna studies.

>>> import optuna
>>> from mercbo.optuna import MercboSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> def objective(trial):
...     base = trial.suggest_categorical("base", ["A", "C", "G", "T"])
...     return trial.suggest_int("n", 1, 6) + 10 * (base != "G")
>>> study = optuna.create_study(sampler=MercboSampler(seed=0))
>>> study.optimize(objective, n_trials=18)
>>> study.best_params
{'base': 'G', 'n': 1}

The walk of a trial: the finished trials of the study say which parameters there are and which of
them come together (`decompose`); each such group is a `Space` of *levels*, the positions of the
values on the axis of a parameter (`Axis`); an `Optimizer` is built in the state that the study's
trials say (`Record`) and asked for one point. All that a sampler keeps between trials is the
last fit of each group, from where the next one starts, so that a study may be continued by any
process, on any storage. This file uses public names of mercbo only.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Space, SpaceExhausted
from mercbo.errors import SettingError

try:
    import optuna
except ImportError as error:
    raise ImportError("mercbo.optuna needs Optuna: pip install 'mercbo[optuna]'") from error

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers._base import _process_constraints_after_trial
from optuna.trial import FrozenTrial, TrialState

log = logging.getLogger(__name__)

# An axis has at most so many levels; a numeric parameter with more values is put on a grid of them.
MOST_LEVELS = 64
# Levels of a float parameter without a step.
FLOAT_LEVELS = 16
# Times that a point is chosen anew because another process has just taken the same one.
ATTEMPTS = 8
# Failures without any result from which on some of a trial's parameters are taken to be to blame,
# where it has others as well.
OFTEN = 3
# The system attribute, in pieces, by which a running trial tells others of its point; an RDB
# storage holds 2045 characters in one.
CLAIM, PIECE = "mercbo:point", 2000
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)
# The streams of an optimizer are numbered by trial; those of further attempts come after.
ATTEMPT_STRIDE = 1 << 26


class MercboSampler(optuna.samplers.BaseSampler):
    """Bayesian optimisation over discrete parameters with Mercer features.

    Categorical, bool and int parameters are taken as they are, and so are floats with a step, up to
    64 values each; of more, a grid of 64 is used, evenly spaced in the logarithm where the
    parameter is declared so (``log=True`` changes nothing up to 64 values: neighbours are alike).
    Floats without a step are put on a grid of `float_levels`. Of choices that are equal in Python,
    such as 0 and False, the first is used: Optuna stores the others as that one.

    Trials that run in other threads and processes are pending points: their outcome is not guessed.
    While there are some, a suggestion minimises a function drawn from the posterior (Thompson
    sampling). No point is suggested twice, not even by processes that ask at the same moment,
    except where (a) every point has been tried, which is logged, (b) the study has parameters that
    some trials lack or that another sampler chooses, since the same point of one group of
    parameters is then no repeated trial, (c) trials start before the first one has ended, since
    Optuna then knows no parameters; give `search_space` to avoid that, or (d) processes have chosen
    the same point several times in step, as when a few are left, which is logged.

    Failed trials, and those that break a constraint, are not tried again, and a model of where they
    happen keeps away from there. A pruned trial counts with the last value that it reported, but
    at best as the median of the complete ones; one that reported none has failed. Infinite values
    count as the worst, or best, finite one.

    Parameters
    ----------
    seed
        The same seed gives the same study, with ``n_jobs=1``.
    float_levels
        Points of the grid of a float parameter; None hands floats to the independent sampler.
    n_startup_trials
        Trials of a space-filling design before the model takes over. By default the number of
        parameters, but at least 5 and at most 20.
    search_space
        The parameters and their distributions, where they are known before the first trial.
    independent_sampler
        For parameters that are not in the model: those of the first trial, new ones, and floats
        with ``float_levels=None``. By default a `RandomSampler`.
    constraints_func
        As of Optuna's samplers: called with a finished trial, gives numbers of which those above
        zero are violations. (What `Trial.set_constraint` says is used as well.)
    acquisition
        "auto", "ei", "mes", "lcb" or "thompson", as of `Optimizer`; "auto" here is "thompson" while
        other trials are running.
    backend, model
        As of `Optimizer`.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        float_levels: int | None = FLOAT_LEVELS,
        n_startup_trials: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        independent_sampler: optuna.samplers.BaseSampler | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        acquisition: str = "auto",
        backend: object = None,
        model: Model | None = None,
    ) -> None:
        if float_levels is not None and not 2 <= float_levels <= MOST_LEVELS:
            raise SettingError(f"float_levels={float_levels!r} is not from 2 to {MOST_LEVELS}")
        # wrong settings are refused now, not in the middle of a study
        Optimizer(
            Space.binary(1), backend=backend, model=model, acquisition=acquisition,
            n_initial=n_startup_trials, seed=seed,
        )  # fmt: skip
        self._entropy = seed
        self._float_levels = float_levels
        self._n_startup_trials = n_startup_trials
        self._search_space = checked_search_space(search_space)
        self._independent = independent_sampler or optuna.samplers.RandomSampler(seed=seed)
        self._constraints_func = constraints_func
        self._acquisition = acquisition
        self._backend = backend
        self._model = model
        self._fits: dict[object, dict[str, Any]] = {}
        self._warned: set[str] = set()
        # threads of one study would choose in step: each sees what the other has just claimed,
        # both choose anew, and so on
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    # -- what Optuna calls ---------------------------------------------------------------------

    def reseed_rng(self) -> None:
        self._entropy = None
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del trial
        self._refuse_several_objectives(study)
        groups = self._groups(study.get_trials(deepcopy=False, states=FINISHED))
        return {axis.name: axis.distribution for group in groups for axis in group.axes}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._refuse_several_objectives(study)
        if not search_space:
            return {}
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            finished = [other for other in trials if other.state in FINISHED]
            found: dict[str, Any] = {}
            for group in self._groups(finished, search_space):
                point = self._suggest(study, trial, trials, group)
                found.update(group.params(point))
        return found

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        self._refuse_several_objectives(study)
        if trial.number > 0 and param_name not in self._warned:
            self._warned.add(param_name)
            log.info(
                "%r of trial %d is sampled by %s: no finished trial had it, or it is not discrete",
                param_name, trial.number, type(self._independent).__name__,
            )  # fmt: skip
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._independent.before_trial(study, trial)

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        self._independent.after_trial(study, trial, state, values)

    def _refuse_several_objectives(self, study: optuna.Study) -> None:
        if len(study.directions) > 1:
            raise ValueError(
                f"MercboSampler optimises one objective, the study has {len(study.directions)}; "
                "use TPESampler or NSGAIISampler, or combine them to one value"
            )

    # -- one suggestion ------------------------------------------------------------------------

    def _groups(
        self,
        finished: Iterable[FrozenTrial],
        wanted: Mapping[str, BaseDistribution] | None = None,
    ) -> list[Group]:
        """The groups of parameters, as the finished trials have them; with `wanted`, of these
        parameters and with these distributions."""
        spaces = [self._search_space] if self._search_space else []
        spaces += [trial.distributions for trial in finished]
        if wanted is not None:
            known = {name for space in spaces for name in space}
            spaces.append({name: d for name, d in wanted.items() if name not in known})
        latest = {name: d for space in spaces for name, d in space.items()} | dict(wanted or {})
        axes = {name: axis_of(name, d, self._float_levels) for name, d in latest.items()}
        several = {name for name, distribution in latest.items() if not distribution.single()}
        names = [[name for name in space if name in several] for space in spaces]
        parts = decompose(names)
        groups = []
        for part in parts:
            chosen = [axes[name] for name in part if wanted is None or name in wanted]
            native = tuple(axis for axis in chosen if axis is not None)
            if native:
                groups.append(Group(native, whole=len(parts) == 1 and len(native) == len(part)))
        return groups

    def _suggest(
        self, study: optuna.Study, trial: FrozenTrial, trials: Sequence[FrozenTrial], group: Group
    ) -> Point:
        fixed = group.known(trial.system_attrs.get("fixed_params", {}))
        if len(fixed) == len(group.axes):
            return fixed
        for attempt in range(ATTEMPTS):
            record = Record.of(group, trials, trial.number, study.direction.name.lower())
            try:
                point = self._ask(study, record, fixed, trial.number + attempt * ATTEMPT_STRIDE)
            except SpaceExhausted as error:
                log.warning("trial %d repeats an earlier one: %s", trial.number, error)
                return self._ask(study, record.without_bars(), fixed, trial.number)
            if not group.whole:
                return point
            claim(study, trial, group, point, attempt)
            trials = study.get_trials(deepcopy=False)
            if not Record.of(group, trials, trial.number, record.direction).has(point):
                return point
            log.debug("trial %d: %s was taken meanwhile", trial.number, point)
        log.warning("trial %d may repeat one that runs elsewhere", trial.number)
        return point

    def _ask(self, study: optuna.Study, record: Record, fixed: Point, number: int) -> Point:
        key = study.study_name, record.group.axes
        state = self._state(
            record.group.space,
            direction=record.direction,
            acquisition="thompson" if self._is_parallel(record) else self._acquisition,
            repeats=record.repeats,
        )
        state |= record.state()
        state["asked"] = number
        state["metadata"] = None  # a trial keeps its own
        last = self._fits.get(key)
        if last is not None:
            state["fit"] = last["fit"]
            same = (state["points"], state["values"]) == (last["points"], last["values"])
            state["fresh"] = last["fresh"] and same
        opt = Optimizer.from_dict(state, backend=self._backend)
        point = opt.ask(fixed=fixed or None)
        after = opt.to_dict()
        self._fits[key] = {name: after[name] for name in ("fit", "fresh", "points", "values")}
        return {name: int(level) for name, level in point.items()}  # type: ignore[arg-type]

    def _is_parallel(self, record: Record) -> bool:
        return self._acquisition == "auto" and record.running > 0

    def _state(self, space: Space, **settings: Any) -> dict[str, Any]:
        """The state of an optimizer without results."""
        opt = Optimizer(
            space,
            backend=self._backend,
            model=self._model,
            n_initial=self._n_startup_trials,
            seed=self._entropy,
            **settings,
        )
        state = opt.to_dict()
        if self._entropy is None:
            # drawn at the first use, so that copies in several processes differ
            self._entropy = state["entropy"]
        return state


def checked_search_space(given: object) -> dict[str, BaseDistribution]:
    """The parameters that are known beforehand; none where none are given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SettingError(f"search_space={given!r} is not a dict of name: distribution")
    for name, distribution in given.items():
        if not isinstance(distribution, BaseDistribution):
            raise SettingError(
                f"search_space: {name!r} is {distribution!r}; a distribution of Optuna was wanted, "
                "such as CategoricalDistribution([1, 2])"
            )
    return dict(given)


# -- parameters as variables -------------------------------------------------------------------

Point = dict[str, int]  # the level of each parameter


@dataclass(frozen=True)
class Axis:
    """A parameter as a list of values, which mercbo knows by their positions, the levels."""

    name: str
    distribution: BaseDistribution
    values: tuple[Any, ...]

    @property
    def variable(self) -> Binary | Categorical | Integer:
        if len(self.values) == 2:
            return Binary()
        if isinstance(self.distribution, CategoricalDistribution):
            return Categorical(range(len(self.values)))
        return Integer(0, len(self.values) - 1)

    def level(self, value: Any) -> int | None:
        """The position of a value, on a grid that of the nearest; None where it is outside."""
        try:
            internal = self.distribution.to_internal_repr(value)
        except ValueError:
            return None
        if not self.distribution._contains(internal):
            return None
        if isinstance(self.distribution, CategoricalDistribution):
            return self._choices.index(int(internal))
        return int(np.argmin(np.abs(self._scale - self._scaled(internal))))

    @cached_property
    def _choices(self) -> list[int]:
        """The positions of the values among the choices, of which `_told_apart` may leave some out;
        no value has the number of one that is."""
        return [int(self.distribution.to_internal_repr(value)) for value in self.values]

    @cached_property
    def _scale(self) -> Any:
        return self._scaled(np.array(self.values, dtype=float))

    def _scaled(self, values: Any) -> Any:
        return np.log(values) if self.distribution.log else values


def axis_of(name: str, distribution: BaseDistribution, float_levels: int | None) -> Axis | None:
    """The axis of a parameter; None for one that is left to the independent sampler."""
    if isinstance(distribution, CategoricalDistribution):
        return Axis(name, distribution, _told_apart(distribution))
    if isinstance(distribution, IntDistribution):
        return Axis(name, distribution, tuple(map(int, _steps(distribution))))
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        values = np.clip(_steps(distribution), distribution.low, distribution.high)
        return Axis(name, distribution, tuple(values.tolist()))
    if isinstance(distribution, FloatDistribution) and float_levels is not None:
        spaced = np.geomspace if distribution.log else np.linspace
        inner = spaced(distribution.low, distribution.high, float_levels)[1:-1].tolist()
        return Axis(name, distribution, (distribution.low, *inner, distribution.high))
    return None


def _told_apart(distribution: CategoricalDistribution) -> tuple[Any, ...]:
    """The choices, of equal ones (0 and False) the first: Optuna stores the others as that one, so
    that they would never count as tried."""
    numbered = enumerate(distribution.choices)
    return tuple(c for index, c in numbered if distribution.to_internal_repr(c) == index)


def _steps(distribution: IntDistribution | FloatDistribution) -> Any:
    """The values of a stepped parameter, or a grid of `MOST_LEVELS` of them."""
    low, high, step = distribution.low, distribution.high, distribution.step
    count = round((high - low) / step) + 1
    if count <= MOST_LEVELS:
        return low + step * np.arange(count)
    if distribution.log:
        return np.unique(np.rint(np.geomspace(low, high, MOST_LEVELS)))
    return low + step * np.unique(np.rint(np.linspace(0, count - 1, MOST_LEVELS)))


@dataclass(frozen=True)
class Group:
    """Parameters that always come together. `whole`: the trials of the study have no others, so
    that a point of the group is a whole trial."""

    axes: tuple[Axis, ...]
    whole: bool

    @cached_property
    def space(self) -> Space:
        return Space({axis.name: axis.variable for axis in self.axes})

    def params(self, point: Point) -> dict[str, Any]:
        return {axis.name: axis.values[point[axis.name]] for axis in self.axes}

    def known(self, params: Mapping[str, Any]) -> Point:
        """The levels of those parameters of the group that `params` has, within their range."""
        levels = {a.name: a.level(params[a.name]) for a in self.axes if a.name in params}
        return {name: level for name, level in levels.items() if level is not None}

    def point(self, trial: FrozenTrial) -> Point | None:
        """The point that a trial has, or will have: enqueued parameters and claims count."""
        params = dict(trial.params)
        if not trial.state.is_finished():
            claims = claimed(trial)
            said = {
                axis.name: axis.distribution.to_external_repr(claims[axis.name])
                for axis in self.axes
                if axis.name in claims
            }
            params = {**said, **trial.system_attrs.get("fixed_params", {}), **params}
        found = self.known(params)
        return found if len(found) == len(self.axes) else None


def decompose(spaces: Iterable[Iterable[str]]) -> list[list[str]]:
    """The coarsest groups of names of which each space has all or none, in a fixed order.

    >>> decompose([["x", "kind"], ["kind", "y", "z"]])
    [['kind'], ['x'], ['y', 'z']]
    """
    groups: list[set[str]] = []
    for names in dict.fromkeys(map(frozenset, spaces)):
        rest, split = set(names), []
        for group in groups:
            split += [group & names, group - names]
            rest -= group
        groups = [group for group in [*split, rest] if group]
    return sorted(sorted(group) for group in groups)


# -- trials as results -------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """What the trials of a study say of a group of parameters."""

    group: Group
    direction: str
    told: list[tuple[Point, float]]
    failed: list[Point]
    taken: list[Point]  # of trials that run, or wait with all their parameters given
    running: int  # other trials that run
    repeats: str

    @classmethod
    def of(cls, group: Group, trials: Sequence[FrozenTrial], number: int, direction: str) -> Record:
        """The trials but that with this number."""
        others = [trial for trial in trials if trial.number != number]
        values = outcomes(others, 1.0 if direction == "minimize" else -1.0)
        told: list[tuple[Point, float]] = []
        failed: list[Point] = []
        taken: list[Point] = []
        for trial in others:
            point = group.point(trial)
            if point is None:
                continue
            if trial.number in values:
                told.append((point, values[trial.number]))
            elif group.whole or trial.state.is_finished():
                (failed if trial.state.is_finished() else taken).append(point)
        if not group.whole:
            # others than these parameters may be to blame, and differ as well
            counts = Counter(tuple(point.items()) for point in failed)
            failed = [dict(point) for point, count in counts.items() if count >= OFTEN]
        running = sum(trial.state == TrialState.RUNNING for trial in others)
        repeats = "never" if group.whole else "allow"
        return cls(group, direction, told, failed, taken, running, repeats)

    def has(self, point: Point) -> bool:
        return any(point == other for other, _ in self.told) or point in self.failed + self.taken

    def without_bars(self) -> Record:
        """As if any point could be tried again."""
        return Record(self.group, self.direction, self.told, [], [], self.running, "allow")

    def state(self) -> dict[str, Any]:
        """What an `Optimizer` that was told this would say of its history."""
        points = [point for point, _ in self.told]
        names = self.group.space.names
        tried = {tuple(point[name] for name in names) for point in points}
        failed = [p for p in self.failed if tuple(p[name] for name in names) not in tried]
        return {
            "points": points,
            "values": [value for _, value in self.told],
            "errors": [None] * len(points),
            "failed": failed,
            "pending": self.taken,
            "answered": len(points) + len(failed),
        }


def outcomes(trials: Iterable[FrozenTrial], sign: float) -> dict[int, float]:
    """The value of each trial that has one, by number; +1 as `sign` means that less is better."""
    good = [trial for trial in trials if trial.state in FINISHED and not violates(trial)]
    complete = {t.number: t.value for t in good if t.state == TrialState.COMPLETE}
    finite = [sign * value for value in complete.values() if math.isfinite(value)]
    if not finite:
        return {}
    found = {n: sign * min(max(sign * v, min(finite)), max(finite)) for n, v in complete.items()}
    middle = float(np.median(finite))
    for trial in good:
        last = trial.intermediate_values.get(trial.last_step, math.nan)
        if trial.state == TrialState.PRUNED and math.isfinite(last):
            found[trial.number] = sign * max(sign * last, middle)
    return found


def violates(trial: FrozenTrial) -> bool:
    """Whether a trial breaks a constraint, as written by `constraints_func` (one list) or by
    `Trial.set_constraint` (one attribute each)."""
    listed = list(trial.system_attrs.get("constraints") or ())
    named = [v for k, v in trial.system_attrs.items() if k.startswith("constraints:")]
    return any(value > 0 for value in [*listed, *named])


def claim(
    study: optuna.Study, trial: FrozenTrial, group: Group, point: Point, attempt: int
) -> None:
    """Write the point of a trial where others see it, before its parameters are asked for.

    Of two processes that claim the same point, at least one sees the other's claim when it looks
    afterwards, and chooses anew; so both never keep it.
    """
    params = group.params(point)
    internal = {a.name: a.distribution.to_internal_repr(params[a.name]) for a in group.axes}
    text = json.dumps(internal)
    for number, start in enumerate(range(0, len(text), PIECE)):
        key = f"{CLAIM}:{attempt}:{number}"
        study._storage.set_trial_system_attr(trial._trial_id, key, text[start : start + PIECE])


def claimed(trial: FrozenTrial) -> dict[str, float]:
    """The point that a trial claimed last, by Optuna's internal numbers."""
    for attempt in range(ATTEMPTS - 1, -1, -1):
        pieces: list[str] = []
        while (piece := trial.system_attrs.get(f"{CLAIM}:{attempt}:{len(pieces)}")) is not None:
            pieces.append(piece)
        try:
            return dict(json.loads("".join(pieces)))
        except ValueError:  # not written, or not to its end: no part of an object reads as one
            continue
    return {}
