"""Draws as text and back: nothing is lost, and other readers read it."""

from __future__ import annotations

from pathlib import Path

import dimod
import numpy as np
import pytest
from dimod.serialization import coo

from mercbo import AtMost, Categorical, Exactly, Optimizer, PointError, SettingError, Space
from mercbo.interchange import FORMATS, decode, dumps, loads, read, write
from mercbo.quadratic import Draw

BOUND = Space(
    {
        "base": Categorical(["A", None, 2.5, True]),
        "code": Categorical(list("pqrst"), encoding="binary"),
        "x": Categorical([0, 1, 2]),
    },
    [AtMost(1, [("base", "A"), ("x", 2)])],
)


def draw_of(space: Space, results: int = 5) -> Draw:
    opt = Optimizer(space, seed=0)
    for number in range(results):
        opt.tell(opt.ask(), float(number % 3))
    return opt.draw()


@pytest.fixture(scope="module", params=["binary", "bound"])
def draw(request: pytest.FixtureRequest) -> Draw:
    return draw_of(Space.binary(5) if request.param == "binary" else BOUND)


@pytest.mark.parametrize("format", ["coo", "qubo", "json"])
def test_a_binary_model_comes_back_to_the_last_bit(draw: Draw, format: str) -> None:
    again = loads(dumps(draw, format), format)
    assert list(again.variables) == list(draw.bqm.variables)
    assert again == draw.bqm


def test_a_constrained_model_comes_back_with_its_labels_and_rules(draw: Draw) -> None:
    again = loads(dumps(draw, "lp"), "lp")
    assert set(again.variables) == set(draw.cqm.variables)
    assert len(again.constraints) == len(draw.cqm.constraints)
    rng = np.random.default_rng(0)
    for point in draw.space.sample(8, rng=rng):
        sample = {label: draw.encode(point)[label] for label in draw.cqm.variables}
        assert again.objective.energy(sample) == pytest.approx(draw.value(point), rel=1e-9)
        ours, theirs = (
            sorted(c.lhs.energy(sample) - c.rhs for c in cqm.constraints.values())
            for cqm in (draw.cqm, again)
        )
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_dimods_own_reader_reads_coordinates(draw: Draw) -> None:
    bqm = coo.loads(dumps(draw, "coo"))
    numbered, _ = draw.bqm.relabel_variables_as_integers(inplace=False)
    numbered.offset = 0.0  # it has no offset
    assert bqm.is_almost_equal(numbered, places=12)


def test_a_qubo_file_counts_what_it_holds() -> None:
    draw = draw_of(Space.binary(4))
    head, *lines = [line for line in dumps(draw, "qubo").splitlines() if not line.startswith("c")]
    nodes, couplers = int(head.split()[4]), int(head.split()[5])
    assert head.split()[:3] == ["p", "qubo", "0"]
    assert len(lines) == nodes + couplers == 4 + 6


def test_an_answer_becomes_a_point(draw: Draw) -> None:
    best = dimod.ExactSolver().sample(loads(dumps(draw, "json"), "json")).first
    bits = [best.sample[label] for label in draw.bqm.variables]
    point = decode(draw, bits)
    assert point is not None
    assert draw.value(point) == pytest.approx(best.energy)
    with pytest.raises(PointError, match="3 bits came, the model has"):
        decode(draw, [0, 1, 0])


def test_a_sample_by_labels_is_sent_to_the_draw() -> None:
    draw = draw_of(Space.binary(3))
    found = dimod.ExactSolver().sample(draw.bqm)
    # of as many bits as the model has, and of others
    for came in (found, found.first, found.first.sample, found.record.sample, "010", 3, None):
        match = (
            rf"bits: {type(came).__name__} came, a row of 3 zeros and ones .* draw\.decode takes"
        )
        with pytest.raises(PointError, match=match):
            decode(draw, came)  # type: ignore[arg-type]
    bits = [found.first.sample[label] for label in draw.bqm.variables]
    assert draw.decode(found.first.sample) == decode(draw, bits) == decode(draw, np.array(bits))


def test_what_is_no_draw_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    draw = draw_of(Space.binary(3))
    match = "draw: BinaryQuadraticModel came, a Draw was wanted"
    for format in FORMATS:
        with pytest.raises(SettingError, match=match):
            write(draw.bqm, tmp_path / f"z.{format}")
        with pytest.raises(SettingError, match=match):
            decode(draw.bqm, [0, 1, 0], format=format)
    assert not list(tmp_path.iterdir())


def test_bits_without_a_meaning_are_no_point() -> None:
    draw = draw_of(BOUND)
    assert decode(draw, [0] * len(draw.bqm.variables)) is None
    assert decode(draw, [1] * len(draw.cqm.variables), format="lp") is None


@pytest.mark.parametrize("format", FORMATS)
def test_files_are_known_by_their_ends(tmp_path: Path, format: str) -> None:
    draw = draw_of(Space.binary(4))
    path = tmp_path / f"draw.{format}"
    write(draw, path)
    assert set(read(path).variables) == {(f"x{i}", 1) for i in range(4)}


def test_other_ends_and_formats_are_refused(tmp_path: Path) -> None:
    draw = draw_of(Space.binary(3))
    with pytest.raises(SettingError, match=r"'draw.mps' ends with none of .coo"):
        write(draw, "draw.mps")
    with pytest.raises(SettingError, match="format='mps' is not one of"):
        dumps(draw, "mps")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("text", "format", "complaint"), [
    ("0 1", "coo", "'0 1' is not a line 'i j bias'"),
    ("0 x 1.0", "coo", "'0 x 1.0' is not a line"),
    ("0 0 1.0", "qubo", "one line 'p qubo 0 nodes"),
    ("{", "json", "not a QUBO in JSON"),
    ("[1]", "json", "not a QUBO in JSON"),
    ('{"labels": [], "linear": [1], "quadratic": [], "offset": 0}', "json", "not a QUBO in JSON"),
])  # fmt: skip
def test_what_is_not_of_the_format_is_quoted(text: str, format: str, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        loads(text, format)


def test_files_of_others_have_numbers_for_labels() -> None:
    bqm = loads("0 0 1.5\n0 2 -1e-3\n", "coo")
    assert bqm == dimod.BinaryQuadraticModel({0: 1.5, 1: 0.0, 2: 0.0}, {(0, 2): -1e-3}, 0, "BINARY")
    assert loads("p qubo 0 3 1 0\n2 2 4.0\n", "qubo").num_variables == 3


def test_slack_bits_of_limits_survive() -> None:
    draw = draw_of(Space(dict(Space.binary(6).variables), [Exactly(2, ["x0", "x1", "x2", "x3"])]))
    assert loads(dumps(draw, "qubo"), "qubo") == draw.bqm
