"""GraphCut: the paper's relaxation, roof duality, and what they prove."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercbo_backends import GraphCut, graphcut
from mercbo_backends.cuts import min_cut, trivial_bound
from mercbo_backends.graphcut import minimise_bound, relax, roof_dual
from mercbo_backends.problem import Problem
from scipy.optimize import linprog

from mercbo import moves
from mercbo.testing import random_bqm, random_cqm


def exact(bqm: dimod.BinaryQuadraticModel) -> float:
    """The minimum without the offset, by trying everything."""
    return float(dimod.ExactSolver().sample(bqm).first.energy) - bqm.offset


@pytest.fixture(params=["pymaxflow", "ortools"])
def flow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "ortools":
        monkeypatch.setattr("mercbo_backends.cuts.maxflow", None)
    return str(request.param)


@pytest.mark.parametrize("seed", range(20))
def test_a_minimum_cut_minimises_its_function(flow: str, seed: int) -> None:  # noqa: ARG001
    rng = np.random.default_rng(seed)
    n = 6
    linear = rng.standard_normal(n)
    ones, zeros = np.nonzero(~np.eye(n, dtype=bool) & (rng.random((n, n)) < 0.5))
    capacity = rng.exponential(size=len(ones))
    states = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    values = states @ linear + (capacity * (states[:, ones] > states[:, zeros])).sum(axis=1)
    state, value = min_cut(linear, ones, zeros, capacity)
    assert value == pytest.approx(values.min(), abs=1e-9)
    reached = state @ linear + (capacity * (state[ones] > state[zeros])).sum()
    assert reached == pytest.approx(values.min(), abs=1e-9)


@given(st.integers(1, 8), st.integers(0, 2**31), st.integers(0, 2**31))
@settings(max_examples=80)
def test_law_4_bound_is_below_the_minimum_for_every_gamma(n: int, seed: int, other: int) -> None:
    bqm = random_bqm(n, seed)
    problem = Problem.of_bqm(bqm)
    positive = problem.biases > 0
    gamma = np.random.default_rng(other).uniform(0, 1, int(positive.sum()))
    state, bound = minimise_bound(problem, gamma)
    assert bound <= exact(bqm) + 1e-9
    # the bound is the relaxed function's minimum, and the state attains it
    lifted = problem.biases[positive] * gamma
    pairs = state[problem.heads] * state[problem.tails] * problem.biases
    ends = state[problem.heads] + state[problem.tails]
    relaxed = state @ problem.linear + pairs[~positive].sum()
    relaxed += (lifted * (ends[positive] - 1)).sum()
    assert relaxed == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_supergradient_steps_raise_the_bound(seed: int) -> None:
    bqm = random_bqm(14, seed)
    problem = Problem.of_bqm(bqm)
    bounds = [relax(problem, rounds, upper=exact(bqm))[1] for rounds in (1, 5, 60)]
    assert bounds[0] <= bounds[1] <= bounds[2] <= exact(bqm) + 1e-9
    assert bounds[2] > bounds[0]


def best_gamma_bound(problem: Problem) -> float:
    """The largest bound over all Gamma, as a linear program.

    The bound is the minimum of a submodular function, so of its continuous extension over the
    unit box, and minimum and maximum can be swapped: over x in [0, 1], the best g for each A+ turns
    its bound into max(0, x + y - 1) A+, while A- x y extends to A- min(x, y).
    """
    n, m = problem.width, len(problem.biases)
    rows, high = [], []
    for k, (i, j, bias) in enumerate(
        zip(problem.heads, problem.tails, problem.biases, strict=True)
    ):
        if bias > 0:  # t >= x + y - 1
            rows.append({i: 1.0, j: 1.0, n + k: -1.0})
            high.append(1.0)
        else:  # t <= x, t <= y
            rows += [{n + k: 1.0, i: -1.0}, {n + k: 1.0, j: -1.0}]
            high += [0.0, 0.0]
    matrix = np.zeros((len(rows), n + m))
    for number, row in enumerate(rows):
        for column, value in row.items():
            matrix[number, column] = value
    cost = np.concatenate([problem.linear, problem.biases])
    solved = linprog(cost, A_ub=matrix, b_ub=high, bounds=[(0, 1)] * (n + m))
    return float(solved.fun)


@pytest.mark.parametrize("seed", range(10))
def test_law_4_the_best_gammas_bound_is_the_roof_dual(flow: str, seed: int) -> None:  # noqa: ARG001
    bqm = random_bqm(9, seed)
    problem = Problem.of_bqm(bqm)
    dual, _ = roof_dual(problem)
    assert dual == pytest.approx(best_gamma_bound(problem), abs=1e-7)
    assert dual <= exact(bqm) + 1e-9
    _, ascended = relax(problem, 100, upper=exact(bqm))
    assert ascended <= dual + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_persistent_bits_belong_to_a_minimum(flow: str, seed: int) -> None:  # noqa: ARG001
    rng = np.random.default_rng(seed)
    bqm = random_bqm(9, seed)
    for variable in bqm.variables:  # stronger fields, so that some bits are persistent
        bqm.set_linear(variable, 3 * float(rng.standard_normal()))
    problem = Problem.of_bqm(bqm)
    _, fixed = roof_dual(problem)
    found = dimod.ExactSolver().sample(bqm)
    order = [found.variables.index(label) for label in problem.labels]
    lowest = found.record.sample[found.record.energy <= found.first.energy + 1e-9][:, order]
    known = fixed >= 0
    assert (lowest[:, known] == fixed[known]).all(axis=1).any()


def test_persistent_bits_shrink_the_problem() -> None:
    """Strong fields decide every bit: the answer is proven without any search."""
    bqm = random_bqm(40, 1)
    for number, variable in enumerate(bqm.variables):
        bqm.set_linear(variable, 100.0 * (-1) ** number)
    found = GraphCut(restarts=1).sample(bqm, seed=0)
    assert found.info["status"] == "optimal"
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(5))
def test_submodular_models_are_solved_exactly_and_say_so(flow: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bqm = dimod.BinaryQuadraticModel(
        {i: rng.standard_normal() for i in range(14)},
        {(i, j): -rng.exponential() for i in range(14) for j in range(i)},
        0.0,
        "BINARY",
    )
    found = GraphCut(restarts=1).sample(bqm, rounds=1, seed=0)
    assert found.info["status"] == "optimal"
    assert found.info["gap"] == 0.0
    assert found.info["max_flow"] == flow
    assert found.first.energy == pytest.approx(exact(bqm))


def test_status_is_feasible_where_nothing_is_proved() -> None:
    found = GraphCut().sample(random_bqm(18, 3), seed=0)
    assert found.info["status"] == "feasible"
    assert found.info["gap"] > 0
    assert found.info["lower_bound"] <= found.first.energy


def test_a_large_dense_model_has_the_bound_of_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its roof dual would take longer than all else; the rounds prove what they can."""
    monkeypatch.setattr(graphcut, "MOST_DUAL", 100)
    monkeypatch.setattr(graphcut, "roof_dual", None)
    mixed = GraphCut().sample(random_bqm(18, 3), seed=0)
    problem = Problem.of_bqm(random_bqm(18, 3))
    assert mixed.info["status"] == "feasible"
    bounds = mixed.info["lower_bound"] - problem.offset, mixed.first.energy - problem.offset
    assert trivial_bound(problem) < bounds[0] <= bounds[1]
    submodular = random_bqm(18, 3)
    submodular.add_quadratic_from(
        (u, v, -2 * abs(b)) for (u, v), b in random_bqm(18, 3).quadratic.items()
    )
    assert GraphCut().sample(submodular, seed=0).info["status"] == "optimal"


def test_many_bits_in_groups_are_solved_without_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphcut, "min_cut", None)
    monkeypatch.setattr(graphcut, "roof_dual", None)
    cqm = dimod.ConstrainedQuadraticModel()
    rng = np.random.default_rng(0)
    labels = [[f"{i}={j}" for j in range(16)] for i in range(20)]
    costs = {label: float(rng.random()) for group in labels for label in group}
    cqm.set_objective(dimod.BinaryQuadraticModel(costs, {}, 0.0, "BINARY"))
    for group in labels:
        cqm.add_discrete(group)
    lowest = sum(min(costs[label] for label in group) for group in labels)
    assert GraphCut().sample_cqm(cqm, seed=0).first.energy == pytest.approx(lowest)


def test_lower_bound_includes_the_offset() -> None:
    bqm = dimod.BinaryQuadraticModel({"a": -1.0}, {}, 10.0, "BINARY")
    info = GraphCut().sample(bqm).info
    assert info["lower_bound"] == pytest.approx(9.0)
    assert info["status"] == "optimal"


@pytest.mark.parametrize("setting", ["rounds", "restarts"])
@pytest.mark.parametrize("wrong", [-1, 2.5, True, None])
def test_wrong_settings_are_refused(setting: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=f"{setting}={wrong}"):
        GraphCut().sample(random_bqm(3, 0), **{setting: wrong})


def test_an_unknown_keyword_is_warned_of() -> None:
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning):
        GraphCut().sample(random_bqm(3, 0), sweeps=3)


def test_settings_may_be_given_at_construction() -> None:
    bqm = random_bqm(30, 0)
    few, many = GraphCut(restarts=1, rounds=0), GraphCut(restarts=50, rounds=0)
    assert len(few.sample(bqm, seed=1)) < len(many.sample(bqm, seed=1))


def test_constraints_that_cannot_be_met_give_an_empty_answer() -> None:
    cqm = random_cqm(0)
    cqm.add_constraint([("v7", 1), ("v8", 1)], sense=">=", rhs=3, label="too much")
    found = GraphCut().sample_cqm(cqm, seed=0)
    assert len(found) == 0
    assert found.info["status"] == "unknown"


def test_tabu_search_goes_below_descent_alone() -> None:
    n = 120
    problem = Problem.of_bqm(random_bqm(n, 0))
    rng = np.random.default_rng(0)
    starts = moves.random_states(8, n, (), rng=rng)
    states, energies = moves.descend(problem.linear, problem.coupling, (), starts)
    walked, lower = moves.tabu(problem.linear, problem.coupling, (), states, steps=2 * n, rng=rng)
    np.testing.assert_allclose(lower, problem.energies(walked))
    assert (lower <= energies + 1e-9).all()
    assert lower.min() < energies.min()


@pytest.mark.parametrize("groups", [False, True])
def test_a_form_has_the_states_of_its_model_without_the_bound(
    groups: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    linear, coupling = rng.standard_normal(12), np.triu(rng.standard_normal((12, 12)), 1)
    parts = tuple(np.arange(12).reshape(4, 3)) if groups else ()
    for part in parts:
        coupling[np.ix_(part, part)] = 0.0
    coupling += coupling.T
    problem = Problem.of_form(linear, coupling, parts)
    wanted, _ = graphcut.solve(problem, 5, 128, np.inf, np.random.default_rng(7))
    duals = []

    def counted(which: Problem) -> tuple[float, np.ndarray]:
        duals.append(which)
        return roof_dual(which)

    monkeypatch.setattr(graphcut, "roof_dual", counted)
    found = GraphCut().sample_form(linear, coupling, parts, seed=7)
    assert np.array_equal(found, wanted)
    assert len(duals) == (0 if groups else 1)
    with pytest.raises(ValueError, match="NaN or infinite"):
        GraphCut().sample_form(linear * np.nan, coupling, parts)
