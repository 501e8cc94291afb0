"""Worker: CatCMA with margin (cmaes): categorical distributions, and a normal one for integers.

It learns from whole generations of its own points. Points from elsewhere cannot be told to it:
they are ignored.
"""

from __future__ import annotations

from typing import Any


class CatCma:
    """An optimizer that is asked and told by rows, with its generation so far."""

    def __init__(self, start: Any) -> None:
        import numpy as np
        from cmaes import CatCMAwM

        sizes = [v.size for v in start.variables]
        ordered = [v.ordered and v.size > 2 for v in start.variables]
        self.integers = [i for i, o in enumerate(ordered) if o]
        self.categories = [i for i, o in enumerate(ordered) if not o and sizes[i] > 1]
        self.size = len(sizes)
        z = [list(range(sizes[i])) for i in self.integers]
        c = [sizes[i] for i in self.categories]
        self.argmax = np.argmax
        self.optimizer = CatCMAwM(z_space=z or None, c_space=c or None, seed=start.seed)
        self.pending: dict[tuple[int, ...], list[Any]] = {}
        self.generation: list[tuple[Any, float]] = []

    def ask(self) -> list[int]:
        solution = self.optimizer.ask()
        row = [0] * self.size
        for i, value in zip(self.integers, solution.z if self.integers else (), strict=True):
            row[i] = round(float(value))
        for i, hot in zip(self.categories, solution.c if self.categories else (), strict=True):
            row[i] = int(self.argmax(hot))
        self.pending.setdefault(tuple(row), []).append(solution)
        return row

    def tell(self, row: list[int], value: float) -> None:
        solutions = self.pending.get(tuple(row))
        if not solutions:
            return
        self.generation.append((solutions.pop(), value))
        if len(self.generation) == self.optimizer.population_size:
            self.optimizer.tell(self.generation)
            self.generation = []


if __name__ == "__main__":
    from peerlib import serve

    serve("catcma", ["cmaes"], CatCma)
