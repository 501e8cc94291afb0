"""The model of banned steps: what results prove, when it is believed, what a run gains by it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rules import MANY, RULES, TOLD

from mercbo import Binary, Categorical, Integer, Optimizer, Ordinal, Space
from mercbo import optimizer as optimizer_module
from mercbo.asking.failures import Always, FailureModel, fit_works
from mercbo.asking.steps import (
    LEAST_CHANCE,
    LEAST_ODDS,
    MOST_VALUES,
    SHORTEST,
    StepModel,
    Steps,
    banned,
    fit_steps,
    learn_works,
    log_odds,
    minimal,
    propagate,
)
from mercbo.domain.variables import Point
from mercbo.drawing.samples import neighbours_of
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel

LETTERS = Space({f"p{i}": Categorical(list("abcd")) for i in range(8)})
# two stretches of the same letters, one of bits, one that is too short, and one variable in between
SEVERAL = Space(
    {
        **{f"a{i}": Categorical(list("xyz")) for i in range(4)},
        "between": Ordinal([1, 2, 3]),
        **{f"b{i}": Binary() for i in range(5)},
        **{f"c{i}": Categorical(list("xyz"), encoding="binary") for i in range(5)},
        **{f"d{i}": Integer(0, 3) for i in range(SHORTEST - 1)},
    }
)
SPACES = {"letters": LETTERS, "several": SEVERAL, "bits": Space.binary(6), "many": MANY}


def kernel_of(space: Space) -> Kernel:
    return Kernel(Encoding(space))


def row_of(text: str) -> np.ndarray:
    return np.array([["abcd".index(letter) for letter in text]])


def rows_of(*texts: str) -> np.ndarray:
    return np.concatenate([row_of(text) for text in texts])


def code(step: str) -> int:
    return 4 * "abcd".index(step[0]) + "abcd".index(step[1])


def split(rows: np.ndarray, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return rows[~bad], rows[bad]


def has_step(rows: np.ndarray, steps: list[str]) -> np.ndarray:
    """Whether some of the steps are in each row."""
    texts = ["".join("abcd"[i] for i in row) for row in rows]
    return np.array([any(step in text for step in steps) for text in texts])


# -- steps of a row ----------------------------------------------------------------------------


def test_steps_are_those_of_stretches_of_like_variables() -> None:
    steps = Steps.of(kernel_of(SEVERAL))
    assert steps.first.tolist() == [0, 1, 2, 5, 6, 7, 8, 10, 11, 12, 13]
    assert steps.count == 9 + 4  # both stretches of letters have the same nine
    assert steps.size.tolist() == [3] * 3 + [2] * 4 + [3] * 4


@pytest.mark.parametrize(
    "space",
    [
        Space({f"x{i}": Categorical(["only"]) for i in range(6)}),
        Space({f"x{i}": Integer(0, MOST_VALUES) for i in range(6)}),
        Space({f"x{i}": Integer(0, i + 1) for i in range(6)}),
        Space.binary(SHORTEST - 1),
        Space({f"x{i}": Binary() if i % 2 else Integer(0, 1) for i in range(8)}),
    ],
    ids=["one value", "too many values", "other values", "too short", "by turns"],
)
def test_other_spaces_have_no_steps(space: Space) -> None:
    assert Steps.of(kernel_of(space)).count == 0
    rows = space.sample_rows(2, rng=np.random.default_rng(0))
    assert fit_steps(kernel_of(space), rows[:1], rows[1:]) is None


def test_the_same_step_has_one_code_wherever_it_stands() -> None:
    steps = Steps.of(kernel_of(LETTERS))
    codes = steps.codes(row_of("abcabdab"))[0].tolist()
    assert codes == [code(step) for step in ("ab", "bc", "ca", "ab", "bd", "da", "ab")]
    assert steps.counts(row_of("abcabdab"))[0, code("ab")] == 3
    assert steps.had(row_of("abcabdab"))[0].sum() == 5


@st.composite
def models(draw: st.DrawFn) -> tuple[StepModel, np.ndarray]:
    space = SPACES[draw(st.sampled_from(sorted(SPACES)))]
    kernel = kernel_of(space)
    steps = Steps.of(kernel)
    chances = st.sampled_from([0.0, 0.2, 0.7, 1.0])
    p = draw(st.lists(chances, min_size=steps.count, max_size=steps.count))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    rows = space.sample_rows(draw(st.integers(0, 4)), rng=rng)
    return StepModel(kernel, steps, np.array(p)), rows


@given(models())
def test_chance_is_the_product_over_different_steps(given_: tuple[StepModel, np.ndarray]) -> None:
    model, rows = given_
    codes = model.steps.codes(rows)
    for row, chance in zip(codes, model.chance(rows), strict=True):
        left = [max(1.0 - model.p[step], LEAST_CHANCE) for step in sorted(set(row.tolist()))]
        np.testing.assert_allclose(chance, np.prod(left), rtol=1e-12)


@given(models())
def test_neighbours_are_the_chance_at_the_neighbours(
    given_: tuple[StepModel, np.ndarray],
) -> None:
    model, rows = given_
    kernel = model.kernel
    table = model.chance_neighbours(rows)
    assert table.shape == (len(rows), kernel.levels)
    for level in range(kernel.levels):
        moved = rows.copy()
        moved[:, kernel.level_variable[level]] = kernel.level_value[level]
        # logarithms of up to 14 a step are added and taken away: 20 steps round to 1e-13
        np.testing.assert_allclose(table[:, level], model.chance(moved), rtol=1e-12)


# -- which steps are banned --------------------------------------------------------------------


def exact(clauses: np.ndarray, share: float) -> np.ndarray:
    """p by enumeration of all sets of bans."""
    bans = np.array(list(itertools.product([0, 1], repeat=clauses.shape[1])))
    prior = np.where(bans, share, 1.0 - share).prod(axis=1)
    weight = prior * ((bans @ clauses.T) > 0).all(axis=1)
    return np.asarray(weight @ bans / weight.sum())


def clause_sets(steps: int) -> st.SearchStrategy[np.ndarray]:
    clause = st.sets(st.integers(0, steps - 1), min_size=2, max_size=4)
    return st.lists(clause, min_size=1, max_size=5).map(
        lambda sets: np.array([[i in s for i in range(steps)] for s in sets])
    )


SURE = 1e12  # so many are known that the clauses do not move the share


@pytest.mark.parametrize(
    "clauses",
    [[[0, 1]], [[0, 1, 2], [2, 3]], [[0, 1], [1, 2], [2, 3, 4]], [[0, 1], [0, 2], [0, 3, 4]]],
)
def test_beliefs_are_exact_on_trees(clauses: list[list[int]]) -> None:
    table = np.array([[i in clause for i in range(5)] for clause in clauses])
    belief, share = propagate(table, 0.2 * SURE, 0.8 * SURE)
    assert share == pytest.approx(0.2)
    # it stops where log odds move by 1e-6, and a round halves what is left
    np.testing.assert_allclose(belief, exact(table, 0.2), atol=1e-6)


@given(clause_sets(7))
def test_beliefs_are_near_the_exact_ones(clauses: np.ndarray) -> None:
    """Loops of clauses: off by up to 0.08 in 30 random sets."""
    clauses = minimal(clauses)
    belief, _ = propagate(clauses, 0.25 * SURE, 0.75 * SURE)
    np.testing.assert_allclose(belief, exact(clauses, 0.25), atol=0.15)


@given(clause_sets(6))
def test_leaving_clauses_out_changes_nothing(clauses: np.ndarray) -> None:
    bans = np.array(list(itertools.product([0, 1], repeat=clauses.shape[1])))
    kept = minimal(clauses)
    np.testing.assert_array_equal(
        ((bans @ clauses.T) > 0).all(axis=1), ((bans @ kept.T) > 0).all(axis=1)
    )
    assert all((a & b).sum() < a.sum() for a, b in itertools.permutations(kept, 2))


def test_what_results_prove() -> None:
    """Steps: 0 and 1 proven, 2 the only suspect of a failure, 3 and 4 share one, 5 is unknown."""
    proven = np.array([True, True, False, False, False, False])
    suspects = np.array([[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 0]], dtype=bool)
    p = banned(proven, suspects)
    assert (p[:2] == 0.0).all()
    assert p[2] == 1.0
    assert p[3] == p[4] > p[5] > 0.0


def test_the_share_of_bans_is_learned() -> None:
    none = np.zeros((1, 20), dtype=bool)
    none[0, 0] = True
    few = banned(np.arange(20) > 5, none)
    many = banned(np.arange(20) > 15, none)
    assert 0.0 < few[1] < many[1] < 0.5


# -- when it is believed -----------------------------------------------------------------------


def test_odds_are_those_of_two_rates() -> None:
    """Against the integral over the rate: of all rows, and of novel ones only."""
    rows = rows_of("aaaabbbb", "aaaabbbb", "bbbbaaaa", "bbbbaaaa", "aaaacccc")
    failed = rows_of("aaaadddd", "bbbbdddd")
    steps = Steps.of(kernel_of(LETTERS))
    rate = (np.arange(20_000) + 0.5) / 20_000
    without = (rate**2 * (1 - rate) ** 5).mean()
    under = (rate**2 * (1 - rate)).mean()  # "ac" is in one row only: that is the novel one
    found = log_odds(steps.had(rows), steps.had(failed))
    assert found == pytest.approx(np.log(under / without), abs=1e-6)  # the midpoint rule: 1e-9


def test_a_failure_of_proven_steps_refutes() -> None:
    rng = np.random.default_rng(0)
    rows = np.unique(LETTERS.sample_rows(60, rng=rng), axis=0)
    worked, failed = split(rows, has_step(rows, ["ab", "cd"]))
    kernel = kernel_of(LETTERS)
    model = fit_steps(kernel, worked, failed)
    assert model is not None
    everyday = next(r for r in LETTERS.sample_rows(200, rng=rng) if model.chance(r[None])[0] == 1.0)
    assert fit_steps(kernel, worked, np.concatenate([failed, everyday[np.newaxis]])) is None


@pytest.mark.parametrize("seed", range(5))
def test_banned_steps_are_found(seed: int) -> None:
    rows = np.unique(LETTERS.sample_rows(80, rng=np.random.default_rng(seed)), axis=0)
    bans = ["ab", "cd", "dd"]
    model = learn_works(kernel_of(LETTERS), *split(rows, has_step(rows, bans)))
    assert isinstance(model, StepModel)
    assert np.flatnonzero(model.p > 0.5).tolist() == sorted(map(code, bans))
    others = LETTERS.sample_rows(1000, rng=np.random.default_rng(99))
    np.testing.assert_array_equal(model.chance(others) < 0.5, has_step(others, bans))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", RULES)
def test_other_hidden_rules_are_left_to_the_other_model(rule: str, seed: int) -> None:
    space, fails, _ = RULES[rule]
    rows = np.unique(space.sample_rows(TOLD, rng=np.random.default_rng(seed)), axis=0)
    works = learn_works(kernel_of(space), *split(rows, fails(rows)))
    assert isinstance(works, FailureModel)


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_failures_by_chance_are_rarely_taken_for_steps(rate: float) -> None:
    """Evidence of e^3 for what is not so comes once in e^3 = 20 times at most."""
    rng = np.random.default_rng(5)
    steps, sets, believed = Steps.of(kernel_of(LETTERS)), 300, 0
    for _ in range(sets):
        had = steps.had(LETTERS.sample_rows(int(rng.integers(5, 40)), rng=rng))
        bad = rng.random(len(had)) < rate
        if bad.any() and not bad.all():
            believed += log_odds(had[~bad], had[bad]) >= LEAST_ODDS
    most = np.exp(-LEAST_ODDS)
    assert believed / sets < most + 3.0 * np.sqrt(most / sets)


def test_without_a_success_or_a_failure_there_is_nothing_to_tell() -> None:
    kernel, rows = kernel_of(LETTERS), rows_of("aaaabbbb", "abababab")
    assert fit_steps(kernel, rows, rows[:0]) is None
    assert fit_steps(kernel, rows[:0], rows) is None


def test_where_all_that_failed_has_worked_since_everything_works() -> None:
    rng = np.random.default_rng(0)
    rows = np.unique(LETTERS.sample_rows(200, rng=rng), axis=0)
    assert isinstance(learn_works(kernel_of(LETTERS), rows, rows[:2]), Always)


def test_the_order_and_number_of_tellings_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    rows = np.unique(LETTERS.sample_rows(60, rng=rng), axis=0)
    worked, failed = split(rows, has_step(rows, ["ab", "ca"]))
    kernel = kernel_of(LETTERS)
    once = fit_steps(kernel, worked, failed)
    again = fit_steps(kernel, np.repeat(rng.permutation(worked), 2, axis=0), failed[::-1])
    assert once is not None
    assert again is not None
    np.testing.assert_array_equal(once.p, again.p)


def test_a_row_that_failed_and_worked_has_worked() -> None:
    rows = np.unique(LETTERS.sample_rows(60, rng=np.random.default_rng(2)), axis=0)
    worked, failed = split(rows, has_step(rows, ["ab", "ca"]))
    kernel = kernel_of(LETTERS)
    once = fit_steps(kernel, worked, failed)
    again = fit_steps(kernel, worked, np.concatenate([failed, worked[:3]]))
    assert once is not None
    assert again is not None
    np.testing.assert_array_equal(once.p, again.p)


# -- in a run ----------------------------------------------------------------------------------

BANS = ["ab", "bd", "ca", "dc"]
FIRST = ["aaccbbad", "bbbaacda", "ddaacbbc", "cccbaada", "adbcbbaa", "daaddbba"]


def evaluated(point: Point) -> float | None:
    text = "".join(str(letter) for letter in point.values())
    fails = any(step in text for step in BANS)
    return None if fails else float(-text.count("c") - 2 * text.count("cb"))


def played(asks: int, seed: int) -> Optimizer:
    """A run that begins with some sequences that work."""
    opt = Optimizer(LETTERS, seed=seed, n_initial=len(FIRST))
    for text in FIRST:
        point = dict(zip(LETTERS.variables, text, strict=True))
        opt.tell(point, evaluated(point))
    for _ in range(asks):
        point = opt.ask()
        opt.tell(point, evaluated(point))
    return opt


@pytest.mark.slow
def test_a_run_wastes_far_fewer_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(3)
    wasted = [len(played(25, seed).failed) for seed in seeds]
    monkeypatch.setattr(optimizer_module, "learn_works", fit_works)
    before = [len(played(25, seed).failed) for seed in seeds]
    assert sum(wasted) < 0.5 * sum(before)


def test_where_it_is_known_why_points_fail_improvement_is_expected() -> None:
    """Thompson's are the points where failures are not understood."""
    opt = Optimizer(LETTERS, seed=0, n_initial=len(FIRST))
    for text in FIRST:
        opt.tell(dict(zip(LETTERS.variables, text, strict=True)), float(text.count("a")))
    assert opt._asking().acquires(0) == "ei"
    for text in ("aaabbaaa", "bbaabbbb", "ccbaabaa"):
        opt.tell(dict(zip(LETTERS.variables, text, strict=True)), None)
    assert isinstance(opt._works(), StepModel)
    assert opt._asking().acquires(0) == "ei"
    opt.tell(dict(zip(LETTERS.variables, "aaaaaaaa", strict=True)), None)
    assert isinstance(opt._works(), FailureModel)
    assert opt._asking().acquires(0) == "thompson"


def test_steps_go_by_values_and_not_by_the_order_in_which_variables_declare_them() -> None:
    orders = ["abcd", "cdba", "dacb", "bdca"] * 2
    mixed = Space({f"p{i}": Categorical(list(order)) for i, order in enumerate(orders)})
    points = LETTERS.points(LETTERS.sample_rows(80, rng=np.random.default_rng(0)))
    fails = ["bd" in "".join(map(str, point.values())) for point in points]
    bad, good = ([p for p, f in zip(points, fails, strict=True) if f == state] for state in (1, 0))
    chances = []
    for space in (LETTERS, mixed):
        model = fit_steps(kernel_of(space), space.rows(good), space.rows(bad))
        assert model is not None
        rows = space.rows(points)
        around, moved = model.chance_neighbours(rows), neighbours_of(model.kernel, rows)
        np.testing.assert_allclose(around.ravel(), model.chance(moved), rtol=1e-9)
        chances.append(model.chance(rows))
    np.testing.assert_allclose(chances[1], chances[0], rtol=1e-9)
