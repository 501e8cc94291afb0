"""Types that tables of text and workbooks share: cells, numbered rows, and their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from mercbo.errors import MercboError

Cell: TypeAlias = "str | int | float | bool | None"
Numbered: TypeAlias = "tuple[int, Sequence[Cell]]"  # the line of a row, and its cells


class TableError(MercboError):
    """A file that is no table."""
