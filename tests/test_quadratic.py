"""Law 2 (the bridge), and penalties that are strong enough and no stronger than they must be."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mercbo_backends import Exhaustive
from support.constrained import all_points, constrained_spaces

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
    MercboError,
    Model,
    Optimizer,
    Ordinal,
    PointError,
    SettingError,
    Space,
    Tied,
    Where,
)
from mercbo.domain.limits import exact_scale
from mercbo.drawing.samples import QuadraticSample
from mercbo.encoding import Encoding
from mercbo.features import Coefficients, between_factors
from mercbo.kernel import Kernel
from mercbo.quadratic import WHOLE_SUM, Draw, group_penalty


def random_draw(space: Space, seed: int, excluded: np.ndarray | None = None) -> Draw:
    """A draw with coefficients of no particular model: the laws hold for any."""
    rng = np.random.default_rng(seed)
    encoding, native = Encoding(space), Encoding(space, native=True)
    kernel = Kernel(encoding)
    d = kernel.features
    half = np.triu(rng.standard_normal((d, d)), 1) * between_factors(kernel.factor_of)
    low = Coefficients(float(rng.standard_normal()), rng.standard_normal(d), half + half.T)
    w = kernel.weights(rng.uniform(0.05, 1.0, kernel.n))
    none = np.zeros((0, len(space)), dtype=np.int64)
    sample = QuadraticSample(kernel, w, low, low, None)
    return Draw(space, encoding, native, sample, none if excluded is None else excluded)


def all_energies(bqm: dimod.BinaryQuadraticModel) -> tuple[np.ndarray, np.ndarray]:
    """Every sample (2^B, B), columns in the model's order, and its energy."""
    width = bqm.num_variables
    samples = ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).astype(np.int8)
    return samples, bqm.energies((samples, list(bqm.variables)))


def feasible_mask(draw: Draw, samples: np.ndarray) -> np.ndarray:
    bits = samples[:, : draw.encoding.width]
    return draw.encoding.from_bits(bits)[1].all(axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_law_2_bridge_at_every_point(small_space: Space, seed: int) -> None:
    draw = random_draw(small_space, seed)
    for point in small_space.points(small_space.enumerate_rows()):
        assert draw.bqm.energy(draw.encode(point)) == pytest.approx(
            draw.value(point), rel=1e-9, abs=1e-12
        )
        bits = {k: v for k, v in draw.encode(point).items() if k in draw.cqm.variables}
        objective = draw.cqm.objective.energy(bits) if bits else draw.cqm.objective.offset
        assert objective == pytest.approx(draw.value(point), rel=1e-9, abs=1e-12)
        assert draw.cqm.check_feasible(bits)
        assert draw.decode(draw.encode(point)) == point


@given(
    st.lists(st.tuples(st.sampled_from("bcie"), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(0, 2**31),
)
@settings(max_examples=60)
def test_law_2_bridge_on_random_spaces(kinds: list[tuple[str, int]], seed: int) -> None:
    make = {
        "b": lambda _: Binary(),
        "c": lambda k: Categorical(range(k)),
        "i": lambda k: Integer(1, k),
        "e": lambda k: Categorical(range(k), encoding="binary"),
    }
    space = Space({f"v{i}": make[kind](k) for i, (kind, k) in enumerate(kinds)})
    draw = random_draw(space, seed)
    for point in space.sample(10, rng=np.random.default_rng(seed)):
        assert draw.bqm.energy(draw.encode(point)) == pytest.approx(
            draw.value(point), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
def test_law_2_bridge_of_a_real_posterior_draw(mixed: Space, posterior: str) -> None:
    opt = Optimizer(mixed, model=Model(posterior=posterior), seed=0)
    rng = np.random.default_rng(0)
    opt.tell(mixed.sample(12, rng=rng), rng.standard_normal(12))
    draw = opt.draw()
    for point in mixed.points(mixed.enumerate_rows()):
        assert draw.bqm.energy(draw.encode(point)) == pytest.approx(draw.value(point), rel=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_no_infeasible_sample_beats_the_best_feasible_one(small_space, seed: int) -> None:
    draw = random_draw(small_space, seed)
    samples, energies = all_energies(draw.bqm)
    fine = feasible_mask(draw, samples)
    rows = small_space.enumerate_rows()
    best = draw.sample.value(rows).min()
    assert energies[fine].min() == pytest.approx(best, abs=1e-9)
    if not fine.all():
        assert energies[~fine].min() > best


def test_penalties_are_not_orders_of_magnitude_too_strong() -> None:
    """The smallest factor by which all penalties could shrink and still hold, by enumeration."""
    space = Space(
        {"a": Categorical(range(4)), "b": Categorical(range(4)), "c": Categorical(range(4))}
    )
    needed = []
    for seed in range(40):
        draw = random_draw(space, seed)
        samples, penalised = all_energies(draw.bqm)
        fine = feasible_mask(draw, samples)
        plain = draw.form.energy(samples.astype(float))
        penalty = (penalised - plain)[~fine]
        needed.append(((plain[fine].min() - plain[~fine]) / penalty).max())
    assert max(needed) < 1.0
    assert np.median(needed) > 0.2


def test_group_penalty_takes_the_harder_of_empty_and_crowded() -> None:
    assert group_penalty(np.array([-1.0, -2.0, -3.0]), np.array([5.0, 4.0, 6.0])) == 4.0
    assert group_penalty(np.array([-1.0, -7.0, -9.0]), np.array([5.0, 4.0, 6.0])) == 7.0
    assert group_penalty(np.array([1.0, 1.0, 1.0]), np.array([-1.0, 1.0, 1.0])) == 0.0


def test_labels_can_be_read_by_a_person(mixed: Space) -> None:
    labels = list(random_draw(mixed, 0).bqm.variables)
    assert ("base", "A") in labels
    assert ("heat", 80) in labels
    assert ("wash", 1) in labels
    assert ("code", "bit 2") in labels
    assert not any(name == "only" for name, _ in labels)


def test_cqm_states_what_the_bqm_penalises(mixed: Space) -> None:
    draw = random_draw(mixed, 1)
    cqm = draw.cqm
    assert {len(cqm.constraints[label].lhs.variables) for label in cqm.discrete} == {3}
    width = draw.encoding.width
    samples = ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).astype(np.int8)
    order = list(draw.encoding.labels)
    assert set(order) == set(cqm.variables)
    fine = feasible_mask(draw, samples)
    for number in np.random.default_rng(0).permutation(len(samples))[:200]:
        sample = dict(zip(order, samples[number].tolist(), strict=True))
        assert cqm.check_feasible(sample) == fine[number]


def test_cqm_excludes_what_was_seen(mixed: Space) -> None:
    seen = mixed.enumerate_rows()[[3, 17]]
    draw = random_draw(mixed, 2, excluded=seen)
    for number, point in enumerate(mixed.points(mixed.enumerate_rows())):
        sample = {k: v for k, v in draw.encode(point).items() if k in draw.cqm.variables}
        assert draw.cqm.check_feasible(sample) == (number not in (3, 17))


def test_decode_answers_none_to_bits_that_mean_no_point(mixed: Space) -> None:
    draw = random_draw(mixed, 3)
    good = draw.encode(mixed.sample(1, rng=np.random.default_rng(0))[0])
    assert draw.decode({**good, ("base", "A"): 1, ("base", "C"): 1}) is None
    assert draw.decode({**good, **{("base", b): 0 for b in "ACG"}}) is None
    assert draw.decode({**good, **{("code", f"bit {j}"): 1 for j in range(3)}}) is None
    spins = {label: 2 * bit - 1 for label, bit in good.items()}
    assert draw.decode(spins) == draw.decode(good)


def test_decode_names_a_missing_bit(mixed: Space) -> None:
    draw = random_draw(mixed, 3)
    with pytest.raises(PointError, match=r"no value for \('base', 'A'\)"):
        draw.decode({})


def test_value_takes_one_point(mixed: Space) -> None:
    points = mixed.sample(2, rng=np.random.default_rng(0))
    with pytest.raises(PointError, match="one point was wanted, 2 came"):
        random_draw(mixed, 0).value(points)


def test_encode_takes_one_point(mixed: Space) -> None:
    draw = random_draw(mixed, 0)
    for wrong, count in (([], 0), (mixed.sample(2, rng=np.random.default_rng(0)), 2)):
        with pytest.raises(PointError, match=f"one point was wanted, {count} came"):
            draw.encode(wrong)


def test_too_many_terms_are_refused() -> None:
    opt = Optimizer(Space.binary(120), model=Model(order=3), seed=0)
    opt.tell([[0] * 120], [1.0])
    with pytest.raises(SettingError, match="order=3 has 288,101 Mercer terms"):
        opt.draw()


def test_order_3_has_no_bqm_and_says_so() -> None:
    space = Space.binary(4)
    opt = Optimizer(space, model=Model(order=3), seed=0)
    opt.tell([[0, 1, 0, 1]], [1.0])
    with pytest.raises(MercboError, match="order above 2"):
        _ = opt.draw().bqm


@pytest.mark.parametrize("seed", range(5))
def test_any_bits_are_repaired_and_polished_to_local_minima(small_space, seed: int) -> None:
    draw = random_draw(small_space, seed)
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (12, draw.bqm.num_variables), dtype=np.int8)
    found = dimod.SampleSet.from_samples_bqm((bits, list(draw.bqm.variables)), draw.bqm)
    rows = draw.rows_of(found, rng=rng)
    values = draw.sample.value(rows)
    assert ((rows >= 0) & (rows < small_space.sizes)).all()
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert (np.diff(values) >= -1e-12).all()
    around = draw.sample.path_neighbours(rows)
    assert (around.min(axis=1) >= values - 1e-9).all()


def test_native_layout_polishes_binary_codes_by_whole_values() -> None:
    """Single bit flips can be stuck where a change of value is not."""
    space = Space({"a": Categorical(range(8), encoding="binary"), "b": Binary()})
    for seed in range(10):
        draw = random_draw(space, seed)
        rows = draw.polish(space.enumerate_rows())
        lowest = draw.sample.value(space.enumerate_rows()).min()
        # the same row, but in a matrix of another shape, whose products may round otherwise
        assert draw.sample.value(rows).min() == pytest.approx(lowest, rel=1e-12)


# -- constraints -------------------------------------------------------------------------------

CODED = {
    "a": Categorical(list("uvw"), encoding="binary"),
    "b": Categorical(list("vwxyz"), encoding="binary"),
    "c": Binary(),
    "s": Integer(2, 2),
}
MANY = {
    "a": Categorical(list("uvwxyz"), encoding="binary"),
    "b": Categorical(["u", "x", None]),
    "n": Ordinal([0.5, 1, 2.5]),
    "c": Binary(),
}
CONSTRAINED = {
    "exactly": Space(
        {f"x{i}": Binary() for i in range(7)}, [Exactly(2, [f"x{i}" for i in range(7)])]
    ),
    "at most one": Space(
        {f"x{i}": Binary() for i in range(7)}, [AtMost(1, [f"x{i}" for i in range(7)])]
    ),
    "at least": Space(MANY, [AtLeast(2, [("a", "z"), ("b", None), "c", ("n", 1)])]),
    "weights": Space(
        {f"x{i}": Binary() for i in range(7)},
        [Linear({f"x{i}": (-1) ** i * (i + 0.5) for i in range(7)}, "<=", -3.7)],
    ),
    "thirds": Space(
        {f"x{i}": Binary() for i in range(7)},
        [Linear({f"x{i}": (i + 1) / 3 for i in range(7)}, "==", 11 / 3)],
    ),
    "numbers": Space(MANY, [Linear({"n": 0.1, ("a", "w"): -0.05, "c": 0.2}, ">=", 0.2)]),
    "forbidden": Space(CODED, [Forbid([{"a": ["u", "v"], "b": "v"}, {"b": ["x", "y"], "c": 1}])]),
    "implied": Space(CODED, [Implies({"a": "u", "c": 1}, {"b": ["v", "w"]}), Forbid({"b": "z"})]),
    "different": Space(CODED, [AllDifferent(["a", "b"])]),
    "tied": Space(CODED, [Tied(["a", "b"])]),
    "closed": Space(CODED, [Forbid({"a": "w"}), Forbid({"c": 0}), AtMost(1, [("b", "v")])]),
    "single values": Space(CODED, [Linear({"s": 1, "c": 2, ("a", "v"): 1}, "<=", 4)]),
    "permutation": Space(
        {f"p{i}": Categorical(range(3)) for i in range(3)}, [AllDifferent(["p0", "p1", "p2"])]
    ),
    "predicate": Space(
        {**CODED, "d": Binary()},
        [Where(lambda p: p["a"] != "u" or p["d"] == 1, name="u"), Tied(["c", "d"])],
    ),
}


@pytest.fixture(params=CONSTRAINED, ids=list(CONSTRAINED))
def constrained(request: pytest.FixtureRequest) -> Space:
    return CONSTRAINED[request.param]


@pytest.fixture(params=[name for name in CONSTRAINED if name != "predicate"])
def linear_space(request: pytest.FixtureRequest) -> Space:
    """A space whose constraints a BQM and a CQM can hold."""
    return CONSTRAINED[request.param]


def check_bridge(draw: Draw) -> None:
    for point in draw.space.points(draw.space.enumerate_rows()):
        sample = draw.encode(point)
        assert set(sample) == set(draw.bqm.variables)
        assert draw.bqm.energy(sample) == pytest.approx(draw.value(point), rel=1e-9, abs=1e-9)
        assert draw.decode(sample) == point
        known = {label: bit for label, bit in sample.items() if label in draw.cqm.variables}
        assert draw.cqm.check_feasible(known)
        objective = draw.cqm.objective
        found = objective.energy(known) if known else objective.offset
        assert found == pytest.approx(draw.value(point), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_law_2_bridge_at_every_feasible_point(constrained: Space, seed: int) -> None:
    check_bridge(random_draw(constrained, seed))


@given(constrained_spaces(points=60, most=2, predicates=True), st.integers(0, 2**31))
@settings(max_examples=40)
def test_law_2_bridge_on_random_constrained_spaces(pair, seed: int) -> None:
    """Penalties of large weights are squares that cancel, so rounding is relative to them."""
    space, _ = pair
    draw = random_draw(space, seed)
    size = sum(map(abs, draw.bqm.linear.values())) + sum(map(abs, draw.bqm.quadratic.values()))
    for point in space.sample(10, rng=np.random.default_rng(seed)):
        sample = draw.encode(point)
        atol = 1e-9 + 1e-14 * (size + abs(draw.bqm.offset))
        assert draw.bqm.energy(sample) == pytest.approx(draw.value(point), rel=1e-9, abs=atol)
        assert draw.decode(sample) == point


def test_law_2_bridge_of_a_real_constrained_draw(constrained: Space) -> None:
    opt = Optimizer(constrained, seed=0)
    rng = np.random.default_rng(0)
    points = constrained.points(constrained.feasible.unseen((), 4, rng=rng))
    opt.tell(points, rng.standard_normal(len(points)))
    draw = opt.draw()
    for point in constrained.points(constrained.enumerate_rows()):
        assert draw.bqm.energy(draw.encode(point)) == pytest.approx(
            draw.value(point), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_lowest_bits_of_all_are_the_best_feasible_point(linear_space: Space, seed: int) -> None:
    draw = random_draw(linear_space, seed)
    assert draw.bqm.num_variables <= 22
    found = Exhaustive().sample(draw.bqm).first
    rows = linear_space.enumerate_rows()
    values = draw.sample.value(rows)
    assert draw.decode(found.sample) == linear_space.points(rows)[int(values.argmin())]
    assert found.energy == pytest.approx(values.min(), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_lowest_of_the_cqm_is_the_best_feasible_point(linear_space: Space, seed: int) -> None:
    draw = random_draw(linear_space, seed)
    found = Exhaustive().sample_cqm(draw.cqm).first
    assert found.energy == pytest.approx(draw.sample.value(linear_space.enumerate_rows()).min())


@given(constrained_spaces(points=20, most=2, most_variables=3), st.integers(0, 2**31))
@settings(max_examples=40)
def test_the_lowest_bits_are_the_best_point_on_random_constrained_spaces(pair, seed: int) -> None:
    space, _ = pair
    draw = random_draw(space, seed)
    rows = draw._levels.limits.matrix
    assume(all(exact_scale(row) * np.abs(row).sum() <= WHOLE_SUM for row in rows))
    assume(0 < draw.bqm.num_variables <= 16)
    best = draw.decode(Exhaustive().sample(draw.bqm).first.sample)
    assert best is not None
    assert draw.value(best) == pytest.approx(draw.sample.value(space.enumerate_rows()).min())


@given(constrained_spaces(points=60, most=2))
@settings(max_examples=40)
def test_the_cqm_holds_just_at_feasible_points_of_random_spaces(pair) -> None:
    space, meaning = pair
    draw = random_draw(space, 0)
    points = all_points(space.variables)
    bits = draw.encoding.to_bits(space.rows(points))
    assume(bits.shape[1])
    samples = complete(draw, bits), list(draw._levels.labels)
    found = dimod.SampleSet.from_samples_cqm(samples, draw.cqm, rtol=0.0, atol=1e-12)
    assert found.record.is_feasible.tolist() == [meaning(p) for p in points]


def test_weights_of_too_many_digits_lose_no_point_and_decode_to_none() -> None:
    """A million beside one is more than slack bits of a BQM can tell apart; the CQM can."""
    rule = Linear({"a": 1e6, "b": 1e6, "c": 1}, ">=", 1e6 + 1)
    space = Space({"a": Binary(), "b": Binary(), "c": Binary()}, [rule])
    for seed in range(5):
        draw = random_draw(space, seed)
        for point in space.points(space.enumerate_rows()):
            size = sum(map(abs, draw.bqm.linear.values()))
            atol = 1e-14 * (size + abs(draw.bqm.offset))
            assert draw.bqm.energy(draw.encode(point)) == pytest.approx(draw.value(point), abs=atol)
        assert draw.decode({("a", 1): 1, ("b", 1): 0, ("c", 1): 0}) is None
        assert not draw.cqm.check_feasible({("a", 1): 1, ("b", 1): 0, ("c", 1): 0}, rtol=0)


def complete(draw: Draw, bits: np.ndarray) -> np.ndarray:
    """Bits of the encoding with the linked value bits that their rows give."""
    rows, _ = draw.encoding.from_bits(bits)
    return np.concatenate([bits, draw._levels.value_bits(rows)], axis=1)


def test_the_cqm_holds_just_at_feasible_points_that_are_not_excluded(constrained: Space) -> None:
    excluded = constrained.enumerate_rows()[::3]
    draw = random_draw(constrained, 0, excluded=excluded)
    width = draw.encoding.width
    bits = ((np.arange(2**width)[:, None] >> np.arange(width)) & 1).astype(np.int8)
    rows, valid = draw.encoding.from_bits(bits)
    barred = {tuple(row) for row in excluded.tolist()}
    fine = valid.all(axis=1) & constrained.region.holds(rows)
    fine &= np.array([tuple(row) not in barred for row in rows.tolist()])
    labels = draw._levels.labels
    assert set(labels) == set(draw.cqm.variables)
    found = dimod.SampleSet.from_samples_cqm((complete(draw, bits), list(labels)), draw.cqm)
    assert found.record.is_feasible.tolist() == fine.tolist()


def test_linked_value_bits_must_agree_with_their_code() -> None:
    draw = random_draw(CONSTRAINED["different"], 0)
    point = CONSTRAINED["different"].sample(1, rng=np.random.default_rng(0))[0]
    sample = {k: v for k, v in draw.encode(point).items() if k in draw.cqm.variables}
    linked = [label for label in sample if str(label[1]).startswith("is ")]
    assert len(linked) == 8
    assert draw.cqm.check_feasible(sample)
    for label in linked:
        assert not draw.cqm.check_feasible({**sample, label: 1 - sample[label]})


def test_decode_answers_none_to_points_that_break_a_constraint(constrained: Space) -> None:
    draw = random_draw(constrained, 0)
    free = random_draw(Space(constrained.variables), 0)
    kept = 0
    for point in all_points(constrained.variables):
        expected = point if not constrained.broken(point) else None
        assert draw.decode(free.encode(point)) == expected
        kept += expected is not None
    assert kept == len(constrained.enumerate_rows())


def test_encode_refuses_a_point_that_breaks_a_constraint() -> None:
    draw = random_draw(CONSTRAINED["closed"], 0)
    with pytest.raises(PointError, match=r"breaks Forbid\({'a': 'w'}\)"):
        draw.encode({"a": "w", "b": "v", "c": 1, "s": 2})
    draw = random_draw(CONSTRAINED["predicate"], 0)
    with pytest.raises(PointError, match=r"breaks Where\('u'\)"):
        draw.encode({"a": "u", "b": "v", "c": 0, "d": 0, "s": 2})


def test_value_is_known_at_infeasible_points_too() -> None:
    draw = random_draw(CONSTRAINED["closed"], 0)
    free = random_draw(Space(CODED), 0)
    point = {"a": "w", "b": "v", "c": 0, "s": 2}
    assert draw.value(point) == free.value(point)


def test_at_most_one_needs_no_slack_and_whole_bounds_need_few_bits() -> None:
    assert random_draw(CONSTRAINED["at most one"], 0).bqm.num_variables == 7
    names = [f"x{i}" for i in range(3)]
    rule = Linear(dict(zip(names, [3, 5, 7], strict=True)), "<=", 9.42)
    draw = random_draw(Space(dict.fromkeys(names, Binary()), [rule]), 0)
    # 15 - 9 in the way of 9 whole steps: four bits of slack, whatever the decimals of the bound
    assert draw.bqm.num_variables == 3 + 4


@pytest.mark.parametrize("seed", range(3))
def test_any_bits_are_mended_and_polished_within_constraints(constrained: Space, seed: int) -> None:
    draw = random_draw(constrained, seed)
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (12, draw.bqm.num_variables), dtype=np.int8)
    found = dimod.SampleSet.from_samples_bqm((bits, list(draw.bqm.variables)), draw.bqm)
    rows = draw.rows_of(found, rng=rng)
    assert len(rows)
    assert constrained.region.holds(rows).all()
    assert (np.diff(draw.sample.value(rows)) >= -1e-12).all()
