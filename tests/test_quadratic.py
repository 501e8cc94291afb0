"""Law 2 (the bridge), and penalties that are strong enough and no stronger than they must be."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercbo import (
    Binary,
    Categorical,
    Integer,
    MercboError,
    Model,
    Optimizer,
    PointError,
    SettingError,
    Space,
)
from mercbo.encoding import Encoding
from mercbo.features import Coefficients, between_factors
from mercbo.kernel import Kernel
from mercbo.quadratic import Draw, group_penalty
from mercbo.samples import QuadraticSample


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
        assert draw.sample.value(rows).min() == draw.sample.value(space.enumerate_rows()).min()
