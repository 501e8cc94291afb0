"""Rows as dictionary keys, and each of them once."""

import numpy as np
import pytest

from mercbo import Binary, Categorical, Ordinal, Space
from mercbo.arrays import first_of_each, key, keys

SMALL = Space({"a": Categorical(["x", "y", "z"]), "b": Ordinal([1, 2, 3, 4]), "c": Binary()})


def test_keys_are_one_to_one():
    rows = SMALL.enumerate_rows()
    assert len(set(keys(rows))) == SMALL.size
    assert [key(row) for row in rows] == keys(rows)


def test_keys_tell_the_largest_indices_apart():
    rows = np.arange(2048)[:, np.newaxis]
    assert len(set(keys(rows))) == 2048


@pytest.mark.parametrize("shape", [(60, 5), (40, 1), (1, 3), (0, 4)])
@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_the_first_of_each_row_is_where_numpy_finds_it(shape: tuple[int, int], dtype: type) -> None:
    rows = np.random.default_rng(0).integers(0, 3, shape).astype(dtype)
    rows[:, 0] *= 40  # more than a byte, once it is squared
    wanted = np.unique(rows.astype(np.int64) ** 2, axis=0, return_index=True)[1]
    assert np.array_equal(first_of_each(rows.astype(np.int64) ** 2), wanted)
    assert np.array_equal(first_of_each(rows), np.unique(rows, axis=0, return_index=True)[1])


def test_rows_of_no_columns_are_all_the_same() -> None:
    assert first_of_each(np.zeros((4, 0), dtype=np.int64)).tolist() == [0]
