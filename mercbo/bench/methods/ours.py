"""`mercbo` and `mercbo-...`: our own `Optimizer`, as it comes and with some choices changed.

Any setting can be played by its name: `mercbo-paper:order=3:sweeps=1` changes two more choices of
`mercbo-paper`. What may stand behind the colons are the fields of `Model`, the options of
`Optimizer` that a text can give (`OPTIONS`), and ``batch=K``: K points are asked for at once, and
the next K when all of them have been told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mercbo.arrays import Rows
from mercbo.errors import SettingError, hint
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
    "mes": {"acquisition": "mes"},
    "lcb": {"acquisition": "lcb"},
    "thompson": {"acquisition": "thompson"},
    "hmc": {"model": Model(inference="hmc")},
    "truncated": {"model": Model(posterior="truncated", refine=False, inference="map")},
    "no-refine": {"model": Model(refine=False)},
    "no-warp": {"model": Model(warp="none")},
    "no-windows": {"model": Model(windows="none")},
    "no-pooling": {"model": Model(pooling="none")},
    "no-motifs": {"model": Model(motifs="none")},
    "map": {"model": Model(inference="map")},
    "annealing": {"backend": "annealing"},
}
OPTIONS = ("acquisition", "backend", "repeats", "n_initial")
BATCH = "batch"


class Mercbo:
    """An `Optimizer` behind the interface of the benchmark."""

    def __init__(
        self,
        space: Space,
        seed: int,
        evaluations: int,
        settings: Mapping[str, Any],
        batch: int = 1,
    ) -> None:
        self.optimizer = Optimizer(space, seed=seed, **settings)
        self.space = space
        self.left = evaluations
        self.batch = batch
        self._queue: list[Rows] = []

    def ask(self) -> Rows:
        if not self._queue:
            count = max(1, min(self.batch, self.left))
            self._queue = list(self.space.rows(self.optimizer.ask(count)))
            self.left -= count
        return self._queue.pop(0)

    def tell(self, row: Rows, value: float) -> None:
        self.optimizer.tell(self.space.points(row[np.newaxis])[0], value)


def read_settings(setting: str, more: str) -> tuple[dict[str, Any], int]:
    """What is passed to `Optimizer`, and the size of batches.

    >>> settings, batch = read_settings("paper", "order=3:batch=10")
    >>> settings["model"].order, settings["model"].inference, batch
    (3, 'slice', 10)
    """
    settings = dict(SETTINGS[setting])
    batch = 1
    choices = [field.name for field in fields(Model)]
    known = [*choices, *OPTIONS, BATCH]
    for part in more.split(":") if more else ():
        key, equals, text = part.partition("=")
        if not equals or key not in known:
            raise SettingError(f"{part!r} is not KEY=VALUE with one of {known}{hint(key, known)}")
        value = _value(text)
        if key in choices:
            settings["model"] = replace(settings.get("model", Model()), **{key: value})
        elif key in OPTIONS:
            settings[key] = value
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingError(f"{part!r}: a whole number of at least 1 was wanted")
        else:
            batch = value
    Optimizer(Space.binary(1), **settings)  # which says what is wrong with the others
    return settings, batch


def _value(text: str) -> int | bool | str:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.isdigit() else text
