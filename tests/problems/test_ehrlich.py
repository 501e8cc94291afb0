"""Ehrlich functions against a plain statement of their definition, and by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.problems.ehrlich import Ehrlich, draw_allowed, ehrlich


def plainly(function: Ehrlich, row: list[int]) -> float:
    """Minus the value of one sequence, NaN where it is infeasible."""
    if any(not function.allowed[a, b] for a, b in itertools.pairwise(row)):
        return math.nan
    value = 1.0
    for motif, offsets in zip(function.motifs.tolist(), function.offsets.tolist(), strict=True):
        best = 0
        for start in range(len(row) - offsets[-1]):
            found = [row[start + o] == letter for o, letter in zip(offsets, motif, strict=True)]
            best = max(best, sum(found))
        value *= math.floor(best * function.levels / len(motif)) / function.levels
    return -value


@pytest.mark.parametrize("run", range(4))
@pytest.mark.parametrize("q", [1, 3])
def test_all_sequences_of_a_small_instance(run: int, q: int) -> None:
    problem = ehrlich(run, length=7, v=3, c=2, k=3, q=q)
    rows = problem.space.enumerate_rows()
    values = problem.objective(rows)
    np.testing.assert_array_equal(
        values, [plainly(problem.objective, row) for row in rows.tolist()]
    )
    assert np.nanmin(values) == problem.optimum == -1.0
    assert np.isnan(values).any()


@pytest.mark.parametrize("run", range(5))
@pytest.mark.parametrize(
    ("length", "v", "c", "k"), [(15, 8, None, 4), (32, 8, None, 4), (32, 32, 4, 4), (64, 4, 8, 8)]
)
def test_the_optimum_is_feasible(run: int, length: int, v: int, c: int | None, k: int) -> None:
    problem = ehrlich(run, length=length, v=v, c=c, k=k)
    best = problem.objective.solution(length)  # type: ignore[attr-defined]
    assert best.shape == (length,)
    assert problem.objective(best[np.newaxis])[0] == -1.0


def test_two_levels_are_coarser_than_four() -> None:
    fine, coarse = (ehrlich(0, length=12, v=4, c=1, k=4, q=q) for q in (4, 2))
    assert set(-fine.objective(fine.initial)) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert set(-coarse.objective(coarse.initial)) <= {0.0, 0.5, 1.0}
    assert (-coarse.objective(fine.initial) <= -fine.objective(fine.initial)).all()


@pytest.mark.parametrize("v", [3, 4, 8, 32])
def test_every_letter_can_be_reached_and_repeated(v: int) -> None:
    for seed in range(10):
        allowed = draw_allowed(v, np.random.default_rng(seed))
        assert allowed.diagonal().all()
        assert (~allowed).any(axis=1).all()
        assert (np.linalg.matrix_power(allowed.astype(float), v) > 0).all()


def test_initial_sequences_are_feasible_and_others_fail() -> None:
    problem = ehrlich(0, length=32)
    assert np.isfinite(problem.objective(problem.initial)).all()
    rows = problem.space.sample_rows(50, rng=np.random.default_rng(0))
    assert np.isnan(problem.objective(rows)).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 7, "c": 2}, "length=7 is too small; at least 8"),
        ({"q": 3}, "q=3 does not divide the length of motifs, k=4"),
        ({"v": 2}, "v=2 is too small"),
        ({"c": 0}, "c=0 is too small"),
    ],
)
def test_impossible_settings_are_quoted(settings: dict[str, int], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ehrlich(0, **settings)
