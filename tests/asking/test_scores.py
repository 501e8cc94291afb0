"""Acquisitions by name: what an ask promises holds for each of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercbo import AtMost, Categorical, Integer, Model, Optimizer, Point, SettingError, Space
from mercbo.asking.scores import ACQUISITIONS, SCORES

SPACE = Space({"c": Categorical(list("xyz")), "i": Integer(0, 3), **Space.binary(3).variables})
NAMES = sorted(SCORES)
# several states, as the default has them, and no search for terms or warps
MODEL = Model(inference="hmc", warp="none")


def cost(point: Point) -> float:
    values = list(point.values())
    return (values[0] == "y") * 2.0 + (values[1] - 2) ** 2 - 3.0 * values[2] * values[4] + values[3]


def told(name: str, count: int = 10, space: Space = SPACE) -> Optimizer:
    opt = Optimizer(space, acquisition=name, n_initial=5, seed=0, model=MODEL)
    points = space.sample(count, rng=np.random.default_rng(5))
    opt.tell(points, [cost(point) for point in points])
    return opt


def as_tuples(points: list[Point]) -> list[tuple[object, ...]]:
    return [tuple(point.values()) for point in points]


def test_the_names_are_these_and_others_are_refused() -> None:
    assert ACQUISITIONS == ["auto", "thompson", "ei", "ei-liar", "mes", "lcb"]
    with pytest.raises(SettingError, match=r"acquisition='ucb' is not one of .*'lcb'"):
        Optimizer(SPACE, acquisition="ucb")


@pytest.mark.parametrize("name", NAMES)
def test_the_suggestion_has_the_lowest_score_of_all_that_are_new(name: str) -> None:
    opt = told(name)
    rng = opt._streams.asking(opt._state.asked)
    drawn = opt._asking().draw(opt._state.asked, opt.space.feasible, rng=rng).sample
    score = opt._asking().situation(rng=rng).score(name, drawn, rng=rng)
    seen = set(as_tuples([o.point for o in opt.observations]))
    new = [p for p in SPACE.points(SPACE.enumerate_rows()) if tuple(p.values()) not in seen]
    values = score.path(SPACE.rows(new))
    found = score.path(SPACE.rows(opt.ask()))[0]
    assert found == pytest.approx(values.min(), abs=1e-9)


@pytest.mark.parametrize("name", ["mes", "lcb"])
def test_no_point_comes_twice_and_none_breaks_a_constraint(name: str) -> None:
    bits = Space.binary(5)
    space = Space(bits.variables, constraints=[AtMost(2, [(name, 1) for name in bits.names])])
    model = Model(inference="map", warp="none")
    opt = Optimizer(space, acquisition=name, n_initial=4, seed=1, model=model)
    asked: list[Point] = []
    feasible = len(space.enumerate_rows())
    for _ in range(feasible):
        point = opt.ask()
        asked.append(point)
        opt.tell(point, float(sum(point.values())) if len(asked) % 5 else None)
    assert len(set(as_tuples(asked))) == feasible == 16
    assert all(sum(point.values()) <= 2 for point in asked)


@pytest.mark.parametrize("name", ["mes", "lcb"])
def test_a_batch_is_what_single_asks_give(name: str) -> None:
    one_by_one = told(name)
    batch = told(name).ask(3)
    assert batch == [one_by_one.ask() for _ in range(3)]
    assert len(set(as_tuples(batch))) == 3


@pytest.mark.parametrize("name", ["mes", "lcb"])
def test_a_saved_run_goes_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    opt = told(name)
    opt.ask()
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.acquisition == name
    assert again.ask(2) == opt.ask(2)


@pytest.mark.parametrize("name", NAMES)
def test_fixed_values_are_kept(name: str) -> None:
    assert told(name).ask(fixed={"c": "z", "i": 1})["c"] == "z"


@pytest.mark.parametrize("name", NAMES)
def test_scores_rise_where_evaluations_fail(name: str) -> None:
    opt = told(name)
    rng, other = np.random.default_rng(0), np.random.default_rng(0)
    drawn = opt.draw().sample
    plain = opt._asking().situation(rng=rng).score(name, drawn, rng=rng)
    rows = SPACE.enumerate_rows()
    opt.tell(SPACE.points(rows[rows[:, 0] == 2][:12]), [None] * 12)
    score = opt._asking().situation(rng=other).score(name, drawn, rng=other)
    chance = opt._works().chance(rows)
    worst, best = int(chance.argmin()), int(chance.argmax())
    # two rows of any plain scores: the one that fails more often loses against the other
    before, after = plain.path(rows), score.path(rows)
    assert (np.argsort(before) != np.argsort(after)).any()
    assert (after[worst] > after).mean() > (before[worst] > before).mean()
    assert (after[best] > after).mean() <= (before[best] > before).mean()
    np.testing.assert_allclose(
        score.path_neighbours(rows[:2])[:, 0], score.path(np.c_[[0, 0], rows[:2, 1:]]), atol=1e-9
    )
