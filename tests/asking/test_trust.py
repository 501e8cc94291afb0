"""The trust region: what is within reach of the best point, and that draws are sought there."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import AllDifferent, Binary, Categorical, Integer, Model, Optimizer, Space
from mercbo.acquisition import Moves, minima_of
from mercbo.asking import trust
from mercbo.asking.trust import CHANGES, TRIES, Trust, nearest, radius
from mercbo.encoding import Encoding
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior

MIXED = Space(
    {
        "base": Categorical(list("ACGT")),
        "code": Categorical(list("uvwxy"), encoding="binary"),
        "n": Integer(0, 5),
        "wash": Binary(),
        "only": Categorical(["one"]),
    }
)


def rugged(space: Space, size: int = 40, **settings) -> Optimizer:
    """Results in which no two points have anything to do with each other."""
    opt = Optimizer(space, seed=0, **settings)
    rng = np.random.default_rng(1)
    rows = np.unique(space.sample_rows(size, rng=rng), axis=0)
    opt.tell(space.points(rows), rng.standard_normal(len(rows)))
    return opt


def smooth(space: Space, size: int = 40) -> Optimizer:
    opt = Optimizer(space, seed=0)
    rows = np.unique(space.sample_rows(size, rng=np.random.default_rng(1)), axis=0)
    opt.tell(space.points(rows), rows.sum(axis=1).astype(float))
    return opt


def trust_of(opt: Optimizer) -> Trust | None:
    values = opt._history.values
    posteriors = opt._model_of_now().posteriors
    return Trust.around(opt._history.rows[int(values.argmin())], posteriors)


@pytest.mark.parametrize("space", [Space.binary(12), MIXED], ids=["binary", "mixed"])
def test_distance_is_minus_the_log_of_the_correlation(space: Space) -> None:
    """Exactly so where the kernel is a product; with further terms costs are added all the same."""
    opt = rugged(space, model=Model(pooling="none"))
    trust, kernel = trust_of(opt), opt._kernel
    assert trust is not None
    rows = space.enumerate_rows()[::3]
    both = np.concatenate([rows, trust.centre[np.newaxis]])
    logs = []
    for posterior in opt._model_of_now().posteriors:
        gram = kernel.gram(posterior.tables, both, kernel.onehot(both))
        scale = np.sqrt(np.diagonal(gram))
        logs.append(np.log(gram / np.outer(scale, scale))[:-1, -1])
    np.testing.assert_allclose(trust.distance(rows), -np.mean(logs, axis=0), atol=1e-9)
    assert trust.distance(trust.centre[np.newaxis])[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("space", [Space.binary(12), MIXED], ids=["binary", "mixed"])
def test_moves_are_those_that_end_within_reach(space: Space) -> None:
    trust = trust_of(rugged(space))
    assert trust is not None
    kernel = trust.kernel
    rows = space.enumerate_rows()
    rows = rows[trust.holds(rows)][::5]
    allowed = trust.moves(rows)
    for column in range(kernel.levels):
        moved = rows.copy()
        moved[:, kernel.level_variable[column]] = kernel.level_value[column]
        np.testing.assert_array_equal(allowed[:, column], trust.holds(moved))


@pytest.mark.parametrize("space", [Space.binary(12), MIXED], ids=["binary", "mixed"])
def test_what_is_drawn_in_is_within_reach_and_between(space: Space) -> None:
    trust = trust_of(rugged(space))
    assert trust is not None
    rows = space.sample_rows(50, rng=np.random.default_rng(2))
    drawn = trust.drawn_in(rows, rng=np.random.default_rng(3))
    assert trust.holds(drawn).all()
    assert ((drawn == rows) | (drawn == trust.centre)).all()
    inside = trust.holds(rows)
    np.testing.assert_array_equal(drawn[inside], rows[inside])
    # no more of the way could be gone
    for row, target in zip(drawn[~inside], rows[~inside], strict=True):
        for variable in np.flatnonzero(row != target):
            further = row.copy()
            further[variable] = target[variable]
            assert not trust.holds(further[np.newaxis])[0]


def test_the_fit_decides() -> None:
    """Everything is within reach of a smooth function, and a few changes always are."""
    space = Space.binary(12)
    assert trust_of(smooth(space)) is None
    trust = trust_of(rugged(space))
    assert trust is not None
    assert 1 < trust.holds(space.enumerate_rows()).sum() < 2**12
    per_change = np.sort(trust.cost[trust.cost > 0])
    assert trust.reach >= CHANGES * np.median(per_change) - 1e-12


def test_draws_are_minimised_within_reach() -> None:
    space = Space.binary(14)
    opt = rugged(space, 60, acquisition="thompson")
    trust = trust_of(opt)
    assert trust is not None
    assert trust.holds(space.rows(opt.ask(20))).all()
    free = rugged(space, 60, acquisition="thompson", model=Model(trust="none"))
    assert not trust.holds(space.rows(free.ask(20))).all()


def test_descent_with_trust_ends_where_no_move_within_reach_gains() -> None:
    space = Space.binary(14)
    opt = rugged(space, 60)
    trust, draw = trust_of(opt), opt.draw()
    assert trust is not None
    best = opt._history.rows[np.argsort(opt._history.values)]
    found = minima_of(
        draw,
        draw.sample,
        opt._kernel,
        opt._sampler,
        best,
        trust=trust,
        rng=np.random.default_rng(0),
    )
    assert trust.holds(found.rows).all()
    around = Moves(draw.sample, opt._kernel, space.region).around(found.rows)
    around[~trust.moves(found.rows)] = np.inf
    assert (around.min(axis=1) >= found.values - 1e-9).all()


def test_the_paper_trusts_the_whole_space() -> None:
    assert Model.paper().trust == "none"
    assert Model().trust == "learn"


def test_a_held_variable_moves_the_centre() -> None:
    """The best point may not be one of those that are asked for."""
    space = Space.binary(14)
    opt = rugged(space, 60, acquisition="thompson")
    best = opt.best.point
    asked = opt.ask(5, fixed={"x0": 1 - best["x0"]})
    assert all(point["x0"] == 1 - best["x0"] for point in asked)


# -- failures ----------------------------------------------------------------------------------


def changed(row: np.ndarray, changes: int, count: int) -> np.ndarray:
    """Different rows of bits that differ from one in so many places."""
    out = np.repeat(row[np.newaxis], count, axis=0)
    for number, each in enumerate(out):
        places = (np.arange(changes) + number) % len(row)
        each[places] = 1 - each[places]
    return out


def test_the_radius_halves_while_what_is_tried_there_fails() -> None:
    centre = np.zeros(16, dtype=np.int64)
    worked = centre[np.newaxis]
    far, middle, near = (changed(centre, d, TRIES) for d in (12, 6, 3))
    assert radius(worked, far[:0], 1) == 16
    assert radius(worked, far[: TRIES - 1], 1) == 16
    assert radius(worked, far, 1) == 8
    assert radius(worked, np.concatenate([far, middle]), 1) == 4
    assert radius(worked, np.concatenate([far, middle, near]), 1) == 2
    # nothing was tried at 5 to 8 changes, so that nothing is known of them
    assert radius(worked, np.concatenate([far, near]), 1) == 8


def test_what_works_at_a_distance_keeps_the_radius() -> None:
    alike = np.repeat(np.arange(11)[:, np.newaxis], 16, axis=1)  # all 16 changes from each other
    worked, failed = alike[:5], alike[5:]
    assert radius(worked, failed, len(worked)) == 8  # results of a design are no tries
    assert radius(worked, failed, 1) == 16


def test_a_design_that_mostly_works_keeps_the_radius() -> None:
    """Of 20 points of a design 16 worked: those that did count as well as those that did not."""
    alike = np.repeat(np.arange(20)[:, np.newaxis], 16, axis=1)
    worked, failed = alike[:16], alike[16:]
    assert radius(worked, failed, 16, answered=20) == 16
    # told unasked, 4 failures among them: whoever told these did not choose what works
    assert radius(worked, failed, 16, answered=0) == 16
    # told unasked, and all that were asked for failed: of what works, nothing was tried
    assert radius(worked, failed, 16, answered=4) == 8
    # half of the results were asked for, with the failures
    assert radius(worked, failed, 16, answered=12) == 16


def test_a_design_that_mostly_fails_does_not() -> None:
    alike = np.repeat(np.arange(20)[:, np.newaxis], 16, axis=1)
    assert radius(alike[:5], alike[5:], 5, answered=20) == 8


def test_an_optimizer_says_which_results_it_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """Its own design of 20 worked in 16 of 20 cases: that is no reason to stay near."""
    space = Space({f"s{i}": Categorical(range(20)) for i in range(8)})
    opt = Optimizer(space, seed=0, n_initial=16)
    points = opt.ask(20)
    opt.tell(points, [None if i % 5 == 4 else float(sum(p.values())) for i, p in enumerate(points)])
    with caplog.at_level("DEBUG", "mercbo.asking.choice"):
        opt.ask()
    assert not [line for line in caplog.messages if line.startswith("most points fail")]


@pytest.mark.parametrize("reopened", [False, True])
def test_what_was_cancelled_was_not_answered(
    reopened: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody told what works, and all that was asked for and tried has failed."""
    space = Space({f"s{i}": Categorical(range(20)) for i in range(8)})
    opt = Optimizer(space, seed=0, n_initial=16, acquisition="thompson")
    points = space.points(np.repeat(np.arange(20)[:, np.newaxis], 8, axis=1))
    opt.cancel(opt.ask(20))
    opt.tell(points[:16], [float(i) for i in range(16)])
    for point in points[16:]:
        opt.tell(opt.ask(fixed=point), None)
    opt = Optimizer.from_dict(opt.to_dict()) if reopened else opt
    with caplog.at_level("DEBUG", "mercbo.asking.choice"):
        opt.ask()
    assert [line for line in caplog.messages if line.startswith("most points fail")]


def test_nearest_counts_the_variables_that_differ() -> None:
    rng = np.random.default_rng(0)
    rows, others = rng.integers(0, 3, (7, 5)), rng.integers(0, 3, (4, 5))
    expected = [min(int((r != o).sum()) for o in others) for r in rows]
    assert nearest(rows, others).tolist() == expected


def test_few_changes_are_a_ball() -> None:
    opt = rugged(MIXED)
    rows = MIXED.enumerate_rows()
    centre = rows[11]
    ball = Trust.within(2, centre, opt._kernel)
    np.testing.assert_array_equal(ball.holds(rows), (rows != centre).sum(axis=1) <= 2)


@pytest.mark.parametrize(("model", "near"), [(Model(), True), (Model(trust="none"), False)])
def test_where_almost_everything_fails_points_stay_near_what_works(model, near) -> None:
    """Only sequences in which no letter follows another kind work: one in 4^9."""
    space = Space({f"s{i}": Categorical(list("ACGT")) for i in range(10)})
    opt = Optimizer(space, seed=0, n_initial=2, model=model)
    opt.tell([dict.fromkeys(space.variables, letter) for letter in "AC"], [1.0, 0.5])
    for _ in range(14):
        point = opt.ask()
        alike = len({*list(point.values())[:9]}) == 1
        opt.tell(point, float(point["s9"] == "G") if alike else None)
    known = space.rows([o.point for o in opt.observations])
    asked = space.rows(opt.ask(4))
    assert (nearest(asked, known) <= 2).all() == near


def test_where_constraints_bind_what_is_drawn_in_is_mended() -> None:
    """Between two permutations there is mostly none: without mending, all descents would start at
    the centre."""
    names = [f"p{i}" for i in range(8)]
    space = Space({n: Integer(0, 7) for n in names}, [AllDifferent(names)])
    rng = np.random.default_rng(0)
    opt = Optimizer(space, seed=0, acquisition="thompson")
    points = space.sample(30, rng=rng)
    opt.tell(points, rng.standard_normal(30))
    draw, asking = opt.draw(), opt._asking()
    centre = asking.incumbents[0]
    trust = Trust.within(3, centre, opt._kernel)
    for seed in range(4):
        numbers = np.random.default_rng(seed)
        minima = minima_of(
            draw, draw.sample, opt._kernel, opt._sampler, centre[np.newaxis], trust=trust,
            rng=numbers,
        )  # fmt: skip
        assert space.region.allows(minima.rows).all()
        assert trust.holds(minima.rows).all()
        assert len(minima.rows) > 1


def test_windows_count_for_what_is_within_reach() -> None:
    """The cost of a change is minus the log of its correlation under the sum of kernels."""
    space = Space.binary(12)
    kernel = Kernel(Encoding(space))
    rows = space.sample_rows(8, rng=np.random.default_rng(0))
    data = Data(kernel, rows, np.random.default_rng(1).standard_normal(8))
    beta = kernel.beta(np.full(12, 0.01))  # smooth: all of it would be within reach
    windows = Windows(amplitude=3.0, sharpness=40.0, reach=0.3)
    posterior = Posterior(Model(), data, Hyper(beta, 0.1, 1e-3, 0.0, windows))
    trust = Trust.around(rows[0], [posterior])
    assert trust is not None
    moved = rows[0].copy()
    moved[4] ^= 1
    both = np.stack([rows[0], moved])
    covariance = posterior._covariance(both, kernel.onehot(both))
    correlation = covariance[0, 1] / covariance[0, 0]
    assert trust.distance(moved[np.newaxis])[0] == pytest.approx(-np.log(correlation))


@pytest.mark.parametrize("entries", [1, 40, 1 << 20])  # one row at a time, some, all at once
def test_distances_to_earlier_rows(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "ENTRIES", entries)
    rows = np.random.default_rng(0).integers(0, 3, (12, 5))
    found = trust.nearest_before(rows)
    wanted = [min((rows[i] != rows[j]).sum() for j in range(i)) for i in range(1, len(rows))]
    assert found[0] == np.inf
    assert found[1:].tolist() == wanted
