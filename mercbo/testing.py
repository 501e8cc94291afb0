"""`BackendContract`: what mercbo expects of a backend, as a pytest class to derive from.

    from mercbo.testing import BackendContract

    class TestMine(BackendContract):
        @pytest.fixture
        def sampler(self):
            return MySampler()

Every test below then runs on your sampler, with the whole of dimod's own suite. A sampler that has
`sample_cqm` is held to the constrained part as well.
"""

from __future__ import annotations

import itertools
import unittest
from typing import Any

import dimod
import dimod.testing
import numpy as np
import pytest


def random_bqm(n: int, seed: int, vartype: str = "BINARY") -> dimod.BinaryQuadraticModel:
    """A dense model with normal biases."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    linear = {v: float(rng.standard_normal()) for v in names}
    quadratic = {pair: float(rng.standard_normal()) for pair in itertools.combinations(names, 2)}
    return dimod.BinaryQuadraticModel(linear, quadratic, float(rng.standard_normal()), vartype)


def random_cqm(seed: int, *, limits: bool = False) -> dimod.ConstrainedQuadraticModel:
    """12 bits: two one-hot groups of 3 and 4, five free; with `limits` a sum and a weight."""
    cqm = dimod.ConstrainedQuadraticModel()
    cqm.set_objective(random_bqm(12, seed))
    cqm.add_discrete(["v0", "v1", "v2"], label="first")
    cqm.add_discrete(["v3", "v4", "v5", "v6"], label="second")
    if limits:
        cqm.add_constraint([(f"v{i}", 1) for i in range(7, 12)], sense="==", rhs=2, label="two")
        weights = [(f"v{i}", 1.5 + i % 4) for i in range(12)]
        cqm.add_constraint(weights, sense="<=", rhs=11.5, label="weight")
    return cqm


def lowest_feasible(cqm: dimod.ConstrainedQuadraticModel) -> float:
    """The minimum by trying everything."""
    labels = list(cqm.variables)
    states = np.array(list(itertools.product([0, 1], repeat=len(labels))), dtype=np.int8)
    found = dimod.SampleSet.from_samples_cqm((states, labels), cqm)
    return float(found.record.energy[found.record.is_feasible].min())


class BackendContract:
    """Derive from this and give a fixture `sampler`."""

    @pytest.fixture
    def sampler(self) -> Any:
        return pytest.fail("give a fixture `sampler` that returns your sampler")

    @pytest.fixture
    def seeded(self, sampler: Any) -> dict[str, int]:
        """Keywords that make an answer reproducible."""
        return {"seed": 7} if "seed" in sampler.parameters else {}

    def test_dimods_api(self, sampler: Any) -> None:
        dimod.testing.assert_sampler_api(sampler)

    def test_dimods_suite(self, sampler: Any) -> None:
        suite = dimod.testing.load_sampler_bqm_tests(sampler)(
            type("Suite", (unittest.TestCase,), {})
        )
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(suite).run(result)
        assert result.testsRun > 20
        assert [trace for _, trace in result.failures + result.errors] == []

    @pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
    def test_samples_are_sorted_with_the_models_energies(
        self, sampler: Any, seeded: dict[str, int], vartype: str
    ) -> None:
        bqm = random_bqm(9, 0, vartype)
        found = sampler.sample(bqm, **seeded)
        dimod.testing.assert_response_energies(found, bqm)
        assert (np.diff(found.record.energy) >= 0).all()
        assert found.vartype is bqm.vartype

    def test_info_says_status_and_timing(self, sampler: Any, seeded: dict[str, int]) -> None:
        found = sampler.sample(random_bqm(6, 1), **seeded)
        assert found.info["status"] in ("optimal", "feasible")
        assert found.info["timing"]["total"] >= 0
        if "lower_bound" in found.info:
            assert found.info["lower_bound"] <= found.first.energy + 1e-6
            assert found.info["gap"] >= 0

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
    def test_small_models_are_solved(
        self, sampler: Any, seeded: dict[str, int], vartype: str, seed: int
    ) -> None:
        bqm = random_bqm(10, seed, vartype)
        exact = dimod.ExactSolver().sample(bqm).first.energy
        assert sampler.sample(bqm, **seeded).first.energy == pytest.approx(exact, abs=1e-6)

    def test_the_same_seed_gives_the_same_answer(
        self, sampler: Any, seeded: dict[str, int]
    ) -> None:
        bqm = random_bqm(12, 2)
        one, two = sampler.sample(bqm, **seeded), sampler.sample(bqm, **seeded)
        if seeded:
            assert (one.record.sample == two.record.sample).all()
        assert one.first.energy == pytest.approx(two.first.energy)

    def test_any_labels(self, sampler: Any, seeded: dict[str, int]) -> None:
        labels = [("a", None), "b", 3, frozenset({"c"}), -1.5]
        quadratic = dict.fromkeys(itertools.combinations(labels, 2), 1.0)
        bqm = dimod.BinaryQuadraticModel(dict.fromkeys(labels, -1.5), quadratic, 0.0, "BINARY")
        found = sampler.sample(bqm, **seeded)
        assert set(found.variables) == set(labels)
        assert found.first.energy == pytest.approx(-2.0)

    @pytest.mark.parametrize("bias", [0.0, -2.0, 3.0])
    def test_one_variable(self, sampler: Any, seeded: dict[str, int], bias: float) -> None:
        bqm = dimod.BinaryQuadraticModel({"x": bias}, {}, 1.0, "BINARY")
        assert sampler.sample(bqm, **seeded).first.energy == pytest.approx(1.0 + min(bias, 0.0))

    def test_constant_models(self, sampler: Any, seeded: dict[str, int]) -> None:
        zero = dimod.BinaryQuadraticModel({"x": 0.0, "y": 0.0}, {("x", "y"): 0.0}, 4.0, "BINARY")
        assert sampler.sample(zero, **seeded).first.energy == 4.0
        empty = sampler.sample(dimod.BinaryQuadraticModel({}, {}, 4.0, "BINARY"), **seeded)
        assert len(empty.variables) == 0

    @pytest.mark.parametrize("size", [1e-12, 1e12])
    def test_huge_and_tiny_coefficients(
        self, sampler: Any, seeded: dict[str, int], size: float
    ) -> None:
        bqm = random_bqm(8, 3)
        bqm.offset = 0.0
        bqm.scale(size)
        exact = dimod.ExactSolver().sample(bqm).first.energy
        assert sampler.sample(bqm, **seeded).first.energy == pytest.approx(exact, rel=1e-6)

    def test_disconnected_models(self, sampler: Any, seeded: dict[str, int]) -> None:
        linear = {f"a{i}": (-1.0) ** i for i in range(6)}
        quadratic = {("b0", "b1"): -3.0, ("c0", "c1"): 2.0}
        bqm = dimod.BinaryQuadraticModel(
            {**linear, "b0": 1.0, "c0": -1.0}, quadratic, 0.0, "BINARY"
        )
        exact = dimod.ExactSolver().sample(bqm).first.energy
        assert sampler.sample(bqm, **seeded).first.energy == pytest.approx(exact)

    def test_optimal_is_not_said_of_less(self, sampler: Any, seeded: dict[str, int]) -> None:
        """One huge coefficient beside small ones must not make everything look proven."""
        bqm = random_bqm(14, 6)
        exact = dimod.ExactSolver().sample(bqm).first.energy
        bqm.add_linear("huge", 1e12)
        found = sampler.sample(bqm, **seeded)
        if found.info["status"] == "optimal":
            assert found.first.energy <= exact + 1e-3 + 2 * found.info.get("rounding_slack", 0.0)
        if found.info.get("gap") == 0.0:
            assert found.info["status"] == "optimal"

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_a_bias_that_is_no_number_is_refused(self, sampler: Any, bad: float) -> None:
        linear = dimod.BinaryQuadraticModel({"a": bad, "b": 1.0}, {"ab": 1.0}, 0.0, "BINARY")
        quadratic = dimod.BinaryQuadraticModel({"a": 1.0, "b": 1.0}, {"ab": bad}, 0.0, "BINARY")
        for bqm in (linear, quadratic):
            with pytest.raises(ValueError, match="NaN or infinite"):
                sampler.sample(bqm)

    def test_a_time_limit_returns_the_best_so_far(
        self, sampler: Any, seeded: dict[str, int]
    ) -> None:
        if "time_limit" not in sampler.parameters:
            return
        for size, limit in ((20, 0.05), (27, 0.001)):
            bqm = random_bqm(size, 4)
            found = sampler.sample(bqm, time_limit=limit, **seeded)
            assert len(found) >= 1
            dimod.testing.assert_response_energies(found, bqm)
        if hasattr(sampler, "sample_cqm"):
            found = sampler.sample_cqm(random_cqm(1, limits=True), time_limit=0.001, **seeded)
            assert len(found) == 0 or found.record.is_feasible.all()
        for wrong in (0, -1.0, "soon"):
            with pytest.raises(ValueError, match="time_limit="):
                sampler.sample(bqm, time_limit=wrong)

    # -- constrained models -----------------------------------------------------------------------

    @pytest.mark.parametrize("limits", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_constrained_models_are_solved_by_feasible_samples(
        self, sampler: Any, seeded: dict[str, int], seed: int, limits: bool
    ) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = random_cqm(seed, limits=limits)
        found = sampler.sample_cqm(cqm, **seeded)
        assert found.record.is_feasible.all()
        assert (np.diff(found.record.energy) >= 0).all()
        assert found.first.energy == pytest.approx(lowest_feasible(cqm), abs=1e-6)
        for sample, energy in found.data(["sample", "energy"]):
            assert energy == pytest.approx(cqm.objective.energy(sample))
            assert cqm.check_feasible(sample)

    def test_excluded_states_do_not_come_back(self, sampler: Any, seeded: dict[str, int]) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm, previous = random_cqm(9), -np.inf
        for number in range(6):
            found = sampler.sample_cqm(cqm, **seeded)
            assert found.record.is_feasible.all()
            assert found.first.energy == pytest.approx(lowest_feasible(cqm), abs=1e-6)
            assert found.first.energy >= previous - 1e-9
            previous = found.first.energy
            state = found.first.sample
            differs = [(v, -1 if state[v] else 1) for v in cqm.variables]
            ones = sum(int(bit) for bit in state.values())
            cqm.add_constraint(differs, sense=">=", rhs=1 - ones, label=f"not {number}")

    def test_exclusions_and_limits_together(self, sampler: Any, seeded: dict[str, int]) -> None:
        """Under an equality no single move is feasible, so an excluded state is left by two."""
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        x, y, z, w = dimod.Binaries("xyzw")
        cqm.set_objective(x + 2 * y + 3 * z + 4 * w)
        cqm.add_constraint(x + y + z + w == 2, label="two")
        for sense, sign in ((">=", 1), ("<=", -1)):
            cqm.add_constraint(
                [("x", -sign), ("y", -sign), ("z", sign), ("w", sign)],
                sense=sense, rhs=-sign, label=f"not the first {sense}",
            )  # fmt: skip
        found = sampler.sample_cqm(cqm, **seeded)
        assert found.first.energy == 4.0
        assert found.record.is_feasible.all()

    def test_constrained_answers_repeat(self, sampler: Any, seeded: dict[str, int]) -> None:
        if not hasattr(sampler, "sample_cqm") or not seeded:
            return
        cqm = random_cqm(3, limits=True)
        one, two = sampler.sample_cqm(cqm, **seeded), sampler.sample_cqm(cqm, **seeded)
        assert (one.record.sample == two.record.sample).all()

    def test_coefficients_that_are_no_decimals(self, sampler: Any, seeded: dict[str, int]) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        x, y, z = dimod.Binaries("xyz")
        cqm.set_objective(x + y + z)
        cqm.add_constraint(x / 3 + y / 3 + z / 3 >= 1, label="all")
        assert sampler.sample_cqm(cqm, **seeded).first.energy == 3.0

    def test_overlapping_groups(self, sampler: Any, seeded: dict[str, int]) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        x, y, z = dimod.Binaries("xyz")
        cqm.set_objective(5 * x + 4 * y + 3 * z - x * z)
        cqm.add_discrete(["x", "y"], label="first")
        cqm.add_constraint(y + z == 1, label="second")
        found = sampler.sample_cqm(cqm, **seeded)
        assert found.first.energy == 4.0
        assert found.record.is_feasible.all()

    def test_models_without_variables(self, sampler: Any, seeded: dict[str, int]) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        assert len(sampler.sample_cqm(cqm, **seeded).variables) == 0
        cqm.add_constraint([(1,)], sense="<=", rhs=0, label="never")
        assert len(sampler.sample_cqm(cqm, **seeded)) == 0

    @pytest.mark.parametrize(("coefficient", "rhs"), [(np.nan, 1), (np.inf, 1), (1.0, np.nan)])
    def test_a_constraint_that_is_no_number_is_refused(
        self, sampler: Any, coefficient: float, rhs: float
    ) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        cqm.add_variables("BINARY", ["x", "y"])
        terms = [("x", coefficient), ("y", 1.0)]
        cqm.add_constraint(terms, sense="<=", rhs=rhs, label="odd one")
        with pytest.raises(ValueError, match="'odd one' has a NaN or infinite"):
            sampler.sample_cqm(cqm)

    def test_spin_variables_in_a_constrained_model(
        self, sampler: Any, seeded: dict[str, int]
    ) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        cqm.set_objective(random_bqm(6, 5, "SPIN"))
        cqm.add_constraint([(f"v{i}", 1) for i in range(6)], sense="==", rhs=0, label="balanced")
        found = sampler.sample_cqm(cqm, **seeded)
        assert found.record.is_feasible.all()
        assert set(np.unique(found.record.sample)) == {-1, 1}

    @pytest.mark.parametrize("what", ["integer", "quadratic", "soft"])
    def test_what_a_constrained_model_may_not_hold_is_named(self, sampler: Any, what: str) -> None:
        if not hasattr(sampler, "sample_cqm"):
            return
        cqm = dimod.ConstrainedQuadraticModel()
        x, y = dimod.Binaries(["x", "y"])
        if what == "integer":
            cqm.set_objective(x + dimod.Integer("n", upper_bound=5))
        elif what == "quadratic":
            cqm.add_constraint(x * y <= 0, label="odd one")
        else:
            cqm.add_constraint(x + y <= 1, label="odd one", weight=2.0)
        with pytest.raises(ValueError, match=r"'n' is INTEGER|'odd one' is"):
            sampler.sample_cqm(cqm)
