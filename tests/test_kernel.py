"""Graph spectra, the diffusion kernel and its Gram matrices, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from mercbo import Binary, Categorical, Integer, Ordinal, Space
from mercbo.encoding import Encoding
from mercbo.features import mercer, single
from mercbo.kernel import LONG_PATH, Kernel, _path_sum, spectrum


def laplacian(graph: str, size: int) -> np.ndarray:
    """Degree minus adjacency, written out."""
    i, j = np.indices((size, size))
    adjacency = (np.abs(i - j) == 1) if graph == "path" else (i != j)
    return np.diag(adjacency.sum(axis=1)) - adjacency.astype(float)


@pytest.mark.parametrize("graph", ["complete", "path"])
@pytest.mark.parametrize("size", [2, 3, 4, 7, 20])
def test_spectrum_diagonalises_the_laplacian(graph: str, size: int) -> None:
    lam, psi = spectrum(graph, size)
    np.testing.assert_allclose(laplacian(graph, size) @ psi, psi * lam, atol=1e-12 * size)
    np.testing.assert_allclose(psi.T @ psi / size, np.eye(size - 1), atol=1e-12)
    np.testing.assert_allclose(psi.sum(axis=0), 0, atol=1e-12 * size)


@pytest.mark.parametrize("graph", ["complete", "path"])
@pytest.mark.parametrize("size", [2, 3, 5, 9])
@pytest.mark.parametrize("beta", [0.03, 0.3, 2.0])
def test_kernel_of_one_variable_is_the_matrix_exponential(
    graph: str, size: int, beta: float
) -> None:
    kind = Categorical if graph == "complete" else Ordinal
    kernel = Kernel(Encoding(Space({"x": kind(range(size))})))
    heat = expm(-beta * laplacian(graph, size))
    heat /= np.diag(heat).mean()
    table = np.exp(kernel.log_tables(np.array([beta]))[0][0])
    # the spectral sum adds `size` terms of order 1, each rounded
    np.testing.assert_allclose(table, heat, rtol=1e-12, atol=size * np.finfo(float).eps)


def test_kernel_is_the_product_over_variables(small_space: Space, random_beta) -> None:
    kernel = Kernel(Encoding(small_space))
    beta = random_beta(kernel)
    rows = small_space.enumerate_rows()
    product = np.ones((len(rows), len(rows)))
    for part, table in zip(kernel.parts, kernel.log_tables(beta), strict=True):
        for which, variable in enumerate(part.variables):
            column = rows[:, variable]
            product *= np.exp(table[which])[np.ix_(column, column)]
    gram = kernel.gram(kernel.log_tables(beta), rows, kernel.onehot(rows))
    np.testing.assert_allclose(gram, product, rtol=1e-12)


def test_law_1_features_of_all_orders_give_the_full_kernel(small_space, random_beta) -> None:
    kernel = Kernel(Encoding(small_space))
    beta = random_beta(kernel)
    rows = small_space.enumerate_rows()
    w = kernel.weights(beta)
    phi = mercer(single(kernel, w, rows), kernel.factor_of, kernel.n)
    gram = kernel.gram(kernel.log_tables(beta), rows, kernel.onehot(rows))
    np.testing.assert_allclose(np.exp(kernel.log_scale(w)) * phi @ phi.T, gram, atol=1e-12)


def test_diagonal_is_that_of_the_gram_matrix(small_space, random_beta) -> None:
    kernel = Kernel(Encoding(small_space))
    rows = small_space.enumerate_rows()
    tables = kernel.log_tables(random_beta(kernel))
    gram = kernel.gram(tables, rows, kernel.onehot(rows))
    np.testing.assert_allclose(kernel.diagonal(tables, rows), np.diag(gram), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, 9])
def test_truncated_gram_needs_no_features(small_space, random_beta, order: int) -> None:
    kernel = Kernel(Encoding(small_space))
    rows = small_space.enumerate_rows()
    w = kernel.weights(random_beta(kernel))
    phi = mercer(single(kernel, w, rows), kernel.factor_of, min(order, kernel.n))
    gram = kernel.truncated_gram(w, 2.5, order, rows, kernel.onehot(rows))
    np.testing.assert_allclose(gram, 2.5 * phi @ phi.T, atol=1e-11)


def test_mean_diagonal_is_one_for_every_beta(small_space: Space) -> None:
    kernel = Kernel(Encoding(small_space))
    rows = small_space.enumerate_rows()
    for size in (1e-3, 0.1, 1.0, 10.0):
        gram = kernel.gram(kernel.log_tables(np.full(kernel.n, size)), rows, kernel.onehot(rows))
        np.testing.assert_allclose(np.diag(gram).mean(), 1.0, rtol=1e-9)


@given(st.floats(1e-4, 12.0), st.sampled_from([2, 3, 5, 20]), st.sampled_from(["c", "p"]))
def test_contrast_and_beta_are_inverse(contrast: float, size: int, graph: str) -> None:
    kind = Categorical if graph == "c" else Ordinal
    kernel = Kernel(Encoding(Space({"x": kind(range(size))})))
    there = kernel.beta(np.array([contrast]))
    np.testing.assert_allclose(kernel.contrast(there), contrast, rtol=1e-8)


def test_contrast_is_the_exponent_of_a_hamming_kernel() -> None:
    space = Space({"a": Categorical(range(4)), "b": Categorical(range(2))})
    kernel = Kernel(Encoding(space))
    contrast = np.array([0.7, 0.2])
    gram = kernel.gram(
        kernel.log_tables(kernel.beta(contrast)),
        np.array([[0, 0]]),
        kernel.onehot(np.array([[0, 0], [1, 0], [3, 1]])),
    )
    np.testing.assert_allclose(gram[0], np.exp([0.0, -0.7, -0.9]), rtol=1e-12)


def test_gradient_of_the_tables_is_the_finite_difference(mixed, random_beta) -> None:
    space = Space({**mixed.variables, "long": Integer(0, 6)})
    kernel = Kernel(Encoding(space))
    z = np.log(kernel.contrast(random_beta(kernel)))
    step = 1e-6
    gradients = kernel.log_table_gradients(kernel.beta(np.exp(z)))
    for part, gradient in zip(kernel.parts, gradients, strict=True):
        position = kernel.parts.index(part)
        for (v, f), factor in np.ndenumerate(part.factors):
            up, down = z.copy(), z.copy()
            up[factor] += step
            down[factor] -= step
            numeric = (
                kernel.log_tables(kernel.beta(np.exp(up)))[position][v]
                - kernel.log_tables(kernel.beta(np.exp(down)))[position][v]
            ) / (2 * step)
            np.testing.assert_allclose(gradient[v, f], numeric, atol=1e-8)


def test_single_factor_table_matches_the_whole(mixed, random_beta) -> None:
    kernel = Kernel(Encoding(mixed))
    beta = random_beta(kernel)
    for part, whole in zip(kernel.parts, kernel.log_tables(beta), strict=True):
        for v, factors in enumerate(part.factors):
            tables = [
                kernel.log_factor_table(part, int(factor), f, float(beta[factor]))
                for f, factor in enumerate(factors)
            ]
            total = sum(tables, np.zeros((part.size, part.size)))
            np.testing.assert_allclose(total, whole[v], atol=1e-12)


def test_a_compact_kernel_knows_the_values_of_some_rows_and_means_the_same() -> None:
    """Long paths lose the values that no row has; all else, and all Gram matrices, stay."""
    long = LONG_PATH + 10
    space = Space(
        {
            "a": Integer(0, long - 1),
            "base": Categorical(range(4)),
            "b": Ordinal(range(long)),
            "short": Integer(0, 5),
        }
    )
    kernel = Kernel(Encoding(space))
    rows = space.sample_rows(7, rng=np.random.default_rng(0))
    compact, numbers = kernel.compact(rows)
    used = np.union1d([0, 1], rows[:, [0, 2]])
    assert compact.levels == 2 * len(used) + 4 + 6
    np.testing.assert_array_equal(used[numbers[:, [0, 2]]], rows[:, [0, 2]])
    np.testing.assert_array_equal(numbers[:, [1, 3]], rows[:, [1, 3]])
    np.testing.assert_array_equal(compact.rows_of(compact.onehot(numbers)), numbers)
    beta = kernel.beta(np.array([0.3, 0.8, 0.1, 2.0]))
    np.testing.assert_array_equal(compact.contrast(beta), kernel.contrast(beta))
    hot, short = kernel.onehot(rows), compact.onehot(numbers)
    gram = kernel.gram(kernel.log_tables(beta), rows, hot)
    # a table adds `long` terms of order 1 before it is divided by a sum as large
    rounding = long * np.finfo(float).eps
    np.testing.assert_allclose(
        compact.gram(compact.log_tables(beta), numbers, short), gram, rtol=1e-9, atol=rounding
    )
    pull = np.random.default_rng(1).standard_normal(gram.shape)
    np.testing.assert_allclose(
        compact.slopes(beta, 1.0, pull, gram, numbers, short),
        kernel.slopes(beta, 1.0, pull, gram, rows, hot),
        rtol=1e-9,
    )


def test_a_kernel_of_short_paths_is_compact() -> None:
    kernel = Kernel(Encoding(Space({"a": Integer(0, LONG_PATH - 2), "b": Categorical(range(99))})))
    rows = np.array([[3, 98]])
    assert kernel.compact(rows) == (kernel, rows)


@pytest.mark.parametrize("size", [2, 3, 7, 64, 150])
def test_sums_over_a_path_are_those_of_its_features(size: int) -> None:
    kernel = Kernel(Encoding(Space({"a": Integer(1, size), "b": Integer(1, size), "c": Binary()})))
    rows = np.random.default_rng(0).integers(0, size, (9, 3)) % [size, size, 2]
    for part in (*kernel.parts, *kernel.compact(rows)[0].parts):
        if part.graph == "path" and part.size > 2:
            weights = np.random.default_rng(1).uniform(size=(2, len(part.lam)))
            product = (part.psi * weights[:, np.newaxis, :]) @ part.psi.T
            np.testing.assert_allclose(_path_sum(part, weights), product, atol=1e-12 * size)
