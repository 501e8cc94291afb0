"""The methods of the benchmark: what all keep to, what each should do better than chance."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Integer,
    MercboError,
    Model,
    Optimizer,
    Ordinal,
    SettingError,
    Space,
    SpaceExhausted,
    Where,
)
from mercbo.arrays import keys
from mercbo.bench.methods import IN_HOUSE, METHODS, OURS, bocs, combo, horseshoe, make, maker
from mercbo.bench.methods.common import neighbours, standardised
from mercbo.bench.methods.horseshoe import Scales, gibbs, inverse_gamma
from mercbo.bench.methods.ours import Mercbo

BITS = [f"x{i}" for i in range(8)]
SPACES = {
    "binary": Space.binary(7),
    "mixed": Space(
        {
            "base": Categorical(["A", "C", "G", "T", None], encoding="binary"),
            "heat": Ordinal([20, 40.5, 80]),
            "wash": Binary(),
            "count": Integer(1, 4),
            "fixed": Categorical(["k"]),
        }
    ),
    "constrained": Space({name: Binary() for name in BITS}, [Exactly(3, BITS)]),
    "with a predicate": Space(
        {**{name: Binary() for name in BITS}, "base": Categorical("ACG"[i] for i in range(3))},
        [AtMost(4, BITS), Where(lambda p: p["x0"] == 1 or p["base"] != "G", name="rule")],
    ),
    "table": Space.table(
        [{"a": a, "b": b, "c": c} for a in "xyz" for b in (1, 2, 3) for c in range(7) if a != c]
    ),
}
BINARY = SPACES["binary"]
# asks of a run; of our own settings fewer, which have tests of their own
STEPS, OWN_STEPS = 20, 8
# the others fit a model for every ask
QUICK = ["random", "local", "sa", "genetic"]


def marked(names: Iterable[str]) -> list:
    return [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in names]


# other spaces, and constraints, are the business of the optimizer's own tests
CASES = [
    pytest.param(name, space, marks=() if name in QUICK else pytest.mark.slow)
    for name in [*IN_HOUSE, *OURS]
    for space in SPACES
    if name in IN_HOUSE or space == "mixed" or (name == "mercbo" and space == "constrained")
]


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """On spaces of this size shorter chains do as well."""
    monkeypatch.setattr(combo, "BURN_IN", 10)
    monkeypatch.setattr(combo, "STATES", 3)
    monkeypatch.setattr(bocs, "BURN_IN", 100)
    monkeypatch.setattr(bocs, "SWEEPS", 30)


def separable(space: Space, seed: int = 0):
    """A sum of one random number per variable and value."""
    table = np.random.default_rng([seed, 5]).standard_normal((len(space), int(space.sizes.max())))
    return lambda row: table[np.arange(len(space)), row].sum(axis=-1)


def run(name: str, space: Space, seed: int = 0, *, steps: int = STEPS, fails: int = 0):
    """Rows asked for and their values, after five told points; every `fails`-th ask fails."""
    objective = separable(space)
    told = space.feasible.unseen((), 5, rng=np.random.default_rng(seed + 100))
    method = make(name, space, seed, max(steps, STEPS))
    for row in told:
        method.tell(row, float(objective(row)))
    asked = []
    for number in range(steps):
        row = method.ask()
        asked.append(row)
        failed = fails and number % fails == 0
        method.tell(row, float("nan") if failed else float(objective(row)))
    return told, np.stack(asked), np.array([objective(row) for row in asked])


@pytest.mark.parametrize(("name", "which"), CASES)
def test_asks_are_new_feasible_and_repeatable(name: str, which: str) -> None:
    space = SPACES[which]
    steps = STEPS if name in IN_HOUSE else OWN_STEPS
    told, asked, _ = run(name, space, fails=4, steps=steps)
    assert asked.dtype == np.int64
    assert space.region.allows(asked).all()
    assert len({*keys(told), *keys(asked)}) == len(told) + steps
    _, again, _ = run(name, space, fails=4, steps=4)
    assert np.array_equal(asked[:4], again)
    _, other, _ = run(name, space, seed=1, fails=4, steps=4)
    assert not np.array_equal(other, again)


@pytest.mark.parametrize("name", ["random", "local", "sa", "genetic", "mercbo"])
def test_a_space_can_be_asked_for_as_a_whole(name: str) -> None:
    space = Space({"a": Categorical("xyz"[i] for i in range(3)), "b": Binary()})
    method = make(name, space, 0, 6)
    rows = []
    for _ in range(6):
        rows.append(method.ask())
        method.tell(rows[-1], 1.0)
    assert len(set(keys(np.stack(rows)))) == 6
    with pytest.raises(SpaceExhausted):
        method.ask()


@pytest.mark.parametrize("name", marked([*IN_HOUSE, *OURS]))
def test_a_run_may_begin_with_failures_and_equal_values(name: str) -> None:
    space = Space.binary(6)
    method = make(name, space, 0, 9)
    for value in [float("nan")] * 3 + [2.0] * 6:
        method.tell(method.ask(), value)


def test_annealing_that_stands_still_walks_on_from_another_point() -> None:
    """Two valleys: with everything around the first one seen, the walk finds the other's floor,
    which random points alone would hardly ever hit."""
    space = Space.binary(30)
    method = make("sa", space, 0, 400)
    floor = np.arange(30) % 2

    def value(row: np.ndarray) -> float:
        ones = int(row.sum())
        return 1.0 + ones if ones < 4 else float((row != floor).sum())

    method.tell(np.zeros(30, dtype=np.int64), 1.0)
    best = np.inf
    for _ in range(400):
        row = method.ask()
        best = min(best, value(row))
        method.tell(row, value(row))
    assert best == 0.0


# -- better than chance ------------------------------------------------------------------------


@pytest.mark.parametrize("name", marked(["local", "sa", "genetic", "combo", "bocs"]))
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])
def test_better_than_random_on_a_separable_problem(name: str, constrained: bool) -> None:
    names = [f"x{i}" for i in range(14)]
    limits = [Exactly(5, names)] if constrained else []
    space = Space({n: Binary() for n in names}, limits)
    values = np.sort(separable(space)(space.enumerate_rows()))
    seeds, steps = range(3), 40 if name in QUICK else 30
    best = np.array([run(name, space, seed, steps=steps)[2].min() for seed in seeds])
    # the share of all points that are better than the best found: the least of k uniform numbers
    # has mean 1 / (k + 1) and about that standard deviation for random search
    share = np.searchsorted(values, best) / len(values)
    random = 1.0 / (steps + 1)
    assert share.mean() < random - 0.9 * random / np.sqrt(len(seeds))


# -- neighbours --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["binary", "mixed", "constrained"])
def test_neighbours_are_one_change_away_or_two_that_need_each_other(name: str) -> None:
    space = SPACES[name]
    every = space.enumerate_rows()
    allowed = set(keys(every))
    for row in every[::7]:
        expected = set()
        for other in every:
            changed = np.flatnonzero(other != row)
            if len(changed) == 2:
                alone = np.repeat(row[np.newaxis], 2, axis=0)
                alone[[0, 1], changed] = other[changed]
                if allowed.issuperset(keys(alone)):
                    continue
            if len(changed) == 1 or (len(changed) == 2 and len(space.region.limits)):
                expected.update(keys(other[np.newaxis]))
        found = keys(neighbours(space.region, row))
        assert len(found) == len(set(found))
        assert set(found) == expected


def test_neighbours_in_a_table_are_the_nearest_rows() -> None:
    space = Space.table([{"a": 0, "b": 0}, {"a": 1, "b": 1}, {"a": 1, "b": 2}])
    found = neighbours(space.region, np.array([0, 0]))
    assert found.tolist() == [[1, 1], [1, 2]]
    assert neighbours(space.region, np.array([1, 1])).tolist() == [[1, 2]]


def test_standardising() -> None:
    assert standardised(np.array([1e308, -1e308])).tolist() == [1.0, -1.0]
    assert standardised(np.array([3.0, 3.0])).tolist() == [0.0, 0.0]


# -- bocs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [60, 160], ids=["more coefficients than data", "more data"])
def test_horseshoe_recovers_a_sparse_signal(size: int) -> None:
    rng = np.random.default_rng(0)
    d, noise = 120, 0.1
    X = rng.standard_normal((size, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    beta = np.zeros(d)
    beta[[3, 40, 77]] = [2.0, -1.5, 1.0]
    y = X @ beta + noise * rng.standard_normal(size)
    scales, kept = Scales.start(d), []
    _, scales = gibbs(X, y, scales, 300, rng=rng)
    for _ in range(200):
        drawn, scales = gibbs(X, y, scales, 1, rng=rng)
        kept.append(drawn)
    found = np.mean(kept, axis=0)
    # least squares on the three true columns errs by noise / sqrt(size) each; shrunken zeros add
    # as much again at most
    assert np.abs(found - beta).max() < 8 * noise / np.sqrt(size)
    assert set(np.argsort(-np.abs(found))[:3]) == {3, 40, 77}


@pytest.mark.slow
def test_both_ways_to_draw_coefficients_have_the_same_law() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((6, 4)), rng.standard_normal(6)
    scales = Scales(0.5, 2.0, np.array([0.1, 1.0, 5.0, 0.3]), np.ones(4), 1.0)
    A = X.T @ X + np.diag(1.0 / (scales.tau2 * scales.lambda2))
    mean, covariance = np.linalg.solve(A, X.T @ y), scales.sigma2 * np.linalg.inv(A)
    draws = 4_000
    for square in (None, X.T @ X):
        sample = np.array(
            [horseshoe.draw_beta(X, y, scales, square, rng=rng) for _ in range(draws)]
        )
        sd = np.sqrt(np.diag(covariance))
        assert (np.abs(sample.mean(axis=0) - mean) < 5 * sd / np.sqrt(draws)).all()
        # the standard error of a covariance of normals is at most sqrt(2 / draws) sd_i sd_j
        error = np.abs(np.cov(sample.T) - covariance)
        assert (error < 5 * np.sqrt(2 / draws) * np.outer(sd, sd)).all()


def test_inverse_gamma_has_its_mean() -> None:
    draws, shape, rate = 100_000, 5.0, 3.0
    found = inverse_gamma(shape, np.full(draws, rate), np.random.default_rng(0))
    mean = rate / (shape - 1)
    sd = mean / np.sqrt(shape - 2)
    assert found.mean() == pytest.approx(mean, abs=4 * sd / np.sqrt(draws))


def test_the_drawn_quadratic_is_that_of_its_features() -> None:
    space = SPACES["mixed"]
    method = bocs.Bocs(space, 0, 10)
    rows = space.enumerate_rows()
    coefficients = np.random.default_rng(0).standard_normal(method._features(rows).shape[1])
    drawn = bocs.Drawn(method.encoding, coefficients, method.pairs)
    ones = method.encoding.to_bits(rows).sum(axis=1)
    expected = method._features(rows) @ coefficients + bocs.PENALTY * ones
    np.testing.assert_allclose(drawn.value(rows), expected, atol=1e-12)


# -- the registry ------------------------------------------------------------------------------


def test_an_unknown_method_is_refused_with_a_close_match() -> None:
    with pytest.raises(SettingError, match=r"method='mercbo-papr' is not one of .*'mercbo-paper'"):
        make("mercbo-papr", Space.binary(3), 0, 10)


def test_the_registry_imports_no_method_and_no_peer() -> None:
    code = (
        "import sys, mercbo.bench.methods as m; "
        "names = ('optuna', 'smac', 'nevergrad', 'cmaes', 'torch', 'subprocess'); "
        "own = [x for x in sys.modules if x.startswith('mercbo.bench.methods.')]; "
        "print([x for x in names[:5] if x in sys.modules], own)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['mercbo.bench.methods.base']"


def test_the_names_are_these() -> None:
    assert set(METHODS) == {
        "mercbo", "mercbo-paper", "mercbo-paper-quick", "mercbo-ei", "mercbo-mes",
        "mercbo-lcb", "mercbo-thompson", "mercbo-hmc", "mercbo-truncated", "mercbo-no-refine",
        "mercbo-no-warp", "mercbo-no-windows", "mercbo-no-pooling", "mercbo-no-motifs",
        "mercbo-map", "mercbo-annealing",
        "random", "local", "sa", "genetic", "combo", "bocs",
        "optuna-tpe", "optuna-gp", "smac", "nevergrad", "catcma", "botorch",
    }  # fmt: skip


# -- our own, with more choices changed -------------------------------------------------------


def test_any_setting_has_a_name() -> None:
    method = make("mercbo-paper:order=3:sweeps=1:refine=False:acquisition=thompson", BINARY, 0, 9)
    assert isinstance(method, Mercbo)
    assert method.optimizer.model == replace(Model.paper(), order=3, sweeps=1)
    assert method.optimizer.acquisition == "thompson"
    assert make("mercbo:backend=annealing", BINARY, 0, 9).optimizer.backend == "annealing"
    assert make("mercbo-no-warp:order=1", BINARY, 0, 9).optimizer.model.warp == "none"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mercbo:ordr=3", r"'mercbo:ordr=3': 'ordr=3' is not KEY=VALUE .* did you mean 'order'"),
        ("mercbo:order", "'order' is not KEY=VALUE"),
        ("mercbo:order=0", "order=0 is not a whole number"),
        ("mercbo:batch=0", "'batch=0': a whole number of at least 1"),
        ("mercbo:batch=True", "'batch=True': a whole number of at least 1"),
        ("mercbo:acquisition=ucb", "'ucb'"),
        ("mercbo:backend=graphcut", "graphcut"),
        ("random:batch=2", "method='random:batch=2' is not one of"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_is_played(name: str, message: str) -> None:
    with pytest.raises(MercboError, match=message):
        maker(name)


@pytest.mark.slow
def test_a_batch_is_asked_for_at_once_and_the_next_when_all_are_told() -> None:
    told, asked, _ = run("mercbo-thompson:batch=12", BINARY, seed=3)
    objective = separable(BINARY)
    optimizer = Optimizer(BINARY, seed=3, acquisition="thompson")
    optimizer.tell(told, objective(told))
    expected = []
    for count in (12, 8):  # the last batch has what is left
        expected.append(BINARY.rows(optimizer.ask(count)))
        optimizer.tell(expected[-1], objective(expected[-1]))
    assert np.array_equal(asked, np.concatenate(expected))
    _, one_by_one, _ = run("mercbo-thompson", BINARY, seed=3)
    assert not np.array_equal(one_by_one, asked)
