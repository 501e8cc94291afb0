"""Runs in a store of SQLite, and the ways in which tests look at them."""

from pathlib import Path

import numpy as np

from mercbo import Optimizer, Space
from mercbo.record.store import Store

SPACE = Space.binary(6)


def url_of(folder: Path, name: str = "run.db", **query: object) -> str:
    ending = "&".join(f"{key}={value}" for key, value in query.items())
    return f"sqlite:///{folder / name}" + (f"?{ending}" if ending else "")


def cost(point: dict) -> float:
    """An objective on bits, the same in every process."""
    bits = np.array(list(point.values()), dtype=float)
    return float(np.cos(1 + np.arange(len(bits))) @ bits + bits[0] * bits[-1])


def stored(storage: str, space: Space = SPACE, **options) -> Optimizer:
    return Optimizer(space, **{"seed": 0, "n_initial": 3, "storage": storage, **options})


def log_of(storage: str) -> list:
    return Store.open(storage).entries()


def asked_rows(storage: str) -> list[tuple]:
    """Every row that was ever suggested, in order."""
    asks = [entry.body["rows"] for entry in log_of(storage) if entry.kind == "ask"]
    return [tuple(row) for rows in asks for row in rows]
