"""Save and load, to_dict and from_dict."""

import copy
import json

import dimod
import numpy as np
import pytest
from support.optimizer import INFERENCES, MIXED, Wrapped, make, plain, reloaded, run, score, told

from mercbo import Model, Optimizer, StateError

pytestmark = pytest.mark.usefixtures("poor_fits")

# -- save and load -----------------------------------------------------------------------------


def test_everything_survives_a_file(tmp_path):
    opt = make(direction="maximize", model=Model(inference="hmc", order=1), seed=2**100)
    opt.tell(MIXED.points(MIXED.enumerate_rows()[:2]), [0.1 + 0.2, 1e-300])
    opt.tell(MIXED.points(MIXED.enumerate_rows()[5:7]), [None, None])
    opt.ask(2)
    back = reloaded(opt, tmp_path)
    assert back.to_dict() == opt.to_dict()
    assert back.space == opt.space
    assert back.model == opt.model
    assert back.observations == opt.observations
    assert back.pending == opt.pending
    assert back.failed == opt.failed
    assert back.best == opt.best
    assert repr(back) == repr(opt)


@pytest.mark.parametrize("inference", INFERENCES)
def test_a_loaded_run_suggests_what_the_saved_one_would_have(inference, tmp_path):
    opt = make(n_initial=2, model=plain(inference=inference))

    def check() -> None:
        back = reloaded(opt, tmp_path)
        assert back.to_dict() == opt.to_dict()
        assert back.ask(2) == copy.deepcopy(opt).ask(2)

    check()  # nothing has happened
    for number in range(2):
        asked = opt.ask(2)
        check()  # right after an ask, with points pending
        opt.tell(asked[0], score(MIXED, asked[0]))
        check()  # right after a tell
        opt.tell(asked[1], None if number % 2 else 3.0)
        check()  # after a failure
        opt.ask()
        check()  # with one that stays pending
        opt.predict(asked)
        opt.draw()
        check()  # after a look at the model


def test_a_run_reloaded_at_every_step_is_the_same_run(tmp_path):
    opt = make(model=Model())
    straight = run(make(model=Model()), 8)
    asked = []
    for _ in range(8):
        opt = reloaded(opt, tmp_path)
        asked.append(opt.ask())
        opt = reloaded(opt, tmp_path)
        opt.tell(asked[-1], score(MIXED, asked[-1]))
    assert asked == straight


def test_predictions_survive_a_file(tmp_path):
    opt = make(n_initial=2, model=Model())
    run(opt, 6)
    every = MIXED.points(MIXED.enumerate_rows())
    back = reloaded(opt, tmp_path)
    assert np.array_equal(back.predict(every).mean, opt.predict(every).mean)
    assert np.array_equal(back.predict(every).std, opt.predict(every).std)


def test_a_run_with_a_sampler_object_asks_for_it_again(tmp_path):
    opt = make(backend=dimod.ExactSolver(), n_initial=2)
    run(opt, 3)
    opt.save(tmp_path / "run.json")
    with pytest.raises(StateError, match=r"run\.json.*pass it again: backend="):
        Optimizer.load(tmp_path / "run.json")
    back = Optimizer.load(tmp_path / "run.json", backend=dimod.ExactSolver())
    assert back.ask(2) == opt.ask(2)


def test_a_loaded_run_may_change_its_backend(tmp_path):
    opt = make(n_initial=2)
    run(opt, 3)
    solver = Wrapped()
    reloaded(opt, tmp_path, backend=solver).ask()
    assert solver.calls == 1


def test_a_saved_file_is_readable_json_with_the_points_in_the_users_words(tmp_path):
    opt = make()
    opt.tell({"base": "G", "heat": None, "wash": 1, "fixed": "k"}, 1.5)
    opt.save(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert data["points"] == [{"base": "G", "heat": None, "wash": 1, "fixed": "k"}]
    assert data["values"] == [1.5]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The text of a file with a result, a fit and all else."""
    opt = make(n_initial=1)
    run(opt, 2)
    path = tmp_path_factory.mktemp("saved") / "run.json"
    opt.save(path)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", sorted(make().to_dict()))
def test_a_file_without_one_of_its_entries_is_refused(entry, saved, tmp_path):
    data = json.loads(saved)
    del data[entry]
    (tmp_path / "run.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(StateError, match=r"run\.json"):
        Optimizer.load(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("space", {}),
        ("space", None),
        ("direction", "sideways"),
        ("model", {"order": 0}),
        ("model", {"colour": "red"}),
        ("model", None),
        ("n_initial", 0),
        ("entropy", "abc"),
        ("asked", "many"),
        ("points", [{"base": "A"}]),
        ("values", [1.0]),
        ("values", ["a", "b"]),
        ("failed", 3),
        ("pending", [{"base": "X"}]),
        ("fit", {"hypers": 3}),
    ],
)
def test_a_file_with_a_wrong_entry_is_refused(entry, wrong, saved, tmp_path):
    data = json.loads(saved)
    data[entry] = wrong
    (tmp_path / "run.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(StateError, match=r"run\.json"):
        Optimizer.load(tmp_path / "run.json")


@pytest.mark.parametrize(
    "change",
    [
        {"entropy": None},
        {"asked": -1},
        {"fit": {"hypers": [], "seen": 3, "cold": 3}},
        {"fit": {"hypers": [{"beta": [1.0], "amplitude": 1.0, "noise": 0.1, "mean": 0.0}],
                 "seen": 3, "cold": 3}},
        {"values": [1.0]},
        {"direction": "sideways"},
    ],
)  # fmt: skip
def test_a_state_that_was_edited_by_hand_is_refused(change):
    opt = told(MIXED, [1.0, 2.0, 4.0, 3.0])
    with pytest.raises(StateError):
        Optimizer.from_dict({**opt.to_dict(), **change})
    with pytest.raises(StateError, match="space: expected an entry, found none"):
        Optimizer.from_dict({})
    with pytest.raises(StateError, match="expected an object, got None"):
        Optimizer.from_dict(None)
