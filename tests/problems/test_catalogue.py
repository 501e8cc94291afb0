"""Problems by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.problems import made

from mercbo import SettingError
from mercbo.problems import PROBLEMS, make
from mercbo.problems.base import BUDGET


@pytest.mark.parametrize("name", PROBLEMS)
def test_names_are_those_they_are_made_by(name: str) -> None:
    problem = made(name, 0)
    assert problem.name == name
    again = make(problem.name, 0, relocated=False)
    np.testing.assert_array_equal(again.initial, problem.initial)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("labs-27", [2] * 27),
        ("maxsat-15", [2] * 15),
        ("quadratic-9", [2] * 9),
        ("nk-11-4", [2] * 11),
        ("ehrlich-24", [8] * 24),
        ("ehrlich-24-4", [4] * 24),
        ("knapsack-12", [2] * 12),
        ("assignment-5", [5] * 5),
    ],
)
def test_names_with_sizes(name: str, sizes: list[int]) -> None:
    problem = make(name, 1)
    assert problem.name == name
    assert problem.relocated
    assert problem.space.sizes.tolist() == sizes
    assert problem.initial.shape == (20, len(sizes))


def test_chosen_budgets_are_the_same_for_all() -> None:
    names = ["power-mass", "nk-30-3", "ehrlich-32", "knapsack-30", "assignment-10", "quadratic-100"]
    assert {PROBLEMS[name](0).budget for name in names} == {BUDGET} == {200}


def test_relocation_is_the_default() -> None:
    plain, there = make("labs-13", 3, relocated=False), make("labs-13", 3)
    assert (plain.initial != there.initial).any()
    np.testing.assert_array_equal(plain.evaluate(plain.initial), there.evaluate(there.initial))


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("isng", "ising"),
        ("labs", "labs-N"),
        ("nk-30", "nk-30-3"),
        ("power-weight", "power-mass"),
        ("ehrlich", "ehrlich-L"),
    ],
)
def test_unknown_names_are_met_with_close_ones(name: str, close: str) -> None:
    with pytest.raises(SettingError, match=f"name='{name}' is not one of .*did you mean"):
        make(name, 0)
    with pytest.raises(SettingError, match=close):
        make(name, 0)


@pytest.mark.parametrize("run", [-1, 1.5, True, "0"])
def test_wrong_runs_are_quoted(run: object) -> None:
    with pytest.raises(SettingError, match=f"run={run!r} is not a whole number"):
        make("ising", run)  # type: ignore[arg-type]


def test_factors_by_name(data: Path) -> None:
    problem = make("dna-bits:SIX6", 0, str(data), relocated=False)
    assert problem.name == "dna-bits:SIX6"
    assert make("dna", 8, data).name == "dna:SIX6"
    with pytest.raises(SettingError, match="factor='SIX7' is not one of"):
        make("dna:SIX7", 0, data)


def test_a_factor_needs_data() -> None:
    with pytest.raises(SettingError, match="factor='ARX' needs the folder"):
        make("dna:ARX", 0)
