"""`Optimizer.explain`: known functions are recovered, within the intervals at the stated rate."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    Model,
    NoResults,
    Optimizer,
    Ordinal,
    SettingError,
    Space,
)
from mercbo.domain.variables import Point
from mercbo.explaining.explain import Explanation

SPACE = Space(
    {"a": Categorical(["p", "q", "r"]), "b": Ordinal([1, 2, 3, 4]), "c": Binary(), "d": Binary()}
)
POINTS = SPACE.points(SPACE.enumerate_rows())
A, B = {"p": -2.0, "q": 0.5, "r": 1.5}, {1: -1.5, 2: -0.5, 3: 0.5, 4: 1.5}
# Without ordered variables: there the kernel also says how smooth an effect is.
WIDE = Space(
    {"a": Categorical("pqr"[i] for i in range(3)), "b": Categorical([1, 2, 3, 4]), "c": Binary(),
     "d": Binary(), "e": Categorical("uvw"[i] for i in range(3)), "f": Binary()}
)  # fmt: skip


def additive(point: Point) -> float:
    return 20 + A[point["a"]] + B[point["b"]] + 0.7 * (2 * point["c"] - 1)


def quadratic(point: Point) -> float:
    c, d = 2 * point["c"] - 1, 2 * point["d"] - 1
    return 20 + A[point["a"]] * (1 + 0.8 * c) + 1.2 * c * d + B[point["b"]]


def explained(
    objective: Callable[[Point], float], seed: int, space: Space = WIDE, **options: object
) -> Explanation:
    """80 % intervals from 60 random results, with noise of a size that the model is not told."""
    rng = np.random.default_rng(seed)
    points = space.sample(60, rng=rng)
    opt = Optimizer(space, seed=seed, model=Model(warp="none"), **options)
    opt.tell(points, [objective(p) + 0.5 * rng.normal() for p in points])
    return opt.explain(level=0.8)


# What was measured on many more functions, in examples/results/explain.md, is drawn here too.
COVERAGE = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "explain_coverage.py"))
SETTINGS = [("every pair", 0.5, 30), ("half the pairs", 0.5, 60), ("additive", 1.0, 60)]
RUNS = 3


@pytest.mark.slow
def test_intervals_hold_the_truth_at_the_stated_rate() -> None:
    """Functions count as independent, and so do the variables, or the pairs, of a function, but
    not the values of one: the rate then has the standard deviation of as many binomial draws, of
    which three are allowed. Intervals may be too wide where little was learned, so that above the
    stated rate it is the half-way to all of them that is the limit."""
    stated, variables = COVERAGE["LEVEL"], COVERAGE["VARIABLES"]
    found: dict[str, list[float]] = {"effects": [], "interactions": []}
    for kind, noise, results in SETTINGS:
        rates = COVERAGE["drawn"](kind, noise, results, runs=range(RUNS))
        for what, listed in found.items():
            listed += rates.get(what, [])
    pairs = variables * (variables - 1) // 2
    counts = {"effects": 3 * RUNS * variables, "interactions": RUNS * (pairs + pairs // 2)}
    for what, listed in found.items():
        slack = 3 * np.sqrt(stated * (1 - stated) / counts[what])
        assert stated - slack < np.mean(listed) < (1 + stated) / 2, (what, listed, slack)


def test_shares_of_variance_are_those_of_the_function() -> None:
    opt = Optimizer(SPACE, seed=0, model=Model(warp="none"))
    opt.tell(POINTS, [quadratic(p) for p in POINTS])
    found = opt.explain()
    values = np.array([quadratic(p) for p in POINTS])
    total = values.var()
    main = {each.variables[0]: each for each in found.importance}
    pairs = {each.variables: each.main for each in found.pairs}
    assert main["a"].main == pytest.approx(np.mean([v**2 for v in A.values()]) / total, abs=0.01)
    assert main["b"].main == pytest.approx(np.mean([v**2 for v in B.values()]) / total, abs=0.01)
    assert pairs["c", "d"] == pytest.approx(1.44 / total, abs=0.01)
    assert main["c"].total > main["c"].main + 0.3
    assert main["b"].total < main["b"].main + 0.1
    every = [each.main for each in [*found.importance, *found.pairs]]
    assert sum(every) + found.higher == pytest.approx(1.0)
    assert main["b"].settled > 0.9 > main["d"].settled


@pytest.mark.slow
def test_directions_give_the_same_effects() -> None:
    down, up = (explained(additive, 3, direction=d) for d in ("minimize", "maximize"))
    for one, two in zip(down.effects, up.effects, strict=True):
        assert (one.variable, one.value) == (two.variable, two.value)
        assert one.estimate == pytest.approx(two.estimate, abs=1e-3)
        assert one.low <= one.estimate <= one.high


def skewed(**options: object) -> Optimizer:
    opt = Optimizer(SPACE, seed=0, **options)
    opt.tell(POINTS[::2], [float(np.exp(additive(p) - 20)) for p in POINTS[::2]])
    return opt


@pytest.mark.slow
def test_warped_results_are_explained_in_the_users_units() -> None:
    found = skewed().explain({"a": "r", "b": 4, "c": 1, "d": 0})
    assert found.warped
    best = max(found.effects, key=lambda each: each.estimate)
    assert (best.variable, best.value) in {("a", "r"), ("b", 4)}  # equal on the log's scale
    assert best.low < best.estimate < best.high
    assert found.why is not None
    assert found.why.low < np.exp(1.5 + 1.5 + 0.7) < found.why.high


@pytest.mark.parametrize(
    "model",
    [
        Model(inference="map"),
        pytest.param(Model(), marks=pytest.mark.slow),
        pytest.param(Model.paper(), marks=pytest.mark.slow),
    ],
    ids=["map", "default", "paper"],
)
def test_a_prediction_is_the_sum_of_its_parts(model: Model) -> None:
    opt = Optimizer(SPACE, seed=0, model=model)
    opt.tell(POINTS[::3], [quadratic(p) for p in POINTS[::3]])
    for point in POINTS[:2]:
        found = opt.explain(point)
        why = found.why
        assert why is not None
        if not found.warped:
            parts = sum(part.estimate for part in why.parts)
            assert why.average + parts + why.rest == pytest.approx(why.predicted, rel=1e-9)
        assert why.low < why.predicted < why.high
        assert why.nearest == min(sum(point[n] != other[n] for n in point) for other in POINTS[::3])
        assert 0.0 <= why.chance <= 1.0


def test_the_text_says_that_averages_know_nothing_of_rules() -> None:
    for rules in ([], [AtMost(2, ["x0", "x1", "x2"])]):
        opt = Optimizer(Space({f"x{i}": Binary() for i in range(3)}, rules), seed=0)
        opt.tell([[0, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1]], [0.0, 1.0, 2.5, 2.0])
        assert ("also those that are not allowed" in repr(opt.explain())) == bool(rules)


def test_tables_and_the_text_hold_what_was_found() -> None:
    opt = Optimizer(SPACE, seed=0)
    opt.tell(POINTS[::3], [quadratic(p) for p in POINTS[::3]])
    found = opt.explain(POINTS[1])
    assert found.to_frame().columns.tolist() == ["variable", "value", "estimate", "low", "high"]
    assert len(found.to_frame("interactions")) == sum(
        SPACE.variables[i].size * SPACE.variables[j].size
        for i, j in itertools.combinations(SPACE.names, 2)
    )
    assert found.to_frame("pairs")["variables"][0] == "a x b"
    assert len(found.to_frame("check")) == len(POINTS[::3])
    assert len(found.to_frame("why")) == 4 + 6
    assert len(found.to_frame("importance")) == 4
    text = repr(found)
    for line in ("Explanation of 16 results (minimize), 95% intervals", "Importance", "Why {'a'"):
        assert line in text
    assert len(text.splitlines()) < 60


def test_what_cannot_be_explained_is_refused() -> None:
    opt = Optimizer(SPACE, seed=0)
    with pytest.raises(NoResults, match="there is nothing to explain"):
        opt.explain()
    opt.tell(POINTS[0], 1.0)
    with pytest.raises(SettingError, match="level=95 is not a number between 0 and 1"):
        opt.explain(level=95)
    with pytest.raises(SettingError, match="is not one of"):
        opt.explain().to_frame("effect")
    with pytest.raises(SettingError, match=r"explain\(point\)"):
        opt.explain().to_frame("why")
    # one result: effects are nothing but uncertain
    assert all(e.low < 0 < e.high for e in opt.explain().effects)


def test_a_space_of_one_point_has_no_effects() -> None:
    opt = Optimizer(Space({"x": Categorical(["a"])}), seed=0)
    opt.tell({"x": "a"}, 1.0)
    found = opt.explain({"x": "a"})
    assert (found.effects, found.interactions, found.importance) == ((), (), ())
