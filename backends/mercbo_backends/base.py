"""`Backend`: what our samplers share around their solving: settings, conversion, timing."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import dimod

from mercbo.arrays import Bits, Floats, Index
from mercbo_backends.problem import Problem, bqm_samples, cqm_samples

Check = Callable[[str, object], Any]


class Backend(dimod.Sampler):
    """A dimod sampler of binary and of linearly constrained quadratic models.

    A subclass says in `checks` which settings it has and what each may be, and gives `solve`.
    Settings may be given at construction and, for one call, to `sample` and `sample_cqm`.
    """

    checks: ClassVar[dict[str, Check]] = {}
    # Whether what is returned is the minimum for certain (unless the time runs out): an `ask` then
    # also hands over which points must not come back.
    exact: ClassVar[bool] = False

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            self.checks[name](name, value)
        self._defaults = settings

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {name: [] for name in [*self.checks, "seed"]}

    @property
    def properties(self) -> Mapping[str, Any]:
        return {**self._defaults, "exact": self.exact}

    def sample(
        self, bqm: dimod.BinaryQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """States of a binary quadratic model, lowest energy first; keywords and `info` are those
        of the class."""
        started = time.perf_counter()
        problem = Problem.of_bqm(bqm)
        return bqm_samples(bqm, problem, *self._timed(problem, kwargs, seed, started))

    def sample_cqm(
        self, cqm: dimod.ConstrainedQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """Feasible states of a model with one-hot groups and linear constraints over binary
        variables, lowest first; where none was found, the set is empty and the status says why."""
        started = time.perf_counter()
        problem = Problem.of_cqm(cqm)
        return cqm_samples(cqm, problem, *self._timed(problem, kwargs, seed, started))

    def sample_form(
        self,
        linear: Floats,
        coupling: Floats,
        groups: Sequence[Index] = (),
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> Bits:
        """States (R, B) of linear . x + x' coupling x / 2 over bits, one of each group being 1:
        what `sample` and `sample_cqm` look for, without dimod's models on the way."""
        started = time.perf_counter()
        problem = Problem.of_form(linear, coupling, groups)
        settings = self._settings(kwargs)
        return self.search(problem, settings, started + settings.get("time_limit", math.inf), seed)

    def _settings(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        given = {**self._defaults, **self.remove_unknown_kwargs(**kwargs)}
        return {name: check(name, given[name]) for name, check in self.checks.items()}

    def _timed(
        self, problem: Problem, kwargs: dict[str, Any], seed: int | None, started: float
    ) -> tuple[Bits, dict[str, Any]]:
        settings = self._settings(kwargs)
        deadline = started + settings.get("time_limit", math.inf)
        states, info = self.solve(problem, settings, deadline, seed)
        return states, {**info, "timing": {"total": time.perf_counter() - started}}

    def search(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> Bits:
        """The states of `solve` alone; what only tells how good they are may be left out."""
        return self.solve(problem, settings, deadline, seed)[0]

    @abstractmethod
    def solve(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        """States and what is known about them; `deadline` is on `time.perf_counter`."""
