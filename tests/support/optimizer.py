"""Spaces, runs and samplers that the tests of the optimizer share."""

from pathlib import Path

import dimod
import numpy as np
import pytest

from mercbo import Binary, Categorical, Integer, Model, Optimizer, Ordinal, Space

MIXED = Space(
    {
        "base": Categorical(["A", "C", "G", "T", "U"], encoding="binary"),
        "heat": Ordinal([20, 40.5, None]),
        "wash": Binary(),
        "fixed": Categorical(["k"]),
    }
)
FOUR = Space({"a": Categorical(["x", "y"]), "n": Integer(1, 2)})
P, Q = {"a": "x", "n": 2}, {"a": "y", "n": 1}
INFERENCES = ["map", "hmc", pytest.param("slice", marks=pytest.mark.slow)]
# where the fit matters less than what is around it
MAP_FIRST = ["map", *(pytest.param(name, marks=pytest.mark.slow) for name in ("hmc", "slice"))]


def plain(**options) -> Model:
    """The model that is fitted soonest, where what is around it matters: neither samples of the
    hyper-parameters nor a warp. What the default does is tested with a `Model()` by name."""
    return Model(**{"inference": "map", "warp": "none", **options})


def score(space: Space, point: dict) -> float:
    """An objective with linear and pairwise parts, the same in every process."""
    row = space.rows(point)[0].astype(float)
    return float(np.cos(1 + np.arange(len(row))) @ row + 0.5 * row[0] * row[-1] - row[0])


def make(space: Space = MIXED, **options) -> Optimizer:
    return Optimizer(space, **{"seed": 0, "n_initial": 3, "model": plain(), **options})


def run(opt: Optimizer, steps: int) -> list[dict]:
    """`steps` rounds of ask and tell; what was asked."""
    asked = []
    for _ in range(steps):
        asked.append(opt.ask())
        opt.tell(asked[-1], score(opt.space, asked[-1]))
    return asked


def told(space: Space, values: list, **options) -> Optimizer:
    """An optimizer that was told `values` at the first points of the space."""
    opt = make(space, **options)
    opt.tell(space.points(space.enumerate_rows()[: len(values)]), values)
    return opt


def as_tuples(points: list[dict]) -> list[tuple]:
    return [tuple(p.values()) for p in points]


def all_points(space: Space) -> set[tuple]:
    return set(as_tuples(space.points(space.enumerate_rows())))


def reloaded(opt: Optimizer, folder: Path, **options) -> Optimizer:
    opt.save(folder / "run.json")
    return Optimizer.load(folder / "run.json", **options)


class Wrapped(dimod.Sampler):
    """A sampler that counts its calls and fails when told to."""

    parameters: dict = {}  # noqa: RUF012
    properties: dict = {}  # noqa: RUF012

    def __init__(self, inner=None):
        self.inner = inner or dimod.ExactSolver()
        self.calls = 0
        self.fail_at = None

    def sample(self, bqm, **keywords):
        self.calls += 1
        if self.calls == self.fail_at:
            raise RuntimeError("the solver's licence has run out")
        return self.inner.sample(bqm, **keywords)
