"""Symmetries as users state them: what they mean, what is refused, and that they survive."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import numpy as np
import pytest

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    CyclicShift,
    Flip,
    Model,
    Optimizer,
    Ordinal,
    Permutation,
    PointError,
    Reversal,
    ReverseComplement,
    SettingError,
    Space,
    SpaceError,
    SpaceExhausted,
    Symmetry,
    Where,
)
from mercbo.arrays import key

BASES = {f"b{i}": Categorical(list("ACGT")) for i in range(4)}


def images(space: Space, point: list[object]) -> set[tuple[object, ...]]:
    rows = space.group.orbits(space.rows(point))
    return {tuple(found.values()) for found in space.points(rows)}


def test_the_other_strand() -> None:
    space = Space(BASES, symmetries=[ReverseComplement()])
    assert images(space, list("AACG")) == {tuple("AACG"), tuple("CGTT")}
    assert images(space, list("ACGT")) == {tuple("ACGT")}


def test_other_letters_of_some_positions() -> None:
    turned = ReverseComplement(["b1", "b3"], {"A": "C", "C": "A", "G": "G", "T": "T"})
    assert images(Space(BASES, symmetries=[turned]), list("AACG")) == {
        tuple("AACG"), tuple("AGCC"),
    }  # fmt: skip


def test_shifts_go_all_the_way_round() -> None:
    space = Space.binary(4, symmetries=[CyclicShift()])
    assert images(space, [1, 1, 0, 0]) == {(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1)}


def test_flips_reversal_and_alternating_flips_are_the_eight_of_a_sequence() -> None:
    stated = [Flip(), Reversal(), Flip(["x1", "x3", "x5"])]
    assert len(Space.binary(6, symmetries=stated).group) == 8


def test_slots_in_any_order() -> None:
    variables = {name: Categorical([1, 2, 3]) for name in ("a", "b", "c")}
    space = Space(variables, symmetries=[Permutation(["a", "b", "c"])])
    assert len(space.group) == 6
    assert len(images(space, [1, 2, 3])) == 6
    assert images(space, [1, 1, 2]) == {(1, 1, 2), (1, 2, 1), (2, 1, 1)}


def test_variables_of_a_slot_stay_together() -> None:
    variables = {name: Binary() for name in ("a1", "d1", "a2", "d2")}
    space = Space(variables, symmetries=[Permutation([["a1", "d1"], ["a2", "d2"]])])
    assert images(space, [1, 0, 1, 1]) == {(1, 0, 1, 1), (1, 1, 1, 0)}


def test_a_group_is_closed() -> None:
    space = Space.binary(5, symmetries=[CyclicShift(), Reversal(), Flip()])
    row = np.array([[1, 1, 0, 1, 0]])
    orbit = space.group.orbits(row)
    assert len(space.group) == 20
    np.testing.assert_array_equal(space.group.orbits(orbit), orbit)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ([Reversal(["x0", "x9"])], "unknown variable 'x9'"),
        ([Symmetry({"x0": "x1"})], "two variables take the value of 'x1'"),
        ([Symmetry(values={"x0": {0: 1, 1: 1}})], "one to one"),
        ([Symmetry(values={"x0": {0: 1}})], "one to one"),
        ([Permutation([f"x{i}" for i in range(5)])], "more than 64 elements"),
        (Flip(), "must be a list of symmetries"),
        (["flip"], "'flip' is not a symmetry"),
    ],
)
def test_what_is_no_symmetry_is_refused(stated: object, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        Space.binary(6, symmetries=stated)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variables", "stated", "said"),
    [
        ({"a": Binary(), "b": Categorical([0, 1, 2])}, Reversal(), "not alike"),
        (
            {"a": Categorical(list("xyz")), "b": Categorical(list("xyw"))},
            Reversal(),
            "say by values=",
        ),
        ({"a": Categorical(list("xyz"))}, Flip(), "has 3 values, 2 were wanted"),
        ({"a": Ordinal([1, 2, 3])}, Symmetry(values={"a": {1: 2, 2: 1, 3: 3}}), "keep the order"),
        (
            {"a": Categorical(list("wxyz"), encoding="binary")},
            Symmetry(values={"a": {"w": "x", "x": "y", "y": "w", "z": "z"}}),
            "keep the bits",
        ),
    ],
)
def test_variables_that_differ_are_refused(variables, stated, said: str) -> None:
    with pytest.raises(SpaceError, match=said):
        Space(variables, symmetries=[stated])


@pytest.mark.parametrize(
    "make", [lambda: Permutation(["a", ["b", "c"]]), lambda: Flip("ab"), lambda: Flip(["a", "a"]),
             lambda: Symmetry(["ab"]), lambda: Permutation("ab")],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(make) -> None:
    with pytest.raises(SpaceError, match="must be"):
        make()


def test_constraints_must_keep_to_the_symmetries() -> None:
    variables = {f"x{i}": Binary() for i in range(4)}
    Space(variables, [AtMost(2, list(variables))], symmetries=[Reversal()])
    with pytest.raises(SpaceError, match=r"AtMost\(1.*does not keep to the symmetries"):
        Space(variables, [AtMost(1, ["x0", "x1"])], symmetries=[Reversal()])
    odd = Where(lambda p: p["x0"] == 0, name="odd")
    with pytest.raises(SpaceError, match="does not keep to the symmetries"):
        Space(variables, [odd], symmetries=[Flip()])
    with pytest.raises(SpaceError, match="the table does not keep"):
        Space.table([{"a": "u", "b": "v"}, {"a": "v", "b": "v"}],
                    variables={"a": Categorical(list("uv")), "b": Categorical(list("uv"))},
                    symmetries=[Reversal()])  # fmt: skip


STATED = [
    [ReverseComplement()],
    [ReverseComplement(["b0", "b2"])],
    [CyclicShift(), Reversal(["b0", "b3"])],
    [Permutation([["b0", "b1"], ["b2", "b3"]])],
    [Symmetry({"b0": "b1", "b1": "b0"}, {"b2": {"A": "C", "C": "A", "G": "G", "T": "T"}})],
]


@pytest.mark.parametrize("stated", STATED)
def test_symmetries_survive_json_and_pickle(stated) -> None:
    space = Space(BASES, symmetries=stated)
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    assert pickle.loads(pickle.dumps(space)) == space
    assert space != Space(BASES)
    assert hash(space) == hash(Space(BASES, symmetries=stated))
    assert repr(stated[0]) in repr(space)


def test_spaces_without_symmetries_are_written_as_before() -> None:
    assert "symmetries" not in Space(BASES).to_dict()
    assert Space.from_dict(Space(BASES).to_dict()).symmetries == ()


@pytest.mark.parametrize("described", [{"kind": "spiral"}, {"kind": "flip", "of": 1}, "flip"])
def test_descriptions_of_no_symmetry_are_refused(described: object) -> None:
    data = {**Space(BASES).to_dict(), "symmetries": [described]}
    with pytest.raises(SpaceError):
        Space.from_dict(data)
    with pytest.raises(SpaceError, match="must be a list"):
        Space.from_dict({**data, "symmetries": described})


# -- the optimizer -----------------------------------------------------------------------------


def bumps(point: dict[str, int]) -> float:
    """Not changed by a flip of all bits."""
    spins = [2 * bit - 1 for bit in point.values()]
    return float(sum(a * b for a, b in pairwise(spins)))


@pytest.mark.parametrize("acquisition", ["ei", "thompson"])
def test_no_image_of_a_known_point_is_suggested(acquisition: str) -> None:
    """Of 16 points with a flip there are 8 to ask for, each once."""
    space = Space.binary(4, symmetries=[Flip()])
    opt = Optimizer(space, acquisition=acquisition, n_initial=3, seed=0)
    orbits = set()
    for number in range(8):
        point = opt.ask()
        orbits.add(frozenset(map(key, space.group.orbits(space.rows(point)))))
        if number % 3 == 2:
            continue  # stays pending
        opt.tell(point, None if number == 4 else bumps(point))
    assert len(orbits) == 8
    with pytest.raises(SpaceExhausted):
        opt.ask()


def test_a_batch_holds_one_image_of_a_point() -> None:
    space = Space.binary(4, symmetries=[Flip(), Reversal()])
    opt = Optimizer(space, seed=1, n_initial=3)
    first = opt.ask(3)
    opt.tell(first, [bumps(p) for p in first])
    batch = opt.ask(3)
    orbits = {key(space.group.orbits(space.rows(p))[0]) for p in [*first, *batch]}
    assert len(orbits) == 6
    with pytest.raises(SpaceExhausted):
        opt.ask(9)
    assert len(opt.pending) == 3


@pytest.mark.parametrize("fixed", [None, {"x0": 0}], ids=["whole", "fixed"])
def test_what_is_left_is_counted_without_images(fixed: dict[str, int] | None) -> None:
    """As many as `left` says can be asked for, on a space whose orbits have 1, 2 and 4 points."""
    space = Space.binary(4, symmetries=[Flip(), Reversal()])
    opt = Optimizer(space, seed=1, n_initial=2)
    opt.ask(2)
    with pytest.raises(SpaceExhausted, match=r"99 asked for, \d left") as caught:
        opt.ask(99, fixed=fixed)
    left = caught.value.left
    with pytest.raises(SpaceExhausted) as caught:
        opt.ask(left + 1, fixed=fixed)
    assert caught.value.left == left
    assert len(opt.ask(left, fixed=fixed)) == left
    with pytest.raises(SpaceExhausted) as caught:
        opt.ask(fixed=fixed)
    assert caught.value.left == 0


@pytest.mark.parametrize("value", [1.0, None], ids=["a result", "a failure"])
def test_the_image_of_a_pending_point_answers_for_it(value: float | None, tmp_path) -> None:
    pytest.importorskip("sqlalchemy")
    space = Space.binary(4, symmetries=[Flip()])
    url = f"sqlite:///{tmp_path / 'run.db'}"
    opt = Optimizer(space, seed=0, n_initial=3, storage=url)
    first, second, third = opt.ask(3)
    image = {name: 1 - bit for name, bit in first.items()}
    opt.tell([image, second], [value, 2.0])
    assert opt.pending == [third]
    assert len(opt.observations) + len(opt.failed) == 2
    # a run that is read back stands in the same place
    again = Optimizer.open(url)
    assert again.pending == [third]
    orbit = set(map(key, space.group.orbits(space.rows([first, second, third]))))
    asked = opt.ask(5)
    assert orbit.isdisjoint(map(key, space.rows(asked)))
    assert Optimizer.open(url).pending == [third, *asked]


def test_corrections_find_the_image_that_was_told() -> None:
    opt = Optimizer(Space.binary(4, symmetries=[Flip()]), seed=0)
    opt.tell([[0, 0, 0, 1], [0, 1, 0, 1]], [1.0, None])
    opt.amend([1, 1, 1, 0], 3.0)
    assert [(*o.point.values(), o.value) for o in opt.observations] == [(0, 0, 0, 1, 3.0)]
    opt.retry([[1, 0, 1, 0]])
    assert opt.failed == []
    assert tuple(opt.ask().values()) == (0, 1, 0, 1)
    opt.cancel([1, 0, 1, 0])
    assert opt.pending == []
    opt.forget([1, 1, 1, 0])
    assert opt.observations == []
    with pytest.raises(PointError, match="has no result to amend"):
        opt.amend([1, 1, 1, 0], 2.0)


def test_corrections_of_one_of_several_images_are_refused() -> None:
    opt = Optimizer(Space.binary(4, symmetries=[CyclicShift()]), seed=0)
    opt.tell([[0, 0, 0, 1], [0, 0, 1, 0]], [1.0, 2.0])
    with pytest.raises(PointError, match=r"has no result to amend.*any of its images.*name one"):
        opt.amend([0, 1, 0, 0], 3.0)
    opt.amend([0, 0, 1, 0], 3.0)  # told as it stands, so that it is the one meant
    assert [o.value for o in opt.observations] == [1.0, 3.0]


def test_predictions_are_equal_on_images_and_a_run_goes_on_from_a_file(tmp_path) -> None:
    space = Space.binary(5, symmetries=[Flip()])
    opt = Optimizer(space, seed=2)
    for point in space.sample(7, rng=np.random.default_rng(0)):
        opt.tell(point, bumps(point))
    points = space.sample(5, rng=np.random.default_rng(1))
    flipped = [{name: 1 - bit for name, bit in p.items()} for p in points]
    for here, there in zip(opt.predict(points), opt.predict(flipped), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-8)
    opt.save(tmp_path / "run.json")
    assert Optimizer.load(tmp_path / "run.json").ask() == opt.ask()


def test_what_does_not_know_symmetries_says_so() -> None:
    space = Space.binary(4, symmetries=[Flip()])
    with pytest.raises(SettingError, match="use 'auto', 'map' or 'hmc'"):
        Optimizer(space, model=Model.paper())
    opt = Optimizer(space, seed=0)
    opt.tell([0, 0, 1, 1], 1.0)
    with pytest.raises(SettingError, match="not explained"):
        opt.explain()
