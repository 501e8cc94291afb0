"""`History`: what was asked and told so far. Frozen: every step returns a new history.

| symbol   | meaning                                                               | shape  |
|----------|-----------------------------------------------------------------------|--------|
| rows     | points with a result, in the order told; replicates stay separate     | (N, n) |
| values   | their results, in the user's units                                    | (N,)   |
| errors   | known standard deviations of the results, NaN if unknown              | (N,)   |
| metadata | batch, time and notes of each result                                  | (N,)   |
| failed   | points whose evaluation failed                                        | (F, n) |
| pending  | points asked for and not told                                         | (Q, n) |
| retries  | failed points that the next asks suggest first                        | (T, n) |
| marks    | batch, time and notes of the failed and pending points, by row key    |        |

No suggestion depends on `metadata` or `marks`: they are for the user's records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, keys

Marked = dict[bytes, Rows]


class Metadata(NamedTuple):
    """Batch, time and notes of a point.

    batch
        Number of the `ask` that suggested the point, from 1; None if no `ask` did.
    time
        UTC time of the result, or of the `ask` if the point is pending; "" if unknown.

    `notes` holds the user's own entries, or is None.
    """

    batch: int | None = None
    time: str = ""
    notes: Mapping[str, Any] | None = None


UNKNOWN = Metadata()


@dataclass(frozen=True)
class History:
    """The points of a run by what became of them."""

    rows: Rows
    values: Floats
    errors: Floats
    failed: Marked = field(default_factory=dict)
    pending: Marked = field(default_factory=dict)
    retries: Marked = field(default_factory=dict)
    metadata: tuple[Metadata, ...] = ()
    marks: dict[bytes, Metadata] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.metadata) != len(self.values):  # of results without records
            missing = (UNKNOWN,) * (len(self.values) - len(self.metadata))
            object.__setattr__(self, "metadata", (*self.metadata, *missing))

    @classmethod
    def empty(cls, variables: int) -> History:
        return cls(np.zeros((0, variables), dtype=np.int64), np.zeros(0), np.zeros(0))

    def __len__(self) -> int:
        return len(self.values)

    # -- looking -------------------------------------------------------------------------------

    def seen(self, *, repeats: bool) -> set[bytes]:
        """Points that must not be asked for: those failed or pending, and without repeats those
        with a result."""
        told = [] if repeats else keys(self.rows)
        return {*told, *self.failed, *self.pending}

    def stack(self, marked: Marked) -> Rows:
        return np.array(list(marked.values()), dtype=np.int64).reshape(-1, self.rows.shape[1])

    def are(self, rows: Rows, marked: Marked) -> Mask:
        """(N,): which rows are among the marked ones."""
        return np.array([found in marked for found in keys(rows)], dtype=np.bool_)

    def same_results(self, other: History) -> bool:
        """Whether two histories say the same of the objective."""
        return self.values is other.values or (
            np.array_equal(self.rows, other.rows)
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.errors, other.errors, equal_nan=True)
        )

    def has_result(self, rows: Rows) -> Mask:
        """(N,): which rows have a result or failed."""
        told = {*keys(self.rows), *self.failed}
        return np.array([found in told for found in keys(rows)], dtype=np.bool_)

    def error_of(self, row: Rows) -> float:
        """The known error of a point with one result; NaN where it has none, or other results."""
        errors = self.errors[(self.rows == row).all(axis=1)]
        return float(errors[0]) if len(errors) == 1 else math.nan

    # -- steps ---------------------------------------------------------------------------------

    def asked(self, rows: Rows, batch: int | None = None, time: str = "") -> History:
        """Return the history after an ask."""
        marked = mark(rows)
        return replace(
            self,
            pending={**self.pending, **marked},
            retries=without(self.retries, marked),
            marks={**self.marks, **dict.fromkeys(marked, Metadata(batch, time))},
        )

    def told(
        self,
        rows: Rows,
        values: Floats,
        errors: Floats,
        *,
        time: str = "",
        notes: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> History:
        """Return the history after some results; a value of NaN is a failure.

        A point with a result has not failed.
        """
        good = ~np.isnan(values)
        marked = mark(rows)
        newly = mark(rows[~good])
        if newly:  # looking through all results takes a while
            newly = without(newly, mark(self.rows))
        failed = without({**self.failed, **newly}, mark(rows[good]))
        pending = without(self.pending, marked)
        found = [
            Metadata(self.marks.get(k, UNKNOWN).batch if k in self.pending else None, time, note)
            for k, note in zip(keys(rows), notes or [None] * len(rows), strict=True)
        ]
        marks = {**self.marks, **dict(zip(keys(rows), found, strict=True))}
        return History(
            np.concatenate([self.rows, rows[good]]),
            np.concatenate([self.values, values[good]]),
            np.concatenate([self.errors, errors[good]]),
            failed,
            pending,
            without(self.retries, marked),
            (*self.metadata, *(each for each, fine in zip(found, good, strict=True) if fine)),
            _only(marks, failed, pending),
        )

    def cancelled(self, rows: Rows) -> History:
        """Return the history without some pending points."""
        pending = without(self.pending, mark(rows))
        return replace(self, pending=pending, marks=_only(self.marks, self.failed, pending))

    def forgotten(self, rows: Rows) -> History:
        """Return the history without the results and failures of some points."""
        gone = mark(rows)
        kept = np.array([found not in gone for found in keys(self.rows)], dtype=np.bool_)
        failed = without(self.failed, gone)
        return replace(
            self,
            rows=self.rows[kept],
            values=self.values[kept],
            errors=self.errors[kept],
            failed=failed,
            retries=without(self.retries, gone),
            metadata=tuple(self.metadata[i] for i in np.flatnonzero(kept)),
            marks=_only(self.marks, failed, self.pending),
        )

    def amended(
        self, row: Rows, value: float, error: float, *, notes: Mapping[str, Any] | None = None
    ) -> History:
        """Return the history with one new result of a point in place of all its results.

        The new result takes the place and the metadata of the first one; `notes` replace the notes
        of that one unless they are None.
        """
        found = keys(row)[0]
        at = [i for i, other in enumerate(keys(self.rows)) if other == found]
        first = self.metadata[at[0]] if at else self.marks.get(found, UNKNOWN)
        if notes is not None:
            first = first._replace(notes=notes or None)
        told = self.forgotten(row).told(row, np.array([value]), np.array([error]))
        marks = told.marks
        if found in self.pending:
            marks = {**marks, found: self.marks.get(found, UNKNOWN)}
        elif found in told.failed:
            marks = {**marks, found: first}
        told = replace(told, pending=self.pending, marks=marks)
        if np.isnan(value):
            return told
        told = replace(told, metadata=(*told.metadata[:-1], first))
        if not at:
            return told
        order = np.insert(np.arange(len(told) - 1), at[0], len(told) - 1)
        return replace(
            told,
            rows=told.rows[order],
            values=told.values[order],
            errors=told.errors[order],
            metadata=tuple(told.metadata[i] for i in order),
        )

    def retried(self, rows: Rows) -> History:
        """Return the history with some failures taken back; the next asks suggest them first."""
        marked = mark(rows)
        failed = without(self.failed, marked)
        return replace(
            self,
            failed=failed,
            retries={**self.retries, **marked},
            marks=_only(self.marks, failed, self.pending),
        )


def _only(marks: dict[bytes, Metadata], *kept: Marked) -> dict[bytes, Metadata]:
    return {found: mark for found, mark in marks.items() if any(found in each for each in kept)}


def mark(rows: Rows) -> Marked:
    return dict(zip(keys(rows), rows, strict=True))


def without(marked: Marked, gone: Marked) -> Marked:
    return {found: row for found, row in marked.items() if found not in gone}
