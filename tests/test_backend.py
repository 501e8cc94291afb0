"""How names become samplers and how any dimod sampler is called."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
from mercbo_backends import GraphCut

from mercbo import BackendError, Optimizer, Space, backend


def test_registered_names_resolve_to_samplers() -> None:
    for name in ("graph-cut", "annealing"):
        assert name in backend.names()
        assert isinstance(backend.resolve(name), dimod.Sampler)


def test_an_unknown_name_lists_the_known_and_offers_the_closest() -> None:
    with pytest.raises(BackendError, match=r"'graphcut' is not one of .* did you mean 'graph-cut'"):
        Optimizer(Space.binary(2), backend="graphcut")


@pytest.mark.parametrize("wrong", [3, False, object()])
def test_what_is_not_a_sampler_is_refused(wrong: object) -> None:
    with pytest.raises(BackendError, match="neither a name"):
        Optimizer(Space.binary(2), backend=wrong)


def test_a_sampler_of_constrained_models_only_serves_too() -> None:
    opt = Optimizer(Space.binary(4), backend=dimod.ExactCQMSolver(), seed=0, n_initial=2)
    for _ in range(8):
        point = opt.ask()
        opt.tell(point, sum(point.values()))
    assert opt.best.value == 0.0


def test_a_class_in_place_of_a_sampler_is_named() -> None:
    with pytest.raises(BackendError, match="ExactSolver is a class; pass an instance"):
        Optimizer(Space.binary(2), backend=dimod.ExactSolver)


def test_a_sampler_may_answer_with_more_variables_than_asked() -> None:
    class Wordy(dimod.ExactSolver):
        def sample(self, bqm):
            return dimod.append_variables(super().sample(bqm), {"spare": 0})

    opt = Optimizer(Space.binary(3), backend=Wordy(), seed=0)
    opt.tell([[0, 1, 0]], [1.0])
    assert len(opt.ask(6)) == 6


def test_a_backend_whose_solver_is_missing_says_what_to_install(monkeypatch) -> None:
    class Missing:
        name = "graph-cut"

        def load(self) -> None:
            raise ImportError("GraphCut needs PyMaxflow: pip install PyMaxflow")

    monkeypatch.setattr(backend, "entry_points", lambda group: [Missing()])  # noqa: ARG005
    with pytest.raises(BackendError, match="pip install PyMaxflow"):
        backend.resolve("graph-cut")


class Recorder(dimod.RandomSampler):
    """Keeps the keywords that it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[dict[str, object]] = []

    def sample(self, bqm, *, seed=None, **kwargs):
        self.calls.append({"seed": seed, **kwargs})
        return super().sample(bqm, num_reads=4, seed=seed)


def test_a_sampler_that_takes_a_seed_gets_one_below_2_to_31() -> None:
    recorder = Recorder()
    bqm = dimod.BinaryQuadraticModel({0: 1.0}, {}, 0.0, "BINARY")
    for seed in range(20):
        backend.solve(recorder, bqm, rng=np.random.default_rng(seed))
    seeds = [call["seed"] for call in recorder.calls]
    assert len(set(seeds)) == 20
    assert all(isinstance(s, int) and 0 <= s < 2**31 for s in seeds)


def test_a_sampler_without_a_seed_gets_none() -> None:
    bqm = dimod.BinaryQuadraticModel({0: 1.0}, {}, 0.0, "BINARY")
    found = backend.solve(dimod.ExactSolver(), bqm, rng=np.random.default_rng(0))
    assert found.first.energy == 0.0


@pytest.mark.parametrize("sampler", [dimod.ExactSolver(), dimod.RandomSampler()])
def test_any_dimod_sampler_serves_as_backend(sampler: dimod.Sampler) -> None:
    opt = Optimizer(Space.binary(6), backend=sampler, seed=0)
    for _ in range(18):
        point = opt.ask()
        opt.tell(point, sum(point.values()))
    assert opt.best.value == 0.0


class Counting:
    """Mixed into one of our backends, it counts the calls of a method of its own."""

    calls = 0


class OwnSample(Counting, GraphCut):
    def sample(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.calls += 1
        return super().sample(*args, **kwargs)


class OwnSolve(Counting, GraphCut):
    def solve(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        self.calls += 1
        return super().solve(*args, **kwargs)


@pytest.mark.parametrize("kind", [OwnSample, OwnSolve])
def test_what_a_subclass_of_ours_does_itself_is_not_passed_by(kind: type[Counting]) -> None:
    """Arrays are a short cut of an ask's; a subclass that watches or changes what is solved must
    still be asked, and the suggestion is the same."""
    points = []
    for sampler in (kind(), GraphCut()):
        opt = Optimizer(Space.binary(6), backend=sampler, seed=0, n_initial=4)
        for point in opt.ask(4):
            opt.tell(point, sum(point.values()))
        points.append(opt.ask())
        if isinstance(sampler, Counting):
            assert sampler.calls == 1
    assert points[0] == points[1]


def test_ours_take_arrays_and_others_need_not() -> None:
    assert backend.takes_forms(GraphCut())
    assert not backend.takes_forms(OwnSample())
    assert not backend.takes_forms(dimod.ExactSolver())
