"""Every backend is held to the contract that ships with the package."""

from __future__ import annotations

from typing import Any

import pytest
from mercbo_backends import Annealing, CpSat, Exhaustive, GraphCut

from mercbo.testing import BackendContract


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
