"""`CpSat`: proof by OR-Tools' CP-SAT, for validation and for hard constraints.

CP-SAT works on whole numbers, so coefficients are multiplied by `scale` and rounded. Each of the
t terms is off by at most half a unit, so energies are right to `rounding_slack` = t / (2 scale),
and the bound is loosened by as much.

A product y = x_i x_j is a Boolean of its own, tied only from the side that minimisation does not
push it to: y >= x_i + x_j - 1 where its coefficient is positive, y <= x_i and y <= x_j where it
is negative. Inside a one-hot group products vanish. A quick descent gives the hint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import dimod
import numpy as np
from ortools.sat.python import cp_model

from mercbo import moves
from mercbo.arrays import Bits, Floats
from mercbo_backends.problem import (
    MEETS,
    Problem,
    bqm_samples,
    count_of,
    cqm_samples,
    empty_samples,
    seconds_of,
)

# The sum of scaled coefficients stays below this, far from CP-SAT's overflow.
WHOLE_SUM = 2.0**45
# A limit's coefficients are made whole by the smallest of these that leaves them exact ...
EXACT_SCALES = [10.0**k for k in range(10)]
STATUS = {
    cp_model.OPTIMAL: "optimal",
    cp_model.FEASIBLE: "feasible",
    cp_model.INFEASIBLE: "infeasible",
    cp_model.UNKNOWN: "unknown",
    cp_model.MODEL_INVALID: "invalid",
}


class CpSat(dimod.Sampler):
    """The lowest states of a binary or a linearly constrained quadratic model, with proof."""

    def __init__(self, *, time_limit: float | None = 30.0, workers: int = 0) -> None:
        self._defaults = {"time_limit": time_limit, "workers": workers, "num_reads": 1}

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"num_reads": [], "time_limit": [], "workers": [], "seed": []}

    @property
    def properties(self) -> Mapping[str, Any]:
        return dict(self._defaults)

    def sample(
        self, bqm: dimod.BinaryQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """The `num_reads` lowest distinct states.

        time_limit: seconds for each of them (30; None for no limit). workers: threads (0 lets
        CP-SAT take all cores; with 1, the same seed gives the same answer). info: `status`
        ("optimal", "feasible", "infeasible", "unknown"), `lower_bound`, `gap`,
        `rounding_slack`, `timing`.
        """
        problem = Problem.of_bqm(bqm)
        states, info = self._solve(problem, kwargs, seed)
        return bqm_samples(bqm, problem, states, info)

    def sample_cqm(
        self, cqm: dimod.ConstrainedQuadraticModel, *, seed: int | None = None, **kwargs: Any
    ) -> dimod.SampleSet:
        """As `sample`, over the feasible states; an empty set has status "infeasible"."""
        problem = Problem.of_cqm(cqm)
        states, info = self._solve(problem, kwargs, seed)
        if len(states) == 0:
            return empty_samples(cqm, info)
        return cqm_samples(cqm, problem, states, info)

    def _solve(
        self, problem: Problem, kwargs: dict[str, Any], seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        given = {**self._defaults, **self.remove_unknown_kwargs(**kwargs)}
        wanted = count_of("num_reads", given["num_reads"], least=1)
        workers = count_of("workers", given["workers"])
        limit = seconds_of("time_limit", given["time_limit"])
        started = time.perf_counter()
        program = Program(problem, np.random.default_rng(seed))
        states, status, bound = [], "unknown", -np.inf
        for read in range(wanted):
            left = limit - (time.perf_counter() - started)
            if left <= 0:
                break
            status_now, state, bound_now = program.solve(left, workers, seed)
            if read == 0:
                status, bound = status_now, bound_now
            if state is None:
                break
            states.append(state)
            program.exclude(state)
        found = np.array(states, dtype=np.int8).reshape(len(states), problem.width)
        lowest = float(problem.energies(found)[0]) if len(found) else np.inf
        gap = max(0.0, lowest - bound) if len(found) else np.inf
        proven = status == "optimal"
        info = {
            "status": status,
            "lower_bound": bound + problem.offset,
            "gap": 0.0 if proven and gap <= 2 * program.slack + MEETS * problem.scale else gap,
            "rounding_slack": program.slack,
            "timing": {"total": time.perf_counter() - started},
        }
        return found, info


class Program:
    """A problem as a CP-SAT model, to which exclusions can be added between solves."""

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        self.problem = problem
        self.model = cp_model.CpModel()
        self.bits = [self.model.new_bool_var(f"x{i}") for i in range(problem.width)]
        for group in problem.groups:
            self.model.add_exactly_one(self.bits[i] for i in group)
        self._add_limits()
        for state in problem.excluded:
            self.exclude(state)
        terms = int((problem.linear != 0).sum() + (problem.biases != 0).sum())
        self.scale = WHOLE_SUM / problem.scale
        self.slack = terms / (2 * self.scale)
        self._set_objective()
        self._hint(rng)

    def _add_limits(self) -> None:
        limits = self.problem.limits
        for row, low, high in zip(limits.matrix, limits.low, limits.high, strict=True):
            scale = exact_scale(np.concatenate([row, [b for b in (low, high) if np.isfinite(b)]]))
            terms = [round(c * scale) * self.bits[i] for i, c in enumerate(row.tolist()) if c]
            side = sum(terms) if terms else 0
            if np.isfinite(low):
                self.model.add(side >= int(np.ceil(low * scale - 1e-6)))
            if np.isfinite(high):
                self.model.add(side <= int(np.floor(high * scale + 1e-6)))

    def _set_objective(self) -> None:
        problem = self.problem
        weights = [round(c * self.scale) for c in problem.linear.tolist()]
        variables = list(self.bits)
        for i, j, bias in zip(
            problem.heads.tolist(), problem.tails.tolist(), problem.biases.tolist(), strict=True
        ):
            whole = round(bias * self.scale)
            if whole == 0:
                continue
            product = self.model.new_bool_var(f"y{i},{j}")
            if whole > 0:
                self.model.add_bool_or(product, ~self.bits[i], ~self.bits[j])
            else:
                self.model.add_implication(product, self.bits[i])
                self.model.add_implication(product, self.bits[j])
            variables.append(product)
            weights.append(whole)
        self.model.minimize(cp_model.LinearExpr.weighted_sum(variables, weights))

    def _hint(self, rng: np.random.Generator) -> None:
        """The best state of a quick descent, which CP-SAT completes."""
        problem = self.problem
        if problem.width == 0:
            return
        starts = moves.random_states(50, problem.width, problem.groups, rng=rng)
        if len(problem.limits):
            starts, reached = moves.mend(problem.groups, problem.limits, starts, rng=rng)
            starts = starts[reached]
        states, energies = moves.descend(
            problem.linear, problem.coupling, problem.groups, starts, problem.limits
        )
        if len(states):
            for bit, value in zip(self.bits, states[energies.argmin()].tolist(), strict=True):
                self.model.add_hint(bit, value)

    def exclude(self, state: Bits) -> None:
        """Rule out one state: at least one bit differs."""
        if len(self.bits) == 0:
            self.model.add_bool_or([])
            return
        self.model.add_bool_or(
            ~bit if value else bit for bit, value in zip(self.bits, state.tolist(), strict=True)
        )

    def solve(
        self, time_limit: float, workers: int, seed: int | None
    ) -> tuple[str, Bits | None, float]:
        """Status, the best state, and a lower bound in units of the problem."""
        solver = cp_model.CpSolver()
        if np.isfinite(time_limit):
            solver.parameters.max_time_in_seconds = time_limit
        solver.parameters.num_workers = workers
        if seed is not None:
            solver.parameters.random_seed = int(seed) % 2**31
        status = solver.solve(self.model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            bound = np.inf if status == cp_model.INFEASIBLE else -np.inf
            return STATUS[status], None, bound
        state = np.array([solver.boolean_value(bit) for bit in self.bits], dtype=np.int8)
        bound = solver.best_objective_bound / self.scale - self.slack
        return STATUS[status], state, float(bound)


def exact_scale(numbers: Floats) -> float:
    """The smallest power of ten that makes the numbers whole; the largest where none does."""
    for scale in EXACT_SCALES:
        if np.all(np.abs(numbers * scale - np.round(numbers * scale)) < 1e-9 * scale):
            return scale
    return EXACT_SCALES[-1]
