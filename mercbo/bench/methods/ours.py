"""`mercbo` and `mercbo-...`: our own `Optimizer`, as it comes and with one choice changed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercbo.arrays import Rows
from mercbo.model import Model
from mercbo.optimizer import Optimizer
from mercbo.space import Space

# name of the setting -> model and backend
SETTINGS: dict[str, tuple[Model, str]] = {
    "default": (Model(), "graph-cut"),
    "paper": (Model.paper(), "graph-cut"),
    # one sweep of slice sampling per ask in place of ten
    "paper-quick": (replace(Model.paper(), sweeps=1), "graph-cut"),
    "hmc": (Model(inference="hmc"), "graph-cut"),
    "truncated": (Model(posterior="truncated", refine=False), "graph-cut"),
    "no-refine": (Model(refine=False), "graph-cut"),
    "annealing": (Model(), "annealing"),
}


class Mercbo:
    """An `Optimizer` behind the interface of the benchmark."""

    def __init__(self, space: Space, seed: int, setting: str) -> None:
        model, backend = SETTINGS[setting]
        self.optimizer = Optimizer(space, model=model, backend=backend, seed=seed)
        self.space = space

    def ask(self) -> Rows:
        return np.asarray(self.space.rows(self.optimizer.ask())[0])

    def tell(self, row: Rows, value: float) -> None:
        self.optimizer.tell(self.space.points(row[np.newaxis])[0], value)
