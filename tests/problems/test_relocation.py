"""Relocation is a bijection that keeps graphs, constraints and values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from support.problems import made

from mercbo.domain.constraints import AtMost, Where
from mercbo.domain.variables import Binary, Categorical, Integer, Ordinal, Variable
from mercbo.problems import PROBLEMS, Problem, relocate
from mercbo.problems.ehrlich import ehrlich
from mercbo.problems.knapsack import knapsack
from mercbo.problems.nk import nk
from mercbo.problems.pest import pest
from mercbo.problems.relocation import Moved, draw_map, fixed_names
from mercbo.space import Space


def moved_of(problem: Problem) -> Moved:
    assert isinstance(problem.objective, Moved)
    return problem.objective


@pytest.mark.parametrize("name", PROBLEMS)
def test_initial_values_and_the_optimum_stay(name: str) -> None:
    problem = made(name, 2)
    there = relocate(problem, 2)
    np.testing.assert_array_equal(
        there.evaluate(there.initial, first=7), problem.evaluate(problem.initial, first=7)
    )
    assert there.relocated
    assert not problem.relocated
    kept = ["name", "space", "optimum", "budget", "noisy", "reference"]
    assert [getattr(there, k) for k in kept] == [getattr(problem, k) for k in kept]
    assert there.space.region.allows(there.initial).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_there_and_back(name: str) -> None:
    there = relocate(made(name, 0), 5)
    rows = there.space.sample_rows(20, rng=np.random.default_rng(0))
    moved = moved_of(there)
    np.testing.assert_array_equal(moved.new(moved.old(rows)), rows)
    np.testing.assert_array_equal(moved.old(moved.new(rows)), rows)
    for mapping, size in zip(moved.maps, there.space.sizes, strict=True):
        assert sorted(mapping.tolist()) == list(range(size))


@pytest.mark.parametrize(
    "problem", [nk(0, n=10, k=2), ehrlich(0, length=6, v=4, c=1), knapsack(0, n=10)]
)
def test_all_values_of_a_small_space_are_kept(problem: Problem) -> None:
    there = relocate(problem, 1)
    before = problem.objective(problem.space.enumerate_rows())
    after = there.objective(there.space.enumerate_rows())
    np.testing.assert_array_equal(np.sort(after), np.sort(before))  # NaN last
    assert np.nanmin(after) == problem.optimum


def hamming(a: int, b: int) -> int:
    return (a ^ b).bit_count()


DISTANCES = {
    "binary": (Binary(), lambda a, b: a != b),
    "letters": (Categorical(list("ACGT")), lambda a, b: a != b),
    "bits": (Categorical(range(8), encoding="binary"), hamming),
    "broken bits": (Categorical(range(6), encoding="binary"), hamming),
    "ordinal": (Ordinal([1, 3, 9]), lambda a, b: abs(a - b)),
    "integer": (Integer(2, 7), lambda a, b: abs(a - b)),
}


@pytest.mark.parametrize("kind", DISTANCES)
def test_distances_on_graphs_are_kept(kind: str) -> None:
    variable, distance = DISTANCES[kind]
    for seed in range(20):
        mapping = draw_map(variable, np.random.default_rng(seed)).tolist()
        for a, b in itertools.combinations(range(variable.size), 2):
            assert distance(mapping[a], mapping[b]) == distance(a, b)


@pytest.mark.parametrize(
    ("variable", "count"),
    [
        (Binary(), 2),
        (Categorical(range(3)), 6),
        (Categorical(range(4), encoding="binary"), 8),
        (Categorical(range(3), encoding="binary"), 1),
        (Integer(0, 4), 2),
    ],
)
def test_every_automorphism_comes_up(variable: Variable, count: int) -> None:
    """200 draws miss one of 8 with probability below 8 * (7/8)^200 < 1e-10."""
    rng = np.random.default_rng(0)
    assert len({tuple(draw_map(variable, rng).tolist()) for _ in range(200)}) == count


def test_variables_that_constraints_name_stay() -> None:
    variables = {"a": Binary(), "b": Binary(), "c": Categorical(list("xyz"))}
    assert fixed_names(Space(variables)) == set()
    assert fixed_names(Space(variables, [AtMost(1, ["a", ("c", "y")])])) == {"a", "c"}
    where = Where(lambda point: point["a"] == 0, name="no a")
    assert fixed_names(Space(variables, [where])) == {"a", "b", "c"}
    listed = Space.table([{"a": 1, "b": 2}, {"a": 2, "b": 1}])
    assert fixed_names(listed) == {"a", "b"}


def test_relocation_is_a_pure_function_of_its_run() -> None:
    problem = nk(0, n=30, k=1)
    first, again, other = (relocate(problem, run) for run in (1, 1, 2))
    np.testing.assert_array_equal(first.initial, again.initial)
    assert (first.initial != other.initial).any()


def test_noise_keeps_its_number() -> None:
    problem = pest(0)
    there = relocate(problem, 0)
    rows = np.repeat(there.initial[:1], 3, axis=0)
    values = there.evaluate(rows, first=4)
    assert len(set(values)) > 1
    old = moved_of(there).old(rows)
    np.testing.assert_array_equal(values, problem.evaluate(old, first=4))
