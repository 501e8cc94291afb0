"""Mercer features and the way from coefficients to a quadratic form over bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, Space
from mercbo.encoding import Encoding
from mercbo.features import (
    Coefficients,
    between_factors,
    mercer,
    mercer_terms,
    quadratic,
    single,
    term_count,
)
from mercbo.kernel import Kernel


def random_coefficients(kernel: Kernel, rng: np.random.Generator) -> Coefficients:
    d = kernel.features
    half = np.triu(rng.standard_normal((d, d)), 1)
    pair = (half + half.T) * between_factors(kernel.factor_of)
    return Coefficients(float(rng.standard_normal()), rng.standard_normal(d), pair)


def test_binary_features_are_the_papers(random_beta) -> None:
    space = Space.binary(3)
    kernel = Kernel(Encoding(space))
    beta = random_beta(kernel)
    rows = space.enumerate_rows()
    phi = mercer(single(kernel, kernel.weights(beta), rows), kernel.factor_of, 2)
    sign, root = (-1.0) ** rows, np.exp(-beta)  # sqrt(exp(-2 beta))
    expected = [np.ones(8)]
    expected += [root[i] * sign[:, i] for i in range(3)]
    expected += [root[i] * root[j] * sign[:, i] * sign[:, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(phi, np.array(expected).T, rtol=1e-12)


def test_terms_multiply_different_factors_once(small_space: Space) -> None:
    kernel = Kernel(Encoding(small_space))
    terms = mercer_terms(kernel.factor_of, kernel.n)
    for m, combination in enumerate(terms):
        factors = kernel.factor_of[combination]
        assert combination.shape[1] == m
        assert (np.diff(factors, axis=1) > 0).all()
        assert len(np.unique(combination, axis=0)) == len(combination)
    # all orders together are a basis of the functions on the factors' codewords
    assert sum(map(len, terms)) == np.prod(1 + np.bincount(kernel.factor_of, minlength=kernel.n))


def test_200_binary_variables_have_20101_features_of_order_2(random_beta) -> None:
    space = Space.binary(200)
    kernel = Kernel(Encoding(space))
    rows = space.sample_rows(50, rng=np.random.default_rng(0))
    w = kernel.weights(random_beta(kernel))
    phi = mercer(single(kernel, w, rows), kernel.factor_of, 2)
    assert phi.shape == (50, 20_101)
    gram = kernel.truncated_gram(w, 1.0, 2, rows, kernel.onehot(rows))
    np.testing.assert_allclose(gram, phi @ phi.T, rtol=1e-9)


def test_coefficients_are_those_of_the_features(small_space: Space, random_beta) -> None:
    kernel = Kernel(Encoding(small_space))
    singles = single(kernel, kernel.weights(random_beta(kernel)), small_space.enumerate_rows())
    given_ = random_coefficients(kernel, np.random.default_rng(1))
    terms = mercer_terms(kernel.factor_of, 2)
    pairs = given_.pair[terms[2][:, 0], terms[2][:, 1]] if len(terms) > 2 else np.zeros(0)
    theta = np.concatenate([[given_.constant], given_.main, pairs])
    by_features = mercer(singles, kernel.factor_of, 2) @ theta
    np.testing.assert_allclose(given_.value(singles), by_features, atol=1e-12)


@pytest.mark.parametrize("native", [False, True])
def test_quadratic_form_equals_the_function_at_every_point(small_space, random_beta, native):
    encoding = Encoding(small_space, native=native)
    kernel = Kernel(Encoding(small_space))
    w = kernel.weights(random_beta(kernel))
    rows = small_space.enumerate_rows()
    function = random_coefficients(kernel, np.random.default_rng(2))
    form = quadratic(kernel, w, function, encoding)
    bits = encoding.to_bits(rows).astype(float)
    np.testing.assert_allclose(
        form.energy(bits), function.value(single(kernel, w, rows)), atol=1e-11
    )
    assert (form.coupling == form.coupling.T).all()
    assert (np.diag(form.coupling) == 0).all()


@given(
    st.lists(st.tuples(st.sampled_from("bcoe"), st.integers(1, 6)), min_size=1, max_size=4),
    st.integers(0, 2**31),
)
def test_quadratic_form_over_random_spaces(kinds: list[tuple[str, int]], seed: int) -> None:
    make = {
        "b": lambda _: Binary(),
        "c": lambda k: Categorical(range(k)),
        "o": lambda k: Ordinal(range(k)),
        "e": lambda k: Categorical(range(k), encoding="binary"),
    }
    space = Space({f"v{i}": make[kind](k) for i, (kind, k) in enumerate(kinds)})
    rng = np.random.default_rng(seed)
    encoding, kernel = Encoding(space), Kernel(Encoding(space))
    w = kernel.weights(rng.uniform(0.01, 3.0, kernel.n))
    rows = space.sample_rows(30, rng=rng)
    function = random_coefficients(kernel, rng)
    form = quadratic(kernel, w, function, encoding)
    values = function.value(single(kernel, w, rows))
    np.testing.assert_allclose(
        form.energy(encoding.to_bits(rows).astype(float)), values, rtol=1e-9, atol=1e-9
    )


def test_terms_of_an_order_above_the_number_of_factors_are_those_of_that_number() -> None:
    factors = np.array([0, 0, 1, 2])
    assert term_count(factors, 10**7) == term_count(factors, 3) == 12
    assert [len(terms) for terms in mercer_terms(factors, 10**7)] == [1, 4, 5, 2]


@pytest.mark.parametrize("posterior", ["projected", "truncated"])
def test_model_of_an_order_above_the_number_of_variables_is_that_of_all_orders(posterior) -> None:
    asked = []
    for order in (4, 10**7):
        model = Model(order=order, posterior=posterior, inference="map")
        opt = Optimizer(Space.binary(4), model=model, n_initial=3, seed=0)
        for _ in range(6):
            point = opt.ask()
            opt.tell(point, sum(point.values()) + point["x0"] * point["x1"])
        asked.append((opt.observations, opt.predict(point).mean.tolist()))
    assert asked[0] == asked[1]


def test_space_without_a_choice_is_explained_with_a_model_of_any_order() -> None:
    model = Model(order=10**7, posterior="truncated")
    opt = Optimizer(Space({"only": Categorical(["one"])}), model=model, repeats="allow")
    opt.tell([{"only": "one"}] * 2, [1.0, 2.0])
    assert opt.explain().effects == ()
