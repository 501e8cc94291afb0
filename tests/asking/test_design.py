"""Points without a model: new and spread out."""

import numpy as np
import pytest

from mercbo import Binary, Categorical, Integer, Optimizer, Ordinal, Space, Where
from mercbo.arrays import key, keys
from mercbo.asking.design import CANDIDATES, TRIES, distances, diversity, space_filling
from mercbo.asking.failures import Always
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel

SMALL = Space(
    {
        "a": Categorical(["x", "y", "z"]),
        "b": Ordinal([1, 2, 3, 4]),
        "c": Binary(),
        "d": Categorical([None]),
    }
)

ALWAYS = Always(Kernel(Encoding(SMALL)))  # nothing has failed


def as_set(rows: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


def seen_of(space: Space, count: int, seed: int) -> tuple[np.ndarray, set[bytes]]:
    """`count` points of the space, and their keys."""
    rows = np.random.default_rng(seed).permutation(space.enumerate_rows())[:count]
    return rows, set(keys(rows))


# -- distances ---------------------------------------------------------------------------------


def test_distance_counts_differing_variables_and_shares_of_ordered_ranges():
    space = Space(
        {"a": Categorical(["x", "y", "z"]), "b": Ordinal([1, 2, 3, 4, 5]), "c": Integer(7, 7)}
    )
    a = np.array([[0, 0, 0], [2, 4, 0]])
    b = np.array([[0, 0, 0], [1, 1, 0], [2, 3, 0]])
    # x against z is as far as x against y; one step of four is a quarter
    assert distances(space, a, b).tolist() == [[0.0, 1.25, 1.75], [2.0, 1.75, 0.25]]


def test_distance_is_a_metric_on_a_small_space():
    rows = SMALL.enumerate_rows()
    d = distances(SMALL, rows, rows)
    rounding = 8 * np.finfo(float).eps  # sums of at most four shares of at most 1
    assert np.array_equal(d, d.T)
    assert np.array_equal(d == 0, np.eye(len(rows), dtype=bool))
    assert (d[:, np.newaxis, :] <= d[:, :, np.newaxis] + d[np.newaxis, :, :] + rounding).all()


# -- space filling -----------------------------------------------------------------------------


def filled(space: Space, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    placed = np.zeros((0, len(space)), dtype=np.int64)
    for _ in range(count):
        row = space_filling(space.feasible, set(keys(placed)), placed, ALWAYS, rng=rng)
        placed = np.vstack([placed, row])
    return placed


def spread(space: Space, rows: np.ndarray) -> float:
    """The distance of a point to its nearest neighbour, on average."""
    d = distances(space, rows, rows)
    np.fill_diagonal(d, np.inf)
    return float(d.min(axis=1).mean())


@pytest.mark.parametrize(
    "space",
    [
        Space.binary(20),
        Space({f"c{i}": Categorical(range(4)) for i in range(12)}),
        Space({f"n{i}": Integer(0, 9) for i in range(6)}),
    ],
    ids=["binary", "categorical", "integer"],
)
def test_a_design_is_more_spread_out_than_random_points(space):
    """It is wider than the widest of 20 random designs, for each of 5 seeds.

    Were the design random, each comparison would come out so with probability 1/21 at most, and
    all five with 1/21**5 < 3e-7.
    """
    for seed in range(5):
        rng = np.random.default_rng(1000 + seed)
        rivals = [spread(space, space.sample_rows(8, rng=rng)) for _ in range(20)]
        assert spread(space, filled(space, 8, seed)) > max(rivals)


def test_a_design_never_repeats_until_the_space_is_used_up():
    rows = filled(SMALL, SMALL.size, seed=0)
    assert as_set(rows) == as_set(SMALL.enumerate_rows())


@pytest.mark.parametrize("count", [0, 1, 12, 20, 23])
def test_a_seen_point_never_comes(count):
    known, seen = seen_of(SMALL, count, seed=3)
    for seed in range(10):
        for placed in (known, known[:0]):
            row = space_filling(
                SMALL.feasible, seen, placed, ALWAYS, rng=np.random.default_rng(seed)
            )
            assert key(row) not in seen
            assert tuple(row) in as_set(SMALL.enumerate_rows())


def test_the_farthest_of_a_small_space_is_taken():
    space = Space.binary(4)
    placed = np.zeros((1, 4), dtype=np.int64)
    row = space_filling(
        space.feasible, set(keys(placed)), placed, ALWAYS, rng=np.random.default_rng(0)
    )
    assert row.tolist() == [1, 1, 1, 1]


def test_a_design_follows_the_generator():
    space = Space.binary(20)
    assert np.array_equal(filled(space, 5, seed=0), filled(space, 5, seed=0))
    assert not np.array_equal(filled(space, 5, seed=0), filled(space, 5, seed=1))


@pytest.mark.parametrize("rarity", [0, 5, 9])
def test_rare_points_cost_few_calls_of_a_predicate(rarity):
    """One point in 2^rarity is allowed: 64 candidates would take 64 * 2^rarity calls."""
    calls = []

    def begins_with_ones(point: dict) -> bool:
        calls.append(1)
        return all(point[f"x{i}"] for i in range(rarity))

    space = Space(Space.binary(24).variables, [Where(begins_with_ones)])
    for seed in range(3):
        calls.clear()
        rows = filled(space, 5, seed)
        assert rows[:, :rarity].all()
        assert len(as_set(rows)) == 5
        # rows are drawn in batches, and as long as none is allowed: longer than twice as many
        # with a chance of (1 - 1/512)^4096, about 3e-4
        assert len(calls) <= 5 * 2 * TRIES


def test_a_predicate_that_allows_one_point_in_16_leaves_all_candidates():
    space = Space(
        Space.binary(24).variables,
        [Where(lambda p: all(p[f"x{i}"] for i in range(4)), name="one in 16")],
    )
    rng = np.random.default_rng(0)
    assert len(space.feasible.unseen((), CANDIDATES, tries=TRIES, rng=rng)) == CANDIDATES


# -- diversity ---------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 12])
def test_diversity_is_the_mean_of_all_pairs(count):
    rows = SMALL.sample_rows(count, rng=np.random.default_rng(count))
    pairs = [(rows[i] != rows[j]).sum() for i in range(count) for j in range(i)]
    assert diversity(rows) == pytest.approx(np.mean(pairs))
    assert Optimizer(SMALL).diversity(SMALL.points(rows)) == diversity(rows)


def test_one_point_and_equal_points_have_no_diversity():
    row = SMALL.sample_rows(1, rng=np.random.default_rng(0))
    assert diversity(row) == diversity(np.repeat(row, 5, axis=0)) == diversity(row[:0]) == 0.0
