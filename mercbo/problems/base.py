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


@dataclass(frozen=True)
class Problem:
    """One instance of a problem, with the initial points of one run."""

    name: str
    space: Space
    objective: Callable[[Rows], Floats]  # index rows (N, n) -> values (N,), to be minimised
    initial: Rows  # (20, n)
    reference: str
    optimum: float | None = None


def random_initial(space: Space, rng: np.random.Generator) -> Rows:
    return space.sample_rows(INITIAL, rng=rng)


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
