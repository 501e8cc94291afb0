"""CpSat: proofs, the rounding that they allow for, and the k best."""

from __future__ import annotations

import os
import subprocess
import sys

import dimod
import numpy as np
import pytest
from mercbo_backends import CpSat, Exhaustive, cpsat
from mercbo_backends.cpsat import Program
from mercbo_backends.problem import Problem

from mercbo.domain.limits import exact_scale
from mercbo.testing import lowest_feasible, random_bqm, random_cqm


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [False, True])
def test_it_agrees_with_exhaustive_and_proves_it(seed: int, limits: bool) -> None:
    cqm = random_cqm(seed, limits=limits)
    found = CpSat(workers=1).sample_cqm(cqm, seed=0)
    assert found.info["status"] == "optimal"
    assert found.info["gap"] == 0.0
    assert found.first.energy == pytest.approx(Exhaustive().sample_cqm(cqm).first.energy)
    assert found.info["lower_bound"] <= found.first.energy
    assert found.first.energy - found.info["lower_bound"] <= 3 * found.info["rounding_slack"]


def test_rounding_slack_is_terms_over_twice_the_scale() -> None:
    bqm = random_bqm(8, 0)
    found = CpSat(workers=1).sample(bqm, seed=0)
    total = sum(map(abs, bqm.linear.values())) + sum(map(abs, bqm.quadratic.values()))
    assert found.info["rounding_slack"] == pytest.approx((8 + 28) / (2 * 2.0**36 / total))


@pytest.mark.parametrize("size", [1e-285, 1e-100, 1e100, 1e295])
def test_the_size_of_the_biases_does_not_matter(size: float) -> None:
    bqm = dimod.BinaryQuadraticModel({0: size, 1: -size, 2: 2 * size}, {(0, 1): -size}, 0, "BINARY")
    found = CpSat(workers=1).sample(bqm, seed=0)
    assert found.info["status"] == "optimal"
    assert found.first.energy == pytest.approx(-size, rel=1e-9)
    assert found.info["lower_bound"] <= found.first.energy


def test_the_bound_is_one_where_biases_are_lost_beside_others() -> None:
    linear, quadratic = {0: 1e15, 1: -1e-3, 2: 1.0}, {(0, 1): -1e15, (1, 2): 1e-9}
    bqm = dimod.BinaryQuadraticModel(linear, quadratic, 0, "BINARY")
    found = CpSat(workers=1).sample(bqm, seed=0)
    assert found.info["lower_bound"] <= -1e-3
    assert found.info["rounding_slack"] > 1e-3  # which says that this much may be lost


@pytest.mark.parametrize("seed", range(4))
def test_both_formulations_agree(seed: int) -> None:
    for cqm in (random_cqm(seed), random_cqm(seed, limits=True)):
        found = [
            CpSat(workers=1, formulation=name).sample_cqm(cqm, seed=0)
            for name in ("rows", "products")
        ]
        assert found[0].first.energy == pytest.approx(found[1].first.energy, abs=1e-6)
        assert {f.info["status"] for f in found} == {"optimal"}


def test_an_unknown_formulation_is_refused() -> None:
    with pytest.raises(ValueError, match="formulation='cubes'"):
        CpSat(formulation="cubes")


def test_the_k_best_come_in_order() -> None:
    bqm = random_bqm(9, 1)
    found = CpSat(workers=1).sample(bqm, num_reads=12, seed=0)
    lowest = np.sort(dimod.ExactSolver().sample(bqm).record.energy)[:12]
    np.testing.assert_allclose(found.record.energy, lowest, atol=1e-6)


def test_fewer_states_than_wanted_are_all_of_them() -> None:
    found = CpSat(workers=1).sample(random_bqm(2, 0), num_reads=9, seed=0)
    assert len(found) == 4
    assert found.info["status"] == "optimal"


def test_no_solution_is_proven() -> None:
    cqm = random_cqm(0)
    cqm.add_constraint([("v7", 1), ("v8", 1)], sense=">=", rhs=3, label="too much")
    found = CpSat(workers=1).sample_cqm(cqm)
    assert len(found) == 0
    assert found.info["status"] == "infeasible"


def test_limits_with_decimals_are_exact() -> None:
    """0.1 + 0.2 <= 0.3 holds, although not in binary floating point."""
    cqm = dimod.ConstrainedQuadraticModel()
    x, y = dimod.Binaries(["x", "y"])
    cqm.set_objective(-x - y)
    cqm.add_constraint(0.1 * x + 0.2 * y <= 0.3, label="sum")
    found = CpSat(workers=1).sample_cqm(cqm)
    assert found.first.energy == -2.0


def test_a_short_time_limit_is_said_in_the_status() -> None:
    found = CpSat(workers=1).sample(random_bqm(45, 0), time_limit=0.5, seed=0)
    assert found.info["status"] == "feasible"
    assert found.info["gap"] > 0
    assert found.info["lower_bound"] < found.first.energy


@pytest.mark.parametrize(
    ("numbers", "scale"), [([1.0, 2.0], 1.0), ([0.5, 1.0], 10.0), ([0.25, 3.0], 100.0)]
)
def test_exact_scale_is_the_smallest_that_serves(numbers: list[float], scale: float) -> None:
    assert exact_scale(np.array(numbers)) == scale


def test_lowest_feasible_is_what_exhaustive_finds() -> None:
    for seed in range(3):
        cqm = random_cqm(seed, limits=True)
        assert Exhaustive().sample_cqm(cqm).first.energy == pytest.approx(lowest_feasible(cqm))


INTERRUPTED = """
import os, signal, sys, threading
from mercbo.testing import random_bqm
from mercbo_backends import CpSat

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

CpSat(workers=1).sample(random_bqm(5, 0))
try:
    if sys.argv[1] == "during":
        threading.Timer(0.5, interrupt).start()
        CpSat(workers=1).sample(random_bqm(60, 0), time_limit=300)
    else:
        interrupt()
except KeyboardInterrupt:
    print("caught")
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["after", "during"])
def test_control_c_is_an_ordinary_exception_during_and_after_a_solve(when: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, when]
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stdout) == (0, "caught\n"), done.stderr


def test_a_state_that_was_returned_does_not_stand_in_for_the_next_one() -> None:
    problem = Problem.of_bqm(random_bqm(12, 0))
    program = Program(problem, "rows", np.random.default_rng(0), cut_off=False)
    status, state, _ = program.solve(0.0, 1, 0)
    assert status == "feasible"
    assert state is not None
    program.exclude(1 - state)
    assert program.solve(0.0, 1, 0)[1] is state
    program.exclude(state)
    assert program.solve(0.0, 1, 0)[:2] == ("unknown", None)


def test_with_very_many_couplings_there_is_no_roof_dual(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Problem) -> None:
        raise AssertionError("the roof dual was computed")

    monkeypatch.setattr(cpsat, "MOST_DUAL", 60)
    monkeypatch.setattr(cpsat, "roof_dual", refused)
    bqm = random_bqm(12, 0)  # 66 couplings
    found = CpSat(workers=1).sample(bqm, seed=0)
    assert found.first.energy == pytest.approx(Exhaustive().sample(bqm).first.energy)
    assert found.info["lower_bound"] <= found.first.energy
    with pytest.raises(AssertionError, match="roof dual"):
        CpSat(workers=1).sample(random_bqm(11, 0), seed=0)
