"""Every backend is held to the contract that ships with the package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mercbo_backends import Annealing, CpSat, Exhaustive, GraphCut
from mercbo_backends.base import Backend
from mercbo_backends.problem import Problem

from mercbo.arrays import Bits
from mercbo.testing import BackendContract, random_bqm


class TestGraphCut(BackendContract):
    @pytest.fixture
    def sampler(self) -> Any:
        return GraphCut()


class TestAnnealing(BackendContract):
    @pytest.fixture
    def sampler(self) -> Any:
        return Annealing()


class TestAnnealingWithoutDwave(BackendContract):
    """The same promises where dwave-samplers is not installed."""

    @pytest.fixture
    def sampler(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr("mercbo_backends.annealing.SimulatedAnnealingSampler", None)
        return Annealing()


class TestCpSat(BackendContract):
    @pytest.fixture
    def sampler(self) -> Any:
        return CpSat()


class TestExhaustive(BackendContract):
    @pytest.fixture
    def sampler(self) -> Any:
        return Exhaustive()


class TestGraphCutByOrTools(BackendContract):
    """The same results where PyMaxflow is not installed."""

    @pytest.fixture
    def sampler(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr("mercbo_backends.cuts.maxflow", None)
        return GraphCut()


class Zeros(Backend):
    """A backend without settings of its own, and so without a limit of its time."""

    def solve(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        assert (settings, deadline, seed) == ({}, np.inf, None)
        return np.zeros((1, problem.width), dtype=np.int8), {}


def test_a_backend_need_not_have_settings() -> None:
    bqm = random_bqm(4, 0)
    assert Zeros().sample(bqm).first.energy == pytest.approx(bqm.offset)
    assert Zeros().sample_form(np.ones(3), np.zeros((3, 3))).tolist() == [[0, 0, 0]]
