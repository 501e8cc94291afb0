"""Points without a model: unseen, distinct, spread out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import Binary, Categorical, Integer, Ordinal, Space
from mercbo.design import distances, key, keys, space_filling, unseen

SMALL = Space(
    {
        "a": Categorical(["x", "y", "z"]),
        "b": Ordinal([1, 2, 3, 4]),
        "c": Binary(),
        "d": Categorical([None]),
    }
)


def as_set(rows: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


def seen_of(space: Space, count: int, seed: int) -> tuple[np.ndarray, set[bytes]]:
    """`count` points of the space, and their keys."""
    rows = np.random.default_rng(seed).permutation(space.enumerate_rows())[:count]
    return rows, set(keys(rows))


# -- keys --------------------------------------------------------------------------------------


def test_keys_are_one_to_one():
    rows = SMALL.enumerate_rows()
    assert len(set(keys(rows))) == SMALL.size
    assert [key(row) for row in rows] == keys(rows)


def test_keys_tell_the_largest_indices_apart():
    rows = np.arange(2048)[:, np.newaxis]
    assert len(set(keys(rows))) == 2048


# -- unseen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(SMALL.size))
def test_unseen_points_are_distinct_and_new(count):
    known, seen = seen_of(SMALL, count, seed=count)
    for k in (1, 2, 7, SMALL.size):
        rows = unseen(SMALL, seen, k, rng=np.random.default_rng(k))
        assert len(rows) == min(k, SMALL.size - count)
        assert len(as_set(rows)) == len(rows)
        assert not as_set(rows) & as_set(known)
        assert as_set(rows) <= as_set(SMALL.enumerate_rows())


@pytest.mark.parametrize("left", range(5))
def test_all_that_are_left_come_when_more_are_wanted(left):
    known, seen = seen_of(SMALL, SMALL.size - left, seed=1)
    rows = unseen(SMALL, seen, 10, rng=np.random.default_rng(0))
    assert as_set(rows) == as_set(SMALL.enumerate_rows()) - as_set(known)
    assert len(rows) == left


def test_every_unseen_point_can_come():
    """Each of the 23 left is missed by 600 fair draws with probability below 3e-12."""
    known, seen = seen_of(SMALL, 1, seed=0)
    rng = np.random.default_rng(0)
    found = set().union(*(as_set(unseen(SMALL, seen, 1, rng=rng)) for _ in range(600)))
    assert found == as_set(SMALL.enumerate_rows()) - as_set(known)


def test_unseen_points_of_a_space_too_large_to_list():
    space = Space.binary(300)
    rows = unseen(space, set(), 50, rng=np.random.default_rng(0))
    again = unseen(space, set(keys(rows)), 50, rng=np.random.default_rng(0))
    assert rows.shape == (50, 300)
    assert len(as_set(rows)) == 50
    assert not as_set(again) & as_set(rows)


@pytest.mark.parametrize("space", [SMALL, Space.binary(300)], ids=["small", "large"])
def test_no_points_wanted_are_no_points(space):
    rows = unseen(space, set(), 0, rng=np.random.default_rng(0))
    assert rows.shape == (0, len(space))


def test_unseen_points_follow_the_generator():
    first, same, other = (
        unseen(Space.binary(30), set(), 3, rng=np.random.default_rng(s)).tolist() for s in (0, 0, 1)
    )
    assert first == same
    assert first != other


@given(st.integers(0, 24), st.integers(1, 30), st.integers(0, 2**32))
def test_unseen_gives_as_many_new_points_as_there_can_be(count, k, seed):
    known, seen = seen_of(SMALL, count, seed)
    rows = unseen(SMALL, seen, k, rng=np.random.default_rng(seed))
    assert len(as_set(rows)) == min(k, SMALL.size - count)
    assert not as_set(rows) & as_set(known)


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
        row = space_filling(space, set(keys(placed)), placed, rng=rng)
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
            row = space_filling(SMALL, seen, placed, rng=np.random.default_rng(seed))
            assert key(row) not in seen
            assert tuple(row) in as_set(SMALL.enumerate_rows())


def test_the_farthest_of_a_small_space_is_taken():
    space = Space.binary(4)
    placed = np.zeros((1, 4), dtype=np.int64)
    row = space_filling(space, set(keys(placed)), placed, rng=np.random.default_rng(0))
    assert row.tolist() == [1, 1, 1, 1]


def test_a_design_follows_the_generator():
    space = Space.binary(20)
    assert np.array_equal(filled(space, 5, seed=0), filled(space, 5, seed=0))
    assert not np.array_equal(filled(space, 5, seed=0), filled(space, 5, seed=1))
