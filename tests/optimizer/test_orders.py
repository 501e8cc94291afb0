"""The order in which a variable declares its values: the model goes by the values."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import (
    Categorical,
    CyclicShift,
    Integer,
    Model,
    Optimizer,
    Ordinal,
    ReverseComplement,
    Space,
)

LETTERS = "ACGT"
# Each place declares the letters in another order; the first order is the one of `PLAIN`.
MIXED = [LETTERS, "GTCA", "CGTA", "TACG", "TGCA", "AGTC", "GACT", "CATG"]
PLAIN = [LETTERS] * len(MIXED)
# The fits in the two spaces differ by rounding, and L-BFGS enlarges the difference.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def sequence(orders: list[str], **options) -> Space:
    places = {f"base{i}": Categorical(list(order)) for i, order in enumerate(orders)}
    return Space({**places, "heat": Integer(1, 3)}, **options)


def binding(point: dict) -> float:
    """A function of counts and of short motifs."""
    text = "".join(point[f"base{i}"] for i in range(len(MIXED)))
    return 2.0 * text.count("G") + 0.7 * text.count("T") ** 1.5 - 1.5 * text.count("AC")


def points(count: int, *, seed: int = 0) -> list[dict]:
    space = sequence(PLAIN)
    return space.points(space.sample_rows(count, rng=np.random.default_rng(seed)))


def fitted(orders: list[str], model: Model, **options) -> Optimizer:
    opt = Optimizer(sequence(orders, **options), seed=0, n_initial=5, model=model)
    told = points(50)
    opt.tell(told, [binding(point) for point in told])
    return opt


MODELS = {
    "pooling": Model(inference="map", motifs="none", windows="none"),
    "motifs": Model(inference="map", pooling="none", windows="none"),
    "windows": Model(inference="map", pooling="none", motifs="none"),
    "default": Model(inference="map"),
    "truncated": Model(inference="map", posterior="truncated", weights="hierarchical"),
    "third order": Model(inference="map", order=3, terms=4),
}


@pytest.mark.parametrize("name", MODELS)
def test_predictions_do_not_depend_on_the_order_of_values(name: str) -> None:
    held_out = points(30, seed=1)
    plain, mixed = (fitted(orders, MODELS[name]).predict(held_out) for orders in (PLAIN, MIXED))
    np.testing.assert_allclose(mixed.mean, plain.mean, **CLOSE)
    np.testing.assert_allclose(mixed.std, plain.std, **CLOSE)


def test_counts_and_motifs_are_learned_whatever_the_order_of_values() -> None:
    """The error on held-out points is that of one order, well below that without the terms."""
    held_out = points(60, seed=1)

    def error(orders: list[str], model: Model) -> float:
        missed = fitted(orders, model).predict(held_out).mean - [binding(p) for p in held_out]
        return float(np.sqrt(np.mean(missed**2)))

    alone = error(MIXED, Model(inference="map", pooling="none", motifs="none"))
    found = error(MIXED, MODELS["default"])
    assert found == pytest.approx(error(PLAIN, MODELS["default"]), rel=1e-4)
    assert found < 0.7 * alone


@pytest.mark.parametrize("name", ["default", "third order"])
def test_energies_of_a_draw_do_not_depend_on_the_order_of_values(name: str) -> None:
    plain, mixed = (fitted(orders, MODELS[name]).draw() for orders in (PLAIN, MIXED))
    for point in points(10, seed=2):
        energy = mixed.bqm.energy(mixed.encode(point))
        assert energy == pytest.approx(mixed.value(point), abs=1e-6)
        assert energy == pytest.approx(plain.bqm.energy(plain.encode(point)), rel=1e-3, abs=1e-3)


def test_explanations_do_not_depend_on_the_order_of_values() -> None:
    plain, mixed = (fitted(orders, MODELS["pooling"]).explain() for orders in (PLAIN, MIXED))

    def effects(explanation) -> dict:
        return {(e.variable, e.value): e.estimate for e in explanation.effects}

    wanted, found = effects(plain), effects(mixed)
    assert found.keys() == wanted.keys()
    scale = max(map(abs, wanted.values()))
    assert all(found[k] == pytest.approx(wanted[k], abs=0.05 * scale) for k in wanted)


def test_reversed_ordinal_variables_count_alike() -> None:
    """Doses listed upwards and downwards; those of `compact` kernels (64 values and more) too."""
    for size in (5, 80):
        doses = list(range(size))
        told = np.random.default_rng(0).choice(doses, (40, 5))
        values = (told / size).sum(axis=1) ** 2
        means = []
        for turned in (doses, doses[::-1]):
            listed = [doses, turned, doses, turned, turned]
            space = Space({f"d{i}": Ordinal(order) for i, order in enumerate(listed)})
            opt = Optimizer(space, seed=0, model=Model(inference="map"))
            opt.tell(told.tolist(), values)
            means.append(opt.predict((told[:10, ::-1]).tolist()).mean)
        np.testing.assert_allclose(means[1], means[0], **CLOSE)


@pytest.mark.parametrize("symmetry", [CyclicShift, ReverseComplement])
def test_symmetric_models_do_not_depend_on_the_order_of_values(symmetry) -> None:
    names = [f"base{i}" for i in range(len(MIXED))]
    held_out = points(10, seed=1)
    made = [
        fitted(orders, Model(inference="map"), symmetries=[symmetry(names)])
        for orders in (PLAIN, MIXED)
    ]
    plain, mixed = (opt.predict(held_out) for opt in made)
    np.testing.assert_allclose(mixed.mean, plain.mean, **CLOSE)
    draws = [opt.draw() for opt in made]
    values = np.array([[draw.value(point) for point in held_out] for draw in draws])
    np.testing.assert_allclose(values[1], values[0], rtol=1e-3, atol=1e-3)
