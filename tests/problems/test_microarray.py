"""Simulated microarrays: the score held to its definition, and what real tables have."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo.problems.dna import LENGTH, PLACES, reverse_complement
from mercbo.problems.microarray import drawn_penalty, light, microarray, score_table, scores


def score_by_hand(probes: np.ndarray, bright: np.ndarray, mer: np.ndarray) -> float:
    """Each probe once for every time that it has the 8-mer on one strand or the other."""
    either = [mer.tolist(), reverse_complement(mer[np.newaxis])[0].tolist()]
    order = np.argsort(-bright)
    with_it = [
        place
        for place, probe in enumerate(probes[order].tolist())
        for i in range(len(probe) - LENGTH + 1)
        if probe[i : i + LENGTH] in either
    ]
    if not with_it:
        return -0.5
    upper, half = with_it[: max(1, len(with_it) // 2)], len(probes) / 2
    return float(np.mean([max(0.0, (half - place) / half) for place in upper])) - 0.5


def test_scores_are_the_area_of_the_brighter_half() -> None:
    rng = np.random.default_rng(0)
    probes = rng.integers(0, 2, (300, 12))  # of two letters, so that 8-mers come several times
    bright = rng.normal(size=300)
    table = scores(probes, bright)
    mers = [*rng.integers(0, 2, (20, LENGTH)), probes[0, :LENGTH], np.full(LENGTH, 3)]
    for mer in mers:
        assert table[mer @ PLACES] == pytest.approx(score_by_hand(probes, bright, mer))
    absent = np.array([2, 0, 0, 0, 0, 0, 0, 0])
    assert table[absent @ PLACES] == -0.5


def test_probes_with_the_motif_are_brighter() -> None:
    rng = np.random.default_rng(1)
    penalty = drawn_penalty(8, rng)
    best = penalty.argmin(axis=1)
    probes = rng.integers(0, 4, (500, 36))
    marked = probes.copy()
    marked[:, 10:18] = best
    turned = probes.copy()
    turned[:, 10:18] = reverse_complement(best[np.newaxis])[0]
    without = light(probes, penalty, 0.0)
    assert np.median(light(marked, penalty, 0.0) - without) > 0.3
    assert np.median(light(turned, penalty, 0.0) - without) > 0.3
    assert np.median(light(marked, penalty, 3.0)) < np.median(light(marked, penalty, 0.0))


def test_tables_are_shaped_as_real_ones() -> None:
    """Of the twelve published: medians -0.06 to -0.02, the highest tenth from 0.17 to 0.22, the
    highest in a thousand from 0.456 to 0.489, the best from 0.49 to 0.499."""
    tables = np.stack([score_table(run) for run in range(6)])
    middle, tenth, thousandth, best = np.quantile(tables, (0.5, 0.9, 0.999, 1.0), axis=1)
    assert np.abs(middle + 0.05).max() < 0.05
    assert np.abs(tenth - 0.2).max() < 0.1
    assert 0.4 < np.median(thousandth) < 0.495
    assert 0.48 < np.median(best) < 0.5


def test_strands_bind_alike_and_runs_differ() -> None:
    problem = microarray(3)
    rows = problem.space.sample_rows(200, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(
        problem.objective(rows), problem.objective(reverse_complement(rows))
    )
    assert (problem.objective(rows) != microarray(4).objective(rows)).any()
    assert problem.optimum == problem.objective(problem.space.enumerate_rows()).min()
