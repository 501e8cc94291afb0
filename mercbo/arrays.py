"""The kinds of array that travel inside mercbo, one dtype each, and rows as dictionary keys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.int64]  # (N, n): index of each variable's value, one row per point
Bits: TypeAlias = NDArray[np.int8]  # (N, B): zeros and ones, the columns of an encoding
Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]


def key(row: Rows) -> bytes:
    """A row as a dictionary key."""
    return row.astype(np.int16).tobytes()


def rows_of_keys(found: Collection[bytes], variables: int) -> Rows:
    """The rows of some keys, one each."""
    flat = np.frombuffer(b"".join(found), dtype=np.int16)
    return flat.reshape(-1, variables).astype(np.int64)


def keys(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows.astype(np.int16)]
