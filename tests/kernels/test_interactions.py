"""Draws with some interactions only: as sparse as stated, and still exact draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.moments import exact_moments

from mercbo import Binary, Categorical, Model, Optimizer, Ordinal, SettingError, Space
from mercbo.encoding import Encoding
from mercbo.features import mercer, mercer_terms, single
from mercbo.inference import Data, Hyper
from mercbo.kernels.interactions import between_variables, checked
from mercbo.posterior import Posterior

SPACES = {
    "binary": (Space.binary(4), "chain"),
    "mixed": (
        Space({"a": Categorical(range(3)), "b": Ordinal(range(3)), "c": Binary()}),
        [("a", "c")],
    ),
    "coded": (
        Space({"a": Categorical(range(3), encoding="binary"), "b": Binary(), "c": Binary()}),
        [["b", "c"]],
    ),
}


@pytest.fixture(params=SPACES.values(), ids=list(SPACES))
def case(request: pytest.FixtureRequest) -> tuple[Space, object]:
    return request.param


def state(data: Data) -> Hyper:
    beta = np.random.default_rng(1).uniform(0.1, 0.8, data.kernel.n)
    return Hyper(beta, amplitude=1.7, noise=0.05, mean=0.3)


def kept_features(data: Data, hyper: Hyper, allowed: np.ndarray, rows: np.ndarray):
    """Phi of what is kept, and the prior variances of hierarchical weights, written out."""
    kernel, w = data.kernel, data.kernel.weights(hyper.beta)
    phi = mercer(single(kernel, w, rows), kernel.factor_of, 2)
    variable = kernel.variable_of
    terms = [term for part in mercer_terms(kernel.factor_of, 2) for term in part]
    kept = [
        len(t) < 2 or variable[t[0]] == variable[t[1]] or allowed[variable[t[0]], variable[t[1]]]
        for t in terms
    ]
    upsilon = np.array([np.prod(hyper.beta[kernel.factor_of[t]]) for t in terms])
    scale = hyper.amplitude * np.exp(kernel.log_scale(w))
    return np.sqrt(scale) * phi[:, kept], upsilon[kept]


@pytest.mark.parametrize("posterior", ["truncated", "projected"])
@pytest.mark.parametrize("weights", ["identity", "hierarchical"])
def test_law_3_the_kept_terms_have_their_exact_posterior(
    case, posterior: str, weights: str, make_data
) -> None:
    space, stated = case
    data = make_data(space, 7)
    hyper, rows = state(data), space.enumerate_rows()
    model = Model(posterior=posterior, weights=weights, interactions=stated, refine=False)
    mean, cov = exact_moments(lambda rng: Posterior(model, data, hyper).draw(rng=rng).value(rows))
    allowed = between_variables(model.interactions, tuple(space.variables))
    at_rows, upsilon = kept_features(data, hyper, allowed, rows)
    at_data, _ = kept_features(data, hyper, allowed, data.rows)
    if weights == "identity":
        upsilon = np.ones_like(upsilon)
    observed = (at_data * upsilon) @ at_data.T
    if posterior == "projected":
        full = data.kernel.gram(data.kernel.log_tables(hyper.beta), data.rows, data.hot)
        observed = observed + hyper.amplitude * full - at_data @ at_data.T
    cross = (at_rows * upsilon) @ at_data.T
    gain = cross @ np.linalg.inv(observed + hyper.noise * np.eye(len(data)))
    np.testing.assert_allclose(mean, hyper.mean + gain @ (data.y - hyper.mean), atol=1e-8)
    np.testing.assert_allclose(cov, (at_rows * upsilon) @ at_rows.T - gain @ cross.T, atol=1e-8)


def told(space: Space, model: Model, size: int = 12) -> Optimizer:
    opt = Optimizer(space, model=model, n_initial=1, seed=0)
    points = space.sample(size, rng=np.random.default_rng(0))
    opt.tell(points, np.random.default_rng(1).standard_normal(size))
    return opt


def test_law_2_and_the_bqm_has_no_other_pair(case) -> None:
    space, stated = case
    draw = told(space, Model(interactions=stated)).draw()
    for point in space.points(space.enumerate_rows()):
        energy = draw.bqm.energy(draw.encode(point))
        assert energy == pytest.approx(draw.value(point), rel=1e-9, abs=1e-9)
    names = list(space.variables)
    allowed = between_variables(Model(interactions=stated).interactions, names)
    for (first, _), (second, _) in draw.bqm.quadratic:
        i, j = names.index(first), names.index(second)
        assert i == j or allowed[i, j]
    between = {(names.index(a), names.index(b)) for (a, _), (b, _) in draw.bqm.quadratic if a != b}
    assert {(i, j) for i, j in zip(*np.nonzero(allowed), strict=True) if i < j} == {
        (min(p), max(p)) for p in between
    }


def test_a_chain_of_bits_has_as_many_couplings_as_links() -> None:
    draw = told(Space.binary(30), Model(interactions="chain"), size=20).draw()
    assert len(draw.bqm.quadratic) == 29


def test_refinement_keeps_what_the_data_say_of_the_other_pairs() -> None:
    """y is the product of the ends of a chain, which no draw's problem may hold."""
    space = Space.binary(4)
    rows = space.enumerate_rows()
    y = (1.0 - 2.0 * rows[:, 0]) * (1.0 - 2.0 * rows[:, 3])
    opt = Optimizer(space, model=Model(interactions="chain"), n_initial=1, seed=0)
    opt.tell(space.points(rows), y)
    sample = opt.draw().sample
    assert np.corrcoef(sample.path(rows), y)[0, 1] > 0.99
    assert np.corrcoef(sample.value(rows), y)[0, 1] < 0.5


def test_all_pairs_stated_are_all_pairs(make_data) -> None:
    space = Space.binary(4)
    data = make_data(space, 7)
    hyper, rows = state(data), space.enumerate_rows()
    for posterior in ("truncated", "projected"):
        plain = Posterior(Model(posterior=posterior), data, hyper)
        stated = Model(posterior=posterior, interactions=[list(space.variables)])
        one, other = (
            p.draw(rng=np.random.default_rng(3)).value(rows)
            for p in (plain, Posterior(stated, data, hyper))
        )
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_they_are_saved_and_loaded(tmp_path) -> None:
    space = Space.binary(4)
    opt = told(space, Model(interactions=[["x0", "x2", "x3"], ("x1", "x2")]))
    opt.save(tmp_path / "run.json")
    again = Optimizer.load(tmp_path / "run.json")
    assert again.model == opt.model
    assert again.ask(2) == opt.ask(2)
    json.dumps(opt.model.to_dict())


def test_the_edges_of_a_graph_are_a_statement() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.cycle_graph(["x0", "x1", "x2", "x3"])
    assert len(told(Space.binary(4), Model(interactions=graph.edges)).draw().bqm.quadratic) == 4


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("chains", "must be 'chain' or a list of groups"),
        (3, "must be 'chain' or a list of groups"),
        (["x0"], "'x0' is no group"),
        ([["x0"]], r"\['x0'\] is not two names"),
        ([["x0", 1]], "is not two names"),
        ([["x0", "x0"]], "a name comes twice"),
    ],
)
def test_what_is_no_statement_is_refused(given: object, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        Model(interactions=given)


def test_unknown_names_and_other_orders_are_refused() -> None:
    with pytest.raises(SettingError, match="unknown variable 'x9'"):
        Optimizer(Space.binary(3), model=Model(interactions=[["x0", "x9"]]))
    with pytest.raises(SettingError, match="order=3"):
        Model(order=3, interactions="chain")


def test_native_and_coded_layouts_hold_the_same_pairs() -> None:
    space, stated = SPACES["coded"]
    draw = told(space, Model(interactions=stated)).draw()
    rows = space.enumerate_rows()
    native = draw.native_form.energy(Encoding(space, native=True).to_bits(rows).astype(float))
    np.testing.assert_allclose(native, draw.sample.value(rows), atol=1e-9)
    assert checked(None) is None
