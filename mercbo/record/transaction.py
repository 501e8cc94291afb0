"""`Transaction`: several changes of a run as one write, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mercbo.record.events import Entry, Log, State


class Owner(Protocol):
    """The attributes of an object with a state that a transaction guards."""

    _log: Log
    _state: State
    _transaction: Transaction | None
    _suggested: Any

    def _follow(self, entries: Sequence[Entry]) -> None: ...


class Transaction:
    """Hold the write lock of the log; on an error restore the log and the state.

    Call `begin`, change the state, and `commit`; on any exception call `undo`. These are plain
    methods and no context manager: an interrupt on the way into `__exit__` would skip it. A
    transaction inside another one joins it.

    States are immutable, so restoring one is an assignment. If an interrupt comes after the commit,
    the state is restored too, and the next look at the log applies what was committed.
    """

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._joins = owner._transaction is not None
        self.before = owner._state
        self._suggested = owner._suggested

    def begin(self) -> None:
        """Take the write lock and apply the events of other processes."""
        if not self._joins:
            self._owner._transaction = self
            self._owner._follow(self._owner._log.begin(self.before.number))
            self.before = self._owner._state

    def commit(self) -> None:
        """Make the changes durable and release the write lock."""
        if self._owner._transaction is self:  # neither joined, nor ended by a fork
            self._owner._log.commit()
            self._owner._transaction = None

    def undo(self) -> None:
        """Restore the state before, and release the write lock."""
        if self._owner._transaction is self:
            self._owner._log.rollback()
            self._owner._state = self.before
            self._owner._suggested = self._suggested
            self._owner._transaction = None
