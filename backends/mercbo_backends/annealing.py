"""`Annealing`: simulated annealing that stays feasible.

Where all bits are free it is dwave-samplers' (where that is installed; `info["annealer"]` says);
otherwise Gibbs sampling inside one-hot groups, so that no state ever leaves the feasible set.

| symbol | meaning                                                            | shape     |
|--------|--------------------------------------------------------------------|-----------|
| R      | replicas, annealed side by side                                    |           |
| unit   | a free bit or a one-hot group                                      |           |
| T      | temperature, falling geometrically over the sweeps                 |           |

A sweep draws each unit anew from its conditional distribution at temperature T, in all replicas
at once. With linear limits, choices that would break one have probability zero, and pairs of moves
are drawn as well: a swap can keep a sum that no single move keeps.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, ClassVar

import dimod
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats
from mercbo.moves import Walk
from mercbo_backends.base import Backend, Check
from mercbo_backends.problem import Problem, count_of, seconds_of
from mercbo_backends.search import random_states

try:
    from dwave.samplers import SimulatedAnnealingSampler
except ImportError:  # the Gibbs sampling below then serves free bits as well
    SimulatedAnnealingSampler = None

# dwave-samplers refuses seeds of 2**31 and more.
SEED_LIMIT = 2**31
# The first temperature lets the typical move be undone, the last freezes all but the smallest.
HOT, COLD = 1.0, 0.02
# Where limits bind: one drawn pair of moves in each sweep for so many bits and groups.
PAIRING = 4


class Annealing(Backend):
    """Low states by simulated annealing, one for each read.

    num_reads
        Replicas (20).
    num_sweeps
        Updates of each bit or group (100).
    time_limit
        Seconds after which what is there is returned (None: no limit).

    info: `status` ("feasible"; "unknown" where no feasible state was found), `annealer`, `timing`.
    """

    checks: ClassVar[dict[str, Check]] = {
        "num_reads": partial(count_of, least=1),
        "num_sweeps": partial(count_of, least=1),
        "time_limit": seconds_of,
    }

    def __init__(
        self, *, num_reads: int = 20, num_sweeps: int = 100, time_limit: float | None = None
    ) -> None:
        super().__init__(num_reads=num_reads, num_sweeps=num_sweeps, time_limit=time_limit)

    def solve(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        reads, sweeps = settings["num_reads"], settings["num_sweeps"]
        rng = np.random.default_rng(seed)
        if problem.is_free and problem.width and SimulatedAnnealingSampler is not None:
            states = anneal_by_dwave(problem, reads, sweeps, deadline, rng=rng)
            return states, {"status": "feasible", "annealer": "dwave-samplers"}
        states = random_states(problem, reads, rng=rng)
        states, reached = moves.mend(problem.groups, problem.limits, states, rng=rng)
        states = anneal(problem, states[reached], sweeps, deadline, rng=rng)
        states = states[problem.feasible(states)]
        status = "feasible" if len(states) else "unknown"
        return states, {"status": status, "annealer": "numpy"}


def anneal_by_dwave(
    problem: Problem, reads: int, sweeps: int, deadline: float, *, rng: np.random.Generator
) -> Bits:
    """One state per read of a model without constraints."""
    couplings = (problem.heads, problem.tails, problem.biases)
    bqm = dimod.BinaryQuadraticModel.from_numpy_vectors(
        problem.linear, couplings, 0.0, dimod.BINARY
    )
    constant = not (problem.linear.any() or problem.biases.any())
    found = SimulatedAnnealingSampler().sample(
        bqm,
        num_reads=reads,
        num_sweeps=sweeps,
        seed=int(rng.integers(SEED_LIMIT)),
        # where nothing sets a temperature, dwave-samplers would warn and take this one
        beta_range=(0.1, 1.0) if constant else None,
        interrupt_function=lambda: time.perf_counter() > deadline,
    )
    order = [found.variables.index(bit) for bit in range(problem.width)]
    return np.asarray(found.record.sample[:, order], dtype=np.int8)


def anneal(
    problem: Problem, states: Bits, sweeps: int, deadline: float, *, rng: np.random.Generator
) -> Bits:
    """The lowest feasible state that each replica met."""
    if states.size == 0:
        return states
    walk = Walk.of(problem.linear, problem.coupling, problem.groups, states, problem.limits)
    rows = np.arange(len(states))
    energy = problem.energies(states)
    best, lowest = states.copy(), np.where(problem.feasible(states), energy, np.inf)
    typical = float(np.abs(walk.gains(rows)).mean()) or 1.0
    units = walk.units
    for temperature in typical * np.geomspace(HOT, COLD, sweeps):
        for unit in rng.permutation(len(units)):
            draw_unit(walk, units[unit], temperature, rng)
        if walk.limits is not None:
            for _ in range(max(1, len(units) // PAIRING)):
                draw_pair(walk, temperature, rng)
        now = walk.states.astype(np.int8)
        energy = problem.energies(now)
        better = np.flatnonzero(energy < lowest)
        better = better[problem.feasible(now[better])]
        best[better], lowest[better] = now[better], energy[better]
        if time.perf_counter() > deadline:
            break
    return best


def draw_unit(walk: Walk, unit: Any, temperature: float, rng: np.random.Generator) -> None:
    """Draw one unit of every replica from its conditional distribution."""
    rows = np.arange(len(walk.states))
    gains = walk.gains_of(unit)  # (R, choices): staying is the choice of gain zero
    if len(unit) == 1:
        gains = np.column_stack([gains, np.zeros(len(gains))])
    if walk.limits is not None:
        shifts = walk.shifts_of(unit)
        fine = walk.limits.holds(walk.sides[:, np.newaxis] + shifts)
        if len(unit) == 1:
            fine = np.column_stack([fine, np.ones(len(fine), dtype=np.bool_)])
        gains = np.where(fine, gains, np.inf)
    chosen = gumbel_choice(-gains / temperature, rng)
    if len(unit) == 1:
        flipped = rows[chosen == 0]
        walk.move(flipped, np.repeat(unit, len(flipped)))
    else:
        walk.move(rows, unit[chosen])


def draw_pair(walk: Walk, temperature: float, rng: np.random.Generator) -> None:
    """Make a random move in each replica, feasible or not, and draw from the moves that lead back
    within the limits, or take it back: a swap is found where it takes two moves."""
    assert walk.limits is not None
    rows = np.arange(len(walk.states))
    before = (walk.states.copy(), walk.fields.copy(), walk.present.copy(), walk.sides.copy())
    first = rng.integers(0, walk.states.shape[1], len(rows))
    gained = walk.gains(rows)[rows, first]
    walk.move(rows, first)
    fine = walk.limits.holds(walk.sides[:, np.newaxis] + walk.shifts(rows))
    gains = np.where(fine, walk.gains(rows) + gained[:, np.newaxis], np.inf)
    # the last choice is to take the first move back, which gains nothing
    choices = np.column_stack([gains, np.zeros(len(rows))])
    second = gumbel_choice(-choices / temperature, rng)
    undo = second == gains.shape[1]
    for now, then in zip((walk.states, walk.fields, walk.present, walk.sides), before, strict=True):
        now[undo] = then[undo]
    walk.move(rows[~undo], second[~undo])


def gumbel_choice(logits: Floats, rng: np.random.Generator) -> Any:
    """One index per row with probability proportional to exp(logit)."""
    return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
