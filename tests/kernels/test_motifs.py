"""Motifs: a term of the kernel for stretches of letters, with the laws of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.laws import check_paths, check_quadratic_form
from support.moments import exact_moments
from support.neighbours import check_neighbours

from mercbo import AllDifferent, Binary, Categorical, Integer, Model, Optimizer, Ordinal, Space
from mercbo.asking.trust import Trust
from mercbo.encoding import Encoding
from mercbo.features import mercer, single
from mercbo.fitting.kinds import MOTIFS as MOTIFS_KIND
from mercbo.fitting.kinds import STRANDS
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.motifs import Motifs, MotifTerm
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.reading import FEWEST, MOST, Reading, agreements
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior

MOTIFS = Motifs(amplitude=0.8, contrast=0.6)


def sequence(letters: int, length: int) -> dict[str, Categorical]:
    return {f"place{i}": Categorical(range(letters)) for i in range(length)}


SPACES = {
    "binary": Space.binary(7),
    "letters": Space(sequence(3, 6)),
    "both strands": Space({f"base{i}": Categorical(list("ACGT")) for i in range(6)}),
    "both strands in several orders": Space(
        {f"base{i}": Categorical(list(order)) for i, order in enumerate(["ACGT", "TCAG"] * 3)}
    ),
    "a sequence among others": Space(
        {"before": Integer(0, 2), **sequence(2, 6), "behind": Categorical(["x", "y", "z"])}
    ),
}


@pytest.fixture(params=SPACES, ids=list(SPACES))
def space(request: pytest.FixtureRequest) -> Space:
    return SPACES[request.param]


@pytest.fixture(
    params=[{}, {"windows": Windows(0.8, 2.5, 0.4), "pooling": Pooling(0.7, 0.4)}],
    ids=["alone", "with windows and pooling"],
)
def state(request: pytest.FixtureRequest, space: Space, make_data) -> tuple[Data, Hyper]:
    data = make_data(space, 9)
    beta = np.random.default_rng(1).uniform(0.1, 0.8, data.kernel.n)
    reading = Reading.of(data.kernel)
    strands = 1 if reading is None or reading.opposite is None else 2
    motifs = replace(MOTIFS, strands=strands)
    return data, Hyper(beta, 1.7, 0.05, 0.3, motifs=motifs, **request.param)


def kernel_of(space: Space) -> Kernel:
    return Kernel(Encoding(space))


def reading_of(space: Space) -> Reading:
    found = Reading.of(kernel_of(space))
    assert found is not None
    return found


# -- what is read ------------------------------------------------------------------------------


def test_the_longest_row_of_neighbours_with_the_same_letters_is_read() -> None:
    short, long = sequence(3, 6), {f"base{i}": Categorical(list("ACGT")) for i in range(8)}
    found = reading_of(Space({**short, "heat": Integer(1, 5), **long}))
    assert found.variables.tolist() == list(range(7, 15))
    assert (found.size, found.letters, found.starts, found.codes) == (4, 4, 5, 256)
    # neighbours stand side by side, and no other variable between them
    apart = list(sequence(2, 8).items())
    broken = Space(dict([*apart[:4], ("heat", Integer(1, 5)), *apart[4:]]))
    assert Reading.of(kernel_of(broken)) is None


def test_what_is_short_long_ordered_or_coded_is_not_read() -> None:
    assert Reading.of(kernel_of(Space.binary(FEWEST - 1))) is None
    assert Reading.of(kernel_of(Space.binary(MOST + 1))) is None
    for kind in (Ordinal(["a", "b", "c"]), Integer(1, 4), Categorical(range(4), encoding="binary")):
        assert Reading.of(kernel_of(Space({f"v{i}": kind for i in range(8)}))) is None


def test_a_large_alphabet_is_read_in_shorter_stretches() -> None:
    assert [reading_of(Space(sequence(k, 8))).letters for k in (5, 6, 10, 11, 32)] == [
        4,
        3,
        3,
        2,
        2,
    ]
    assert Reading.of(kernel_of(Space(sequence(33, 8)))) is None


def test_what_cannot_be_read_hides_nothing_that_can() -> None:
    bases = {f"base{i}": Categorical(list("ACGT")) for i in range(8)}
    for more in (
        Space.binary(MOST + 1).variables,
        Space.binary(20).variables,  # which could be, but letters go first
        {f"w{i}": Categorical(range(33)) for i in range(20)},
    ):
        assert reading_of(Space({**more, **bases})).size == 4


def test_a_kernel_is_read_once() -> None:
    first, second = (kernel_of(Space.binary(7)) for _ in range(2))
    assert Reading.of(first) is Reading.of(first)
    assert Reading.of(first) is not Reading.of(second)


# -- the covariance ----------------------------------------------------------------------------


def by_hand(term: MotifTerm, x: np.ndarray, other: np.ndarray) -> float:
    """P of the module's docstring, term by term."""
    reading, letters = term.reading, term.reading.letters
    x, other = x[reading.variables], other[reading.variables]
    strands = [other]
    if term.motifs.strands == 2:
        strands.append(reading.opposite[other[::-1]])
    return float(
        sum(
            np.prod(np.where(x[s : s + letters] == strand[q : q + letters], 1.0, term.t))
            for strand in strands
            for s in range(reading.starts)
            for q in range(reading.starts)
        )
    )


@pytest.mark.parametrize(
    ("values", "strands"),
    [
        (range(2), 1),
        (range(3), 1),
        ("GATC", 2),
        ("ACGT", 1),
        (range(5), 1),
        (range(7), 1),
        (range(17), 1),
    ],
)
def test_it_is_the_sum_over_all_pairs_of_stretches(values, strands: int) -> None:
    """With 7 letters in stretches of three, with 17 of two."""
    letters = {f"place{i}": Categorical(list(values)) for i in range(8)}
    space = Space({"before": Binary(), **letters})
    kernel = kernel_of(space)
    term = MotifTerm(kernel, Motifs(0.8, 0.6, strands))
    rows, others = (space.sample_rows(5, rng=np.random.default_rng(seed)) for seed in (0, 1))
    wanted = [
        [
            0.8
            * by_hand(term, x, other)
            / np.sqrt(by_hand(term, x, x) * by_hand(term, other, other))
            for other in others
        ]
        for x in rows
    ]
    np.testing.assert_allclose(term.gram(rows, kernel.onehot(others)), wanted, atol=1e-12)
    own = np.diag(term.gram(rows, kernel.onehot(rows)))
    np.testing.assert_allclose(own, term.diagonal(rows), atol=1e-12)
    kind = MOTIFS_KIND if strands == 1 else STRANDS
    data = Data(kernel, rows, np.zeros(5))
    fitted, _ = kind.added(data, np.zeros(kernel.n), np.log([0.8, 0.6]))
    np.testing.assert_allclose(fitted, term.gram(rows, kernel.onehot(rows)), atol=1e-12)


def test_where_a_motif_stands_does_not_matter() -> None:
    kernel = kernel_of(Space(sequence(4, 9)))
    there = np.array([[0, 1, 2, 3, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 1, 2, 3]])
    elsewhere = np.array([[0, 1, 2, 3, 0, 0, 0, 0, 0], [2, 1, 0, 3, 0, 0, 0, 0, 0]])
    gram = MotifTerm(kernel, Motifs(1.0, 3.0)).gram(elsewhere, kernel.onehot(there))
    assert (gram[0] > gram[1] + 0.05).all()  # one has the motif of both, the other of neither


def test_the_other_strand_reads_the_same() -> None:
    space = Space({f"base{i}": Categorical(list("ACGT")) for i in range(8)})
    kernel, points = kernel_of(space), [list("GGATTACA"), list("TGTAATCC"), list("ACATTAGG")]
    rows = space.rows(points)
    both, one = (MotifTerm(kernel, Motifs(1.0, 0.6, strands)) for strands in (2, 1))
    gram = both.gram(rows, kernel.onehot(rows))
    assert gram[0, 1] == pytest.approx(1.0)
    assert gram[0, 2] < 0.99
    assert one.gram(rows, kernel.onehot(rows))[0, 1] < 0.99
    assert reading_of(space).turned[reading_of(space).code(rows[:1])].tolist() == [
        reading_of(space).code(rows[1:2])[0, ::-1].tolist()
    ]


def test_only_dna_has_another_strand() -> None:
    assert reading_of(
        Space({f"b{i}": Categorical(list("TACG")) for i in range(8)})
    ).opposite.tolist() == [1, 0, 3, 2]
    for letters in ("ACGU", "ACG", "ACGTN"):
        space = Space({f"b{i}": Categorical(list(letters)) for i in range(8)})
        assert reading_of(space).opposite is None


def test_sequences_that_repeat_themselves_are_no_more_uncertain() -> None:
    """Points of one letter would have the largest variance by far."""
    space = Space(sequence(3, 8))
    term = MotifTerm(kernel_of(space), MOTIFS)
    one_letter, mixed = np.zeros((1, 8), dtype=int), np.array([[0, 1, 2, 2, 1, 0, 0, 2]])
    assert term.roots(one_letter)[0] > 1.5 * term.roots(mixed)[0]
    rows = np.concatenate([one_letter, mixed])
    own = np.diag(term.gram(rows, term.kernel.onehot(rows)))
    np.testing.assert_allclose(own, MOTIFS.amplitude)


def test_agreements_count_sets_of_places() -> None:
    reading = reading_of(Space(sequence(3, 6)))
    rows = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    # three stretches against three: of the other's, 4, 3 and 2 places agree
    found = agreements(reading, rows)[:, 0, 1]
    assert found.tolist() == [9.0, 3 * 9.0, 3 * (6 + 3 + 1.0), 3 * (4 + 1.0), 3.0]


# -- laws --------------------------------------------------------------------------------------


def test_law_1_its_features_are_its_kernel(space: Space) -> None:
    """What is of order <= 2, projected on the Mercer features, is what a draw has."""
    kernel, rows = kernel_of(space), space.enumerate_rows()
    strands = 1 if reading_of(space).opposite is None else 2
    hot, term = kernel.onehot(rows), MotifTerm(kernel, replace(MOTIFS, strands=strands))
    roots = term.roots(rows)
    phi = mercer(single(kernel, np.ones(kernel.features), rows), kernel.factor_of, 2)
    raw = term.gram(rows, hot) * np.outer(roots, roots)
    low = term.low_gram(rows, hot) * np.outer(roots, roots)
    # features are orthonormal over the space
    projected = phi @ (phi.T @ raw @ phi / len(rows) ** 2) @ phi.T
    np.testing.assert_allclose(low, projected, atol=1e-9)


def test_law_3_draws_have_the_moments_of_the_closed_form(state, space: Space) -> None:
    """In a draw's problem, motifs are divided by the root of a typical point."""
    data, hyper = state
    rows, drawn = space.enumerate_rows()[::31], Posterior(Model(refine=False), data, hyper)
    (term,) = drawn.motifs
    features = term.low_features(rows) / term.typical
    told = term.low_features(data.rows) / term.roots(data.rows)[:, np.newaxis]
    low = drawn._drawn(rows, data.hot, 1.0) + features @ told.T
    full = drawn._covariance(data.rows, data.hot) + hyper.noise * np.eye(len(data))
    gain = low @ np.linalg.inv(full)
    mean = hyper.mean + gain @ (data.y - hyper.mean)
    between = drawn._drawn(rows, data.kernel.onehot(rows), 1.0) + features @ features.T
    found = exact_moments(lambda rng: drawn.draw(rng=rng).value(rows))
    for moment, wanted in zip(found, (mean, between - gain @ low.T), strict=True):
        np.testing.assert_allclose(moment, wanted, atol=1e-9)


def test_paths_have_the_mean_of_the_process(state, space: Space) -> None:
    check_paths(*state, space.enumerate_rows()[::31])


def test_law_2_the_quadratic_form_is_the_drawn_function(state, space: Space) -> None:
    check_quadratic_form(*state, space)


def test_neighbours_are_as_if_each_were_looked_at(state, space: Space) -> None:
    data, hyper = state
    rows = space.sample_rows(4, rng=np.random.default_rng(3))
    check_neighbours(Posterior(Model(), data, hyper), rows)


def test_the_trust_region_knows_of_motifs(make_data) -> None:
    """A rugged function alone keeps draws near; where most of the variance is of stretches, a
    change of one letter leaves the others."""
    data = make_data(Space.binary(20), 20)
    beta = data.kernel.beta(np.full(20, 1.5))
    rugged = Hyper(beta, 1.0, 1e-3, 0.0)
    in_stretches = Hyper(beta, 0.05, 1e-3, 0.0, motifs=Motifs(1.0, 0.3))
    centre, away = np.ones(20, dtype=np.int64), np.ones((1, 20), dtype=np.int64)
    away[0, :4] = 0
    regions = [
        Trust.around(centre, [Posterior(Model(), data, hyper)]) for hyper in (rugged, in_stretches)
    ]
    near, far = (region is None or bool(region.holds(away)[0]) for region in regions)
    assert not near
    assert far


def test_a_draw_is_minimised_under_constraints() -> None:
    """Descents by pairs end with no row that has a pair left."""
    space = Space(sequence(4, 8), constraints=[AllDifferent([f"place{i}" for i in range(3)])])
    opt = Optimizer(space, seed=0, acquisition="thompson")
    rows = np.unique(space.sample_rows(25, rng=np.random.default_rng(0)), axis=0)
    opt.tell(space.points(rows), [light(row) for row in rows])
    asked = opt.ask(3)
    assert opt._model_of_now().fit.hypers[0].motifs is not None
    assert all(space.rows([point]) is not None for point in asked)
    assert len({tuple(point.values()) for point in asked}) == 3


# -- what it is for ----------------------------------------------------------------------------


def light(row: np.ndarray) -> float:
    """A protein on a sequence: the more of its motif stands somewhere, the longer it stays."""
    motif = np.array([2, 0, 3, 1])
    there = [(row[i : i + 4] == motif).sum() for i in range(len(row) - 3)]
    return -float(np.exp(1.2 * np.array(there)).sum())


@pytest.mark.slow
def test_it_finds_a_motif_with_fewer_evaluations() -> None:
    """30 evaluations, over four runs: 256 against 191 on average, of 258 at most."""
    space = Space(sequence(4, 10))

    def mean_best(model: Model) -> float:
        found = []
        for seed in range(4):
            opt = Optimizer(space, seed=seed, model=model)
            for _ in range(30):
                point = opt.ask()
                opt.tell(point, light(np.array(list(point.values()))))
            found.append(opt.best.value)
        return float(np.mean(found))

    assert mean_best(Model()) < mean_best(Model(motifs="none")) - 20.0
