"""Backends by name and any sampler as a backend."""

import re
from typing import ClassVar

import dimod
import numpy as np
import pytest
from support.optimizer import MIXED, all_points, as_tuples, make, run, told

from mercbo import BackendError, Binary, Categorical, Space


class Stubborn(dimod.Sampler):
    """Answers every problem with the same bit everywhere: infeasible for every one-hot group."""

    parameters: dict = {}  # noqa: RUF012
    properties: dict = {}  # noqa: RUF012

    def __init__(self, bit: int, vartype: str = "BINARY"):
        self.bit, self.vartype = bit, vartype

    def sample(self, bqm, **_keywords):
        filled = np.full((1, bqm.num_variables), self.bit, dtype=np.int8)
        return dimod.SampleSet.from_samples(
            (filled, list(bqm.variables)), vartype=self.vartype, energy=[0.0]
        )


@pytest.mark.parametrize(
    "backend",
    [
        "graph-cut",
        "annealing",
        dimod.ExactSolver(),
        dimod.RandomSampler(),
        Stubborn(0),
        Stubborn(1),
        Stubborn(-1, "SPIN"),
    ],
    ids=["graph-cut", "annealing", "exact", "random", "zeros", "ones", "spins"],
)
def test_any_sampler_keeps_law_five(backend):
    space = Space(
        {
            "a": Categorical(list("abcde"), encoding="binary"),
            "b": Categorical(["x", "y", "z"]),
            "c": Binary(),
        }
    )
    opt = make(space, backend=backend, n_initial=2)
    asked = as_tuples(run(opt, 6)) + as_tuples(opt.ask(6))
    assert len(set(asked)) == 12
    assert set(asked) <= all_points(space)


def test_a_sampler_that_takes_a_seed_is_seeded():
    first, second = (make(backend=dimod.RandomSampler(), n_initial=1) for _ in range(2))
    assert run(first, 6) == run(second, 6)


def test_a_name_that_is_close_is_offered():
    with pytest.raises(BackendError, match=r"'graphcut'.*did you mean 'graph-cut'"):
        make(backend="graphcut")


@pytest.mark.parametrize("backend", ["", "zzz", None, 3, object()])
def test_what_is_no_backend_is_refused(backend):
    with pytest.raises(BackendError, match=re.escape(f"backend={backend!r}")):
        make(backend=backend)


class Answers:
    """A sampler that answers with whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def sample(self, _bqm):
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [{("wash", 1): 1}],
        dimod.SampleSet.from_samples([], "BINARY", energy=[]),
        dimod.SampleSet.from_samples([{"other": 1}], "BINARY", energy=[0.0]),
    ],
    ids=["none", "dicts", "no samples", "other variables"],
)
def test_an_answer_that_cannot_be_used_is_an_error_that_changes_nothing(answer):
    opt = told(MIXED, [1.0, 2.0, 3.0], backend=Answers(answer))
    before = opt.to_dict()
    with pytest.raises(BackendError, match="Answers"):
        opt.ask()
    assert opt.to_dict() == before


class Raises(dimod.Sampler):
    parameters: ClassVar[dict[str, object]] = {}
    properties: ClassVar[dict[str, object]] = {}

    def __init__(self, error: Exception) -> None:
        self.error = error

    def sample(self, bqm, **_):  # noqa: ARG002
        raise self.error


def test_a_refusal_names_the_backend_and_keeps_its_error():
    refusal = ValueError("no more than 12 spins")
    opt = told(MIXED, [1.0, 2.0, 3.0], backend=Raises(refusal))
    with pytest.raises(BackendError, match="Raises refused the model: no more than 12") as caught:
        opt.ask()
    assert caught.value.__cause__ is refusal
    # any other error is a fault, and no refusal
    fault = TypeError("unsupported operand")
    opt = told(MIXED, [1.0, 2.0, 3.0], backend=Raises(fault))
    with pytest.raises(TypeError) as raised:
        opt.ask()
    assert raised.value is fault


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        (Space.binary(40), "40 bits: 2.40 states are too many to try each, at most 28 bits are"),
        (
            Space({f"v{i}": Categorical(list("abcd")) for i in range(14)}),
            "268,435,456 points are too many to try each, at most 100,000,000 are tried",
        ),
    ],
    ids=["bits", "groups"],
)
def test_a_problem_too_large_for_a_backend_is_an_error_that_changes_nothing(space, complaint):
    opt = make(space, backend="exhaustive", n_initial=3)
    run(opt, 3)
    before = opt.to_dict()
    with pytest.raises(BackendError, match=f"Exhaustive refused the model: {complaint}") as caught:
        opt.ask()
    assert isinstance(caught.value.__cause__, ValueError)
    assert opt.to_dict() == before
