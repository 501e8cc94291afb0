"""`CpSat`: proof by OR-Tools' CP-SAT, for validation and for hard constraints.

CP-SAT works on whole numbers, so coefficients are multiplied by `scale` and rounded. Each of the
t terms is off by at most half a unit, so energies are right to `rounding_slack` = t / (2 scale),
and the bound is loosened by as much.

The quadratic part is written in one of two ways (`formulation`):

- "rows" (default): bits are ranked by the sum of their couplings, and each bit x has one integer
  z >= x * (sum of its couplings to lower-ranked bits), by z >= L x and z >= sum - U (1 - x) with
  L and U the least and largest values of that sum; a one-hot group counts in them as one choice.
  On dense models this proves in a fraction of the time (`mercbo bench proofs`).
- "products": each product y = x_i x_j is a Boolean of its own, tied from both sides: the textbook
  linearisation, kept for comparison.

A quick descent gives the hint and, where one solution is wanted, an upper limit of the objective;
roof duality gives a lower one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import dimod
import numpy as np
from ortools.sat.python import cp_model

from mercbo import moves
from mercbo.arrays import Bits, Floats
from mercbo_backends.graphcut import allowed, polish, roof_dual
from mercbo_backends.problem import (
    MEETS,
    Problem,
    bqm_samples,
    count_of,
    cqm_samples,
    empty_samples,
    seconds_of,
)

# The sum of scaled coefficients: more is slower (2^45: half as fast), less rounds more.
WHOLE_SUM = 2.0**36
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

    def __init__(
        self,
        *,
        time_limit: float | None = 30.0,
        workers: int = 0,
        formulation: str = "rows",
    ) -> None:
        if formulation not in ("rows", "products"):
            raise ValueError(f"formulation={formulation!r} is not 'rows' or 'products'")
        self._defaults = {"time_limit": time_limit, "workers": workers, "num_reads": 1}
        self._formulation = formulation

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
        rng = np.random.default_rng(seed)
        program = Program(problem, self._formulation, rng, cut_off=wanted == 1)
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

    def __init__(
        self, problem: Problem, formulation: str, rng: np.random.Generator, *, cut_off: bool
    ) -> None:
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
        best = self._quick_best(rng)
        self._set_objective(formulation, best, cut_off)
        if best is not None:
            for bit, value in zip(self.bits, best.tolist(), strict=True):
                self.model.add_hint(bit, value)

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

    def _products(self) -> tuple[list[Any], list[int]]:
        """Variables and weights whose weighted sum is the scaled quadratic part."""
        problem, variables, weights = self.problem, [], []
        for i, j, bias in zip(
            problem.heads.tolist(), problem.tails.tolist(), problem.biases.tolist(), strict=True
        ):
            whole = round(bias * self.scale)
            if whole:
                product = self.model.new_bool_var(f"y{i},{j}")
                self.model.add_bool_or(product, ~self.bits[i], ~self.bits[j])
                self.model.add_implication(product, self.bits[i])
                self.model.add_implication(product, self.bits[j])
                variables.append(product)
                weights.append(whole)
        return variables, weights

    def _rows(self, *, tied: bool) -> tuple[list[Any], list[int]]:
        """As `_products`. `tied` bounds each row from above as well: needed where no cut-off of
        the objective keeps CP-SAT from wandering in rows that are larger than they must be."""
        whole = np.round(self.problem.coupling * self.scale)
        ranked = np.argsort(-np.abs(whole).sum(axis=1), kind="stable")
        variables = []
        for position, i in enumerate(ranked.tolist()):
            partners = [j for j in ranked[position + 1 :].tolist() if whole[i, j]]
            if not partners:
                continue
            low, high = self._range_of(whole[i], partners)
            total = cp_model.LinearExpr.weighted_sum(
                [self.bits[j] for j in partners], [int(whole[i, j]) for j in partners]
            )
            row = self.model.new_int_var(min(low, 0), max(high, 0), f"z{i}")
            self.model.add(row >= low * self.bits[i])
            self.model.add(row >= total - high * (1 - self.bits[i]))
            if tied:
                self.model.add(row <= total - low * (1 - self.bits[i]))
            variables.append(row)
        return variables, [1] * len(variables)

    def _range_of(self, weights: Floats, partners: list[int]) -> tuple[int, int]:
        """Least and largest weighted sum of the partners, one bit of each group being 1."""
        chosen = np.zeros(len(weights))
        chosen[partners] = weights[partners]
        low = high = 0.0
        grouped = np.zeros(len(weights), dtype=np.bool_)
        for group in self.problem.groups:
            low, high = low + chosen[group].min(), high + chosen[group].max()
            grouped[group] = True
        low += np.minimum(chosen[~grouped], 0.0).sum()
        high += np.maximum(chosen[~grouped], 0.0).sum()
        return int(low), int(high)

    def _set_objective(self, formulation: str, best: Bits | None, cut_off: bool) -> None:
        limited = cut_off and best is not None
        rows = formulation == "rows"
        variables, weights = self._rows(tied=not limited) if rows else self._products()
        variables = self.bits + variables
        weights = [round(c * self.scale) for c in self.problem.linear.tolist()] + weights
        objective = cp_model.LinearExpr.weighted_sum(variables, weights)
        self.model.minimize(objective)
        if rows and self.bits:
            # each bound is loosened by what rounding may cost
            loose = self.slack * self.scale + 1
            dual, _ = roof_dual(self.problem)
            self.model.add(objective >= math.floor(dual * self.scale - loose))
            if limited and best is not None:
                energy = float(self.problem.energies(best[np.newaxis])[0])
                self.model.add(objective <= math.ceil(energy * self.scale + loose))

    def _quick_best(self, rng: np.random.Generator) -> Bits | None:
        """The best allowed state of a quick descent."""
        problem = self.problem
        starts = moves.random_states(50, problem.width, problem.groups, rng=rng)
        states = allowed(problem, polish(problem, starts, rng))
        return states[problem.energies(states).argmin()] if len(states) else None

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
