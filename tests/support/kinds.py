"""One space of every kind of variable under every kind of constraint, each with an oracle: the
same rule in plain Python, which knows nothing of the library."""

import itertools

import dimod
import numpy as np

from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Implies,
    Integer,
    Linear,
    Optimizer,
    Space,
    Tied,
    Where,
)

VARIABLES = {
    "a": Binary(),
    "b": Binary(),
    "c": Binary(),
    "n": Integer(0, 3),
    "s": Categorical(["x", "y", "z"]),
    "t": Categorical(["x", "y", "z", "w", "v"], encoding="binary"),
    "u": Categorical(["x", "y", "z"], encoding="binary"),
}


def even(point: dict) -> bool:
    return (point["a"] + point["b"] + point["n"]) % 2 == 0


# kind -> the constraints and their oracle
KINDS = {
    "exactly": (
        [Exactly(2, ["a", "b", "c", ("s", "x"), ("t", "y")])],
        lambda p: p["a"] + p["b"] + p["c"] + (p["s"] == "x") + (p["t"] == "y") == 2,
    ),
    "at most": (
        [AtMost(1, ["a", "b", ("t", "x"), ("u", "z")])],
        lambda p: p["a"] + p["b"] + (p["t"] == "x") + (p["u"] == "z") <= 1,
    ),
    "at least": (
        [AtLeast(3, ["a", "b", "c", ("n", 3), ("u", "y")])],
        lambda p: p["a"] + p["b"] + p["c"] + (p["n"] == 3) + (p["u"] == "y") >= 3,
    ),
    "linear": (
        [Linear({"a": 1.5, "n": 2.0, ("t", "w"): -1.25}, "<=", 3.1)],
        lambda p: 1.5 * p["a"] + 2.0 * p["n"] - 1.25 * (p["t"] == "w") <= 3.1,
    ),
    "linear equality": (
        [Linear({"a": 1, "b": 1, "n": 1}, "==", 3)],
        lambda p: p["a"] + p["b"] + p["n"] == 3,
    ),
    "forbid": (
        [Forbid([{"s": "x", "t": ["x", "y"]}, {"a": 1, "b": 1}])],
        lambda p: not (p["s"] == "x" and p["t"] in "xy") and not (p["a"] and p["b"]),
    ),
    "implies": (
        [Implies({"a": 1, "s": ["x", "y"]}, {"t": ["z", "w"], "n": [0, 1]})],
        lambda p: not (p["a"] and p["s"] in "xy") or (p["t"] in "zw" and p["n"] <= 1),
    ),
    "all different": (
        [AllDifferent(["s", "t", "u"])],
        lambda p: len({p["s"], p["t"], p["u"]}) == 3,
    ),
    "tied": ([Tied(["s", "u"])], lambda p: p["s"] == p["u"]),
    "where": ([Where(even)], even),
    "mixed": (
        [
            Exactly(1, ["a", "b", "c"]),
            AllDifferent(["s", "u"]),
            Forbid({"t": "v"}),
            Where(even),
        ],
        lambda p: p["a"] + p["b"] + p["c"] == 1 and p["s"] != p["u"] and p["t"] != "v" and even(p),
    ),
}


def constrained(kind: str) -> Space:
    return Space(VARIABLES, KINDS[kind][0])


def product(space: Space) -> list[dict]:
    """Every point before any constraint."""
    values = [v.values for v in space.variables.values()]
    return [dict(zip(space.names, row, strict=True)) for row in itertools.product(*values)]


def allowed(kind: str) -> list[dict]:
    """Every point of a kind's space, by the oracle."""
    return [p for p in product(constrained(kind)) if KINDS[kind][1](p)]


def linear_score(space: Space, point: dict) -> float:
    """An objective that pulls every variable somewhere."""
    row = space.rows(point)[0].astype(float)
    return float(np.cos(1 + 2 * np.arange(len(row))) @ row + 0.3 * row[0] * row[-1])


class Plain:
    """No more than a `sample` method: random bits, which satisfy next to nothing."""

    def __init__(self):
        self.models = []

    def sample(self, bqm):
        self.models.append(bqm)
        rng = np.random.default_rng(len(self.models))
        bits = rng.integers(0, 2, (16, bqm.num_variables)).astype(np.int8)
        return dimod.SampleSet.from_samples_bqm((bits, list(bqm.variables)), bqm)


def exercise(opt: Optimizer, rounds: int) -> list[dict]:
    """Rounds of two asked for, one of the two told (a failure each third time) and the other left
    pending; what was asked."""
    asked = []
    for number in range(rounds):
        first, second = opt.ask(2)
        value = None if number % 3 == 2 else linear_score(opt.space, first)
        opt.tell(first, value)
        asked += [first, second]
    return asked
