"""The adapters for Leap, on samplers with the signatures of dwave-system that solve here, and on a
recorded answer: the service itself is not called."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import dimod
import pytest
from mercbo_backends import LeapBqm, LeapCqm

from mercbo import Categorical, Exactly, Optimizer, Space

SPACE = Space(
    {"base": Categorical(["A", "C", "G"]), **Space.binary(4).variables},
    [Exactly(2, ["x0", "x1", "x2", "x3"])],
)


class HybridBqm:
    """`LeapHybridSampler.sample(bqm, time_limit=None, **kwargs)`, answering later."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def sample(self, bqm: Any, time_limit: Any = None, **kwargs: Any) -> dimod.SampleSet:
        assert all(isinstance(label, int) for label in bqm.variables)
        self.calls.append({"time_limit": time_limit, **kwargs})
        return dimod.SampleSet.from_future(
            bqm, lambda bqm: dimod.ExactSolver().sample(bqm).truncate(3)
        )


class HybridCqm(HybridBqm):
    """`LeapHybridCQMSampler.sample_cqm(cqm, time_limit=None, **kwargs)`: infeasible samples too."""

    def sample_cqm(self, cqm: Any, time_limit: Any = None, **kwargs: Any) -> dimod.SampleSet:
        assert all(isinstance(label, int) for label in cqm.variables)
        self.calls.append({"time_limit": time_limit, **kwargs})
        return dimod.ExactCQMSolver().sample_cqm(cqm).truncate(40)


def play(backend: Any) -> Optimizer:
    opt = Optimizer(SPACE, backend=backend, acquisition="thompson", n_initial=4, seed=0)
    for _ in range(6):
        point = opt.ask()
        opt.tell(point, point["x1"] + (point["base"] != "G"))
    return opt


@pytest.mark.parametrize(("adapter", "service"), [(LeapBqm, HybridBqm), (LeapCqm, HybridCqm)])
def test_a_run_goes_through_the_service_with_its_settings(adapter: Any, service: Any) -> None:
    cloud = service()
    opt = play(adapter(cloud, time_limit=5))
    assert len(opt.observations) == 6
    assert cloud.calls == [{"time_limit": 5, "label": "mercbo"}] * 2


def test_settings_of_one_call_take_precedence() -> None:
    cloud = HybridBqm()
    bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -1.0}, {"ab": 2.0}, 0.0, "BINARY")
    found = LeapBqm(cloud, time_limit=5, title="mine").sample(bqm, time_limit=9)
    assert found.first.sample == {"a": 0, "b": 1}
    assert cloud.calls == [{"time_limit": 9, "label": "mine"}]


def test_a_recorded_answer_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a service sent once, as dimod writes sample sets, gives the same suggestion."""
    recorded: list[str] = []

    class Recording(HybridBqm):
        def sample(self, bqm: Any, **_: Any) -> dimod.SampleSet:
            found = dimod.ExactSolver().sample(bqm).truncate(5)
            recorded.append(json.dumps(found.to_serializable()))
            return found

    class Replaying(HybridBqm):
        def sample(self, *_: Any, **__: Any) -> dimod.SampleSet:
            return dimod.SampleSet.from_serializable(json.loads(recorded.pop(0)))

    first = play(LeapBqm(Recording()))
    assert len(recorded) == 2
    monkeypatch.setattr(dimod.ExactSolver, "sample", None)  # nothing is solved any more
    assert play(LeapBqm(Replaying())).observations == first.observations


def test_an_error_of_the_service_comes_at_the_call() -> None:
    class Down(HybridBqm):
        def sample(self, bqm: Any, **_: Any) -> dimod.SampleSet:
            def fail(_: Any) -> Any:
                raise ConnectionError("the solver is offline")

            return dimod.SampleSet.from_future(bqm, fail)

    opt = Optimizer(SPACE, backend=LeapBqm(Down()), n_initial=1, seed=0)
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(ConnectionError, match="offline"):
        opt.ask()
    assert not opt.pending


def test_nothing_is_contacted_before_the_first_call_and_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['dwave.system'] = None\n"
        "from mercbo_backends import LeapCqm\n"
        "backend = LeapCqm(time_limit=5); print('made'); backend.sampler"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "made\n"
    assert "pip install dwave-system" in done.stderr
