"""RNA inverse folding, where ViennaRNA is installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.problems.rna import draw_target, rna, sequence


@pytest.mark.parametrize("goal", ["distance", "gap"])
@pytest.mark.parametrize("run", range(3))
def test_the_sequence_of_the_target_is_optimal(goal: str, run: int) -> None:
    pytest.importorskip("RNA")
    problem = rna(run, n=20, goal=goal)
    row, target = draw_target(20, np.random.default_rng([run, 15, 20]))
    assert problem.objective.keywords["target"] == target  # type: ignore[attr-defined]
    # energies are sums of hundredths of kcal/mol in single precision
    assert problem.objective(row[np.newaxis])[0] == pytest.approx(problem.optimum, abs=1e-4)
    assert (problem.objective(problem.initial) >= -1e-4).all()


def test_distances_count_pairs_that_differ() -> None:
    package = pytest.importorskip("RNA")
    problem = rna(0, n=20)
    target = problem.objective.keywords["target"]  # type: ignore[attr-defined]
    row = problem.initial[0]
    folded, wanted = pairs(package.fold(sequence(row))[0]), pairs(target)
    assert problem.objective(row[np.newaxis])[0] == len(folded ^ wanted)
    assert len(wanted) >= 5


def pairs(structure: str) -> set[tuple[int, int]]:
    found, begun = set(), []
    for i, sign in enumerate(structure):
        if sign == "(":
            begun.append(i)
        elif sign == ")":
            found.add((begun.pop(), i))
    return found


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "RNA", None)
    with pytest.raises(ImportError, match="pip install ViennaRNA"):
        rna(0)


def test_short_sequences_are_quoted() -> None:
    with pytest.raises(SettingError, match="n=5 is too small"):
        rna(0, n=5)
