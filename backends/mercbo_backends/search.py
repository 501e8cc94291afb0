"""Searches that backends share: feasible local minima, and what lies beside excluded states."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Index, first_of_each
from mercbo.domain.limits import Limits
from mercbo_backends.problem import Problem

# With limits a descent looks at pairs of moves: so many states go between looks at the clock.
CHUNK = 8


def random_states(problem: Problem, k: int, *, rng: np.random.Generator) -> Bits:
    """`k` random states with one bit in each group; with limits, mostly within them."""
    if not len(problem.limits):
        return moves.random_states(k, problem.width, problem.groups, rng=rng)
    return moves.dive(k, problem.width, problem.groups, problem.limits, rng=rng)[0]


def polish(
    problem: Problem, states: Bits, *, rng: np.random.Generator, deadline: float = np.inf
) -> Bits:
    """Feasible local minima reached from the given states, as many as the time allows."""
    form = problem.linear, problem.coupling, problem.groups
    if not len(problem.limits):
        return moves.descend(*form, states)[0]
    done = [states[:0]]
    step = len(states) if np.isinf(deadline) else CHUNK
    for start in range(0, len(states), max(1, step)):
        part = states[start : start + step]
        part, reached = moves.mend(problem.groups, problem.limits, part, rng=rng)
        part = part[reached]
        part = part[first_of_each(part)]
        done.append(moves.descend(*form, part, problem.limits)[0])
        if time.perf_counter() > deadline:
            break
    return np.concatenate(done)


def allowed(problem: Problem, states: Bits) -> Bits:
    """The states that are not excluded, and all feasible ones beside excluded ones.

    Excluded states that are met on the way are left by all their moves in turn. From the best
    state that is allowed, every downhill path runs through excluded states only, so it is found
    wherever the local minimum at the end of such a path is among `states`. With limits, moves go in
    pairs where no single one is feasible, as in descent.
    """
    if len(problem.excluded) == 0 or len(states) == 0:
        return states
    barred = {row.tobytes() for row in problem.excluded}
    met = {state.tobytes() for state in states}
    fine, queue = [], list(states)
    while queue:
        state = queue.pop()
        if state.tobytes() not in barred:
            fine.append(state)
            continue
        new = [near for near in beside(problem, state) if near.tobytes() not in met]
        met.update(near.tobytes() for near in new)
        queue += new
    return np.array(fine, dtype=np.int8).reshape(len(fine), problem.width)


def beside(problem: Problem, state: Bits) -> Bits:
    """Feasible states one move away, or two where limits bind."""
    around = moves.neighbours(problem.groups, state)
    if not len(problem.limits):
        return around
    pairs = [moves.neighbours(problem.groups, near) for near in around]
    both = np.unique(np.concatenate([around, *pairs]), axis=0)
    return np.asarray(both[problem.limits.satisfied(both)])


def restrict(problem: Problem, fixed: Bits, free: Index) -> Problem:
    """A model without groups and limits over its free bits, the others at their values."""
    held = np.flatnonzero(fixed >= 0)
    linear = problem.linear[free] + problem.coupling[np.ix_(free, held)] @ fixed[held]
    position = np.full(problem.width, -1)
    position[free] = np.arange(len(free))
    inside = (position[problem.heads] >= 0) & (position[problem.tails] >= 0)
    return replace(
        problem,
        labels=tuple(problem.labels[i] for i in free),
        linear=linear,
        heads=position[problem.heads[inside]],
        tails=position[problem.tails[inside]],
        biases=problem.biases[inside],
        limits=Limits.none(len(free)),
        excluded=np.zeros((0, len(free)), dtype=np.int8),
    )
