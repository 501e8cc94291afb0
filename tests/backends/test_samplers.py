"""What GraphCut and Annealing promise, with dimod's own suite."""

from __future__ import annotations

import unittest

import dimod
import dimod.testing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mercbo_backends import Annealing, GraphCut
from mercbo_backends.graphcut import Problem, minimise_bound, relax


@dimod.testing.load_sampler_bqm_tests(GraphCut)
@dimod.testing.load_sampler_bqm_tests(Annealing)
class TestDimodSuite(unittest.TestCase):
    """dimod's tests of a sampler of binary quadratic models."""


@pytest.fixture(params=[GraphCut, Annealing])
def sampler(request: pytest.FixtureRequest) -> dimod.Sampler:
    return request.param()


def random_model(n: int, seed: int, vartype: str = "BINARY") -> dimod.BinaryQuadraticModel:
    rng = np.random.default_rng(seed)
    return dimod.BinaryQuadraticModel(
        {f"v{i}": rng.standard_normal() for i in range(n)},
        {(f"v{i}", f"v{j}"): rng.standard_normal() for i in range(n) for j in range(i)},
        float(rng.standard_normal()),
        vartype,
    )


def test_sampler_api(sampler: dimod.Sampler) -> None:
    dimod.testing.assert_sampler_api(sampler)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_samples_are_sorted_with_the_models_energies(sampler, vartype: str) -> None:
    bqm = random_model(9, 0, vartype)
    found = sampler.sample(bqm, seed=1)
    dimod.testing.assert_response_energies(found, bqm)
    assert (np.diff(found.record.energy) >= 0).all()
    assert {"timing", "status"} <= found.info.keys()


def test_the_same_seed_gives_the_same_samples(sampler: dimod.Sampler) -> None:
    bqm = random_model(30, 1)
    first, again, other = (sampler.sample(bqm, seed=s) for s in (5, 5, 6))
    assert (first.record.sample == again.record.sample).all()
    assert (
        first.record.sample.shape != other.record.sample.shape
        or (first.record.sample != other.record.sample).any()
    )


def test_an_unknown_keyword_is_warned_of(sampler: dimod.Sampler) -> None:
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning):
        sampler.sample(random_model(3, 0), sweeps_per_second=3)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
@pytest.mark.parametrize("seed", range(10))
def test_small_models_are_solved(sampler, vartype: str, seed: int) -> None:
    bqm = random_model(12, seed, vartype)
    exact = dimod.ExactSolver().sample(bqm).first.energy
    assert sampler.sample(bqm, seed=seed).first.energy == pytest.approx(exact, abs=1e-9)


def test_an_empty_model_has_one_empty_sample() -> None:
    found = GraphCut().sample(dimod.BinaryQuadraticModel({}, {}, 2.5, "BINARY"))
    assert len(found.variables) == 0


@given(st.integers(1, 8), st.integers(0, 2**31), st.integers(0, 2**31))
@settings(max_examples=80)
def test_law_4_bound_is_below_the_minimum_for_every_gamma(n: int, seed: int, other: int) -> None:
    bqm = random_model(n, seed)
    problem = Problem.of(bqm)
    positive = problem.biases > 0
    gamma = np.random.default_rng(other).uniform(0, 1, int(positive.sum()))
    state, bound = minimise_bound(problem, positive, gamma)
    exact = dimod.ExactSolver().sample(bqm).first.energy - problem.offset
    assert bound <= exact + 1e-9
    # the bound is the relaxed function's minimum, and the state attains it
    lifted = problem.biases[positive] * gamma
    pairs = state[problem.heads] * state[problem.tails] * problem.biases
    ends = state[problem.heads] + state[problem.tails]
    relaxed = state @ problem.linear + pairs[~positive].sum()
    relaxed += (lifted * (ends[positive] - 1)).sum()
    assert relaxed == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_supergradient_steps_raise_the_bound(seed: int) -> None:
    bqm = random_model(14, seed)
    problem = Problem.of(bqm)
    exact = dimod.ExactSolver().sample(bqm).first.energy - problem.offset
    bounds = [relax(problem, rounds, upper=exact)[1] for rounds in (1, 5, 60)]
    assert bounds[0] <= bounds[1] <= bounds[2] <= exact + 1e-9
    assert bounds[2] > bounds[0]


@pytest.mark.parametrize("seed", range(5))
def test_submodular_models_are_solved_exactly_and_say_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bqm = dimod.BinaryQuadraticModel(
        {i: rng.standard_normal() for i in range(14)},
        {(i, j): -rng.exponential() for i in range(14) for j in range(i)},
        0.0,
        "BINARY",
    )
    found = GraphCut(restarts=0).sample(bqm, rounds=1, seed=0)
    assert found.info["status"] == "optimal"
    assert found.info["gap"] == 0.0
    assert found.first.energy == pytest.approx(dimod.ExactSolver().sample(bqm).first.energy)


def test_status_is_feasible_where_nothing_is_proved() -> None:
    bqm = random_model(12, 3)
    found = GraphCut().sample(bqm, seed=0)
    assert found.info["status"] == "feasible"
    assert found.info["gap"] > 0
    assert found.info["lower_bound"] <= found.first.energy


def test_lower_bound_includes_the_offset() -> None:
    bqm = dimod.BinaryQuadraticModel({"a": -1.0}, {}, 10.0, "BINARY")
    info = GraphCut().sample(bqm).info
    assert info["lower_bound"] == 9.0
    assert info["status"] == "optimal"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bias_that_is_no_number_is_refused(bad: float) -> None:
    bqm = dimod.BinaryQuadraticModel({"a": bad, "b": 1.0}, {"ab": 1.0}, 0.0, "BINARY")
    with pytest.raises(ValueError, match="NaN or infinite"):
        GraphCut().sample(bqm)


@pytest.mark.parametrize("setting", ["rounds", "restarts"])
def test_negative_settings_are_refused(setting: str) -> None:
    with pytest.raises(ValueError, match=f"{setting}=-1"):
        GraphCut().sample(random_model(3, 0), **{setting: -1})
