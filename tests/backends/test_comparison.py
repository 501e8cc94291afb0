"""All backends on the same draws, of every kind of space, against the proven minimum."""

from __future__ import annotations

from functools import cache
from typing import Any

import dimod
import numpy as np
import pytest
from mercbo_backends import Annealing, CpSat, Exhaustive, GraphCut

from mercbo import Optimizer, Space

SAMPLERS = {
    "graph-cut": GraphCut(),
    "cp-sat": CpSat(workers=1),
    "annealing": Annealing(),
    "exhaustive": Exhaustive(),
}


@cache
def draw_of(space: Space, seed: int) -> Any:
    opt = Optimizer(space, seed=seed)
    rng = np.random.default_rng(seed)
    opt.tell(space.sample(10, rng=rng), rng.standard_normal(10))
    return opt.draw()


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_bqms_minimum_is_the_draws(name: str, small_space: Space, seed: int) -> None:
    draw = draw_of(small_space, seed)
    lowest = draw.sample.value(small_space.enumerate_rows()).min()
    found = SAMPLERS[name].sample(draw.bqm, seed=1)
    rows = draw.rows_of(found, rng=np.random.default_rng(0))
    assert draw.sample.value(rows[:1])[0] == pytest.approx(lowest, abs=1e-6)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_cqms_minimum_is_the_best_unseen_point(
    name: str, small_space: Space, seed: int
) -> None:
    draw = draw_of(small_space, seed)
    rows = small_space.enumerate_rows()
    seen = {tuple(row) for row in draw.excluded.tolist()}
    unseen = [i for i, row in enumerate(rows.tolist()) if tuple(row) not in seen]
    if not unseen or not draw.cqm.variables:
        return
    lowest = draw.sample.value(rows[unseen]).min()
    found = SAMPLERS[name].sample_cqm(draw.cqm, seed=1)
    assert found.record.is_feasible.all()
    point = draw.decode(found.first.sample)
    assert point is not None
    assert draw.value(point) == pytest.approx(lowest, abs=1e-6)


@pytest.mark.slow
def test_other_samplers_serve_as_backends(small_space: Space) -> None:
    """dwave-samplers', OpenJij's and dimod's own samplers, by the penalised model."""
    import openjij
    from dwave.samplers import SteepestDescentSolver, TabuSampler

    rng = np.random.default_rng(0)
    known = small_space.sample(3, rng=rng)
    left = small_space.size - len({tuple(p.values()) for p in known})
    others = [TabuSampler(), SteepestDescentSolver(), openjij.SASampler()]
    for sampler in [*others, dimod.RandomSampler(), dimod.SimulatedAnnealingSampler()]:
        opt = Optimizer(small_space, backend=sampler, seed=0, n_initial=1)
        opt.tell(known, [1.0, 2.0, 3.0])
        wanted = min(2, left)
        if wanted:
            assert len({tuple(p.values()) for p in opt.ask(wanted)}) == wanted
