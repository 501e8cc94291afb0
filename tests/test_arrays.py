"""Rows as dictionary keys."""

import numpy as np

from mercbo import Binary, Categorical, Ordinal, Space
from mercbo.arrays import key, keys

SMALL = Space({"a": Categorical(["x", "y", "z"]), "b": Ordinal([1, 2, 3, 4]), "c": Binary()})


def test_keys_are_one_to_one():
    rows = SMALL.enumerate_rows()
    assert len(set(keys(rows))) == SMALL.size
    assert [key(row) for row in rows] == keys(rows)


def test_keys_tell_the_largest_indices_apart():
    rows = np.arange(2048)[:, np.newaxis]
    assert len(set(keys(rows))) == 2048
