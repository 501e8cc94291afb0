"""The averaged kernel is what it says it is, and everything made from it is symmetric."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from support.chains import fit_hmc
from support.moments import Given, exact_moments

from mercbo import (
    Binary,
    Categorical,
    CyclicShift,
    Flip,
    Integer,
    Model,
    Ordinal,
    Permutation,
    Reversal,
    ReverseComplement,
    Space,
    Symmetry,
)
from mercbo.drawing.samples import neighbours_of
from mercbo.encoding import Encoding
from mercbo.features import single
from mercbo.inference import Data, Hyper, fit_map, log_density, pack, unpack
from mercbo.kernel import Kernel
from mercbo.kernels.averaging import Averaged, kernel_of
from mercbo.posterior import Posterior
from mercbo.quadratic import Draw

LETTERS = Categorical(list("ACGT"))
CODED = Categorical(list("ACGT"), encoding="binary")
SPACES = {
    "strands": Space({f"b{i}": LETTERS for i in range(3)}, symmetries=[ReverseComplement()]),
    "strands in bits": Space({f"b{i}": CODED for i in range(3)}, symmetries=[ReverseComplement()]),
    "spins": Space.binary(5, symmetries=[Flip(), Reversal(), Flip(["x1", "x3"])]),
    "ring": Space.binary(4, symmetries=[CyclicShift()]),
    "slots": Space(
        {"a": LETTERS, "m": Integer(0, 2), "b": LETTERS, "n": Integer(0, 2), "only": Integer(1, 1)},
        symmetries=[Permutation([["a", "m"], ["b", "n"]])],
    ),
    "mirrored order": Space(
        {"heat": Ordinal([1, 2, 3, 4]), "wash": Binary()},
        symmetries=[Symmetry(values={"heat": {1: 4, 2: 3, 3: 2, 4: 1}})],
    ),
    "other names": Space(
        {"p": Categorical(["u", "v", "w"]), "q": Categorical(["x", "y", "z"])},
        symmetries=[
            Symmetry(
                {"p": "q", "q": "p"},
                {"p": {"x": "v", "y": "u", "z": "w"}, "q": {"u": "y", "v": "x", "w": "z"}},
            )
        ],
    ),
}


@pytest.fixture(params=SPACES, ids=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


def kernel_for(space: Space) -> Averaged:
    kernel = kernel_of(Encoding(space), space.group)
    assert isinstance(kernel, Averaged)
    return kernel


def tied_beta(kernel: Averaged, seed: int = 0) -> np.ndarray:
    contrast = np.exp(kernel.tied(np.random.default_rng(seed).normal(-0.5, 0.7, kernel.n)))
    return kernel.beta(contrast)


def some_data(space: Space, size: int, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    rows = space.sample_rows(size, rng=rng)
    y = np.array([np.sin(row.sum() + 3.0 * row.prod()) for row in space.group.images(rows).min(0)])
    return Data(kernel_for(space), rows, y + rng.normal(0.0, 0.3, size))


def posterior_of(space: Space, model: Model, size: int = 8) -> Posterior:
    data = some_data(space, size)
    start = pack(data.kernel, tied_hyper(data))
    return Posterior(model, data, unpack(data.kernel, start, 0.2))


def tied_hyper(data: Data) -> Hyper:
    return Hyper(tied_beta(data.kernel), amplitude=1.3, noise=0.05, mean=0.0)


def test_a_space_without_symmetries_keeps_its_kernel() -> None:
    plain = Space.binary(3)
    assert type(kernel_of(Encoding(plain), plain.group)) is Kernel


def test_the_kernel_can_be_sent_to_other_processes(space: Space) -> None:
    kernel, rows = kernel_for(space), space.enumerate_rows()[:9]
    again = pickle.loads(pickle.dumps(kernel))
    tables = kernel.log_tables(tied_beta(kernel))
    here, there = (each.gram(tables, rows, each.onehot(rows)) for each in (kernel, again))
    np.testing.assert_array_equal(here, there)


def test_the_product_kernel_with_tied_contrasts_is_invariant(space: Space) -> None:
    kernel, rows = kernel_for(space), space.enumerate_rows()[:64]
    tables = kernel.log_tables(tied_beta(kernel))
    before = kernel.product(tables, rows, kernel.onehot(rows))
    for image in kernel.images(rows):
        after = kernel.product(tables, image, kernel.onehot(image))
        np.testing.assert_allclose(after, before, rtol=1e-9)


def test_the_averaged_kernel_is_a_covariance_of_symmetric_functions(space: Space) -> None:
    kernel, rows = kernel_for(space), space.enumerate_rows()[:64]
    tables = kernel.log_tables(tied_beta(kernel))
    gram = kernel.gram(tables, rows, kernel.onehot(rows))
    np.testing.assert_allclose(gram, gram.T, rtol=1e-9)
    assert np.linalg.eigvalsh(gram).min() > -1e-9
    np.testing.assert_allclose(np.diag(gram), kernel.diagonal(tables, rows), rtol=1e-9)
    # points that are their own image are no more uncertain than without symmetries
    plain = Kernel(Encoding(space)).diagonal(tables, rows)
    np.testing.assert_allclose(np.diag(gram), plain, rtol=1e-9)
    for image in kernel.images(rows):
        np.testing.assert_allclose(kernel.gram(tables, rows, kernel.onehot(image)), gram, rtol=1e-8)


def test_images_of_one_hot_rows_are_one_hot_images(space: Space) -> None:
    kernel = kernel_for(space)
    rows = space.sample_rows(9, rng=np.random.default_rng(0))
    for image, hot in zip(kernel.images(rows), kernel.hot_images(kernel.onehot(rows)), strict=True):
        np.testing.assert_array_equal(hot, kernel.onehot(image))


def test_averaged_coefficients_are_those_of_the_averaged_function(space: Space) -> None:
    kernel, rng = kernel_for(space), np.random.default_rng(1)
    w = kernel.weights(tied_beta(kernel))
    rows = space.sample_rows(20, rng=rng)
    main = rng.standard_normal(kernel.features)
    pair = rng.standard_normal((kernel.features, kernel.features))
    pair = pair + pair.T

    def value(m: np.ndarray, p: np.ndarray, at: np.ndarray) -> np.ndarray:
        f = single(kernel, w, at)
        return f @ m + 0.5 * np.einsum("nd,nd->n", f @ p, f)

    wanted = np.mean([value(main, pair, image) for image in kernel.images(rows)], axis=0)
    np.testing.assert_allclose(value(*kernel.symmetrised(main, pair), rows), wanted, atol=1e-9)


def test_the_gradient_of_the_density_is_that_of_tied_coordinates(space: Space) -> None:
    data = some_data(space, 7)
    z = pack(data.kernel, tied_hyper(data))
    _, gradient, _ = log_density(data, z)
    rng = np.random.default_rng(2)
    along = data.kernel.tied(rng.standard_normal(len(z)))
    step = 1e-5
    change = log_density(data, z + step * along)[0] - log_density(data, z - step * along)[0]
    np.testing.assert_allclose(gradient @ along, change / (2 * step), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_fits_keep_contrasts_tied() -> None:
    data = some_data(SPACES["spins"], 16)
    fitted = fit_map(data, None)
    sampled = fit_hmc(data, fitted, rng=np.random.default_rng(0))
    for hyper in (*fitted.hypers, *sampled.hypers):
        np.testing.assert_allclose(hyper.beta, data.kernel.tied(hyper.beta), rtol=1e-6)
    assert len({round(float(b), 6) for b in sampled.hypers[-1].beta}) > 1


@pytest.mark.parametrize("model", [Model(), Model(order=3), Model(posterior="truncated")])
def test_predictions_and_draws_are_equal_on_images(space: Space, model: Model) -> None:
    posterior = posterior_of(space, model)
    rows = space.sample_rows(6, rng=np.random.default_rng(5))
    sample = posterior.draw(rng=np.random.default_rng(0))
    for image in posterior.kernel.images(rows):
        for here, there in zip(posterior.predict(image), posterior.predict(rows), strict=True):
            np.testing.assert_allclose(here, there, atol=1e-8)
        np.testing.assert_allclose(sample.value(image), sample.value(rows), atol=1e-8)
        np.testing.assert_allclose(sample.path(image), sample.path(rows), atol=1e-8)


def test_neighbours_are_what_the_points_themselves_are(space: Space) -> None:
    posterior = posterior_of(space, Model())
    kernel = posterior.kernel
    rows = space.sample_rows(3, rng=np.random.default_rng(5))
    level = np.tile(np.arange(kernel.levels), (3, 1))
    moved = neighbours_of(kernel, rows)
    predictor = posterior.predictor(posterior.data.y[:, np.newaxis])
    for around, at in zip(predictor.around(rows, level), predictor.at(moved), strict=True):
        np.testing.assert_allclose(around, at, atol=1e-9)
    sample = posterior.draw(rng=np.random.default_rng(0))
    np.testing.assert_allclose(sample.path_neighbours(rows).ravel(), sample.path(moved), atol=1e-8)


def averaged_gram(space: Space, hyper: Hyper, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """K_G between rows, written out."""
    plain = Kernel(Encoding(space))
    tables = plain.log_tables(hyper.beta)
    images = space.group.images(rows)
    return np.mean([plain.product(tables, i, plain.onehot(others)) for i in images], axis=0)


def test_the_kernel_is_the_average_divided_by_its_roots(space: Space) -> None:
    kernel, rows = kernel_for(space), space.enumerate_rows()[:64]
    hyper = Hyper(tied_beta(kernel), 1.0, 0.1, 0.0)
    tables = kernel.log_tables(hyper.beta)
    averaged = averaged_gram(space, hyper, rows, rows)
    root = np.sqrt(np.diag(averaged) / Kernel(Encoding(space)).diagonal(tables, rows))
    np.testing.assert_allclose(kernel.roots(tables, rows), root, rtol=1e-9)
    found = kernel.gram(tables, rows, kernel.onehot(rows))
    np.testing.assert_allclose(found, averaged / np.outer(root, root), rtol=1e-9)


def test_the_mean_is_that_of_plain_regression_on_all_images() -> None:
    """Every result told at all its images, with as many times the noise, has the same mean: that
    of the averaged function, of which the results are r times the function's."""
    space = SPACES["spins"]
    posterior = posterior_of(space, Model())
    data, hyper, count = posterior.data, posterior.hyper, len(space.group)
    plain = Kernel(Encoding(space))
    images = space.group.images(data.rows).reshape(-1, len(space))
    tables = plain.log_tables(hyper.beta)
    hot = plain.onehot(images)
    root = data.kernel.roots(tables, data.rows)
    sigma = hyper.amplitude * plain.gram(tables, images, hot)
    sigma += np.diag(np.tile(count * hyper.noise * root**2, count))
    alpha = np.linalg.solve(sigma, np.tile((data.y - hyper.mean) * root, count))
    rows = space.enumerate_rows()
    wanted = hyper.amplitude * plain.gram(tables, rows, hot) @ alpha
    wanted = hyper.mean + wanted / data.kernel.roots(tables, rows)
    np.testing.assert_allclose(posterior.predict(rows)[0], wanted, atol=1e-9)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("mode", ["projected", "truncated"])
def test_law_3_draws_have_the_exact_moments(mode: str, order: int) -> None:
    """Mean and covariance of the part of order <= m of the averaged function given the data."""
    space = Space.binary(4, symmetries=[Flip(["x1", "x3"]), Reversal()])
    posterior = posterior_of(space, Model(posterior=mode, order=order, refine=False), size=6)
    data, hyper, rows = posterior.data, posterior.hyper, space.enumerate_rows()
    kernel, w = data.kernel, data.kernel.weights(hyper.beta)
    tables = kernel.log_tables(hyper.beta)
    reference = np.sqrt(np.mean(kernel.roots(tables, data.rows) ** 2))
    root = kernel.roots(tables, data.rows) / reference
    amplitude = hyper.amplitude / reference**2

    def low(some: np.ndarray, others: np.ndarray) -> np.ndarray:
        plain, scale = Kernel(Encoding(space)), amplitude * np.exp(kernel.log_scale(w))
        images = space.group.images(some)
        parts = [plain.truncated_gram(w, scale, order, i, plain.onehot(others)) for i in images]
        return np.mean(parts, axis=0)

    observed = low(data.rows, data.rows)
    if mode == "projected":
        observed = amplitude * averaged_gram(space, hyper, data.rows, data.rows)
    sigma = observed / np.outer(root, root) + hyper.noise * np.eye(len(data))
    cross = low(rows, data.rows) / root
    gain = cross @ np.linalg.inv(sigma)
    mean, cov = exact_moments(lambda rng: posterior.draw(rng=rng).value(rows))
    np.testing.assert_allclose(mean, hyper.mean + gain @ (data.y - hyper.mean), atol=1e-8)
    np.testing.assert_allclose(cov, low(rows, rows) - gain @ cross.T, atol=1e-8)


def test_paths_have_the_mean_of_the_predictions(space: Space) -> None:
    posterior = posterior_of(space, Model())
    rows = space.sample_rows(20, rng=np.random.default_rng(3))
    path = posterior.draw(rng=Given()).path(rows)  # type: ignore[arg-type]
    np.testing.assert_allclose(path, posterior.predict(rows)[0], atol=1e-8)


def test_stated_interactions_are_closed_under_the_symmetries() -> None:
    space = Space.binary(4, symmetries=[CyclicShift()])
    posterior = posterior_of(space, Model(interactions=[["x0", "x1"]]))
    sample = posterior.draw(rng=np.random.default_rng(0))
    encoding = Encoding(space)
    draw = Draw(space, encoding, encoding, sample, np.zeros((0, 4), dtype=np.int64))
    assert len(draw.bqm.quadratic) == 4
    rows = space.enumerate_rows()
    for image in space.group.images(rows):
        np.testing.assert_allclose(sample.value(image), sample.value(rows), atol=1e-9)


def test_without_results_a_draw_is_symmetric_as_well(space: Space) -> None:
    data = Data(kernel_for(space), np.zeros((0, len(space)), dtype=np.int64), np.zeros(0))
    posterior = Posterior(Model(), data, tied_hyper(data))
    sample = posterior.draw(rng=np.random.default_rng(0))
    rows = space.sample_rows(5, rng=np.random.default_rng(1))
    for image in space.group.images(rows):
        np.testing.assert_allclose(sample.path(image), sample.path(rows), atol=1e-8)
    assert posterior.predict(rows)[1].shape == (5,)


def test_the_bridge_holds_for_symmetric_draws(space: Space) -> None:
    posterior = posterior_of(space, Model())
    encoding, native = Encoding(space), Encoding(space, native=True)
    native = encoding if native.labels == encoding.labels else native
    sample = posterior.draw(rng=np.random.default_rng(3))
    draw = Draw(space, encoding, native, sample, np.zeros((0, len(space)), dtype=np.int64))
    for point in space.sample(12, rng=np.random.default_rng(1)):
        energy = draw.bqm.energy(draw.encode(point))
        np.testing.assert_allclose(energy, draw.value(point), rtol=1e-9, atol=1e-9)
