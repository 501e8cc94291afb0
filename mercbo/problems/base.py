"""What a benchmark problem is: a space, an objective to be minimised, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import SettingError
from mercbo.space import Space

# Initial points of a run, as in the published benchmarks.
INITIAL = 20
# Evaluations of a run where none are published, the initial ones included: of the published size.
BUDGET = 200
# Points up to which an optimum is found by enumeration when the instance is made: well under 1 s.
ENUMERABLE = 2**16


@dataclass(frozen=True)
class Problem:
    """One instance of a problem, with the initial points of one run.

    `objective` takes index rows (N, n) and gives values (N,), to be minimised; NaN says that the
    evaluation failed. That of a noisy problem also takes `first`, see `evaluate`. `budget` counts
    all evaluations of a run, the initial ones included.
    """

    name: str
    space: Space
    objective: Callable[..., Floats]
    initial: Rows  # (20, n)
    reference: str
    optimum: float | None = None  # None where it is not known; of a noisy problem never known
    budget: int = BUDGET
    noisy: bool = False
    relocated: bool = False

    def evaluate(self, rows: Rows, first: int = 0) -> Floats:
        """The values of `rows`, of which row i is the run's evaluation number ``first + i``.

        The noise of an evaluation is a pure function of the run and of that number; problems
        without noise do not look at it.
        """
        return self.objective(rows, first=first) if self.noisy else self.objective(rows)


def random_initial(space: Space, rng: np.random.Generator) -> Rows:
    return space.sample_rows(INITIAL, rng=rng)


def enumerated_optimum(space: Space, objective: Callable[[Rows], Floats]) -> float | None:
    """The smallest value over a small space, None for a large one."""
    if space.size > ENUMERABLE:
        return None
    return float(np.nanmin(objective(space.enumerate_rows())))


def with_penalty(name: str, penalty: float) -> str:
    """The name of a variant by its penalty; 1e-4 is the published default and has none.

    >>> with_penalty("ising", 1e-4), with_penalty("ising", 0.0), with_penalty("ising", 1e-2)
    ('ising', 'ising-0', 'ising-1e-2')
    """
    if penalty == 1e-4:
        return name
    return f"{name}-0" if penalty == 0 else f"{name}-{penalty:.0e}".replace("e-0", "e-")


def at_least(option: str, came: int, least: int) -> int:
    """Return `came`, or raise a `SettingError` that quotes it where it is too small."""
    if came < least:
        raise SettingError(f"{option}={came} is too small; at least {least} was wanted")
    return came


def published(data: Path, name: str, run: int) -> dict[str, np.ndarray]:
    """The arrays of one published run, from ``DATA/published/NAME.npz``."""
    path = Path(data) / "published" / f"{name}.npz"
    if not path.exists():
        raise SettingError(f"data={str(data)!r} has no published/{name}.npz")
    with np.load(path) as stored:
        runs = len(stored["init"]) if "init" in stored else 25
        if not 0 <= run < runs:
            raise SettingError(f"run={run} is not one of 0 to {runs - 1} in {path.name}")
        return {
            key: array[run] if len(array) == runs and array.ndim > 1 else array
            for key, array in stored.items()
        }
