"""`mercbo` and `mercbo-...`: our own `Optimizer`, as it comes and with one choice changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercbo.arrays import Rows
from mercbo.model import Model
from mercbo.optimizer import Optimizer
from mercbo.space import Space

# name of the setting -> what it passes to `Optimizer`
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {"model": Model.paper()},
    # one sweep of slice sampling per ask in place of ten
    "paper-quick": {"model": replace(Model.paper(), sweeps=1)},
    "ei": {"acquisition": "ei"},
    "thompson": {"acquisition": "thompson"},
    "hmc": {"model": Model(inference="hmc")},
    "truncated": {"model": Model(posterior="truncated", refine=False)},
    "no-refine": {"model": Model(refine=False)},
    "no-warp": {"model": Model(warp="none")},
    "annealing": {"backend": "annealing"},
}


class Mercbo:
    """An `Optimizer` behind the interface of the benchmark."""

    def __init__(self, space: Space, seed: int, setting: str) -> None:
        self.optimizer = Optimizer(space, seed=seed, **SETTINGS[setting])
        self.space = space

    def ask(self) -> Rows:
        return np.asarray(self.space.rows(self.optimizer.ask())[0])

    def tell(self, row: Rows, value: float) -> None:
        self.optimizer.tell(self.space.points(row[np.newaxis])[0], value)
