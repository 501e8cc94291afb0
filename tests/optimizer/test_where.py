"""Predicates: honoured everywhere, named by save, wanted again by load."""

import re
import warnings

import pytest
from support.kinds import KINDS, VARIABLES, allowed, constrained, even, exercise, linear_score
from support.optimizer import as_tuples, make

from mercbo import (
    Binary,
    Integer,
    NoneFound,
    Optimizer,
    Space,
    SpaceError,
    SpaceExhausted,
    StateError,
    Where,
)
from mercbo.domain import feasible

pytestmark = pytest.mark.usefixtures("poor_fits")


def ordered(point: dict) -> bool:
    return point["a"] <= point["b"]


TWO = Space(VARIABLES, [Where(even), Where(ordered, name="in order")])


def saved(opt: Optimizer, folder) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opt.save(folder / "run.json")
    return folder / "run.json"


def test_a_solver_sees_nothing_of_predicates_and_they_hold_all_the_same():
    opt = make(TWO)
    asked = exercise(opt, 6) + opt.ask(3, fixed={"s": "y"})
    assert all(even(p) and ordered(p) for p in asked)
    assert len(set(as_tuples(asked))) == 15


def test_retries_repeats_and_corrections_keep_to_predicates():
    opt = make(constrained("where"), repeats="allow")
    points = allowed("where")[:6]
    opt.tell(points, [1.0, 2.0, 3.0, None, None, 4.0])
    opt.retry(points[3])
    opt.forget(points[0])
    asked = opt.ask(6)
    assert asked[0] == points[3]
    assert all(even(p) for p in asked)


def test_save_warns_and_names_the_predicates(tmp_path):
    with pytest.warns(UserWarning, match=r"does not hold the predicate 'even'; load it with where"):
        make(constrained("where")).save(tmp_path / "run.json")
    with pytest.warns(UserWarning, match=r"predicates 'even', 'in order'") as caught:
        make(TWO).save(tmp_path / "run.json")
    assert "where={'even': ..., 'in order': ...}" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("where", "mixed")])
def test_save_says_nothing_where_there_is_no_predicate(kind, tmp_path):
    make(constrained(kind)).save(tmp_path / "run.json")  # a warning would be an error


def test_load_without_a_predicate_says_what_to_pass(tmp_path):
    path = saved(make(TWO), tmp_path)
    for given, missing in ((None, "even"), ({"even": even}, "in order")):
        wanted = f"run.json: the predicate {missing!r} is not in the file; pass it again: where="
        with pytest.raises(StateError, match=re.escape(wanted)):
            Optimizer.load(path, where=given)


def test_load_with_an_unknown_predicate_says_which_there_are(tmp_path):
    path = saved(make(constrained("where")), tmp_path)
    with pytest.raises(StateError, match=r"no predicate is named 'evn'.*\['even'\].*did you mean"):
        Optimizer.load(path, where={"even": even, "evn": even})


@pytest.mark.slow
def test_a_loaded_run_goes_on_as_before(tmp_path):
    straight, broken = make(TWO), make(TWO)
    where = {"even": even, "in order": ordered}
    for number in range(8):
        broken = Optimizer.load(saved(broken, tmp_path), where=where)
        point = straight.ask()
        assert broken.ask() == point
        for opt in (straight, broken):
            opt.tell(point, None if number == 3 else linear_score(TWO, point))
    assert straight.to_dict() == broken.to_dict()


def test_a_file_whose_points_break_the_predicate_is_refused(tmp_path):
    opt = make(constrained("where"))
    opt.tell(allowed("where")[0], 1.0)
    path = saved(opt, tmp_path)
    with pytest.raises(StateError, match=r"breaks Where\('even'\)"):
        Optimizer.load(path, where={"even": lambda p: not even(p)})


@pytest.mark.parametrize("before", [0, 4])
def test_a_predicate_that_fails_says_where_and_changes_nothing(before):
    broken = []

    def fussy(point: dict) -> bool:
        if broken:
            raise ValueError("no such reactor")  # from a backend, that would be a refusal
        return point["n"] != 2

    space = Space({"n": Integer(0, 40), **{f"x{i}": Binary() for i in range(12)}}, [Where(fussy)])
    opt = make(space, n_initial=3)
    for _ in range(before):
        point = opt.ask()
        opt.tell(point, linear_score(space, point))
    state = opt.to_dict()
    broken.append(True)
    failed = r"Where\('fussy'\) failed at .*no such reactor"
    with pytest.raises(SpaceError, match=failed) as caught:
        opt.ask(2)
    assert isinstance(caught.value.__cause__, ValueError)
    assert opt.to_dict() == state
    broken.clear()
    assert all(p["n"] != 2 for p in opt.ask(3))


def test_a_search_that_ends_without_proof_says_so(monkeypatch):
    """No solver sees predicates: in a space too large to list, finding none proves nothing. A loop
    that goes on until no point is left ends there all the same."""
    monkeypatch.setattr(feasible, "LONG_PATIENCE", 500)
    bits = {f"x{i}": Binary() for i in range(30)}
    rare = Where(lambda p: all(p[f"x{i}"] for i in range(25)), name="rare")
    opt = Optimizer(Space(bits, [rare]), seed=0)
    before = opt.to_dict()
    with pytest.raises(
        NoneFound, match=r"long search met no other point .*Where\('rare'\)"
    ) as error:
        opt.ask()
    assert isinstance(error.value, SpaceError)
    assert isinstance(error.value, SpaceExhausted)
    assert error.value.left == 0
    assert opt.to_dict() == before
