"""No suggestion breaks a constraint or comes twice, whoever solves and whatever is modelled."""

import re

import dimod
import numpy as np
import pytest
from support.kinds import KINDS, Plain, allowed, constrained, exercise, linear_score, product
from support.optimizer import as_tuples, make, plain
from support.states import without_batches

from mercbo import (
    AtLeast,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Linear,
    Model,
    Optimizer,
    PointError,
    Space,
)

pytestmark = [
    pytest.mark.usefixtures("poor_fits"),
    pytest.mark.filterwarnings("ignore:backend=.* is not called"),
]

BACKENDS = {
    "graph-cut": lambda: "graph-cut",
    "cp-sat": lambda: "cp-sat",
    "annealing": lambda: "annealing",
    "exhaustive": lambda: "exhaustive",
    "plain": Plain,
}
MODELS = {
    "default": Model(),
    "map": plain(),
    "paper": Model.paper(),
    "order 3": plain(order=3),
    "no refinement": plain(refine=False),
}
# every two of kind, backend and model meet; those of the quickest model are in the fast part
QUICK = {(kind, "graph-cut", "map") for kind in KINDS}
QUICK |= {(kind, "plain", "no refinement") for kind in list(KINDS)[::2]}
QUICK |= {("tied", backend, "map") for backend in ("cp-sat", "exhaustive")}
QUICK |= {("where", "annealing", "default"), ("mixed", "graph-cut", "order 3")}


PAIRS = {(kind, backend, "map") for kind in KINDS for backend in BACKENDS}
PAIRS |= {(kind, "graph-cut", model) for kind in KINDS for model in MODELS}
PAIRS |= {("mixed", backend, model) for backend in BACKENDS for model in MODELS}
CASES = [
    pytest.param(*case, marks=[] if case in QUICK else [pytest.mark.slow], id="-".join(case))
    for case in sorted(QUICK | PAIRS)
]


@pytest.mark.parametrize(("kind", "backend", "model"), CASES)
def test_no_suggestion_breaks_a_constraint_or_comes_twice(kind, backend, model):
    opt = make(constrained(kind), backend=BACKENDS[backend](), model=MODELS[model])
    asked = exercise(opt, 5)
    assert [p for p in asked if not KINDS[kind][1](p)] == []
    assert len(set(as_tuples(asked))) == len(asked) == 10


@pytest.mark.parametrize("kind", KINDS)
def test_the_initial_design_keeps_the_constraints(kind):
    asked = make(constrained(kind), n_initial=60).ask(60)
    assert [p for p in asked if not KINDS[kind][1](p)] == []
    assert len(set(as_tuples(asked))) == 60


@pytest.mark.parametrize("kind", KINDS)
def test_told_points_that_break_a_constraint_are_refused_by_name(kind):
    space = constrained(kind)
    good = allowed(kind)[0]
    bad = next(p for p in product(space) if not KINDS[kind][1](p))
    opt = make(space)
    opt.ask()
    before = opt.to_dict()
    with pytest.raises(PointError, match=re.escape(f"{bad} breaks ")) as caught:
        opt.tell(bad, 1.0)
    assert any(repr(c) in str(caught.value) for c in space.constraints)
    with pytest.raises(PointError, match=re.escape(f"point 1: {bad} breaks ")):
        opt.tell([good, bad], [1.0, None])
    assert opt.to_dict() == before


def test_a_plain_sampler_is_given_a_model_whose_lowest_state_is_the_best_feasible_point():
    """What the sampler is given is enough: its minimum over all bits, slack bits included, is the
    draw's minimum over the feasible points, by an oracle."""
    space = Space(
        {"a": Binary(), "b": Binary(), "c": Binary(), "s": Categorical(["x", "y", "z"])},
        [Exactly(1, ["a", "b", ("s", "x")]), Forbid({"c": 1, "s": "y"})],
    )
    opt = make(space, backend=Plain(), n_initial=2)
    points = [p for p in product(space) if not space.broken(p)]
    opt.tell(points[:4], [linear_score(space, p) for p in points[:4]])
    draw = opt.draw()
    opt.ask()
    (given,) = opt.backend.models
    lowest = dimod.ExactSolver().sample(given).first.energy
    np.testing.assert_allclose(lowest, min(draw.value(p) for p in points), rtol=1e-9)


class Recorded:
    """CP-SAT that keeps the models it is given."""

    def __init__(self, inner):
        self.inner, self.models = inner, []
        self.properties = inner.properties

    def sample_cqm(self, cqm, **keywords):
        self.models.append(cqm)
        return self.inner.sample_cqm(cqm, **keywords)


def excluded_points(space, cqm) -> set[tuple]:
    """The points of the space that the no-goods of a model rule out, one bit per value."""
    rules = [c for label, c in cqm.constraints.items() if str(label).startswith("not excluded")]
    out = set()
    for point in product(space):
        bits = {(name, value): int(point[name] == value) for name, value in cqm.variables}
        if any(c.lhs.energy(bits) < c.rhs for c in rules):
            out.add(tuple(point.values()))
    return out


@pytest.mark.parametrize("repeats", ["never", "allow"])
def test_an_exact_solver_is_told_what_must_not_come_back(repeats):
    space = Space(
        {"a": Binary(), "b": Binary(), "c": Binary(), "s": Categorical(["x", "y", "z"])},
        [AtLeast(1, ["a", "b", "c"])],
    )
    solver = Recorded(Optimizer(space, backend="cp-sat", seed=0)._sampler)
    opt = make(space, backend=solver, n_initial=2, repeats=repeats)
    points = [p for p in product(space) if not space.broken(p)]
    opt.tell(points[:4], [3.0, 1.0, 2.0, 5.0])
    opt.tell(points[4], None)
    batch = opt.ask(3)
    later = opt.ask()
    told = points[:4] if repeats == "never" else []
    wanted = [[*told, points[4], *batch[:number]] for number in range(3)]
    wanted.append([*told, points[4], *batch])
    found = [excluded_points(space, model) for model in solver.models]
    assert found == [set(as_tuples(points)) for points in wanted]
    assert later not in batch


@pytest.mark.parametrize("backend", ["cp-sat", "exhaustive", "graph-cut"])
@pytest.mark.parametrize("refine", [True, False])
def test_ask_k_gives_what_k_asks_would_under_constraints(backend, refine):
    space = Space({f"x{i}": Binary() for i in range(9)}, [Exactly(4, [f"x{i}" for i in range(9)])])
    batch, single = (
        make(space, backend=backend, model=plain(refine=refine), seed=3) for _ in range(2)
    )
    for opt in (batch, single):
        exercise(opt, 4)
    assert batch.ask(4) == [single.ask() for _ in range(4)]
    assert without_batches(batch) == without_batches(single)


class Nothing:
    """Takes constrained models only, and never finds anything: not even variables come back."""

    def sample_cqm(self, _cqm):
        return dimod.SampleSet.from_samples([], "BINARY", energy=[])


@pytest.mark.parametrize("kind", ["exactly", "where"])
def test_a_solver_that_finds_nothing_leaves_the_search_to_the_rest(kind):
    asked = exercise(make(constrained(kind), backend=Nothing(), n_initial=2), 4)
    assert [p for p in asked if not KINDS[kind][1](p)] == []
    assert len(set(as_tuples(asked))) == 8


def test_constraints_on_variables_with_one_value_only_work():
    space = Space(
        {"a": Categorical(["k"]), "b": Categorical(["m"])},
        [AtLeast(1, [("a", "k"), ("b", "m")])],
    )
    opt = make(space, n_initial=1, repeats="allow")
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    assert opt.best.point == {"a": "k", "b": "m"}


@pytest.mark.parametrize("backend", ["graph-cut", "plain"])
def test_few_points_in_a_space_far_too_large_to_list(backend):
    """A budget that leaves about one point in 10^6, over 60 variables."""
    weights = {f"x{i}": 1.0 + (i % 7) for i in range(60)}
    space = Space({f"x{i}": Binary() for i in range(60)}, [Linear(weights, "<=", 20.0)])
    opt = make(space, backend=BACKENDS[backend](), n_initial=4)
    asked = exercise(opt, 4)
    spent = [sum(weights[name] * bit for name, bit in p.items()) for p in asked]
    assert max(spent) <= 20.0
    assert len(set(as_tuples(asked))) == 8
