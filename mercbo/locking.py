"""Methods that run in one thread at a time: `Synchronized` and `synchronized`.

The lock of an object belongs to one process. A pickle or a copy of the object gets a new lock. So
does the object in the child of a fork: another thread of the parent may have held the lock, and
that thread does not exist in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


class Synchronized:
    """Base class of objects with `synchronized` methods."""

    def __new__(cls, *_args: Any, **_options: Any) -> Any:
        self = super().__new__(cls)
        self._lock = threading.RLock()
        _owners.add(self)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def _after_fork(self) -> None:
        """Replace the lock in the child of a fork; subclasses also drop what a thread of the parent
        may have left half changed."""
        self._lock = threading.RLock()


def synchronized(method: Method) -> Method:
    """Return the method with the lock of its object held during each call.

    The thread that holds the lock may call further synchronized methods.
    """

    @wraps(method)
    def locked(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return locked  # type: ignore[return-value]


_owners: weakref.WeakSet[Synchronized] = weakref.WeakSet()


def _renew_locks() -> None:
    for owner in list(_owners):
        owner._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
