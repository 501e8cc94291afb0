"""Memory: a deleted optimizer leaves nothing behind in a space that other optimizers share."""

from __future__ import annotations

import gc
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.optimizer import run

from mercbo import AtMost, Binary, Categorical, Model, Optimizer, Space
from mercbo.encoding import Encoding
from mercbo.kernel import Kernel

# Letters for motifs and pooling; codes that a constraint names, so that draws need levels.
SPACE = Space(
    {
        **{f"base{i}": Categorical(list("ACGT")) for i in range(6)},
        **{f"code{i}": Categorical(range(4), encoding="binary") for i in range(2)},
        **{f"x{i}": Binary() for i in range(3)},
    },
    [AtMost(2, ["x0", "x1", "x2"]), AtMost(1, [("code0", 3), ("code1", 3)])],
)


def used(space: Space) -> Optimizer:
    """An optimizer that has made a fit with every kind of term, draws and a CQM."""
    opt = Optimizer(space, seed=0, n_initial=12, model=Model(inference="map", warp="none"))
    run(opt, 14)
    opt.ask(2, fixed={"x0": 1}, diversity=2)
    assert opt.draw().cqm.constraints
    assert opt.draw().bqm.num_variables
    return opt


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


@pytest.mark.usefixtures("poor_fits")
def test_kernel_and_encoding_are_collected_with_their_optimizer() -> None:
    opt = used(SPACE)
    draw = opt.draw()
    parts = [weakref.ref(each) for each in (opt, draw.encoding, draw.native, draw.sample.kernel)]
    del opt, draw
    gc.collect()
    assert [part() for part in parts] == [None] * len(parts)


@pytest.mark.usefixtures("poor_fits")
def test_optimizers_on_one_space_do_not_make_it_grow() -> None:
    used(SPACE)
    before = {kind: alive(kind) for kind in (Encoding, Kernel)}
    for _ in range(3):
        used(SPACE)
    assert {kind: alive(kind) for kind in (Encoding, Kernel)} == before


def test_space_is_shared_by_threads_that_fix_different_variables() -> None:
    """More choices of fixed values than a space remembers, asked for by several threads at once."""
    space = Space.binary(12)
    choices = [(i, j) for i in range(24) for j in range(24) if i // 2 < j // 2]

    def look(start: int) -> int:
        found = [space.fixed(choices[(start * 31 + i) % len(choices)]) for i in range(3000)]
        return sum(int(each.region.open.sum()) == 22 for each in found)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(look, range(6))) == [3000] * 6
    finally:
        sys.setswitchinterval(interval)
