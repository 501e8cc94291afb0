"""ask(fixed=...): some variables held at given values, for one call."""

import re

import pytest
from support.kinds import linear_score
from support.optimizer import MIXED, as_tuples, make, plain, reloaded, run
from support.states import without_batches

from mercbo import (
    AllDifferent,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Implies,
    Integer,
    Model,
    PointError,
    Space,
    SpaceExhausted,
    Where,
)

pytestmark = pytest.mark.usefixtures("poor_fits")

EXACT = ["cp-sat", "exhaustive"]
LAB = Space(
    {
        "solvent": Categorical(["THF", "DMF", "water"]),
        "base": Categorical(["NaH", "LDA", "none"], encoding="binary"),
        "heat": Integer(1, 4),
        "wash": Binary(),
        "dry": Binary(),
    },
    [
        Forbid({"solvent": "water", "base": ["NaH", "LDA"]}),
        Implies({"wash": 1}, {"dry": 1}),
    ],
)


@pytest.mark.parametrize(
    "backend", ["graph-cut", *(pytest.param(b, marks=pytest.mark.slow) for b in EXACT)]
)
@pytest.mark.parametrize("before", [0, 4])
@pytest.mark.parametrize(
    "fixed", [{"solvent": "THF"}, {"base": "LDA", "heat": 3}, {"solvent": "water", "wash": 1}]
)
def test_all_that_is_asked_for_has_the_fixed_values(fixed, before, backend):
    opt = make(LAB, backend=backend)
    known = as_tuples(run(opt, before))
    asked = opt.ask(3, fixed=fixed)
    assert all(point[name] == value for point in asked for name, value in fixed.items())
    assert [LAB.broken(point) for point in asked] == [[]] * 3
    assert len(set(as_tuples(asked))) == 3
    assert not set(as_tuples(asked)) & set(known)
    assert opt.pending == asked


@pytest.mark.parametrize("model", [plain(order=3), plain(refine=False), Model()], ids=str)
def test_every_model_takes_fixed_values(model):
    opt = make(LAB, model=model)
    run(opt, 4)
    assert {p["solvent"] for p in opt.ask(3, fixed={"solvent": "DMF"})} == {"DMF"}


def test_fixed_values_hold_for_one_call_only():
    opt = make(MIXED)
    run(opt, 4)
    asked = opt.ask(2, fixed={"base": "A"})
    rest = opt.ask(MIXED.size - 6)
    assert {p["base"] for p in asked} == {"A"}
    assert {p["base"] for p in rest} >= {"C", "G", "T", "U"}


@pytest.mark.parametrize("before", [0, 5])
def test_an_empty_dict_fixes_nothing(before):
    one, other = make(LAB), make(LAB)
    for opt in (one, other):
        run(opt, before)
    assert one.ask(4, fixed={}) == other.ask(4)
    assert one.to_dict() == other.to_dict()


def test_one_point_asked_for_with_fixed_values_is_a_dict():
    assert make(LAB).ask(fixed={"heat": 2})["heat"] == 2


def test_ask_k_gives_what_k_asks_would_with_fixed_values():
    batch, single = make(LAB), make(LAB)
    for opt in (batch, single):
        run(opt, 5)
    wanted = [single.ask(fixed={"heat": 2}) for _ in range(4)]
    assert batch.ask(4, fixed={"heat": 2}) == wanted
    assert without_batches(batch) == without_batches(single)


def test_everything_may_be_fixed():
    point = {"solvent": "THF", "base": "none", "heat": 1, "wash": 0, "dry": 1}
    for before in (0, 5):
        opt = make(LAB)
        opt.tell({**point, "dry": 0}, 1.0)
        run(opt, before)
        assert opt.ask(fixed=point) == point
        with pytest.raises(SpaceExhausted, match="1 asked for, 0 left") as caught:
            opt.ask(fixed=point)
        assert caught.value.left == 0


def test_what_is_left_is_counted_with_the_fixed_values():
    opt = make(LAB)
    run(opt, 5)
    fixed = {"solvent": "water", "heat": 4}  # base none, and three of wash and dry
    left = 3 - sum(o.point["solvent"] == "water" and o.point["heat"] == 4 for o in opt.observations)
    before = opt.to_dict()
    message = re.escape(f"{left + 1} asked for, {left} left")
    with pytest.raises(SpaceExhausted, match=message) as caught:
        opt.ask(left + 1, fixed=fixed)
    assert caught.value.left == left
    assert "fixed=" in str(caught.value)
    assert opt.to_dict() == before
    assert len(opt.ask(left, fixed=fixed)) == left
    opt.ask(5)  # elsewhere there is more


def odd_heat(point: dict) -> bool:
    return point["heat"] % 2 == 1


SEATS = [f"seat{i}" for i in range(3)]


@pytest.mark.parametrize(
    ("space", "fixed", "named"),
    [
        (LAB, {"solvent": "water", "base": "NaH"}, repr(LAB.constraints[0])),
        (LAB, {"wash": 1, "dry": 0, "heat": 2}, repr(LAB.constraints[1])),
        (
            Space({s: Categorical(["x", "y", "z"]) for s in SEATS},
                  [AllDifferent(SEATS)]),
            {"seat0": "x", "seat2": "x"},
            repr(AllDifferent(SEATS)),
        ),
        (
            Space({f"x{i}": Binary() for i in range(5)}, [Exactly(2, [f"x{i}" for i in range(5)])]),
            {"x0": 1, "x1": 1, "x2": 1},
            repr(Exactly(2, [f"x{i}" for i in range(5)])),
        ),
        (
            Space({"s": Categorical(["THF", "DMF"]), "b": Binary()}, [Forbid({"s": "THF"})]),
            {"s": "THF"},
            "Forbid({'s': 'THF'})",
        ),
        (
            Space({"heat": Integer(1, 4), "b": Binary()}, [Where(odd_heat)]),
            {"heat": 2},
            "Where('odd_heat')",
        ),
        (
            Space.table([{"a": i, "b": i % 3} for i in range(9)], constraints=[Forbid({"b": 1})]),
            {"b": 1},
            "Forbid({'b': 1})",
        ),
        (
            Space.table([{"a": i, "b": i % 3} for i in range(9)], constraints=[Forbid({"b": 1})]),
            {"a": 3, "b": 2},
            "no row of the table has these values",
        ),
    ],
)  # fmt: skip
def test_fixed_values_against_constraints_are_refused_by_name(space, fixed, named):
    opt = make(space)
    before = opt.to_dict()
    with pytest.raises(PointError, match=re.escape(named)) as caught:
        opt.ask(fixed=fixed)
    assert str(caught.value).startswith(f"fixed={fixed}")
    assert opt.to_dict() == before


def test_only_the_constraints_in_the_way_are_named():
    with pytest.raises(PointError) as caught:
        make(LAB).ask(fixed={"wash": 1, "dry": 0})
    assert "Forbid" not in str(caught.value)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"solvant": "THF"}, "fixed: unknown variable 'solvant'; did you mean 'solvent'?"),
        ({"SOLVENT": "THF"}, "fixed: unknown variable 'SOLVENT'; did you mean 'solvent'?"),
        ({"solvent": "thf"}, "'solvent': 'thf' is not one of"),
        ({"solvent": ["THF", "DMF"]}, "'solvent': a list came, one value was wanted"),
        ({"heat": 9}, "'heat': 9 is not a whole number from 1 to 4"),
        ({3: 4}, "fixed: unknown variable 3"),
        ([], "fixed must be a dict of name: value, got []"),
        ("THF", "fixed must be a dict of name: value, got 'THF'"),
        ({"heat": 2, "solvent": "?"}, "'solvent': '?'"),
    ],
)
def test_what_cannot_be_fixed_is_refused_and_changes_nothing(fixed, message):
    opt = make(LAB)
    before = opt.to_dict()
    with pytest.raises(PointError, match=re.escape(message)):
        opt.ask(2, fixed=fixed)
    assert opt.to_dict() == before


def test_fixed_values_go_through_a_file(tmp_path):
    opt, twin = make(LAB), make(LAB)
    for step in range(7):
        twin = reloaded(twin, tmp_path)
        fixed = {"solvent": "THF"} if step % 2 else None
        point = opt.ask(fixed=fixed)
        assert twin.ask(fixed=fixed) == point
        for each in (opt, twin):
            each.tell(point, linear_score(LAB, point))
    assert twin.to_dict() == opt.to_dict()
