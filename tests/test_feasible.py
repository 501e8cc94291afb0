"""Feasible rows: listed, random, unseen; and the proof that there are none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import Binary, Categorical, Ordinal, Space
from mercbo.arrays import keys

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


# -- unseen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(SMALL.size))
def test_unseen_points_are_distinct_and_new(count):
    known, seen = seen_of(SMALL, count, seed=count)
    for k in (1, 2, 7, SMALL.size):
        rows = SMALL.feasible.unseen(seen, k, rng=np.random.default_rng(k))
        assert len(rows) == min(k, SMALL.size - count)
        assert len(as_set(rows)) == len(rows)
        assert not as_set(rows) & as_set(known)
        assert as_set(rows) <= as_set(SMALL.enumerate_rows())


@pytest.mark.parametrize("left", range(5))
def test_all_that_are_left_come_when_more_are_wanted(left):
    known, seen = seen_of(SMALL, SMALL.size - left, seed=1)
    rows = SMALL.feasible.unseen(seen, 10, rng=np.random.default_rng(0))
    assert as_set(rows) == as_set(SMALL.enumerate_rows()) - as_set(known)
    assert len(rows) == left


def test_every_unseen_point_can_come():
    """Each of the 23 left is missed by 600 fair draws with probability below 3e-12."""
    known, seen = seen_of(SMALL, 1, seed=0)
    rng = np.random.default_rng(0)
    found = set().union(*(as_set(SMALL.feasible.unseen(seen, 1, rng=rng)) for _ in range(600)))
    assert found == as_set(SMALL.enumerate_rows()) - as_set(known)


def test_unseen_points_of_a_space_too_large_to_list():
    space = Space.binary(300)
    rows = space.feasible.unseen(set(), 50, rng=np.random.default_rng(0))
    again = space.feasible.unseen(set(keys(rows)), 50, rng=np.random.default_rng(0))
    assert rows.shape == (50, 300)
    assert len(as_set(rows)) == 50
    assert not as_set(again) & as_set(rows)


@pytest.mark.parametrize("space", [SMALL, Space.binary(300)], ids=["small", "large"])
def test_no_points_wanted_are_no_points(space):
    rows = space.feasible.unseen(set(), 0, rng=np.random.default_rng(0))
    assert rows.shape == (0, len(space))


def test_unseen_points_follow_the_generator():
    first, same, other = (
        Space.binary(30).feasible.unseen(set(), 3, rng=np.random.default_rng(s)).tolist()
        for s in (0, 0, 1)
    )
    assert first == same
    assert first != other


@given(st.integers(0, 24), st.integers(1, 30), st.integers(0, 2**32))
def test_unseen_gives_as_many_new_points_as_there_can_be(count, k, seed):
    known, seen = seen_of(SMALL, count, seed)
    rows = SMALL.feasible.unseen(seen, k, rng=np.random.default_rng(seed))
    assert len(as_set(rows)) == min(k, SMALL.size - count)
    assert not as_set(rows) & as_set(known)
