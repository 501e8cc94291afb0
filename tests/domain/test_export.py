"""Levels as affine functions of bits, and the constraints that tie them together."""

import dimod
import numpy as np
import pytest
from hypothesis import assume, given, settings
from support.constrained import all_points, constrained_spaces

from mercbo import AllDifferent, AtMost, Binary, Categorical, Forbid, Integer, Linear, Space
from mercbo.domain.export import Levels, binary_model, constrained_model, exclude
from mercbo.encoding import Encoding

SPACE = Space(
    {
        "a": Categorical(list("uvwxyz"), encoding="binary"),
        "free": Categorical(list("pqr"), encoding="binary"),
        "b": Categorical(["u", "v", None]),
        "c": Binary(),
        "s": Integer(4, 4),
    },
    [
        AllDifferent(["a", "b"]),
        Linear({"c": 2, "s": 1, ("a", "w"): -1}, "<=", 5.5),
        Forbid({"b": "v"}),
        AtMost(1, ["c", ("a", "z")]),
    ],
)


def bits_and_links(levels: Levels, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([levels.encoding.to_bits(rows), levels.value_bits(rows)], axis=1)


def model_of(levels: Levels) -> dimod.ConstrainedQuadraticModel:
    width = levels.encoding.width
    labels = levels.encoding.labels
    objective = binary_model(np.zeros(width), np.zeros((width, width)), 0.0, labels)
    return constrained_model(levels, objective, ())


@pytest.mark.parametrize("native", [False, True])
@settings(max_examples=30)
@given(pair=constrained_spaces(points=100))
def test_levels_are_affine_in_the_bits(native, pair):
    space, meaning = pair
    levels = Levels(space.region, Encoding(space, native=native))
    points = all_points(space.variables)
    rows = space.rows(points)
    states = bits_and_links(levels, rows)
    origin, slope = levels.affine
    hot = origin + states @ slope
    linked = {position for position, _, _ in levels.linked}
    for position, variable in enumerate(space.variables.values()):
        group = space.region.groups[position]
        coded = variable.encoding == "binary" and variable.size > 2 and not native
        if coded and position not in linked:
            continue  # nothing speaks of its values
        np.testing.assert_array_equal(hot[:, group], np.eye(variable.size)[rows[:, position]])
    assert levels.limits.satisfied(states).tolist() == [meaning(p) for p in points]
    assert len(levels.names) == len(levels.limits) == len(set(levels.names))


def test_only_coded_variables_that_constraints_name_get_value_bits():
    levels = Levels(SPACE.region, Encoding(SPACE))
    assert levels.labels[levels.encoding.width :] == tuple(("a", f"is {v!r}") for v in "uvwxyz")
    native = Levels(SPACE.region, Encoding(SPACE, native=True))
    assert native.linked == []
    assert native.labels == native.encoding.labels


def test_a_closed_value_of_a_coded_variable_links_it():
    space = Space({"a": Categorical(list("uvw"), encoding="binary")}, [Forbid({"a": "v"})])
    levels = Levels(space.region, Encoding(space))
    assert [position for position, _, _ in levels.linked] == [0]
    assert levels.limits.satisfied(bits_and_links(levels, space.enumerate_rows())).all()
    assert not levels.limits.satisfied(bits_and_links(levels, np.array([[1]])))


def test_constraints_of_the_model_say_what_they_are_about():
    labels = set(model_of(Levels(SPACE.region, Encoding(SPACE))).constraints)
    assert {"one value of 'b'", "one value of 'a'", "values of 'b'", "bit 2 of 'a'"} <= labels
    assert any("Linear({'c': 2.0, 's': 1.0" in label for label in labels)


def test_names_that_look_like_quoted_ones_are_told_apart():
    space = Space(
        {"x": Categorical(list("uvw"), encoding="binary"), "'x'": Categorical(list("uvw"))},
        [AllDifferent(["x", "'x'"])],
    )
    assert model_of(Levels(space.region, Encoding(space)))


@settings(max_examples=30)
@given(constrained_spaces(points=40, most=2))
def test_excluded_states_are_the_only_ones_that_go(pair):
    space, meaning = pair
    levels = Levels(space.region, Encoding(space, native=True))
    assume(levels.encoding.width)
    cqm = model_of(levels)
    points = all_points(space.variables)
    rows = space.rows(points)
    states = levels.encoding.to_bits(rows)
    exclude(cqm, levels.encoding.labels, states[::2])
    found = dimod.SampleSet.from_samples_cqm(
        (states, list(levels.labels)), cqm, rtol=0.0, atol=1e-12
    )
    assert found.record.is_feasible.tolist() == [
        meaning(p) and i % 2 == 1 for i, p in enumerate(points)
    ]


def test_a_constraint_is_written_once_for_all_its_rows(monkeypatch):
    """A thousand forbidden pairs would otherwise be written a million times."""
    pairs = [{f"x{i}": 1, f"x{j}": 1} for i in range(8) for j in range(i)]
    space = Space({f"x{i}": Binary() for i in range(8)}, [Forbid(pairs)])
    written = []
    monkeypatch.setattr(Forbid, "__repr__", lambda _: written.append(1) or "Forbid")
    levels = space.feasible.levels(Encoding(space))
    assert len(levels.names) == len(levels.limits) == len(pairs)
    assert len(written) == 1


def test_levels_are_made_once_for_each_layout_whoever_asks():
    space = Space.binary(3)
    levels, native = (space.feasible.levels(Encoding(space, native=n)) for n in (False, True))
    assert space.feasible.levels(Encoding(space)) is levels
    assert space.feasible.levels(Encoding(space, native=True)) is native
    assert levels is not native
