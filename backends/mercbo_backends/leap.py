"""D-Wave's Leap service: hybrid solvers and quantum processors as backends.

Any dimod sampler is a backend as it is, and so are those of dwave-system. What these classes add is
what a cloud service needs: settings that go with every call (time limit, reads, a label for the
dashboard), a sampler that is made at the first call and not when the object is, variables numbered
on the wire, and an answer that is waited for here, where an error says what was being solved.

    Optimizer(space, backend=LeapCqm(time_limit=5))       # one-hot groups and rules as constraints
    Optimizer(space, backend=LeapBqm(time_limit=3))       # penalties
    Optimizer(space, backend=LeapBqm(EmbeddingComposite(DWaveSampler()), num_reads=200))

Leap charges at least some seconds per call; `ask` makes one call per point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dimod

# What a problem is called in the dashboard of the service.
TITLE = "mercbo"


def _made(name: str) -> Any:
    try:
        from dwave import system
    except ImportError as error:
        raise ImportError("Leap needs dwave-system: pip install dwave-system") from error
    return getattr(system, name)()


class _Remote:
    default: str

    def __init__(self, sampler: Any = None, *, title: str = TITLE, **settings: Any) -> None:
        self._sampler = sampler
        self._settings = {"label": title, **settings}

    @property
    def sampler(self) -> Any:
        """The sampler of dwave-system, made when it is first needed."""
        if self._sampler is None:
            self._sampler = _made(self.default)
        return self._sampler

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Settings that a call may have; no seed, for the service has none."""
        return {name: [] for name in self._settings}

    @property
    def properties(self) -> Mapping[str, Any]:
        return {"settings": dict(self._settings)}

    def _answer(self, call: Any, model: Any, given: dict[str, Any]) -> dimod.SampleSet:
        found = call(model, **{**self._settings, **given})
        found.resolve()  # a cloud answers later; an error is to come from here
        return found


class LeapBqm(_Remote, dimod.Sampler):
    """A sampler of binary quadratic models: `LeapHybridSampler` unless another is given.

    >>> bqm = dimod.BinaryQuadraticModel({"a": -1.0, "b": 1.0}, {}, 0.0, "BINARY")
    >>> class Local:
    ...     def sample(self, bqm, time_limit=None, label=None):
    ...         return dimod.ExactSolver().sample(bqm)
    >>> LeapBqm(Local(), time_limit=3).sample(bqm).first.sample == {"a": 1, "b": 0}
    True
    """

    default = "LeapHybridSampler"

    def sample(self, bqm: dimod.BinaryQuadraticModel, **parameters: Any) -> dimod.SampleSet:
        numbered, labels = bqm.relabel_variables_as_integers(inplace=False)
        found = self._answer(self.sampler.sample, numbered, parameters)
        return found.relabel_variables(labels, inplace=False)


class LeapCqm(_Remote):
    """A sampler of constrained quadratic models: `LeapHybridCQMSampler` unless another is given."""

    default = "LeapHybridCQMSampler"

    def sample_cqm(
        self, cqm: dimod.ConstrainedQuadraticModel, **parameters: Any
    ) -> dimod.SampleSet:
        labels = dict(enumerate(cqm.variables))
        numbers = {label: number for number, label in labels.items()}
        numbered = cqm.relabel_variables(numbers, inplace=False)
        numbered.relabel_constraints({rule: f"c{i}" for i, rule in enumerate(cqm.constraints)})
        found = self._answer(self.sampler.sample_cqm, numbered, parameters)
        return found.relabel_variables(labels, inplace=False)
