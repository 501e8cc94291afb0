"""Backends by name and any sampler as a backend."""

import json
import re
from typing import ClassVar

import dimod
import numpy as np
import pytest
from mercbo_backends import GraphCut
from support.kinds import Plain
from support.optimizer import MIXED, all_points, as_tuples, make, plain, reloaded, run, told

from mercbo import BackendError, Binary, Categorical, Integer, Optimizer, Space


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


@pytest.mark.parametrize("backend", ["", "zzz", False, 3, object()])
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


# -- which problems a backend is called for ----------------------------------------------------

WIDE_SPACE = Space({"a": Integer(0, 39), "b": Integer(0, 39)})


@pytest.fixture
def few_bits(monkeypatch):
    """Problems of more than 40 bits have too many for the default backend."""
    monkeypatch.setattr("mercbo.quadratic.WIDE", 40)


@pytest.fixture
def graph_cuts(monkeypatch):
    """The number of calls of the default backend, as a list of that length."""
    calls = []
    answered = GraphCut.sample_form

    def counted(self, *args, **options):
        calls.append(1)
        return answered(self, *args, **options)

    monkeypatch.setattr(GraphCut, "sample_form", counted)
    return calls


@pytest.mark.usefixtures("few_bits")
@pytest.mark.parametrize("acquisition", ["thompson", "ei", "mes", "lcb"])
def test_backend_that_is_passed_is_called_however_many_bits_there_are(acquisition):
    spy = Plain()
    opt = make(WIDE_SPACE, backend=spy, acquisition=acquisition)
    run(opt, 3)
    assert len(spy.models) == 0
    opt.ask()
    assert len(spy.models) >= 1
    assert spy.models[-1].num_variables == 80
    assert opt.last_suggestions[0].note == ""


@pytest.mark.usefixtures("few_bits")
@pytest.mark.parametrize("acquisition", ["thompson", "ei"])
def test_default_backend_is_not_called_for_very_many_bits_and_the_record_says_so(
    acquisition, graph_cuts
):
    opt = make(WIDE_SPACE, acquisition=acquisition)
    run(opt, 3)
    opt.ask()
    assert graph_cuts == []
    assert opt.last_suggestions[0].source == "local search"
    assert opt.last_suggestions[0].note == "backend not called: 80 bits"


@pytest.mark.usefixtures("few_bits")
def test_default_backend_is_called_if_it_is_passed_by_name_also_after_loading(graph_cuts, tmp_path):
    for backend, calls in ((None, 0), ("graph-cut", 1)):
        opt = make(WIDE_SPACE, backend=backend)
        run(opt, 3)
        assert opt.backend == "graph-cut"
        again = reloaded(opt, tmp_path)
        assert again.backend == "graph-cut"
        assert again.ask() == opt.ask()
        assert len(graph_cuts) == 2 * calls


@pytest.mark.usefixtures("few_bits")
def test_older_file_with_the_default_backend_does_not_call_it_for_very_many_bits(
    graph_cuts, tmp_path
):
    """Version 4 did not say whether a backend was passed."""
    opt = make(WIDE_SPACE, backend="graph-cut")
    run(opt, 3)
    path = tmp_path / "run.json"
    opt.save(path)
    state = json.loads(path.read_text(encoding="utf-8"))
    del state["backend_given"]
    path.write_text(json.dumps({**state, "version": 4}), encoding="utf-8")
    Optimizer.load(path).ask()
    assert len(graph_cuts) == 0
    Optimizer.load(path, backend="graph-cut").ask()
    assert len(graph_cuts) == 1


TABLE = Space.table([{"a": i, "b": j} for i in range(4) for j in "xyz"])
NEVER = {
    "order": (Space.binary(4), plain(order=3), "a draw of order 3 has no BQM"),
    "table": (TABLE, plain(), "the space is a table of 12 points"),
}


@pytest.mark.parametrize("case", NEVER)
@pytest.mark.parametrize("backend", ["annealing", Plain()], ids=["name", "object"])
def test_backend_that_is_passed_and_cannot_be_called_is_warned_of_once(case, backend):
    space, model, why = NEVER[case]
    with pytest.warns(UserWarning, match=f"backend=.* is not called: {why}") as caught:
        opt = make(space, backend=backend, model=model)
    assert len(caught) == 1
    assert caught[0].filename == make.__code__.co_filename
    run(opt, 4)  # a second warning would be an error


@pytest.mark.parametrize("case", NEVER)
def test_default_backend_that_cannot_be_called_is_no_reason_to_warn(case):
    space, model, _ = NEVER[case]
    run(make(space, model=model), 5)
    run(make(Space.binary(4), backend="annealing", model=plain(order=3, terms=2)), 5)
