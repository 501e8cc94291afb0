"""Published instances, where they are at hand, against known values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.arrays import Rows
from mercbo.problems import PROBLEMS, Problem
from mercbo.problems.contamination import contamination
from mercbo.problems.dna import dna
from mercbo.problems.ising import ising
from mercbo.problems.maxsat import maxsat

BUDGETS = {
    "ising": 170,
    "ising-0": 170,
    "ising-1e-2": 170,
    "contamination": 270,
    "contamination-0": 270,
    "contamination-1e-2": 270,
    "labs-40": 270,
    "labs-50": 270,
    "maxsat-28": 270,
    "maxsat-43": 270,
    "maxsat-60": 270,
    "pest": 320,
    "pest-fixed": 320,
    "dna": 500,
    "dna-bits": 500,
}


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_are_the_published_ones(name: str) -> None:
    assert PROBLEMS[name](0).budget == BUDGETS[name]


def bits(number: int, n: int) -> Rows:
    """(1, n): the binary digits of a number, the most significant first."""
    return np.array([[(number >> place) & 1 for place in range(n - 1, -1, -1)]])


def assert_lowest_nearby(problem: Problem, row: Rows) -> None:
    """The row has the optimum's value, and nothing that differs in one or two bits is lower."""
    n = row.shape[1]
    assert problem.objective(row)[0] == pytest.approx(problem.optimum, abs=1e-8)
    flips = np.eye(n, dtype=np.int64)
    i, j = np.triu_indices(n)
    near = row ^ (flips[i] | flips[j])
    assert problem.objective(near).min() >= problem.optimum - 1e-8


# The same plans are best for all three penalties.
CONTAMINATION = {0: 0x1B6DBBA, 5: 0x1ADDAD4, 10: 0x0DBB6AC, 15: 0x0ADEDB4, 20: 0x0DBBADC}


@pytest.mark.parametrize("penalty", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("run", CONTAMINATION)
def test_best_plans_of_contamination(run: int, penalty: float, data: Path) -> None:
    problem = contamination(run, data, penalty=penalty)
    assert_lowest_nearby(problem, bits(CONTAMINATION[run], 25))
    assert contamination(run + 4, data, penalty=penalty).optimum == problem.optimum


ISING = {
    1e-4: {0: 0xFFFFFF, 5: 0xFE9FFF, 10: 0xDAF933, 15: 0xFEFDFF, 20: 0xEF3F7F},
    1e-2: {0: 0xE5BFF7, 5: 0xB32ECF, 10: 0xDAF933, 15: 0xEABDFF, 20: 0x6F3E7F},
}


@pytest.mark.parametrize("penalty", ISING)
@pytest.mark.parametrize("run", [0, 5, 10, 15, 20])
def test_best_edges_of_ising(run: int, penalty: float, data: Path) -> None:
    problem = ising(run, data, penalty=penalty)
    row = bits(ISING[penalty][run], 24)
    assert problem.objective(row)[0] == pytest.approx(problem.optimum, abs=1e-8)
    near = row ^ np.eye(24, dtype=np.int64)
    assert problem.objective(near).min() >= problem.optimum


@pytest.mark.parametrize(("n", "best"), [(28, 0xBB28516), (43, 0x533603DBE3E), (60, 0)])
def test_best_assignments_of_maxsat(n: int, best: int, data: Path) -> None:
    assert_lowest_nearby(maxsat(0, data, n=n), bits(best, n))


def test_other_sizes_of_maxsat_are_drawn_with_data_too(data: Path) -> None:
    rows = maxsat(3, n=12).initial
    np.testing.assert_array_equal(maxsat(3, data, n=12).initial, rows)


def test_factors_by_turns_and_by_name(data: Path) -> None:
    by_turn, by_name = dna(1, data), dna(7, data, factor="CRX")
    assert by_turn.name == by_name.name == "dna:CRX"
    rows = by_turn.space.enumerate_rows()
    np.testing.assert_array_equal(by_turn.objective(rows), by_name.objective(rows))
    assert by_turn.objective(rows).min() == by_turn.optimum
    with pytest.raises(SettingError, match="did you mean 'CRX'"):
        dna(0, data, factor="CRXX")


def test_published_initial_points_differ_by_run(data: Path) -> None:
    assert (contamination(0, data).initial != contamination(1, data).initial).any()
