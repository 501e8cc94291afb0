"""A fork while another thread is within a call: the child can use the optimizer."""

from __future__ import annotations

import os
import signal
import threading

import dimod
import pytest
from support.optimizer import plain

from mercbo import Optimizer, Space

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
SPACE = Space.binary(8)


class Waiting(dimod.ExactSolver):
    """A sampler that waits until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.release = threading.Event(), threading.Event()

    def sample(self, bqm, **options):
        self.inside.set()
        self.release.wait(60)
        return super().sample(bqm, **options)


def in_child(work) -> int:
    """The exit code of a child that does some work within a minute."""
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(60)  # a child that hangs ends
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "store"])
def test_child_of_a_fork_during_an_ask_can_tell_and_ask(kept, url) -> None:
    sampler = Waiting()
    opt = Optimizer(
        SPACE, backend=sampler, seed=0, n_initial=2, model=plain(), acquisition="thompson",
        storage=url if kept else None,
    )  # fmt: skip
    points = opt.ask(2)
    opt.tell(points, [1.0, 2.0])
    asking = threading.Thread(target=opt.ask)
    asking.start()
    assert sampler.inside.wait(60)

    def work() -> None:
        sampler.release = threading.Event()
        sampler.release.set()
        opt.tell(dict.fromkeys(SPACE.names, 1), 3.0)
        assert len(opt.observations) == 3
        opt.ask()

    code = in_child(work)
    sampler.release.set()
    asking.join(60)
    assert code == 0
    assert len(opt.observations) == (3 if kept else 2)


def test_child_of_a_fork_within_a_transaction_has_the_state_before() -> None:
    opt = Optimizer(SPACE, seed=0)

    def work() -> None:
        assert opt.pending == []
        opt.ask()
        assert len(opt.pending) == 1

    with opt.transaction():
        opt.ask(2)
        code = in_child(work)
    assert code == 0
    assert len(opt.pending) == 2


def test_child_of_a_fork_within_a_transaction_leaves_the_transaction_of_the_parent(url) -> None:
    opt = Optimizer(SPACE, seed=0, storage=url)

    def work() -> None:
        opt._log.rollback()  # what a first write in the child begins with
        assert opt.pending == []

    with opt.transaction():
        opt.ask(2)
        parent = opt._log._held
        assert in_child(work) == 0
        assert parent is not None
        assert parent.driver_connection.in_transaction
    assert len(Optimizer.open(url).pending) == 2
