"""`GraphCut`: submodular relaxation by minimum cuts, polished by one-flip descent.

The paper's solver, section "Efficient submodular-relaxation solver". With A the couplings,

| symbol | meaning                                                          | shape  |
|--------|------------------------------------------------------------------|--------|
| A-     | negative couplings: submodular, solved exactly by a minimum cut  | (m-,)  |
| A+     | positive couplings: each A x y is bounded below, for any g in    | (m+,)  |
|        | [0, 1], by g A (x + y - 1)                                       |        |
| Gamma  | the g of each positive coupling, started at 1/2                  | (m+,)  |

Each round minimises the bound by one cut, which gives a lower bound on the energy and a state,
and moves Gamma by a projected supergradient step: the bound grows by A (x + y - 1) per unit of g.
The relaxation alone is a weak solver (the state is often far from the minimum), so every state,
and some random ones, are polished by one-flip descent.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dimod
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index

try:
    import maxflow
except ImportError as error:
    raise ImportError("GraphCut needs PyMaxflow: pip install PyMaxflow") from error

# Bound and energy meet when they differ by less than this, relative to the sum of coefficients.
MEETS = 1e-9
# Steps of Gamma shrink by this after a round that did not raise the bound.
SHRINK = 0.7


class GraphCut(dimod.Sampler):
    """Samples low states of a binary quadratic model.

    >>> bqm = dimod.BinaryQuadraticModel({"a": 1.0, "b": -1.0}, {"ab": -2.0}, 0.0, "BINARY")
    >>> found = GraphCut().sample(bqm)
    >>> found.first.sample == {"a": 1, "b": 1}, float(found.first.energy), found.info["status"]
    (True, -2.0, 'optimal')
    """

    def __init__(self, *, rounds: int = 5, restarts: int = 64) -> None:
        self._defaults = {"rounds": rounds, "restarts": restarts}

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"rounds": [], "restarts": [], "seed": []}

    @property
    def properties(self) -> Mapping[str, Any]:
        return dict(self._defaults)

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        *,
        rounds: int | None = None,
        restarts: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> dimod.SampleSet:
        """Distinct polished states, lowest energy first.

        rounds: cuts, each with a better Gamma (5, as in the paper; fewer where the bound meets
        the energy). restarts: random states to polish beside them. info: `lower_bound`, `status`
        ("optimal" where the bound meets the energy, else "feasible"), `gap`, `timing` in seconds.
        """
        self.remove_unknown_kwargs(**kwargs)
        rounds = self._defaults["rounds"] if rounds is None else rounds
        restarts = self._defaults["restarts"] if restarts is None else restarts
        for name, number in (("rounds", rounds), ("restarts", restarts)):
            if number < 0:
                raise ValueError(f"{name}={number!r} is below 0")
        started = time.perf_counter()
        problem = Problem.of(bqm)
        rng = np.random.default_rng(seed)
        starts = moves.random_states(max(restarts, 1), problem.width, (), rng=rng)
        states, energies = moves.descend(problem.linear, problem.coupling, (), starts)
        relaxed, bound = relax(problem, rounds, upper=float(energies.min()))
        polished, better = moves.descend(problem.linear, problem.coupling, (), relaxed)
        states = np.concatenate([polished, states])
        energies = np.concatenate([better, energies])
        _, first = np.unique(states, axis=0, return_index=True)
        best = first[np.argsort(energies[first], kind="stable")]
        gap = float(energies[best[0]] - bound)
        optimal = gap <= MEETS * problem.size
        info = {
            "lower_bound": bound + problem.offset,
            "gap": 0.0 if optimal else gap,
            "status": "optimal" if optimal else "feasible",
            "timing": {"total": time.perf_counter() - started},
        }
        return _sample_set(bqm, states[best], problem.labels, info)


@dataclass(frozen=True)
class Problem:
    """A BQM over zeros and ones as arrays, in the order of `labels`."""

    labels: list[Any]
    offset: float
    linear: Floats  # (B,)
    heads: Index  # (m,)
    tails: Index  # (m,)
    biases: Floats  # (m,)

    @classmethod
    def of(cls, bqm: dimod.BinaryQuadraticModel) -> Problem:
        binary = bqm if bqm.vartype is dimod.BINARY else bqm.change_vartype("BINARY", inplace=False)
        vectors = binary.to_numpy_vectors(return_labels=True)
        linear = np.asarray(vectors.linear_biases, dtype=np.float64)
        heads, tails, biases = (np.asarray(part) for part in vectors.quadratic)
        if not (np.isfinite(linear).all() and np.isfinite(biases).all()):
            raise ValueError("the model has a NaN or infinite bias")
        return cls(
            list(vectors.labels), float(vectors.offset), linear,
            heads.astype(np.intp), tails.astype(np.intp), biases.astype(np.float64),
        )  # fmt: skip

    @property
    def width(self) -> int:
        return len(self.linear)

    @property
    def size(self) -> float:
        return float(np.abs(self.linear).sum() + np.abs(self.biases).sum()) or 1.0

    @cached_property
    def coupling(self) -> Floats:
        dense = np.zeros((self.width, self.width))
        np.add.at(dense, (self.heads, self.tails), self.biases)
        return dense + dense.T


def relax(problem: Problem, rounds: int, *, upper: float) -> tuple[Bits, float]:
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
        state, value = minimise_bound(problem, positive, gamma)
        states.append(state)
        length *= 1.0 if value > bound else SHRINK
        bound = max(bound, value)
        climb = above * (state[heads] + state[tails] - 1.0)
        steep = float(climb @ climb)
        if steep == 0.0 or upper - bound <= MEETS * problem.size:
            break
        gamma = np.clip(gamma + length * (upper - value) / steep * climb, 0.0, 1.0)
    return np.array(states, dtype=np.int8).reshape(len(states), problem.width), bound


def trivial_bound(problem: Problem) -> float:
    return float(np.minimum(problem.linear, 0).sum() + np.minimum(problem.biases, 0).sum())


def minimise_bound(problem: Problem, positive: Any, gamma: Floats) -> tuple[Bits, float]:
    """The state that minimises the Gamma bound, by one cut, and the bound there.

    A coupling A- x y equals A- x + |A-| x (1 - y): the second term is an edge that is cut where
    x = 1 and y = 0. A node on the sink's side has x = 1.
    """
    negative = ~positive
    lifted = problem.biases[positive] * gamma
    linear = problem.linear.copy()
    np.add.at(linear, problem.heads[positive], lifted)
    np.add.at(linear, problem.tails[positive], lifted)
    np.add.at(linear, problem.heads[negative], problem.biases[negative])
    graph = maxflow.GraphFloat(problem.width, int(negative.sum()))
    nodes = graph.add_nodes(problem.width)
    if negative.any():
        capacity = -problem.biases[negative]
        graph.add_edges(
            nodes[problem.tails[negative]],
            nodes[problem.heads[negative]],
            capacity,
            np.zeros_like(capacity),
        )
    graph.add_grid_tedges(nodes, np.maximum(linear, 0.0), np.maximum(-linear, 0.0))
    flow = graph.maxflow()
    state = graph.get_grid_segments(nodes).astype(np.int8)
    return state, float(flow + np.minimum(linear, 0.0).sum() - lifted.sum())


def _sample_set(
    bqm: dimod.BinaryQuadraticModel, states: Bits, labels: list[Any], info: dict[str, Any]
) -> dimod.SampleSet:
    """Samples in the model's own vartype, with energies by the model itself."""
    values = states if bqm.vartype is dimod.BINARY else (2 * states - 1).astype(np.int8)
    found = dimod.SampleSet.from_samples_bqm((values, labels), bqm, info=info, sort_labels=False)
    return found.slice(len(found)) if len(found) else found
