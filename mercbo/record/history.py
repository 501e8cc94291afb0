"""`History`: what was asked and told so far. Frozen: every step gives a new one.

| symbol  | meaning                                                                | shape  |
|---------|------------------------------------------------------------------------|--------|
| rows    | points with a result, in the order told; replicates stay apart         | (N, n) |
| values  | their results, in the user's units                                     | (N,)   |
| errors  | known standard deviations of the results, NaN where not known          | (N,)   |
| failed  | points whose evaluation failed                                         | (F, n) |
| pending | points asked for and not told                                          | (Q, n) |
| retries | failed points that are to be asked again, before anything else         | (T, n) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, keys

Marked = dict[bytes, Rows]


@dataclass(frozen=True)
class History:
    """The points of a run by what became of them."""

    rows: Rows
    values: Floats
    errors: Floats
    failed: Marked = field(default_factory=dict)
    pending: Marked = field(default_factory=dict)
    retries: Marked = field(default_factory=dict)

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

    def asked(self, rows: Rows) -> History:
        marked = mark(rows)
        return replace(
            self, pending={**self.pending, **marked}, retries=without(self.retries, marked)
        )

    def told(self, rows: Rows, values: Floats, errors: Floats) -> History:
        """A value of NaN is a failure; a point that has a result, too, has not failed."""
        good = ~np.isnan(values)
        marked = mark(rows)
        newly = mark(rows[~good])
        if newly:  # only then old results matter: looking through all of them takes a while
            newly = without(newly, mark(self.rows))
        failed = without({**self.failed, **newly}, mark(rows[good]))
        return History(
            np.concatenate([self.rows, rows[good]]),
            np.concatenate([self.values, values[good]]),
            np.concatenate([self.errors, errors[good]]),
            failed,
            without(self.pending, marked),
            without(self.retries, marked),
        )

    def cancelled(self, rows: Rows) -> History:
        return replace(self, pending=without(self.pending, mark(rows)))

    def forgotten(self, rows: Rows) -> History:
        """Without the results and the failures of some points."""
        gone = mark(rows)
        kept = np.array([found not in gone for found in keys(self.rows)], dtype=np.bool_)
        return replace(
            self,
            rows=self.rows[kept],
            values=self.values[kept],
            errors=self.errors[kept],
            failed=without(self.failed, gone),
            retries=without(self.retries, gone),
        )

    def amended(self, row: Rows, value: float, error: float) -> History:
        """One point with a new result in place of all that it had, where the first of them was."""
        found = keys(row)[0]
        at = [i for i, other in enumerate(keys(self.rows)) if other == found]
        told = self.forgotten(row).told(row, np.array([value]), np.array([error]))
        told = replace(told, pending=self.pending)
        if not at or np.isnan(value):
            return told
        order = np.insert(np.arange(len(told) - 1), at[0], len(told) - 1)
        return replace(
            told, rows=told.rows[order], values=told.values[order], errors=told.errors[order]
        )

    def retried(self, rows: Rows) -> History:
        """With some failures taken back, and their points first in line."""
        marked = mark(rows)
        return replace(
            self, failed=without(self.failed, marked), retries={**self.retries, **marked}
        )


def mark(rows: Rows) -> Marked:
    return dict(zip(keys(rows), rows, strict=True))


def without(marked: Marked, gone: Marked) -> Marked:
    return {found: row for found, row in marked.items() if found not in gone}
