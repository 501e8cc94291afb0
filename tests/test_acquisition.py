"""From a draw to a point: descent ends in minima, and the best unseen point is taken."""

from __future__ import annotations

from typing import Any, ClassVar

import dimod
import numpy as np
import pytest
from conftest import SMALL
from mercbo_backends import Annealing, GraphCut
from support.optimizer import Wrapped

from mercbo import (
    AtMost,
    BackendError,
    Binary,
    Categorical,
    Integer,
    Linear,
    Model,
    Optimizer,
    Space,
    Where,
)
from mercbo.acquisition import Minima, Moves, lowest_new, lowest_of, starts
from mercbo.arrays import Floats, Rows, keys
from mercbo.drawing.samples import neighbours_of


def told(space: Space, size: int, seed: int = 0, **settings) -> Optimizer:
    opt = Optimizer(space, seed=seed, **settings)
    rng = np.random.default_rng(seed)
    opt.tell(space.sample(size, rng=rng), rng.standard_normal(size))
    return opt


def moves_of(opt: Optimizer) -> Moves:
    return Moves(opt.draw().sample, opt._kernel, opt.space.region)


@pytest.mark.parametrize("model", [Model(), Model(refine=False), Model(order=3)])
def test_descent_ends_where_no_move_gains(mixed: Space, model: Model) -> None:
    opt = told(mixed, 10, model=model)
    sample = opt.draw().sample
    starts = mixed.sample_rows(8, rng=np.random.default_rng(1))
    rows, values, around = moves_of(opt).descend(starts)
    np.testing.assert_allclose(values, sample.path(rows), atol=1e-9)
    assert (values <= sample.path(starts) + 1e-12).all()
    assert (around.min(axis=1) >= values - 1e-9).all()


def test_with_pairs_no_two_moves_gain_from_the_lowest_minimum() -> None:
    space = Space.binary(9)
    rows = space.enumerate_rows()
    stuck = 0
    for seed in range(6):
        opt = told(space, 30, seed=seed)
        sample, starts = opt.draw().sample, space.sample_rows(3, rng=np.random.default_rng(seed))
        free = Moves(sample, opt._kernel, space.region).descend(starts)[1]
        paired = Moves(sample, opt._kernel, space.region, pairs=True).descend(starts)
        lowest = paired[0][paired[1].argmin()]
        near = rows[(rows != lowest).sum(axis=1) <= 2]
        assert sample.path(near).min() >= paired[1].min() - 1e-9
        assert (paired[1] <= free + 1e-12).all()
        stuck += bool((paired[1] < free - 1e-9).any())
    assert stuck > 0  # of these starts some do need a pair


def test_best_unseen_is_the_lowest_that_is_new(mixed: Space) -> None:
    opt = told(mixed, 10)
    sample = opt.draw().sample
    moves = moves_of(opt)
    rows, values, around = moves.descend(mixed.sample_rows(3, rng=np.random.default_rng(9)))
    seen: set[bytes] = set()
    previous = -np.inf
    for _ in range(20):
        found = moves.best_unseen(rows, values, around, seen)
        assert found is not None
        value = float(sample.path(found.row[np.newaxis])[0])
        assert value == pytest.approx(found.value)
        assert (found.row != rows[found.which]).sum() <= 1
        assert value >= previous - 1e-9
        seen.update(keys(found.row[np.newaxis]))
        previous = value


def test_none_where_everything_around_was_seen(mixed: Space) -> None:
    opt = told(mixed, 10)
    moves = moves_of(opt)
    rows, values, around = moves.descend(mixed.enumerate_rows()[:2])
    everything = set(keys(mixed.enumerate_rows()))
    assert moves.best_unseen(rows, values, around, everything) is None


def test_where_everything_around_was_seen_the_lowest_two_moves_away_is_taken() -> None:
    """Not a random point: on a space of this size that would hardly ever be as good."""
    space = Space.binary(40)
    opt = told(space, 10)
    sample, moves = opt.draw().sample, moves_of(opt)
    start = space.sample_rows(1, rng=np.random.default_rng(3))
    found = Minima(*moves.descend(start), np.random.default_rng(0), by_backend=np.array([True]))
    once = np.eye(40, dtype=np.int64)
    twice = once[:, np.newaxis] ^ once
    near, two_away = found.rows ^ np.vstack([0 * once, once]), found.rows ^ twice.reshape(-1, 40)
    two_away = two_away[(two_away != found.rows).any(axis=1)]
    chosen = lowest_of(found, sample, opt._kernel, space.feasible, set(keys(near)))
    assert chosen is not None
    assert chosen.row.tolist() == two_away[sample.path(two_away).argmin()].tolist()
    assert chosen.score == pytest.approx(sample.path(two_away).min())
    assert chosen.source == "local search"


def test_source_is_the_backend_if_a_descent_from_its_answers_reaches_the_chosen_minimum() -> None:
    space = Space.binary(9)
    opt = told(space, 10)
    sample, moves = opt.draw().sample, moves_of(opt)
    low, high = moves.descend(space.sample_rows(40, rng=np.random.default_rng(0)))[0][:2]
    if sample.path(low[np.newaxis]) > sample.path(high[np.newaxis]):
        low, high = high, low

    def source(rows: list[Rows], by_backend: list[bool]) -> str:
        found = Minima(
            np.array(rows), sample.path(np.array(rows)), moves.around(np.array(rows)),
            np.random.default_rng(0), np.array(by_backend),
        )  # fmt: skip
        chosen = lowest_of(found, sample, opt._kernel, space.feasible, set())
        assert chosen is not None
        assert chosen.row.tolist() == low.tolist()
        return chosen.source

    assert source([low, high], [True, False]) == "backend"
    assert source([low, high], [False, True]) == "local search"
    assert source([low, high, low], [False, False, True]) == "backend"
    assert source([low, high, low], [False, True, False]) == "local search"


def test_a_suggestion_is_the_draws_minimum_on_a_small_space() -> None:
    """With few variables the whole pipeline must find the exact unseen minimum of the draw."""
    space = Space.binary(7)
    hits = 0
    for seed in range(10):
        model = Model(trust="none", inference="map")
        opt = told(space, 15, seed=seed, acquisition="thompson", model=model)
        draw = opt.draw()
        rows = space.enumerate_rows()
        unseen = np.array([k not in opt._history.seen(repeats=False) for k in keys(rows)])
        point = opt.ask()
        lowest = draw.sample.path(rows[unseen]).min()
        hits += draw.sample.path(space.rows(point))[0] == pytest.approx(lowest, abs=1e-9)
    assert hits >= 9


class Ring:
    """Low two changes away from a row, high nearer to it, as where all that is near was measured,
    and flat everywhere else."""

    def __init__(self, centre: Rows, opt: Optimizer) -> None:
        self.centre, self.kernel = centre, opt._kernel

    def path(self, rows: Rows) -> Floats:
        apart = (rows != self.centre).sum(axis=1)
        return np.select([apart < 2, apart == 2], [10.0, -1.0], 0.0)

    value = path

    def path_neighbours(self, rows: Rows) -> Floats:
        return self.path(neighbours_of(self.kernel, rows)).reshape(len(rows), self.kernel.levels)


def one_of_two(point: Any) -> bool:
    return bool(point["x1"] or point["x2"])


@pytest.mark.parametrize(
    "rules", [[], [AtMost(9, [f"x{i}" for i in range(12)])], [Where(one_of_two)]]
)
def test_a_costly_score_is_looked_at_around_the_best_points_too(rules: list[Any]) -> None:
    space = Space({f"x{i}": Binary() for i in range(12)}, constraints=rules)
    opt = told(space, 20)
    centre = space.sample_rows(1, rng=np.random.default_rng(9))
    score = Ring(centre[0], opt)
    found = lowest_new(
        opt.draw(), score, opt._kernel, opt._sampler, centre, set(), climbs=6, near=True,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert found is not None
    assert (found.row != centre[0]).sum() == 2
    assert space.region.allows(found.row[np.newaxis])[0]


def test_the_last_unseen_point_is_found_wherever_it_is(mixed: Space) -> None:
    opt = told(mixed, 10)
    rows = mixed.enumerate_rows()
    for last in (0, 50, len(rows) - 1):
        seen = set(keys(np.delete(rows, last, axis=0)))
        draw, rng = opt.draw(), np.random.default_rng(0)
        found = lowest_new(draw, draw.sample, opt._kernel, opt._sampler, rows[:1], seen, rng=rng)
        assert found is not None
        assert (found.row == rows[last]).all()
        assert found.source == "enumeration"


class Wrong:
    """Has a `sample` method, and little else."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def sample(self, bqm: dimod.BinaryQuadraticModel) -> object:  # noqa: ARG002
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([], "answered with a list"),
        (dimod.SampleSet.from_samples([], "BINARY", energy=[]), "no sample at all"),
    ],
)
def test_a_backend_that_answers_nonsense_is_named(answer: object, message: str) -> None:
    opt = told(Space.binary(3), 5, backend=Wrong(answer))
    before = opt.to_dict()
    with pytest.raises(BackendError, match=message):
        opt.ask()
    assert opt.to_dict() == before


@pytest.mark.parametrize(("seen", "asked"), [(30, 1), (40, 0)])
def test_of_a_space_that_is_mostly_seen_every_row_left_is_looked_at(seen: int, asked: int) -> None:
    space, sampler = Space.binary(6), Wrapped()
    opt = Optimizer(space, backend=sampler, acquisition="thompson", seed=3)
    rows = np.random.default_rng(0).permutation(space.enumerate_rows())
    opt.tell(space.points(rows[:seen]), rows[:seen] @ np.arange(6.0))
    draw = opt.draw()
    suggested = space.rows(opt.ask())
    assert sampler.calls == asked
    if not asked:
        lowest = draw.sample.path(rows[seen:]).min()
        np.testing.assert_allclose(draw.sample.path(suggested)[0], lowest, atol=1e-9)


def test_where_rows_are_fewer_than_levels_each_is_looked_at() -> None:
    """A problem of 200 bits for 41 points would take far longer than the points."""
    space = Space({"a": Integer(0, 99), "b": Integer(0, 99)}, [Linear({"a": 1, "b": 1}, "==", 40)])

    class Unwanted(dimod.Sampler):
        properties: ClassVar[dict] = {}
        parameters: ClassVar[dict] = {}

        def sample(self, bqm, **options):  # noqa: ARG002
            raise AssertionError("no backend is needed")

    for acquisition in ("ei", "thompson"):
        opt = Optimizer(
            space, backend=Unwanted(), acquisition=acquisition, n_initial=4, seed=0,
            model=Model(inference="map"),
        )  # fmt: skip
        for _ in range(12):
            point = opt.ask()
            opt.tell(point, (point["a"] - 13) ** 2)
        assert opt.best.point == {"a": 13, "b": 27}


BITS = {f"x{i}": Binary() for i in range(3)}
BOUNDED = Space(BITS, constraints=[Linear(dict.fromkeys(BITS, 1), "<=", 2)])


def test_descents_that_meet_look_around_once(mixed: Space) -> None:
    opt = told(mixed, 10)
    moves, rows = moves_of(opt), mixed.sample_rows(6, rng=np.random.default_rng(3))
    looked: list[bytes] = []

    class Watched(Moves):
        def around(self, rows: Rows) -> Floats:
            looked.extend(keys(rows))
            return super().around(rows)

    watched = Watched(moves.score, opt._kernel, mixed.region)
    both = np.concatenate([rows, rows])
    found, values, around = watched.descend(both)
    assert len(looked) == len(set(looked))
    for each, row in enumerate(both):  # as if it went alone
        alone = moves_of(opt).descend(row[np.newaxis])
        assert np.array_equal(found[each], alone[0][0])
        np.testing.assert_allclose(values[each], alone[1][0])
        np.testing.assert_allclose(around[each], alone[2][0])


class OnlyModels:
    """A backend of ours that is not handed arrays."""

    def __init__(self, inner: Any) -> None:
        self.sample, self.sample_cqm = inner.sample, inner.sample_cqm
        self.parameters, self.properties = inner.parameters, inner.properties


@pytest.mark.parametrize("backend_of", [GraphCut, Annealing])
@pytest.mark.parametrize("name", SMALL)
def test_backends_find_the_same_by_arrays_and_by_models(name: str, backend_of) -> None:
    space = SMALL[name]
    draw = told(space, min(space.size - 1, 6)).draw()
    rows = [
        starts(draw, sampler, rng=np.random.default_rng(5)).rows
        for sampler in (backend_of(), OnlyModels(backend_of()))
    ]
    assert np.array_equal(*rows)


@pytest.mark.parametrize(
    ("space", "constrained", "plain"),
    [
        (Space.binary(4), False, True),
        (Space({"a": Categorical(range(3))}), True, True),
        (Space({"a": Categorical(range(3))}), False, False),  # groups would be penalties
        (Space({"a": Categorical(range(4), encoding="binary")}), False, True),
        (BOUNDED, True, False),
        (Space({"a": Integer(3, 3)}), False, False),
    ],
)
def test_a_problem_is_handed_over_as_arrays_where_groups_are_all_its_constraints(
    space: Space, constrained: bool, plain: bool
) -> None:
    draw = Optimizer(space, seed=0).draw()
    found = draw.plain_form(constrained=constrained)
    assert (found is not None) == plain
    if found is not None:
        encoding, form = found
        bits, rows = encoding.to_bits(space.enumerate_rows()), space.enumerate_rows()
        np.testing.assert_allclose(form.energy(bits.astype(float)), draw.sample.value(rows))
