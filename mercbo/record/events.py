"""What happens to a run, one event at a time, and the state that follows from the events.

Every change of an `Optimizer` is an `Event`, made by a call of `ask`, `tell` and so on. It is
written to the run's log (`store.py`; nowhere, by default) and then applied: ``state.after(event)``
is the only way from one state to the next, for a live run and for one that is read back, so that
both stand in the same place.

| event    | rows                        | and                                               |
|----------|-----------------------------|---------------------------------------------------|
| `ask`    | the points suggested        | the fit that suggested them, where it is new      |
| `tell`   | points with their results   | values (NaN: it failed), known errors, notes,     |
|          |                             | pending points that are images of them by         |
|          |                             | symmetries                                        |
| `fail`   | points that failed, all     | the same                                          |
| `amend`  | one point                   | the value and the error that replace its results, |
|          |                             | and the notes if they change                      |
| `forget` | points whose results go     |                                                   |
| `cancel` | points no longer pending    |                                                   |
| `retry`  | failures to be asked again  |                                                   |
| `adopt`  | pending points              | the process that writes this evaluates them now   |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Protocol

import numpy as np

from mercbo.arrays import Floats, Mask, Rows, keys
from mercbo.domain.region import Region
from mercbo.errors import MercboError
from mercbo.inference import Fit
from mercbo.record.history import History
from mercbo.record.schema import (
    Schema,
    anything,
    flag,
    listed,
    mapping,
    numbers,
    optional,
    record,
    rows,
    text,
    unexpected,
)

KINDS = ("ask", "tell", "fail", "amend", "forget", "cancel", "retry", "adopt")
# Kinds with values and errors.
TOLD = ("tell", "fail", "amend")
# Kinds whose points may be new to the run.
NEW = ("ask", "tell", "fail")
# Kinds that correct results: what was fitted to wrong ones is no start for another fit.
CORRECTIONS = ("amend", "forget")
# What must be true of the points of an event, and what is said where it is not.
COMPLAINTS = {
    "amend": "has no result to amend",
    "forget": "has no result to forget",
    "cancel": "is not pending",
    "adopt": "is not pending",
    "retry": "has not failed",
}


Notes = tuple[Mapping[str, Any] | None, ...]


def utc_now() -> str:
    """The present UTC time, as events and records have it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Taken(MercboError):
    """A point that was to be suggested has been asked for or told by another process."""


@dataclass(frozen=True)
class Event:
    """One change of a run, in index rows; the fields that its kind does not use are empty."""

    kind: str
    rows: Rows  # (k, n)
    values: Floats | None = None  # (k,)
    errors: Floats | None = None  # (k,), NaN where not known
    fit: Fit | None = None
    # after an ask: whether the last fit is one to the present results
    fresh: bool = False
    # after a tell: pending points that it answers as well, since some of its points are their
    # images by the symmetries of the space
    answers: Rows | None = None  # (a, n)
    notes: Notes | None = None  # (k,)
    time: str = field(default_factory=lambda: utc_now())

    @classmethod
    def told(
        cls,
        rows: Rows,
        values: Floats,
        errors: Floats,
        *,
        answers: Rows | None = None,
        notes: Notes | None = None,
    ) -> Event:
        kind = "fail" if np.isnan(values).all() else "tell"
        return cls(kind, rows, values, errors, answers=answers, notes=notes)

    def to_dict(self) -> dict[str, Any]:
        """All but the kind and the time, in plain values."""
        body: dict[str, Any] = {"rows": self.rows.tolist()}
        if self.values is not None and self.errors is not None:
            body["values"] = _listed(self.values)
            if not np.isnan(self.errors).all():
                body["errors"] = _listed(self.errors)
        if self.answers is not None and len(self.answers) > 0:
            body["answers"] = self.answers.tolist()
        if self.notes is not None and _has_notes(self.kind, self.notes):
            body["notes"] = [None if note is None else dict(note) for note in self.notes]
        if self.kind == "ask":
            body["fresh"] = self.fresh
        if self.fit is not None:
            body["fit"] = self.fit.to_dict()
        return body

    @classmethod
    def from_dict(
        cls, kind: object, body: object, region: Region, fit: Schema[Fit], *, time: str = ""
    ) -> Event:
        """Return the event of a log, for a run in a region; `fit` describes the run's fits."""
        read_kind = text(KINDS)(kind, "kind")
        entries = _schema(read_kind, region, fit)(body, "")
        if read_kind in TOLD:
            count = len(entries["rows"])
            known = numbers(count, least=0.0, missing=True)
            entries["values"] = numbers(count, missing=True)(entries["values"], "values")
            entries["errors"] = known(entries.get("errors", [None] * count), "errors")
            notes = listed(optional(mapping), count=count)(
                entries.get("notes", [None] * count), "notes"
            )
            entries["notes"] = tuple(notes) if _has_notes(read_kind, notes) else None
        if read_kind in NEW and not region.satisfies(entries["rows"]).all():
            raise unexpected("rows", "points within the constraints", entries["rows"].tolist())
        return cls(read_kind, **entries, time=time)


def _schema(kind: str, region: Region, fit: Schema[Fit]) -> Schema[dict[str, Any]]:
    """The entries of an event, of which `from_dict` checks those whose number depends on others."""
    some = rows(region.sizes)
    if kind == "ask":
        return record({"rows": some}, {"fresh": flag, "fit": fit})
    noted: dict[str, Schema[Any]] = {"errors": anything, "notes": anything}
    if kind == "amend":
        return record({"rows": rows(region.sizes, count=1), "values": anything}, noted)
    if kind in TOLD:
        return record({"rows": some, "values": anything}, {**noted, "answers": some})
    return record({"rows": some})


def _has_notes(kind: str, notes: Sequence[Mapping[str, Any] | None]) -> bool:
    """Whether notes are part of an event; an amend with empty notes removes the old ones."""
    return any(notes) or (kind == "amend" and any(note is not None for note in notes))


def _listed(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


@dataclass(frozen=True)
class State:
    """All that suggestions follow from, besides the settings."""

    history: History
    # points suggested so far, which number the random streams of the asks
    asked: int = 0
    # the fit of the last ask, where the next one starts, and whether no result came since
    committed: Fit | None = None
    fresh: bool = False
    # events applied so far
    number: int = 0
    # results and failures that were asked for, of those in the history
    answered: int = 0
    # asks so far
    batches: int = 0

    def refuses(self, event: Event) -> tuple[Mask, str]:
        """Which points the event cannot happen to, and why."""
        history, rows = self.history, event.rows
        if event.kind in CORRECTIONS:
            fine = history.has_result(rows)
        elif event.kind in ("cancel", "adopt"):
            fine = history.are(rows, history.pending)
        elif event.kind == "retry":
            fine = history.are(rows, history.failed)
        else:
            fine = np.ones(len(rows), dtype=np.bool_)
        return ~fine, COMPLAINTS.get(event.kind, "")

    def has_taken(self, rows: Rows, *, repeats: bool) -> bool:
        """Whether some of the rows can be suggested no more."""
        return not self.history.seen(repeats=repeats).isdisjoint(keys(rows))

    def still(
        self, chosen: Event, before: State, images: Callable[[Rows], Rows], *, repeats: bool
    ) -> Event:
        """An ask that was chosen in an earlier state, as one of this state; `Taken` where others
        have taken some of its points, or images of them, meanwhile."""
        if self is before:
            return chosen
        if self.has_taken(images(chosen.rows), repeats=repeats):
            raise Taken("another process took a point that was about to be suggested")
        if self.history.same_results(before.history):
            return replace(chosen, fresh=chosen.fresh or self.fresh)
        return replace(chosen, fresh=self.fresh and chosen.fit is None)

    def after(self, event: Event) -> State:
        """The state that the event leads to."""
        history = _step(self.history, event, self.batches + 1)
        same = self.history.same_results(history)
        number = self.number + 1
        if event.kind == "ask":
            fit = self.committed if event.fit is None else event.fit
            asked = self.asked + len(event.rows)
            batches = self.batches + 1
            return State(history, asked, fit, event.fresh, number, self.answered, batches)
        lost = event.kind in CORRECTIONS and not same
        committed = None if lost else self.committed
        fresh, answered = self.fresh and same, self._answered(event, history)
        return State(history, self.asked, committed, fresh, number, answered, self.batches)

    def _answered(self, event: Event, history: History) -> int:
        """How many of the results and failures in the history after an event were asked for: those
        that pending points have been told of, less those that are taken back. Which of them these
        were is not kept, but they are no more than there are."""
        told = event.kind in ("tell", "fail")
        now = len(self.history.pending) - len(history.pending) if told else 0
        return min(self.answered + now, len(history) + len(history.failed))


def _step(history: History, event: Event, batch: int) -> History:
    rows, values, errors = event.rows, event.values, event.errors
    if event.kind == "adopt":
        return history
    if event.kind == "ask":
        return history.asked(rows, batch, event.time)
    if values is not None and errors is not None:
        if event.kind == "amend":
            notes = None if event.notes is None else event.notes[0]
            return history.amended(rows, float(values[0]), float(errors[0]), notes=notes)
        told = history.told(rows, values, errors, time=event.time, notes=event.notes)
        return told if event.answers is None else told.cancelled(event.answers)
    return {
        "forget": history.forgotten,
        "cancel": history.cancelled,
        "retry": history.retried,
    }[event.kind](rows)


# -- where events are kept ---------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An event as it stands in a log: its number, when (UTC) and by which process written."""

    number: int
    kind: str
    body: dict[str, Any]
    at: str = ""
    by: str = ""


class Log(Protocol):
    """Where the events of a run are kept.

    One process writes at a time: it holds the write lock from `begin` to `commit` or `rollback`.
    """

    @property
    def name(self) -> str:
        """Name of the log in error messages."""
        ...

    def entries(self, since: int) -> Sequence[Entry]:
        """Return all events with a number above `since`, in order."""
        ...

    def begin(self, since: int) -> Sequence[Entry]:
        """Take the write lock and return the events with a number above `since`."""
        ...

    def append(self, event: Event) -> None:
        """Write an event; `commit` makes it durable."""
        ...

    def commit(self) -> None:
        """Make the events since `begin` durable and release the write lock."""
        ...

    def rollback(self) -> None:
        """Discard the events since `begin` and release the write lock, if it is held."""
        ...


class Nowhere:
    """The log of a run in memory: nobody else writes, and nothing is kept."""

    name = "memory"

    def entries(self, since: int) -> Sequence[Entry]:  # noqa: ARG002
        return ()

    def begin(self, since: int) -> Sequence[Entry]:  # noqa: ARG002
        return ()

    def append(self, event: Event) -> None:
        pass

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass
