"""Law 6, and laws 5 and 6 over random histories."""

import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.optimizer import (
    INFERENCES,
    MIXED,
    all_points,
    as_tuples,
    make,
    plain,
    reloaded,
    run,
    score,
    told,
)

from mercbo import (
    Binary,
    Categorical,
    Integer,
    Model,
    Observation,
    Optimizer,
    Ordinal,
    Space,
    SpaceExhausted,
)

# -- law 6: the same seed and history give the same suggestions ---------------------------------


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    first = run(make(seed=5, model=Model()), 8)
    assert run(make(seed=5, model=Model()), 8) == first
    assert run(make(seed=6, model=Model()), 8) != first


def test_without_a_seed_runs_differ():
    space = Space.binary(100)
    assert make(space, seed=None).ask() != make(space, seed=None).ask()


def test_large_seeds_work():
    assert run(make(seed=2**200), 4) == run(make(seed=2**200), 4)
    assert make(seed=np.uint64(3)).ask() == make(seed=3).ask()


def look(opt: Optimizer) -> None:
    """Everything that may be looked at."""
    every = opt.space.points(opt.space.enumerate_rows())
    opt.draw()
    opt.draw(rng=np.random.default_rng(9)).value(every[0])
    if opt.observations:
        opt.predict(every)
    _ = (opt.pending, opt.failed, repr(opt))


@pytest.mark.parametrize("inference", INFERENCES)
def test_looking_leaves_no_trace(inference):
    """Not in the suggestions nor in what is saved, also among the initial points."""
    blind, looking = (make(n_initial=4, model=plain(inference=inference)) for _ in range(2))
    for _ in range(7):
        look(looking)
        asked = blind.ask()
        assert looking.ask() == asked
        assert looking.to_dict() == blind.to_dict()
        blind.tell(asked, score(MIXED, asked))
        looking.tell(asked, score(MIXED, asked))


@pytest.mark.parametrize(
    ("inference", "backend"),
    [
        ("map", "graph-cut"),
        ("map", "annealing"),
        pytest.param("hmc", "graph-cut", marks=pytest.mark.slow),
        pytest.param("slice", "annealing", marks=pytest.mark.slow),
    ],
)
def test_looking_does_not_change_the_suggestions(inference, backend):
    space = Space({**MIXED.variables, "n": Integer(0, 4), "d": Categorical(["u", "v", "w"])})
    options = {"n_initial": 5, "model": plain(inference=inference), "backend": backend}
    looking, asked = make(space, **options), []
    for _ in range(8):
        look(looking)
        asked += run(looking, 1)
    assert asked == run(make(space, **options), 8)


def test_looking_does_not_change_the_state():
    opt = told(MIXED, [1.0, 2.0, 4.0, 3.0])
    before = copy.deepcopy(opt.to_dict())
    opt.predict(MIXED.points(MIXED.enumerate_rows()))
    _ = opt.draw().bqm
    assert opt.to_dict() == before


def test_looking_before_a_retried_point_is_asked_for_leaves_no_trace():
    """A retry comes without the model, whether or not there is one already."""
    blind, looking = (told(MIXED, [1.0, 2.0, 4.0, None]) for _ in range(2))
    look(looking)
    for opt in (blind, looking):
        opt.retry(opt.failed)
        opt.ask()
    assert looking.to_dict() == blind.to_dict()


CHILD = """
import json, sys
sys.path.insert(0, {tests!r})
from mercbo import Model, Optimizer
from support import optimizer as t
opt = t.make(seed=11, model=Model(inference={inference!r}))
asked = t.run(opt, 6)
opt.tell(opt.ask(), None)
print(json.dumps(asked + opt.ask(3)))
"""


def in_another_process(code: str, hash_seed: str) -> list[dict]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("inference", ["map", pytest.param("slice", marks=pytest.mark.slow)])
def test_another_process_gives_the_same_suggestions(inference):
    code = CHILD.format(tests=str(Path(__file__).parents[1]), inference=inference)
    opt = make(seed=11, model=Model(inference=inference))
    here = run(opt, 6)
    opt.tell(opt.ask(), None)
    here += opt.ask(3)
    assert in_another_process(code, "1") == here


@pytest.mark.slow
def test_another_process_goes_on_from_a_file(tmp_path):
    opt = make(seed=11, model=Model())
    run(opt, 6)
    opt.ask(2)
    opt.save(tmp_path / "run.json")
    code = (
        "import json; from mercbo import Optimizer;"
        f"print(json.dumps(Optimizer.load({str(tmp_path / 'run.json')!r}).ask(3)))"
    )
    assert in_another_process(code, "2") == opt.ask(3)


# -- laws 5 and 6 over random histories --------------------------------------------------------

SMALL_VARIABLES = st.one_of(
    st.just(Binary()),
    st.builds(
        lambda k, encoding: Categorical(list("abcde"[:k]), encoding=encoding),
        st.integers(1, 5),
        st.sampled_from(["one-hot", "binary"]),
    ),
    st.builds(lambda k: Ordinal([None, 0.5, "high"][:k]), st.integers(1, 3)),
    st.builds(lambda k: Integer(-1, k), st.integers(-1, 2)),
)
SMALL_SPACES = st.lists(SMALL_VARIABLES, min_size=1, max_size=3).map(
    lambda found: Space({f"v{i}": v for i, v in enumerate(found)})
)
RESULTS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6))
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 4)),
    st.tuples(st.just("round"), RESULTS),
    st.tuples(st.just("tell"), st.integers(0, 100), RESULTS),
    st.tuples(st.just("fail"), st.integers(0, 100)),
    st.tuples(st.just("prior"), st.integers(0, 10**6), RESULTS),
    st.tuples(st.just("again"), st.integers(0, 100), RESULTS),
    st.tuples(st.just("look")),
    st.tuples(st.just("reload")),
)


class History:
    """An optimizer beside the plainest account of what happened to it."""

    def __init__(self, opt: Optimizer, folder: Path) -> None:
        self.opt, self.folder = opt, folder
        self.observations: list[Observation] = []
        self.failed: list[dict] = []
        self.pending: list[dict] = []

    @property
    def seen(self) -> set[tuple]:
        return set(as_tuples([o.point for o in self.observations] + self.failed + self.pending))

    def ask(self, k: int) -> None:
        seen, before = self.seen, self.opt.to_dict()
        left = self.opt.space.size - len(seen)
        if k > left:
            with pytest.raises(SpaceExhausted) as caught:
                self.opt.ask(k)
            assert caught.value.left == left
            assert self.opt.to_dict() == before
            return
        asked = self.opt.ask(k)
        found = as_tuples(asked)
        assert len(set(found)) == k
        assert not set(found) & seen
        assert set(found) <= all_points(self.opt.space)
        self.pending += asked

    def record(self, point: dict, value: float | None) -> None:
        self.opt.tell(point, value)
        self.pending = [p for p in self.pending if p != point]
        if value is None:
            self.failed = [*self.failed, point] if point not in self.failed else self.failed
        else:
            self.failed = [p for p in self.failed if p != point]
            self.observations.append(Observation(point, value))

    def tell(self, which: int, value: float | None) -> None:
        if self.pending:
            self.record(self.pending[which % len(self.pending)], value)

    def round(self, value: float) -> None:
        self.ask(1)
        self.tell(-1, value)

    def fail(self, which: int) -> None:
        self.tell(which, None)

    def prior(self, which: int, value: float) -> None:
        rows = self.opt.space.enumerate_rows()
        self.record(self.opt.space.points(rows[[which % len(rows)]])[0], value)

    def again(self, which: int, value: float) -> None:
        told = self.failed + [o.point for o in self.observations]
        if told:
            self.record(told[which % len(told)], value)

    def look(self) -> None:
        self.opt.draw()
        if self.observations:
            self.opt.predict(self.observations[0].point)

    def reload(self) -> None:
        self.opt = reloaded(self.opt, self.folder)

    def check(self) -> None:
        assert self.opt.observations == self.observations
        assert self.opt.failed == self.failed
        assert self.opt.pending == self.pending


@pytest.mark.slow
@given(
    space=SMALL_SPACES,
    steps=st.lists(STEPS, min_size=4, max_size=16),
    n_initial=st.integers(1, 4),
    inference=st.sampled_from(["map", "hmc"]),
    direction=st.sampled_from(["minimize", "maximize"]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_laws_five_and_six_hold_over_any_history(space, steps, n_initial, inference, direction):
    """Law 5 after each step; and the same steps without looks and reloads ask the same (law 6)."""
    options = {
        "n_initial": n_initial,
        "model": plain(inference=inference),
        "direction": direction,
    }
    with tempfile.TemporaryDirectory() as folder:
        full = History(make(space, **options), Path(folder))
        bare = History(make(space, **options), Path(folder))
        for name, *arguments in steps:
            getattr(full, name)(*arguments)
            full.check()
            if name not in ("look", "reload"):
                getattr(bare, name)(*arguments)
            assert bare.pending == full.pending
