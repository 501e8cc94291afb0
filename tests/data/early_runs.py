"""Writes runs with a mercbo that has file version 1, 2 or 3: `early_runs.py FOLDER`.

The script uses only what these versions have in common. See `make_saved_runs.py`.
"""

from __future__ import annotations

import inspect
import math
import sys
from pathlib import Path

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Ordinal, Space

KINDS = Space(
    {
        "bit": Binary(),
        "letter": Categorical(["A", "C", "G"]),
        "coded": Categorical(["p", "q", "r", "s", "t"], encoding="binary"),
        "dose": Ordinal([0.5, 1.0, 2.5, None]),
        "count": Integer(-1, 3),
        "only": Categorical(["one"]),
    }
)
RUNS = {
    "default": (Space.binary(6), {}, 1.0),
    "kinds": (KINDS, {"direction": "maximize", "model": Model(inference="map")}, 1.0),
    "paper": (Space.binary(5), {"model": Model.paper()}, 1.0),
    "skewed": (Space.binary(6), {"model": Model(inference="map")}, 4.0),
}


def value(space: Space, point: dict, skew: float) -> float:
    row = space.rows(point)[0].tolist()
    total = sum(math.cos(1 + i) * x for i, x in enumerate(row)) + 0.5 * row[0] * row[-1]
    return total if skew == 1.0 else math.exp(skew * total)


def play(opt: Optimizer, skew: float, rounds: int) -> None:
    """Some results, two failures, two points pending, and whatever corrections there are."""
    for _ in range(rounds):
        point = opt.ask()
        opt.tell(point, value(opt.space, point, skew))
    failing = opt.ask(3)
    opt.tell(failing, [None, math.nan, None])
    if hasattr(opt, "retry"):
        opt.retry(failing[0])
        opt.amend(point, value(opt.space, point, skew) + 0.125, std=0.1)
    opt.ask(2)


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, (space, settings, skew) in RUNS.items():
        opt = Optimizer(space, seed=7, n_initial=4, **settings)
        play(opt, skew, 14 if skew != 1.0 else 8)
        opt.save(target / f"{name}.json")
        if "storage" in inspect.signature(Optimizer).parameters:
            storage = f"sqlite:///{target / 'early.db'}?run={name}"
            opt = Optimizer(space, seed=7, n_initial=4, storage=storage, **settings)
            play(opt, skew, 14 if skew != 1.0 else 8)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
