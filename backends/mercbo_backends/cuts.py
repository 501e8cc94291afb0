"""Minimum cuts from arrays, by PyMaxflow or (where that is missing) OR-Tools; roof duality.

`min_cut` minimises  linear . x + sum_e capacity_e [x at `ones` = 1 and x at `zeros` = 0]  over bits
x: any submodular quadratic function has this form. A node on the sink's side has x = 1.
"""

from __future__ import annotations

import numpy as np

from mercbo.arrays import Bits, Floats, Index
from mercbo_backends.problem import Problem

try:
    import maxflow
except ImportError:
    maxflow = None

# OR-Tools' flow takes whole capacities; their sum stays below this.
WHOLE_SUM = 2.0**60
# Couplings up to which the roof dual is computed. With more of them it takes longer than all else
# together (9 of 14 s on 1,000 bits, all coupled) and settles nothing: other bounds stand then.
MOST_DUAL = 60_000


def solver_name() -> str:
    return "pymaxflow" if maxflow is not None else "ortools"


def min_cut(linear: Floats, ones: Index, zeros: Index, capacity: Floats) -> tuple[Bits, float]:
    """The minimising bits and the minimum (by OR-Tools: a lower bound within rounding)."""
    if len(linear) == 0:
        return np.zeros(0, dtype=np.int8), 0.0
    cut = _by_pymaxflow if maxflow is not None else _by_ortools
    state, flow = cut(linear, ones, zeros, capacity)
    return state, flow + float(np.minimum(linear, 0.0).sum())


def _by_pymaxflow(
    linear: Floats, ones: Index, zeros: Index, capacity: Floats
) -> tuple[Bits, float]:
    graph = maxflow.GraphFloat(len(linear), len(capacity))
    nodes = graph.add_nodes(len(linear))
    if len(capacity):
        graph.add_edges(nodes[zeros], nodes[ones], capacity, np.zeros_like(capacity))
    graph.add_grid_tedges(nodes, np.maximum(linear, 0.0), np.maximum(-linear, 0.0))
    flow = graph.maxflow()
    return graph.get_grid_segments(nodes).astype(np.int8), float(flow)


def _by_ortools(linear: Floats, ones: Index, zeros: Index, capacity: Floats) -> tuple[Bits, float]:
    from ortools.graph.python import max_flow

    n = len(linear)
    source, sink = n, n + 1
    total = float(np.abs(linear).sum() + capacity.sum())
    scale = WHOLE_SUM / total if total > 0 else 1.0
    positive, negative = np.flatnonzero(linear > 0), np.flatnonzero(linear < 0)
    tails = np.concatenate([zeros, np.full(len(positive), source), negative])
    heads = np.concatenate([ones, positive, np.full(len(negative), sink)])
    # rounded down, so that the flow bounds the true one from below
    whole = np.floor(scale * np.concatenate([capacity, linear[positive], -linear[negative]]))
    flow = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(
        tails.astype(np.int32), heads.astype(np.int32), whole.astype(np.int64)
    )
    # arcs of capacity zero make nodes known that nothing else mentions
    flow.add_arcs_with_capacity(
        np.full(n, source, np.int32), np.arange(n, dtype=np.int32), np.zeros(n, np.int64)
    )
    flow.add_arc_with_capacity(source, sink, 0)
    flow.solve(source, sink)
    state = np.ones(n + 2, dtype=np.int8)
    state[np.asarray(flow.get_source_side_min_cut(), dtype=np.intp)] = 0
    return state[:n], flow.optimal_flow() / scale


def trivial_bound(problem: Problem) -> float:
    return float(np.minimum(problem.linear, 0).sum() + np.minimum(problem.biases, 0).sum())


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
