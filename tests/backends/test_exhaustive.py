"""Exhaustive: the proven minimum, in blocks, and a clear no where that is too much."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from mercbo_backends import Exhaustive

from mercbo.testing import random_bqm


def test_the_lowest_are_the_lowest_of_all() -> None:
    bqm = random_bqm(11, 0)
    found = Exhaustive().sample(bqm, num_reads=40)
    lowest = np.sort(dimod.ExactSolver().sample(bqm).record.energy)[:40]
    np.testing.assert_allclose(found.record.energy, lowest)
    assert found.info["status"] == "optimal"
    assert found.info["gap"] == 0.0


def test_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    bqm = random_bqm(12, 1)
    whole = Exhaustive().sample(bqm, num_reads=7)
    monkeypatch.setattr("mercbo_backends.exhaustive.BLOCK", 100)
    parts = Exhaustive().sample(bqm, num_reads=7)
    np.testing.assert_allclose(parts.record.energy, whole.record.energy)
    assert (parts.record.sample == whole.record.sample).all()


def test_too_many_bits_are_refused() -> None:
    bqm = dimod.BinaryQuadraticModel(dict.fromkeys(range(29), 1.0), {}, 0.0, "BINARY")
    with pytest.raises(ValueError, match=r"29 bits: 2\^29 states are too many to try each"):
        Exhaustive().sample(bqm)


def test_too_many_points_are_refused() -> None:
    cqm = dimod.ConstrainedQuadraticModel()
    for group in range(9):
        cqm.add_variables("BINARY", [(group, i) for i in range(10)])
        cqm.add_discrete([(group, i) for i in range(10)], label=f"g{group}")
    with pytest.raises(ValueError, match="1,000,000,000 points are too many"):
        Exhaustive().sample_cqm(cqm)


@pytest.mark.slow
def test_22_bits_and_two_million_points_of_groups() -> None:
    bqm = random_bqm(22, 2)
    found = Exhaustive().sample(bqm)
    dimod.testing.assert_response_energies(found, bqm)
    from mercbo_backends import GraphCut

    assert found.first.energy <= GraphCut().sample(bqm, seed=0).first.energy + 1e-9
    cqm = dimod.ConstrainedQuadraticModel()
    rng = np.random.default_rng(0)
    bits = [dimod.Binary((g, i)) for g in range(7) for i in range(8)]
    weights = rng.standard_normal((len(bits), len(bits)))
    cqm.set_objective(
        dimod.quicksum(
            float(weights[i, j]) * bits[i] * bits[j]
            for i in range(len(bits))
            for j in range(i)
            if i // 8 != j // 8
        )
    )
    for group in range(7):
        cqm.add_discrete([(group, i) for i in range(8)], label=f"g{group}")
    lowest = Exhaustive().sample_cqm(cqm).first.energy
    assert lowest == pytest.approx(GraphCut().sample_cqm(cqm, seed=0).first.energy)


def test_memory_is_bounded_for_wide_groups() -> None:
    """Three groups of 120: a half has 14,400 states of 360 bits, which are never held at once."""
    import tracemalloc

    cqm = dimod.ConstrainedQuadraticModel()
    rng = np.random.default_rng(0)
    for group in range(3):
        labels = [(group, i) for i in range(120)]
        cqm.add_variables("BINARY", labels)
        cqm.add_discrete(labels, label=f"g{group}")
        cqm.objective.add_linear_from(
            {label: float(b) for label, b in zip(labels, rng.standard_normal(120), strict=True)}
        )
    expected = sum(
        min(cqm.objective.get_linear((group, i)) for i in range(120)) for group in range(3)
    )
    tracemalloc.start()
    found = Exhaustive().sample_cqm(cqm)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.first.energy == pytest.approx(expected)
    assert peak < 200e6


def test_a_time_limit_stops_after_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercbo_backends.exhaustive.BLOCK", 1)
    found = Exhaustive().sample(random_bqm(16, 3), time_limit=1e-6)
    assert found.info["status"] == "feasible"
    assert found.info["lower_bound"] == -np.inf


def test_no_feasible_point_is_proven() -> None:
    cqm = dimod.ConstrainedQuadraticModel()
    x, y = dimod.Binaries(["x", "y"])
    cqm.set_objective(x + y)
    cqm.add_constraint(x + y >= 3, label="no")
    found = Exhaustive().sample_cqm(cqm)
    assert len(found) == 0
    assert found.info["status"] == "infeasible"


def test_what_was_finished_late_was_finished() -> None:
    found = Exhaustive(time_limit=1e-9).sample(random_bqm(5, 0))
    assert found.info["status"] == "optimal"
    assert found.info["gap"] == 0.0
