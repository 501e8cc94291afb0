"""Every problem against values computed another way, or known from the literature."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.problems import made

from mercbo import SettingError
from mercbo.problems import PROBLEMS
from mercbo.problems.contamination import contamination
from mercbo.problems.dna import dna, reverse_complement
from mercbo.problems.ising import HORIZONTAL, ising
from mercbo.problems.labs import energy, labs
from mercbo.problems.maxsat import maxsat
from mercbo.problems.pest import DISCOUNT, PRICE, pest
from mercbo.problems.random_quadratic import random_quadratic


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_instance_is_a_pure_function_of_its_run(name: str) -> None:
    first, again, other = (made(name, run) for run in (3, 3, 4))
    rows = first.space.sample_rows(5, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(first.evaluate(rows), again.evaluate(rows))
    np.testing.assert_array_equal(first.initial, again.initial)
    assert (first.initial != other.initial).any()
    assert first.initial.shape == (20, len(first.space))
    assert first.budget > 20
    assert np.isfinite(first.evaluate(first.initial)).all()
    assert first.space.region.allows(first.initial).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_are_evaluated_one_by_one(name: str) -> None:
    problem = made(name, 0)
    rows = problem.initial[:4]
    alone = [problem.evaluate(row[np.newaxis], first=i)[0] for i, row in enumerate(rows)]
    np.testing.assert_allclose(problem.evaluate(rows), alone)


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_initial_is_below_the_optimum(name: str) -> None:
    problem = made(name, 1)
    if problem.optimum is not None:
        assert problem.evaluate(problem.initial).min() >= problem.optimum - 1e-9


def test_contamination_step_by_step() -> None:
    problem = contamination(0)
    arrays = problem.objective.keywords  # type: ignore[attr-defined]
    x = problem.initial[0]
    clean = np.zeros((25, 100))
    for simulation in range(100):
        z = arrays["start"][simulation]
        for i in range(25):
            spread, cure = arrays["spread"][i, simulation], arrays["cure"][i, simulation]
            z = spread * (1 - x[i]) * (1 - z) + (1 - cure * x[i]) * z
            clean[i, simulation] = z < 0.1
    expected = sum(x[i] - (clean[i].mean() - 0.95) for i in range(25)) + 1e-4 * x.sum()
    assert problem.objective(x[np.newaxis])[0] == pytest.approx(expected, rel=1e-12)


def test_ising_keeping_every_edge_costs_the_penalty_only() -> None:
    problem = ising(0, penalty=1e-2)
    everything = np.ones((1, 24), dtype=np.int64)
    assert problem.objective(everything)[0] == pytest.approx(24 * 1e-2, abs=1e-9)


def test_ising_divergence_is_positive_where_an_edge_is_dropped() -> None:
    problem = ising(1, penalty=0.0)
    rows = problem.space.sample_rows(20, rng=np.random.default_rng(0))
    assert (problem.objective(rows) > 0).all()


def test_ising_one_dropped_bridge_by_hand() -> None:
    """With only one coupling J, log Z = 16 log 2 + log cosh 2J, and E[z z'] = tanh 2J."""
    from mercbo.problems.ising import divergence

    couplings, coupling = np.zeros(24), 0.7
    couplings[HORIZONTAL[0]] = coupling
    dropped = divergence(np.zeros((1, 24), dtype=np.int64), couplings, 0.0)[0]
    expected = 2 * coupling * np.tanh(2 * coupling) - np.log(np.cosh(2 * coupling))
    assert dropped == pytest.approx(expected, rel=1e-9)


def test_labs_known_energies() -> None:
    barker = np.array([[1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1]])
    assert energy(barker)[0] == 6
    assert labs(0, n=13).objective(barker)[0] == pytest.approx(-(13**2) / 6)
    # the optimum at n = 8 is E = 8, by enumeration
    everything = np.array(list(itertools.product([0, 1], repeat=8)))
    assert energy(everything).min() == 8
    assert labs(0, n=50).optimum == pytest.approx(-16.34, abs=0.01)
    assert labs(0, n=40).optimum == pytest.approx(-(40**2) / 108)
    assert labs(0, n=67).optimum is None


@pytest.mark.parametrize("n", range(3, 15))
def test_labs_optima_by_enumeration(n: int) -> None:
    problem = labs(0, n=n)
    assert problem.objective(problem.space.enumerate_rows()).min() == problem.optimum


def test_labs_starts_where_others_do() -> None:
    expected = np.random.default_rng(9).integers(0, 2, (20, 40))
    np.testing.assert_array_equal(labs(9, n=40).initial, expected)


def test_maxsat_counts_satisfied_clauses() -> None:
    problem = maxsat(0, n=5)
    arrays = problem.objective.keywords  # type: ignore[attr-defined]
    for row in problem.space.sample_rows(5, rng=np.random.default_rng(0)):
        total = 0.0
        for weight, clause in zip(arrays["weights"], arrays["literals"], strict=True):
            satisfied = any(
                (literal == 1 and bit) or (literal == -1 and not bit)
                for literal, bit in zip(clause, row, strict=True)
            )
            total += weight * satisfied
        assert problem.objective(row[np.newaxis])[0] == pytest.approx(-total)


def test_pest_prices_of_one_pesticide_everywhere() -> None:
    """The discounted price of 25 uses is known; the pest part is a share of 25 stations."""
    problem = pest(0, noisy=False)
    for which in range(4):
        value = problem.objective(np.full((1, 25), which + 1))[0]
        price = 25 * PRICE[which] * (1 - DISCOUNT[which])
        assert price <= value <= price + 25


def test_the_last_station_controls_nothing_that_counts() -> None:
    """Stations count what they find: as published, the last one's choice costs its price only."""
    problem = pest(3, noisy=False)
    plans = np.full((2, 25), 4)
    plans[1, -1] = 0
    with_last, without = problem.objective(plans)
    assert with_last - without == pytest.approx(PRICE[3])


def test_pest_without_control_only_grows() -> None:
    problem = pest(1, noisy=False)
    nothing = problem.objective(np.zeros((1, 25), dtype=np.int64))[0]
    assert 20 < nothing <= 25


def test_noise_is_a_pure_function_of_run_and_number() -> None:
    problem, again, other = pest(0), pest(0), pest(1)
    assert problem.noisy
    assert problem.optimum is None
    rows = np.repeat(problem.initial[:1], 6, axis=0)
    values = problem.evaluate(rows, first=3)
    assert len(set(values)) > 1
    np.testing.assert_array_equal(again.evaluate(rows[:2], first=5), values[2:4])
    assert (other.evaluate(rows, first=3) != values).any()


def test_fixed_pest_has_the_noise_of_number_zero() -> None:
    noisy, fixed = pest(2), pest(2, noisy=False)
    assert not fixed.noisy
    rows = np.repeat(fixed.initial[:1], 3, axis=0)
    assert fixed.evaluate(rows, first=8).tolist() == [noisy.evaluate(rows[:1])[0]] * 3


def test_ising_without_penalty_is_best_with_every_edge() -> None:
    problem = ising(2, penalty=0.0)
    everything = np.ones((1, 24), dtype=np.int64)
    assert problem.objective(everything)[0] == pytest.approx(problem.optimum, abs=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 1e-4, 1e-2])
def test_the_penalty_of_contamination_is_per_prevention(penalty: float) -> None:
    free, priced = contamination(0, penalty=0.0), contamination(0, penalty=penalty)
    rows = free.initial
    np.testing.assert_allclose(
        priced.objective(rows) - free.objective(rows), penalty * rows.sum(axis=1), atol=1e-12
    )


def test_bits_of_dna_are_another_view_of_the_same_problem() -> None:
    letters, bits = dna(4), dna(4, encoding="binary")
    np.testing.assert_array_equal(letters.initial, bits.initial)
    np.testing.assert_array_equal(letters.objective(bits.initial), bits.objective(bits.initial))
    assert bits.space.variables["base0"].encoding == "binary"
    with pytest.raises(SettingError, match="factor='ARX' needs the folder"):
        dna(0, factor="ARX")


def test_dna_strands_bind_alike() -> None:
    problem = dna(2)
    rows = problem.space.sample_rows(50, rng=np.random.default_rng(0))
    np.testing.assert_allclose(problem.objective(rows), problem.objective(reverse_complement(rows)))
    everything = problem.objective(problem.space.enumerate_rows())
    assert everything.min() == pytest.approx(problem.optimum)


def test_random_quadratic_is_what_it_says() -> None:
    problem = random_quadratic(0, n=4)
    arrays = problem.objective.keywords  # type: ignore[attr-defined]
    row = np.array([0, 1, 1, 0])
    spin = [1, -1, -1, 1]
    expected = sum(arrays["main"][i] * spin[i] for i in range(4))
    expected += sum(arrays["pairs"][i, j] * spin[i] * spin[j] for i in range(4) for j in range(4))
    assert problem.objective(row[np.newaxis])[0] == pytest.approx(expected)


def test_published_instances_are_read_from_a_folder(tmp_path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "published").mkdir()
    arrays = {
        "init": rng.integers(0, 2, (25, 20, 25)),
        "init_Z": rng.random((25, 100)),
        "lambdas": rng.random((25, 25, 100)),
        "gammas": rng.random((25, 25, 100)),
    }
    np.savez(tmp_path / "published" / "contamination.npz", **arrays)
    problem = contamination(7, tmp_path)
    np.testing.assert_array_equal(problem.initial, arrays["init"][7])
    np.testing.assert_array_equal(
        problem.objective.keywords["start"],  # type: ignore[attr-defined]
        arrays["init_Z"][7],
    )
    with pytest.raises(SettingError, match="run=25 is not one of 0 to 24"):
        contamination(25, tmp_path)
    with pytest.raises(SettingError, match=r"no published/ising\.npz"):
        ising(0, tmp_path)
    with pytest.raises(SettingError, match="no tfbind8"):
        dna(0, tmp_path)
