"""Threads: SciPy is imported late, and its BLAS must be held to one thread all the same. Factors
that grow are those made at once."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Literal

import numpy as np
import pytest

from mercbo import linalg
from mercbo.linalg import BLOCK, MOST_KNOWN, PANEL, Factor, Factors, cholesky


def test_every_blas_that_is_used_is_held_to_one_thread() -> None:
    code = """
import mercbo
from mercbo.linalg import threads_for
with threads_for(10):
    import numpy, scipy.linalg
    from threadpoolctl import threadpool_info
    print([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert set(eval(done.stdout)) == {1}, done.stdout


@pytest.mark.parametrize("order", ["C", "F"])
def test_forms_of_the_inverse_are_those_of_the_matrix(order: Literal["C", "F"]) -> None:
    rng = np.random.default_rng(0)
    root, rows = rng.standard_normal((30, 40)), rng.standard_normal((7, 30))
    matrix = root @ root.T
    factor = Factor(np.array(cholesky(matrix).lower, order=order))
    wanted = np.einsum("rn,rn->r", rows, np.linalg.solve(matrix, rows.T).T)
    kept, scratch = rows.copy(), rows.copy()
    np.testing.assert_allclose(factor.inverse_forms(rows), wanted, rtol=1e-10)
    np.testing.assert_array_equal(rows, kept)  # left as they were, unless they may be written over
    np.testing.assert_allclose(factor.inverse_forms(scratch, overwrite=True), wanted, rtol=1e-10)
    assert (scratch != kept).any()
    half = factor.half_solve(rows.T)
    np.testing.assert_allclose((half**2).sum(axis=0), wanted, rtol=1e-10)
    assert factor.inverse_forms(rows[:0]).shape == (0,)


# -- factors that grow -------------------------------------------------------------------------


def covariance_of(rows: np.ndarray, scale: float = 1.0):  # type: ignore[no-untyped-def]
    """A positive definite covariance of rows, and the slices that were asked for."""
    asked: list[slice] = []

    def covariance(part: slice) -> np.ndarray:
        asked.append(part)
        apart = (rows[part, np.newaxis] != rows[np.newaxis, : part.stop]).sum(axis=2)
        return np.exp(-0.3 * scale * apart)

    return covariance, asked


def grown_in_steps(sizes: list[int], noise: np.ndarray, rows: np.ndarray) -> np.ndarray:
    factors, lower = Factors(), np.zeros((0, 0))
    for size in sizes:
        covariance, _ = covariance_of(rows[:size])
        lower = factors.factor("k", rows[:size], noise[:size], covariance).lower
    return lower


def test_a_factor_that_grew_is_the_one_made_at_once_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    size = BLOCK + 3 * PANEL + 17
    rows, noise = rng.integers(0, 3, (size, 12)), rng.uniform(0.01, 0.1, size)
    at_once = grown_in_steps([size], noise, rows)
    for sizes in (
        [10, PANEL, PANEL + 1, size],
        [2 * PANEL + 3, BLOCK + 1, size],
        [size - 1, size, size],
    ):
        assert np.array_equal(grown_in_steps(sizes, noise, rows), at_once)
    whole = covariance_of(rows)[0](slice(0, size)) + np.diag(noise)
    np.testing.assert_allclose(at_once @ at_once.T, whole, atol=1e-12)
    np.testing.assert_allclose(at_once, cholesky(whole).lower, atol=1e-9)


def test_only_what_is_behind_a_change_is_worked_out_again() -> None:
    rng = np.random.default_rng(1)
    rows, noise = rng.integers(0, 3, (2 * PANEL + 40, 12)), np.full(2 * PANEL + 40, 0.1)
    factors = Factors()
    factors.factor("k", rows, noise, covariance_of(rows)[0])
    more = np.concatenate([rows, rows[:5]])
    covariance, asked = covariance_of(more)
    factors.factor("k", more, np.full(len(more), 0.1), covariance)
    assert asked == [slice(2 * PANEL, len(more))]
    # a result that was corrected, a noise that changed, another covariance
    changed = more.copy()
    changed[PANEL + 7] = (changed[PANEL + 7] + 1) % 3
    for others, noises, name, first in (
        (changed, np.full(len(more), 0.1), "k", PANEL),
        (more, np.full(len(more), 0.2), "k", 0),
        (more, np.full(len(more), 0.2), "other", 0),
    ):
        covariance, asked = covariance_of(others)
        found = factors.factor(name, others, noises, covariance)
        assert asked[0].start == first
        fresh = Factors().factor("x", others, noises, covariance)
        assert np.array_equal(found.lower, fresh.lower)
    covariance, asked = covariance_of(more)
    factors.factor("k", more, np.full(len(more), 0.2), covariance)
    assert asked == []


@pytest.mark.parametrize(("entries", "kept"), [(0, MOST_KNOWN), (16 * 6, 6), (1 << 20, 7)])
def test_factors_used_long_ago_are_forgotten_where_they_take_too_much(
    entries: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linalg, "KNOWN_ENTRIES", entries)
    rows, factors = np.arange(8).reshape(4, 2), Factors()
    for name in "abcdefg":
        factors.factor(name, rows, np.ones(4), covariance_of(rows)[0])
    for name in reversed("abcdefg"[-kept:]):
        covariance, asked = covariance_of(rows)
        factors.factor(name, rows, np.ones(4), covariance)
        assert asked == []
    if kept < 7:
        covariance, asked = covariance_of(rows)
        factors.factor("a", rows, np.ones(4), covariance)
        assert asked == [slice(0, 4)]


def test_a_covariance_that_takes_jitter_gets_it() -> None:
    rows = np.zeros((6, 2), dtype=np.int64)
    found = Factors().factor("k", rows, np.zeros(6), covariance_of(rows)[0])
    np.testing.assert_allclose(found.lower @ found.lower.T, np.ones((6, 6)), atol=1e-3)


def test_factors_by_rows_and_by_columns_solve_alike() -> None:
    rng = np.random.default_rng(2)
    half = rng.standard_normal((30, 30))
    matrix, right = half @ half.T + np.eye(30), rng.standard_normal((30, 4))
    by_columns = cholesky(matrix)
    by_rows = Factor(np.ascontiguousarray(by_columns.lower))
    for one, other in (
        (by_rows.solve(right), by_columns.solve(right)),
        (by_rows.half_solve(right), by_columns.half_solve(right)),
        (by_rows.inverse(), by_columns.inverse()),
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(matrix @ by_rows.solve(right), right, atol=1e-9)


def test_remembered_factors_stay_behind_when_sent() -> None:
    rows, factors = np.arange(8).reshape(4, 2), Factors()
    factors.factor("k", rows, np.ones(4), covariance_of(rows)[0])
    covariance, asked = covariance_of(rows)
    pickle.loads(pickle.dumps(factors)).factor("k", rows, np.ones(4), covariance)
    assert asked == [slice(0, 4)]
