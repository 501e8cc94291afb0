"""Runs whose next suggestions are recorded: every variable kind, encoding, constraint and model.

Only the public interface is used, so that the cases outlast a change of the internals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    CyclicShift,
    Exactly,
    Flip,
    Forbid,
    Implies,
    Integer,
    Linear,
    Model,
    Optimizer,
    Ordinal,
    Reversal,
    Space,
    Where,
)

RECORDED = Path(__file__).parent / "suggestions.json"
LETTERS = list("ACGT")


def bits(n: int, **options: Any) -> Space:
    return Space({f"x{i}": Binary() for i in range(n)}, **options)


def letters(n: int, **options: Any) -> Space:
    return Space({f"p{i}": Categorical(LETTERS) for i in range(n)}, **options)


def mixed() -> Space:
    return Space(
        {
            "base": Categorical(["A", "C", "G"]),
            "heat": Ordinal([20, 40, 80]),
            "wash": Binary(),
            "code": Categorical(list("pqrst"), encoding="binary"),
            "n": Integer(1, 6),
            "only": Categorical(["one"]),
        }
    )


def table() -> Space:
    rows = np.random.default_rng(7).integers(0, 4, (60, 3))
    return Space.table(
        [dict(zip("abc", row, strict=True)) for row in np.unique(rows, axis=0).tolist()]
    )


def quadratic(space: Space, point: dict[str, Any]) -> float:
    """A rugged function with linear and pairwise parts."""
    x = space.rows(point)[0].astype(float)
    i = np.arange(len(x))
    return float(np.cos(1 + i) @ x + np.sin(3 * i + 1) @ (x * np.roll(x, 1)) + 0.3 * x[0] * x[-1])


def skewed(space: Space, point: dict[str, Any]) -> float:
    return float(np.exp(1.5 * quadratic(space, point)))


def neighbouring(space: Space, point: dict[str, Any]) -> float:
    x = space.rows(point)[0]
    return float(-sum(3.0 * (a == b) for a, b in pairwise(x)) + 0.1 * x.sum())


def counting(space: Space, point: dict[str, Any]) -> float:
    x = space.rows(point)[0]
    return float((np.sum(x == 1) - 3) ** 2 - 2.0 * np.sum(x == 2))


def motif(space: Space, point: dict[str, Any]) -> float:  # noqa: ARG001
    return float(-("".join(map(str, point.values()))).count("GA") - 0.2 * point["p0"].count("C"))


def symmetric(space: Space, point: dict[str, Any]) -> float:
    x = 2.0 * space.rows(point)[0] - 1.0
    return float(sum((x[k:] @ x[: len(x) - k]) ** 2 for k in range(1, len(x))))


def fails_above(space: Space, point: dict[str, Any]) -> float | None:
    return None if space.rows(point)[0][:3].sum() >= 2 else quadratic(space, point)


def fails_after(space: Space, point: dict[str, Any]) -> float | None:
    text = "".join(map(str, point.values()))
    return None if "AC" in text or "TG" in text else motif(space, point)


Objective = Callable[[Space, dict[str, Any]], float | None]


@dataclass(frozen=True)
class Case:
    """A space, an objective, prior results, and the asks whose answers are recorded."""

    space: Callable[[], Space]
    objective: Objective = quadratic
    told: int = 14
    asks: tuple[dict[str, Any], ...] = ({}, {}, {})
    settings: dict[str, Any] = field(default_factory=dict)
    std: float | None = None

    def play(self) -> list[list[dict[str, Any]]]:
        """Return the points of each ask; results are told between the asks."""
        space = self.space()
        opt = Optimizer(space, seed=3, n_initial=5, **self.settings)
        points = space.sample(self.told, rng=np.random.default_rng(11))
        if points:
            opt.tell(points, [self.objective(space, p) for p in points], std=self.std)
        found = []
        for options in self.asks:
            asked = opt.ask(**{"k": 1, **options})
            found.append(asked)
            if options.get("tell", True):
                opt.tell(asked, [self.objective(space, p) for p in asked], std=self.std)
        return found


def by(name: str, **settings: Any) -> dict[str, Any]:
    return {"acquisition": name, **settings}


BATCHES = ({"k": 3}, {"k": 10})
CASES: dict[str, Case] = {
    "initial design": Case(mixed, told=0),
    "binary": Case(lambda: bits(10)),
    "categorical": Case(lambda: letters(5)),
    "binary encoding": Case(
        lambda: Space({f"p{i}": Categorical(list("abcde"), encoding="binary") for i in range(4)})
    ),
    "ordinal and integer": Case(
        lambda: Space({"a": Ordinal([1, 3, 9, 27]), "b": Integer(0, 9), "c": Integer(-3, 3)})
    ),
    "mixed": Case(mixed),
    "maximize": Case(mixed, settings={"direction": "maximize"}),
    "linear constraints": Case(
        lambda: bits(
            12,
            constraints=[
                AtMost(6, [f"x{i}" for i in range(12)]),
                Linear({"x0": 2, "x1": -1, "x2": 3}, "<=", 3),
                Forbid({"x3": 1, "x4": 0}),
            ],
        )
    ),
    "exact constraints": Case(
        lambda: letters(
            6,
            constraints=[
                Exactly(2, [(f"p{i}", "A") for i in range(6)]),
                Implies({"p0": "A"}, {"p1": ["C", "G"]}),
            ],
        )
    ),
    "predicate": Case(lambda: bits(10, constraints=[Where(lambda p: sum(p.values()) % 2 == 0)])),
    "table": Case(table),
    "symmetries": Case(lambda: bits(9, symmetries=[Reversal(), Flip()]), symmetric),
    "cyclic symmetry": Case(lambda: letters(4, symmetries=[CyclicShift()]), counting),
    "failures": Case(lambda: bits(10), fails_above, told=20),
    "forbidden transitions": Case(lambda: letters(8), fails_after, told=30),
    "small batch": Case(lambda: bits(12), asks=BATCHES),
    "thompson": Case(lambda: bits(12), settings=by("thompson"), asks=BATCHES),
    "thompson on letters": Case(lambda: letters(7), settings=by("thompson"), asks=BATCHES),
    "expected improvement": Case(mixed, settings=by("ei"), asks=({"k": 4}, {})),
    "constant liar": Case(mixed, settings=by("ei-liar"), asks=({"k": 4}, {})),
    "max-value entropy": Case(lambda: bits(8), settings=by("mes"), asks=({}, {})),
    "confidence bound": Case(lambda: bits(8), settings=by("lcb"), asks=({"k": 2}, {})),
    "map": Case(mixed, settings={"model": Model(inference="map")}),
    "hmc": Case(mixed, settings={"model": Model(inference="hmc")}),
    "slice": Case(mixed, settings={"model": Model(inference="slice", sweeps=2)}),
    "paper": Case(lambda: bits(8), settings={"model": Model.paper()}, asks=({}, {"k": 2})),
    "paper on letters": Case(lambda: letters(4), settings={"model": Model.paper()}, asks=({},)),
    "order 3": Case(
        lambda: bits(6), settings={"model": Model(order=3, posterior="truncated", inference="map")}
    ),
    "known errors": Case(lambda: bits(10), std=0.3),
    "repeats": Case(
        lambda: bits(4), settings={"repeats": "allow", "acquisition": "thompson"}, asks=BATCHES[:1]
    ),
    "skewed results": Case(lambda: bits(10), skewed, told=25),
    "local terms": Case(lambda: bits(16), neighbouring, told=45, asks=({}, {})),
    "counts": Case(
        lambda: Space({f"s{i}": Categorical([0, 1, 2]) for i in range(8)}),
        counting,
        told=30,
        asks=({}, {}),
    ),
    "k-mers": Case(lambda: letters(8), motif, told=40, asks=({}, {})),
    "fixed values": Case(mixed, asks=({"fixed": {"wash": 1, "n": 3}}, {"fixed": {"base": "G"}})),
    "diverse batch": Case(lambda: bits(10), asks=({"k": 4, "diversity": 3},)),
    "chain of interactions": Case(
        lambda: bits(10), settings={"model": Model(interactions="chain"), "acquisition": "thompson"}
    ),
    "no trust region": Case(
        lambda: bits(12), settings={"model": Model(trust="none"), "acquisition": "thompson"}
    ),
    "cp-sat": Case(
        lambda: bits(8), settings={"backend": "cp-sat", "acquisition": "thompson"}, asks=({},)
    ),
    "exhaustive": Case(lambda: bits(8), settings={"backend": "exhaustive"}),
    "annealing": Case(lambda: bits(10), settings={"backend": "annealing"}),
    "many bits": Case(lambda: bits(60), told=40, asks=({"k": 2},)),
}


def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text(encoding="utf-8")))


if __name__ == "__main__":
    played = {name: case.play() for name, case in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in played.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
