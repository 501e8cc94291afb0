"""Small spaces of every kind, on which laws are tested point by point."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import settings

from mercbo import Binary, Categorical, Integer, Ordinal, Space
from mercbo.encoding import Encoding
from mercbo.inference import Data
from mercbo.kernel import Kernel

# Timings are no test: examples may take as long as they need on a busy machine. What lands is held
# to the same examples each time; new ones are looked for wherever else the tests run.
settings.register_profile("mercbo", deadline=None, print_blob=True)
settings.register_profile("gate", parent=settings.get_profile("mercbo"), derandomize=True)
settings.load_profile("gate" if os.environ.get("CI") else "mercbo")

SMALL = {
    "binary": Space.binary(5),
    "categorical": Space(
        {"a": Categorical("xyz"[i] for i in range(3)), "b": Categorical([1, 2, 3, 4])}
    ),
    "ordinal": Space({"a": Ordinal([1, 5, 9]), "b": Integer(0, 4)}),
    "coded": Space(
        {
            "a": Categorical(list("ACGT"), encoding="binary"),
            "b": Categorical(list("uvw"), encoding="binary"),
            "c": Binary(),
        }
    ),
    "coded with long products": Space(
        {
            "a": Categorical(range(7), encoding="binary"),
            "b": Categorical(range(6), encoding="binary"),
        }
    ),
    "mixed": Space(
        {
            "base": Categorical(["A", "C", "G"]),
            "heat": Ordinal([20, 40, 80]),
            "wash": Binary(),
            "code": Categorical(list("pqrst"), encoding="binary"),
            "only": Categorical(["one"]),
        }
    ),
    "one variable": Space({"x": Categorical(["a", "b", "c", None])}),
    "one point": Space({"x": Categorical(["a"]), "y": Integer(3, 3)}),
}

# A shell that starts the tests in the background has them ignore interrupts, which some tests send.
ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if ignored and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """One time for all events, so that equal runs have equal records."""
    monkeypatch.setattr("mercbo.record.events.utc_now", lambda: "2026-01-01T00:00:00.000+00:00")


@pytest.fixture(params=SMALL, ids=list(SMALL))
def small_space(request: pytest.FixtureRequest) -> Space:
    return SMALL[request.param]


@pytest.fixture
def mixed() -> Space:
    return SMALL["mixed"]


@pytest.fixture
def make_data():
    """`make_data(space, N, seed)`: random rows with random standardised results."""

    def make(space: Space, size: int, seed: int = 0) -> Data:
        rng = np.random.default_rng(seed)
        rows = space.sample_rows(size, rng=rng)
        return Data(Kernel(Encoding(space)), rows, rng.standard_normal(size))

    return make


@pytest.fixture
def random_beta():
    """`random_beta(kernel, seed)`: a beta for each factor, over the range that matters."""

    def make(kernel: Kernel, seed: int = 0) -> np.ndarray:
        return np.random.default_rng(seed).uniform(0.05, 1.5, kernel.n)

    return make
