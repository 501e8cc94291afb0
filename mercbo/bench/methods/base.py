"""What a method of the benchmark is: it asks for rows and is told their values.

A method is made for one run from a space, a seed and the number of evaluations it will get, is
told the run's initial points, and is then asked for one row at a time. Values are to be minimised;
NaN says that the evaluation failed. A method is a pure function of what it was made with and told.

A method that works in processes of its own may also have ``close()``, which ends them,
``memory()``, their peak of memory so far in MB, and ``versions``, what runs in them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from mercbo.arrays import Rows
from mercbo.space import Space


class Method(Protocol):
    """A method in the middle of a run."""

    def ask(self) -> Rows:
        """(n,): the next row to evaluate."""
        ...

    def tell(self, row: Rows, value: float) -> None: ...


# space, seed, evaluations still to come -> a method
Maker: TypeAlias = Callable[[Space, int, int], Method]
