"""`Exhaustive`: the proven minimum by trying every feasible state, in blocks of matrix products.

Units (free bits and one-hot groups) are split into two halves whose states are listed, U and V.
The energy of a pair of half-states is E_U + E_V + u' C v: a matrix product gives it for a block of
U against all of V. Memory is bounded by the size of a block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index
from mercbo.domain.limits import Limits
from mercbo_backends.base import Backend, Check
from mercbo_backends.problem import Problem, count_of, seconds_of

MAX_BITS, MAX_POINTS = 28, 10**8
# Entries of one block: 4 million doubles are 32 MB.
BLOCK = 1 << 22


class Exhaustive(Backend):
    """The lowest states, proven, of models to 28 free bits or 10^8 points with groups.

    num_reads
        How many, lowest first (1).
    time_limit
        Seconds after which the lowest so far are returned (None: no limit).

    info: `status` ("optimal"; "infeasible" where there is no feasible state; "feasible" or
    "unknown" where the time ran out), `lower_bound`, `gap`, `timing`. A seed changes nothing.
    """

    exact: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = {
        "num_reads": partial(count_of, least=1),
        "time_limit": seconds_of,
    }

    def __init__(self, *, num_reads: int = 1, time_limit: float | None = None) -> None:
        super().__init__(num_reads=num_reads, time_limit=time_limit)

    def solve(
        self,
        problem: Problem,
        settings: dict[str, Any],
        deadline: float,
        seed: int | None,  # noqa: ARG002
    ) -> tuple[Bits, dict[str, Any]]:
        return enumerate_lowest(problem, settings["num_reads"], deadline)


def enumerate_lowest(problem: Problem, wanted: int, deadline: float) -> tuple[Bits, dict[str, Any]]:
    check_size(problem)
    # excluded states may be among the lowest: keep as many more
    kept = Lowest(wanted + len(problem.excluded), problem.width)
    finished = True
    for number, (energies, left, right) in enumerate(blocks(problem)):
        if number and time.perf_counter() > deadline:
            finished = False
            break
        kept.offer(energies, left, right)
    states = kept.states
    states = states[problem.feasible(states)][:wanted]
    lowest = float(problem.energies(states)[0]) + problem.offset if len(states) else np.inf
    found = "optimal" if len(states) else "infeasible"
    info = {
        "status": found if finished else "feasible" if len(states) else "unknown",
        "lower_bound": lowest if finished else -np.inf,
        "gap": 0.0 if finished else np.inf,
    }
    return states, info


def choices(unit: Index) -> int:
    return 2 if len(unit) == 1 else len(unit)


def check_size(problem: Problem) -> None:
    points = state_count(moves.units_of(problem.width, problem.groups))
    if problem.groups and points > MAX_POINTS:
        raise ValueError(
            f"{points:,} points are too many to try each, at most {MAX_POINTS:,} are tried; "
            "use another backend"
        )
    if not problem.groups and problem.width > MAX_BITS:
        raise ValueError(
            f"{problem.width} bits: 2^{problem.width} states are too many to try each, at most "
            f"{MAX_BITS} bits are tried; use another backend"
        )


def half_states(units: list[Index], width: int, start: int, stop: int) -> Floats:
    """(states, B): the `start`-th to `stop`-th state of some units, zero elsewhere."""
    rest = np.arange(start, stop)
    states = np.zeros((len(rest), width))
    for unit in units:
        rest, digit = np.divmod(rest, choices(unit))
        if len(unit) == 1:
            states[:, unit[0]] = digit
        else:
            states[np.arange(len(states)), unit[digit]] = 1.0
    return states


def halves(units: list[Index]) -> tuple[list[Index], list[Index]]:
    """Two parts with numbers of states as equal as a greedy choice makes them."""
    parts: tuple[list[Index], list[Index]] = ([], [])
    sizes = [1, 1]
    for unit in sorted(units, key=choices, reverse=True):
        side = int(sizes[1] < sizes[0])
        parts[side].append(unit)
        sizes[side] *= choices(unit)
    return parts


def state_count(units: list[Index]) -> int:
    return math.prod(choices(unit) for unit in units)


def blocks(problem: Problem) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Energies (u, v) of blocks of left half-states against blocks of right ones, and both.

    Infeasible pairs have infinite energy.
    """
    left_units, right_units = halves(moves.units_of(problem.width, problem.groups))
    limits, width = problem.limits, problem.width
    longest = max(1, BLOCK // max(1, width))  # half-states held at a time
    across_step = max(1, min(longest, int(BLOCK**0.5)))
    for right in _steps(state_count(right_units), across_step):
        second = half_states(right_units, width, *right)
        own_second, across = problem.energies(second), second @ problem.coupling  # type: ignore[arg-type]
        sides_second = second @ limits.matrix.T
        left_step = max(1, min(longest, BLOCK // len(second)))
        for left in _steps(state_count(left_units), left_step):
            first = half_states(left_units, width, *left)
            energies = first @ across.T
            energies += problem.energies(first)[:, np.newaxis]  # type: ignore[arg-type]
            energies += own_second
            for limit in range(len(limits)):
                side = first @ limits.matrix[limit]
                one = Limits(
                    limits.matrix[limit : limit + 1],
                    limits.low[limit : limit + 1],
                    limits.high[limit : limit + 1],
                )
                sides = side[:, np.newaxis, np.newaxis] + sides_second[:, limit, np.newaxis]
                energies[~one.holds(sides)] = np.inf
            yield energies, first, second


def _steps(total: int, step: int) -> Iterator[tuple[int, int]]:
    for start in range(0, total, step):
        yield start, min(start + step, total)


class Lowest:
    """The lowest few states met so far."""

    def __init__(self, count: int, width: int) -> None:
        self.count = count
        self.energies = np.zeros(0)
        self.states = np.zeros((0, width), dtype=np.int8)

    def offer(self, energies: Floats, left: Floats, right: Floats) -> None:
        flat = energies.ravel()
        if self.count == 1:
            chosen = np.array([int(flat.argmin())])
        else:
            chosen = np.argpartition(flat, min(self.count, len(flat)) - 1)[: self.count]
        worst = self.energies[-1] if len(self.energies) == self.count else np.inf
        chosen = chosen[flat[chosen] < worst]
        if len(chosen) == 0:
            return
        u, v = np.divmod(chosen, energies.shape[1])
        states = (left[u] + right[v]).astype(np.int8)
        together = np.concatenate([self.energies, flat[chosen]])
        order = np.argsort(together, kind="stable")[: self.count]
        self.energies = together[order]
        self.states = np.concatenate([self.states, states])[order]
