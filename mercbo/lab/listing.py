"""Every result of a study in its report, and those that the other results do not predict."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from mercbo.explaining.crossval import LeftOut
from mercbo.explaining.explain import Explanation
from mercbo.lab.markup import cell, number, table
from mercbo.lab.results import PLACE, Control
from mercbo.lab.rows import Cell
from mercbo.lab.study import Study
from mercbo.record.observations import Record

# Rows of a table of results.
LISTED = 5000
# Standard deviations from the prediction beyond which a result is surprising.
SURPRISING = 3.0
# The standard deviation of normal residuals in units of the median of their sizes.
NORMAL = 1.4826
# Residuals whose spread is estimated, and the least spread, which keeps small residuals small.
FEWEST, LEAST_SPREAD = 10, 0.5


class Listed(NamedTuple):
    """A result or a failure, with its number in the list, from 1, and its other columns.

    `left` is the leave-one-out prediction of a result, `residual` the difference from it in
    standard deviations.
    """

    number: int
    record: Record
    notes: dict[str, Cell]
    left: LeftOut | None
    residual: float | None

    @property
    def is_surprising(self) -> bool:
        return abs(self.residual or 0.0) > SURPRISING

    @property
    def place(self) -> str:
        """Plate and well, as far as they are known."""
        found = [(name, self.notes[name]) for name in PLACE if name in self.notes]
        return ", ".join(f"{name} {where}" for name, where in found)


def listed(study: Study, explained: Explanation | None) -> list[Listed]:
    """Results in the order told, then failures; `explained` explains the same results."""
    records = [each for each in study.optimizer.records() if each.state != "pending"]
    results = explained.check.results if explained is not None else ()
    failures = [None] * sum(each.state == "failed" for each in records)
    together = zip(
        records, study.notes_of(records), [*results, *failures],
        [*standardized(results), *failures], strict=True,
    )  # fmt: skip
    return [Listed(i, *each) for i, each in enumerate(together, start=1)]


def standardized(left: Sequence[LeftOut]) -> list[float]:
    """The leave-one-out residuals in units of their own robust spread.

    The model is fitted to all results. A wrong result makes the fitted noise larger, and all
    residuals smaller: the median of their sizes, which one result hardly moves, undoes that.
    """
    residuals = np.array([each.residual for each in left])
    if len(residuals) < FEWEST:
        return [float(each) for each in residuals]
    spread = NORMAL * float(np.median(np.abs(residuals)))
    return [float(each) for each in residuals / np.clip(spread, LEAST_SPREAD, 1.0)]


def surprising(study: Study, listed: Sequence[Listed]) -> str:
    """The results that are far from what the others predict, the farthest first."""
    found = [each for each in listed if each.is_surprising]
    items = []
    for each in sorted(found, key=lambda each: -abs(each.residual or 0.0)):
        left, residual = each.left, each.residual
        assert left is not None
        assert residual is not None
        design = ", ".join(f"{name} = {value}" for name, value in each.record.point.items())
        place = f"{each.place}: " if each.place else ""
        side = "above" if residual > 0 else "below"
        items.append(
            f"<li>Result {each.number}, {escape(place)}{escape(study.target)} "
            f"{number(left.observed)} with {escape(design)}. The others predict "
            f"{number(left.predicted)}; the result is {abs(residual):.1f} standard "
            f"deviations {side}.</li>"
        )
    return (
        f"<p>Each result is compared with its prediction from all other results. More than "
        f"{SURPRISING:g} standard deviations are rare by chance: look at the well and the entry, "
        "measure again, or correct the entry with <code>mercbo amend</code>.</p>"
        f"<ul>{''.join(items)}</ul>"
    )


def results(study: Study, listed: Sequence[Listed]) -> str:
    """A table of all results and failures; those to check are marked."""
    names = [name for name in PLACE if any(name in each.notes for each in listed)]
    with_std = any(each.record.std is not None for each in listed)
    header = ["Number", study.target, *["std"] * with_std, "Batch", "Time (UTC)",
              *map(str.capitalize, names), *study.space.names, "Check"]  # fmt: skip
    rows = [
        [
            cell(each.number),
            cell("failed" if each.record.value is None else each.record.value),
            *[cell(_blank(each.record.std))] * with_std,
            cell(_blank(each.record.batch)),
            cell(_minute(each.record.time)),
            *(cell(_blank(each.notes.get(name))) for name in names),
            *(cell(value) for value in each.record.point.values()),
            cell(_mark(each)),
        ]
        for each in listed[:LISTED]
    ]
    more = f"<p>{len(listed):,} in all: <code>mercbo export</code> writes them.</p>"
    caption = f"{len(rows):,} results and failures"
    return table(caption, header, rows, sortable=True) + (more if len(listed) > LISTED else "")


def _mark(each: Listed) -> str:
    return f"{each.residual:+.1f} sd" if each.is_surprising else ""


def _blank(value: Cell) -> Cell:
    return "" if value is None else value


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def controls(study: Study, told: Sequence[Control]) -> str:
    """A table of the results of controls."""
    rows = [
        [
            *(cell(_blank(each.notes.get(name))) for name in PLACE),
            cell("failed" if each.value is None else each.value),
            cell(_minute(each.time)),
        ]
        for each in told[:LISTED]
    ]
    header = ["Plate", "Well", study.target, "Time (UTC)"]
    return table(f"{len(rows):,} results of controls", header, rows, sortable=True)
