"""`GraphCut`: bounds by minimum cuts, states by descent and tabu search from what the cuts say.

The paper's solver, section "Efficient submodular-relaxation solver". With A the couplings,

| symbol | meaning                                                          | shape  |
|--------|------------------------------------------------------------------|--------|
| A-     | negative couplings: submodular, solved exactly by a minimum cut  | (m-,)  |
| A+     | positive couplings: each A x y is bounded below, for any g in    | (m+,)  |
|        | [0, 1], by g A (x + y - 1)                                       |        |
| Gamma  | the g of each positive coupling, started at 1/2                  | (m+,)  |

Each round minimises the bound by one cut, which gives a lower bound on the energy and a state,
and moves Gamma by a projected supergradient step: the bound grows by A (x + y - 1) per unit of g.
Law: bound(Gamma) <= minimum for every Gamma, and the best Gamma's bound is the roof dual, which
one cut on a doubled graph gives at once, together with bits that some minimum has for sure.

The relaxation alone is a weak solver (on dense models its states are far from the minimum), so
they and random states are polished by descent, and the best go on by tabu search. Two more uses of
cuts were measured and left out, because the same time spent on tabu search gains more: cuts in
the gauge of the incumbent, and roof duality on random subsets of bits.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import dimod
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index
from mercbo_backends.cuts import min_cut, solver_name
from mercbo_backends.problem import (
    MEETS,
    Problem,
    bqm_samples,
    count_of,
    cqm_samples,
    distinct,
    empty_samples,
    seconds_of,
)

# Steps of Gamma shrink by this after a round that did not raise the bound.
SHRINK = 0.7
# Walks of the tabu search, and steps per bit. It is left out where descent alone finds the
# minimum: below so many bits, or where so many starts have led to the same lowest energy.
WALKS, STEPS_PER_BIT, EASY_BITS, AGREEING = 8, 1, 30, 8


class GraphCut(dimod.Sampler):
    """Samples low states of a binary or a linearly constrained quadratic model.

    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -1.0}, {"ab": -2.0}, 0.0, "BINARY")
    >>> found = GraphCut().sample(bqm)
    >>> found.first.sample == {"a": 1, "b": 1}, float(found.first.energy), found.info["status"]
    (True, -2.0, 'optimal')
    """

    def __init__(
        self, *, rounds: int = 5, restarts: int = 128, time_limit: float | None = None
    ) -> None:
        self._defaults = {"rounds": rounds, "restarts": restarts, "time_limit": time_limit}

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"rounds": [], "restarts": [], "time_limit": [], "seed": []}

    @property
    def properties(self) -> Mapping[str, Any]:
        return dict(self._defaults)

    def sample(
        self, bqm: dimod.BinaryQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """Distinct polished states, lowest energy first.

        rounds: cuts, each with a better Gamma (5, as in the paper; fewer where the bound meets
        the energy). restarts: random states to polish beside them (128). time_limit: seconds after
        which the best so far is returned. info: `lower_bound`, `status` ("optimal" where the
        bound meets the energy, else "feasible"), `gap`, `timing`, `max_flow` (which solver).
        """
        started, settings = time.perf_counter(), self._settings(kwargs)
        problem = Problem.of_bqm(bqm)
        states, info = solve(problem, settings, started, seed)
        return bqm_samples(bqm, problem, states, info)

    def sample_cqm(
        self, cqm: dimod.ConstrainedQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """Distinct feasible states of a model with one-hot groups (discrete constraints) and
        linear constraints over binary variables; settings and info as in `sample`.

        Where no feasible state was found, the set is empty and the status "unknown".
        """
        started, settings = time.perf_counter(), self._settings(kwargs)
        problem = Problem.of_cqm(cqm)
        states, info = solve(problem, settings, started, seed)
        if len(states) == 0:
            return empty_samples(cqm, info)
        return cqm_samples(cqm, problem, states, info)

    def _settings(self, kwargs: dict[str, Any]) -> Settings:
        given = {**self._defaults, **self.remove_unknown_kwargs(**kwargs)}
        return Settings(
            count_of("rounds", given["rounds"]),
            count_of("restarts", given["restarts"]),
            seconds_of("time_limit", given["time_limit"]),
        )


@dataclass(frozen=True)
class Settings:
    rounds: int
    restarts: int
    time_limit: float


def solve(
    problem: Problem, settings: Settings, started: float, seed: int | None
) -> tuple[Bits, dict[str, Any]]:
    """Feasible states, lowest first, and what is known about them."""
    deadline = started + settings.time_limit
    rng = np.random.default_rng(seed)
    fixed = np.full(problem.width, -1, dtype=np.int8)
    bound = trivial_bound(problem)
    if settings.rounds:
        dual, persistent = roof_dual(problem)
        bound = max(bound, dual)
        if problem.is_free:
            fixed = persistent
    states = search(problem, fixed, settings, deadline, rng)
    energies = problem.energies(states)
    order = distinct(states, energies)
    optimal = len(order) > 0 and energies[order[0]] - bound <= MEETS * problem.scale
    gap = 0.0 if optimal else float(energies[order[0]] - bound) if len(order) else float("inf")
    info = {
        "lower_bound": bound + problem.offset,
        "gap": gap,
        "status": "optimal" if optimal else "feasible" if len(order) else "unknown",
        "max_flow": solver_name(),
        "timing": {"total": time.perf_counter() - started},
    }
    return states[order], info


def search(
    problem: Problem,
    fixed: Bits,
    settings: Settings,
    deadline: float,
    rng: np.random.Generator,
) -> Bits:
    """Low feasible states: of the bits that are not fixed, with the others at their values."""
    free = np.flatnonzero(fixed < 0)
    whole = np.repeat(fixed[np.newaxis], 1, axis=0)
    if len(free) == 0:
        return whole
    small = problem if len(free) == problem.width else restrict(problem, fixed, free)
    starts = moves.random_states(max(settings.restarts, 1), small.width, small.groups, rng=rng)
    states = polish(small, starts, rng)
    if settings.rounds and time.perf_counter() < deadline:
        upper = float(small.energies(states).min()) if len(states) else 0.0
        relaxed, _ = relax(small, settings.rounds, upper=upper, deadline=deadline)
        mended = moves.repair(small.linear, small.coupling, small.groups, relaxed)
        states = np.concatenate([polish(small, mended, rng), states])
    energies = small.energies(states)
    agreeing = int((energies <= energies.min(initial=np.inf) + MEETS * small.scale).sum())
    hard = small.entropy > EASY_BITS and agreeing < AGREEING
    if hard and len(states) and not len(small.limits):
        lowest = distinct(states, energies)[:WALKS]
        walked, _ = moves.tabu(
            small.linear, small.coupling, small.groups, states[lowest],
            steps=STEPS_PER_BIT * small.width, rng=rng, deadline=deadline,
        )  # fmt: skip
        states = np.concatenate([walked, states])
    states = allowed(small, states)
    whole = np.repeat(fixed[np.newaxis], len(states), axis=0)
    whole[:, free] = states
    return whole


def polish(problem: Problem, states: Bits, rng: np.random.Generator) -> Bits:
    """Feasible local minima reached from the given states."""
    if len(problem.limits):
        states, reached = moves.mend(problem.groups, problem.limits, states, rng=rng)
        states = np.unique(states[reached], axis=0)
    return moves.descend(problem.linear, problem.coupling, problem.groups, states, problem.limits)[
        0
    ]


def allowed(problem: Problem, states: Bits) -> Bits:
    """The states that are not excluded, and all feasible ones next to excluded ones.

    Excluded states that are met on the way are left by all their moves in turn: from the best
    state that is allowed, every downhill path runs through excluded states only, so it is found
    wherever the local minimum at the end of such a path is among `states`.
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
        around = moves.neighbours(problem.groups, state)
        around = around[problem.limits.satisfied(around)]
        new = [near for near in around if near.tobytes() not in met]
        met.update(near.tobytes() for near in new)
        queue += new
    return np.array(fine, dtype=np.int8).reshape(len(fine), problem.width)


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
        limits=moves.Limits.none(len(free)),
        excluded=np.zeros((0, len(free)), dtype=np.int8),
    )


# -- bounds --------------------------------------------------------------------------------------


def relax(
    problem: Problem, rounds: int, *, upper: float, deadline: float = np.inf
) -> tuple[Bits, float]:
    """The states of each round (rounds, B) and the best lower bound found.

    `upper` is the energy of a known state: it sets the length of the supergradient steps
    (Polyak: distance to the target over the squared norm). The bound cannot reach it, so steps
    start at half that length and shrink after a round without gain.
    """
    positive = problem.biases > 0
    heads, tails, above = (
        part[positive] for part in (problem.heads, problem.tails, problem.biases)
    )
    gamma = np.full(len(above), 0.5)
    states, bound, length = [], trivial_bound(problem), 0.5
    for _ in range(rounds if problem.width else 0):
        state, value = minimise_bound(problem, gamma)
        states.append(state)
        length *= 1.0 if value > bound else SHRINK
        bound = max(bound, value)
        climb = above * (state[heads] + state[tails] - 1.0)
        steep = float(climb @ climb)
        if steep == 0.0 or upper - bound <= MEETS * problem.scale:
            break
        if time.perf_counter() > deadline:
            break
        gamma = np.clip(gamma + length * (upper - value) / steep * climb, 0.0, 1.0)
    return np.array(states, dtype=np.int8).reshape(len(states), problem.width), bound


def trivial_bound(problem: Problem) -> float:
    return float(np.minimum(problem.linear, 0).sum() + np.minimum(problem.biases, 0).sum())


def minimise_bound(problem: Problem, gamma: Floats) -> tuple[Bits, float]:
    """The state that minimises the Gamma bound, by one cut, and the bound there.

    A coupling A- x y equals A- x + |A-| x (1 - y): the second term is cut where x = 1, y = 0.
    """
    positive = problem.biases > 0
    negative = ~positive
    lifted = problem.biases[positive] * gamma
    linear = problem.linear.copy()
    np.add.at(linear, problem.heads[positive], lifted)
    np.add.at(linear, problem.tails[positive], lifted)
    np.add.at(linear, problem.heads[negative], problem.biases[negative])
    state, value = min_cut(
        linear, problem.heads[negative], problem.tails[negative], -problem.biases[negative]
    )
    return state, value - float(lifted.sum())


def roof_dual(problem: Problem) -> tuple[float, Bits]:
    """The roof dual bound, and the bits that some minimum has for sure (-1 where not known).

    Each bit x has a twin y that stands for 1 - x. Every term is split in halves over x and the
    twins so that all couplings become submodular: A+ x_i x_j as x_i (1 - y_j) + (1 - y_i) x_j,
    A- x_i x_j as x_i x_j + (1 - y_i)(1 - y_j). Where a minimum has y = 1 - x, x is persistent.
    """
    n, linear = problem.width, 0.5 * problem.linear
    heads, tails, half = problem.heads, problem.tails, 0.5 * problem.biases
    up, down = half > 0, half <= 0
    own, twin = linear.copy(), -linear
    np.add.at(own, heads[down], half[down])
    np.add.at(twin, heads[down], -half[down])
    ones = np.concatenate([heads[up], tails[up], heads[down], n + tails[down]])
    zeros = np.concatenate([n + tails[up], n + heads[up], tails[down], n + heads[down]])
    capacity = np.abs(np.concatenate([half[up], half[up], half[down], half[down]]))
    state, value = min_cut(np.concatenate([own, twin]), ones, zeros, capacity)
    known = state[:n] != state[n:]
    persistent = np.where(known, state[:n], -1).astype(np.int8)
    return value + float(linear.sum() + half[down].sum()), persistent
