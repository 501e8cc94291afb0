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
from functools import partial
from typing import Any, ClassVar

import dimod  # noqa: F401 (the doctest of GraphCut uses it)
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats
from mercbo_backends.base import Backend, Check
from mercbo_backends.cuts import MOST_DUAL, min_cut, roof_dual, solver_name, trivial_bound
from mercbo_backends.problem import MEETS, Problem, count_of, distinct, seconds_of
from mercbo_backends.search import allowed, polish, random_states, restrict

# Steps of Gamma shrink by this after a round that did not raise the bound.
SHRINK = 0.7
# Walks of the tabu search. It is left out where descent alone finds the minimum: below so many
# bits, or where so many starts have led to the same lowest energy.
WALKS, EASY_BITS, AGREEING = 16, 30, 8
# With limits a descent also looks at pairs of moves: it costs more and finds more, and so many
# times fewer starts are made.
LIMITED = 4
# Bits up to which bounds are computed for models with constraints, which they know nothing of.
MOST_BOUNDED = 300


class GraphCut(Backend):
    """Distinct low states, by cuts, descent and tabu search, with a lower bound.

    rounds
        Cuts, each with a better Gamma (5, as in the paper; fewer where the bound meets the
        energy). 0 leaves bounds out.
    restarts
        Random states to polish beside those of the cuts (128).
    time_limit
        Seconds after which the best so far is returned (None: no limit).

    info: `status` ("optimal" where the bound meets the energy, else "feasible"; "unknown" where no
    feasible state was found), `lower_bound`, `gap`, `max_flow` (which solver), `timing`.

    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -1.0}, {"ab": -2.0}, 0.0, "BINARY")
    >>> found = GraphCut().sample(bqm)
    >>> found.first.sample == {"a": 1, "b": 1}, float(found.first.energy), found.info["status"]
    (True, -2.0, 'optimal')
    """

    checks: ClassVar[dict[str, Check]] = {
        "rounds": count_of,
        "restarts": partial(count_of, least=1),
        "time_limit": seconds_of,
    }

    def __init__(
        self, *, rounds: int = 5, restarts: int = 128, time_limit: float | None = None
    ) -> None:
        super().__init__(rounds=rounds, restarts=restarts, time_limit=time_limit)

    def solve(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        rng = np.random.default_rng(seed)
        return solve(problem, settings["rounds"], settings["restarts"], deadline, rng)

    def search(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> Bits:
        if type(self).solve is not GraphCut.solve:
            return super().search(problem, settings, deadline, seed)
        rng, rounds = np.random.default_rng(seed), settings["rounds"]
        return solve(problem, rounds, settings["restarts"], deadline, rng, bounded=False)[0]


def solve(
    problem: Problem,
    rounds: int,
    restarts: int,
    deadline: float,
    rng: np.random.Generator,
    *,
    bounded: bool = True,
) -> tuple[Bits, dict[str, Any]]:
    """Feasible states, lowest first, and what is known about them; the bound is a weaker one where
    it need not be a good one (`bounded`), and the states are the same."""
    fixed = np.full(problem.width, -1, dtype=np.int8)
    dual = trivial_bound(problem)
    if problem.width > MOST_BOUNDED and not problem.is_free:
        rounds = 0
    small = problem
    wanted = bounded or problem.is_free  # what is known of bits is of use in any case
    few = len(problem.biases) <= MOST_DUAL
    if rounds and wanted and few and time.perf_counter() < deadline:
        dual, persistent = roof_dual(problem)
        if problem.is_free and (persistent >= 0).any():
            # what is fixed leaves the problem, and its coefficients leave the rounding
            fixed = persistent
            small = restrict(problem, fixed, np.flatnonzero(fixed < 0))
            dual = roof_dual(small)[0] if bounded else trivial_bound(small)
    found, bound = search(small, rounds, restarts, deadline, rng)
    dual = max(dual, bound)
    energies = small.energies(found)
    order = distinct(found, energies)
    states = np.repeat(fixed[np.newaxis], len(order), axis=0)
    states[:, fixed < 0] = found[order]
    states = states[problem.feasible(states)]
    if len(states) == 0:
        return states, info_of("unknown", dual + problem.offset, np.inf)
    gap = float(energies[order[0]]) - dual
    optimal = gap <= MEETS * small.scale
    gap = 0.0 if optimal else gap
    lowest = float(problem.energies(states[:1])[0]) + problem.offset
    return states, info_of("optimal" if optimal else "feasible", lowest - gap, gap)


def info_of(status: str, bound: float, gap: float) -> dict[str, Any]:
    return {"status": status, "lower_bound": bound, "gap": gap, "max_flow": solver_name()}


def search(
    problem: Problem, rounds: int, restarts: int, deadline: float, rng: np.random.Generator
) -> tuple[Bits, float]:
    """Low feasible states, and the best lower bound of the rounds."""
    bound = -np.inf
    if len(problem.limits):
        restarts = max(1, restarts // LIMITED)
    starts = random_states(problem, restarts, rng=rng)
    states = polish(problem, starts, rng=rng, deadline=deadline)
    if rounds and time.perf_counter() < deadline:
        upper = float(problem.energies(states).min()) if len(states) else 0.0
        relaxed, bound = relax(problem, rounds, upper=upper, deadline=deadline)
        mended = moves.repair(problem.linear, problem.coupling, problem.groups, relaxed)
        more = polish(problem, mended, rng=rng, deadline=deadline)
        states = np.concatenate([more, states])
    energies = problem.energies(states)
    agreeing = int((energies <= energies.min(initial=np.inf) + MEETS * problem.scale).sum())
    hard = problem.entropy > EASY_BITS and agreeing < AGREEING
    if hard and len(states) and not len(problem.limits):
        lowest = distinct(states, energies)[:WALKS]
        walked, _ = moves.tabu(
            problem.linear, problem.coupling, problem.groups, states[lowest],
            steps=tabu_steps(problem.width), rng=rng, deadline=deadline,
        )  # fmt: skip
        states = np.concatenate([walked, states])
    return allowed(problem, states), bound


def tabu_steps(bits: int) -> int:
    """One step per bit for small models, two from 200 bits on."""
    return min(2 * bits, max(bits, bits**2 // 100))


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
