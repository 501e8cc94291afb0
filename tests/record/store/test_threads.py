"""One optimizer used by several threads, while another process writes to the same store."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from support.optimizer import plain
from support.stored import asked_rows, log_of, stored, url_of

from mercbo import MercboError, Optimizer, Space

SPACE = Space.binary(12)
THREADS = 8


class Player:
    """A thread that calls public methods in a random order and notes what it told."""

    def __init__(self, opt: Optimizer, seed: int, steps: int) -> None:
        self.opt = opt
        self.rng = np.random.default_rng(seed)
        self.steps = steps
        self.mine: list[dict] = []
        self.told: list[float] = []
        self.asked: list[dict] = []
        self.failures = 0
        self.seed = seed
        self.errors: list[BaseException] = []

    def play(self) -> None:
        calls = [self.ask, self.tell, self.tell, self.fail, self.cancel, self.look, self.look]
        try:
            for _ in range(self.steps):
                calls[self.rng.integers(len(calls))]()
        except BaseException as error:
            self.errors.append(error)

    def ask(self) -> None:
        points = self.opt.ask(int(self.rng.integers(1, 3)))
        self.asked += points
        self.mine += points

    def tell(self) -> None:
        if self.mine:
            value = self.seed + len(self.told) / 1000
            self.opt.tell(self.mine.pop(), value)
            self.told.append(value)

    def fail(self) -> None:
        if self.mine and self.rng.random() < 0.3:
            self.opt.tell(self.mine.pop(), None)
            self.failures += 1

    def cancel(self) -> None:
        if self.mine and self.rng.random() < 0.3:
            self.opt.cancel(self.mine.pop())

    def look(self) -> None:
        opt = self.opt
        looks = [
            lambda: opt.observations, lambda: opt.pending, lambda: opt.failed, opt.to_dict,
            opt.records, lambda: opt.best, lambda: opt.best_observed, lambda: repr(opt),
            lambda: opt.draw().bqm, lambda: opt.predict(SPACE.points(np.zeros((1, 12), dtype=int))),
        ]  # fmt: skip
        try:
            looks[self.rng.integers(len(looks))]()
        except MercboError as error:  # before the first result
            if "no result" not in str(error):
                raise


def play(players: list[Player]) -> None:
    """Run all players at once, with as many switches between the threads as there can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=player.play) for player in players]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
    finally:
        sys.setswitchinterval(before)
    assert not any(thread.is_alive() for thread in threads)
    assert [error for player in players for error in player.errors] == []


def check(players: list[Player], opts: list[Optimizer]) -> None:
    told = Counter(value for player in players for value in player.told)
    left = Counter(repr(point) for player in players for point in player.mine)
    for opt in opts:
        assert Counter(seen.value for seen in opt.observations) == told
        assert Counter(map(repr, opt.pending)) == left
        assert len(opt.failed) == sum(player.failures for player in players)
        assert [record.value for record in opt.records() if record.state == "evaluated"] == [
            seen.value for seen in opt.observations
        ]


def fuzz(seed: int, steps: int, folder: Path | None) -> None:
    options = {"n_initial": 60, "model": plain(), "seed": seed}
    url = None if folder is None else url_of(folder, f"{seed}.db")
    first = Optimizer(SPACE, storage=url, **options)
    opts = [first] if url is None else [first, Optimizer.open(url)]
    # most threads share the first optimizer, others stand for another process
    players = [
        Player(opts[-1] if i % 4 == 3 else first, 1 + 100 * seed + i, steps) for i in range(THREADS)
    ]
    play(players)
    check(players, opts)
    if url is not None:
        check(players, [Optimizer.open(url)])
        numbers = [entry.number for entry in log_of(url)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert {opt._state.number for opt in opts} == {len(numbers)}
        assert len(asked_rows(url)) == sum(len(player.asked) for player in players)


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "store"])
@pytest.mark.parametrize("seed", range(3))
def test_threads_neither_lose_nor_double_results(seed, kept, tmp_path) -> None:
    fuzz(seed, 25, tmp_path if kept else None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 125))
def test_threads_neither_lose_nor_double_results_in_long_runs(seed, tmp_path) -> None:
    fuzz(seed, 60, tmp_path)


def test_readers_apply_each_event_of_another_process_once(url) -> None:
    """Readers without the lock once applied the same event twice and skipped later ones."""
    one = stored(url, n_initial=100)
    two = Optimizer.open(url)
    wrong: list[int] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            count = len(one.observations)
            if count > len(told):
                wrong.append(count)

    told: list[float] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=read) for _ in range(THREADS)]
    try:
        for thread in threads:
            thread.start()
        for point, value in zip(two.ask(30), np.arange(30.0), strict=True):
            told.append(float(value))
            two.tell(point, value)
    finally:
        done.set()
        for thread in threads:
            thread.join(timeout=60)
        sys.setswitchinterval(before)
    assert wrong == []
    assert [seen.value for seen in one.observations] == told
