"""`CpSat`: proof by OR-Tools' CP-SAT, for validation and for hard constraints.

CP-SAT works on whole numbers, so coefficients are multiplied by `scale` and rounded. Each of the
t terms is off by at most half a unit, so energies are right to `rounding_slack` = t / (2 scale),
and the bound is loosened by as much.

The quadratic part is written in one of two ways (`formulation`; "auto" takes rows where all bits
are free and products where there are one-hot groups, which is the faster on each side):

- "rows": bits are ranked by the sum of their couplings, and each bit x has one integer
  z >= x * (sum of its couplings to lower-ranked bits), by z >= L x and z >= sum - U (1 - x) with
  L and U the least and largest values of that sum; a one-hot group counts in them as one choice.
  On dense models this proves in a fraction of the time (`mercbo bench proofs`).
- "products": each product y = x_i x_j is a Boolean of its own, tied from both sides: the textbook
  linearisation.

A quick descent gives the hint and, where one solution is wanted, an upper limit of the objective;
roof duality gives a lower one.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar

import numpy as np

try:
    from ortools.sat.python import cp_model
except ImportError as error:
    raise ImportError("CpSat needs OR-Tools: pip install ortools") from error

from mercbo.arrays import Bits, Floats
from mercbo_backends.base import Backend, Check
from mercbo_backends.cuts import MOST_DUAL, roof_dual, trivial_bound
from mercbo_backends.problem import Problem, count_of, seconds_of
from mercbo_backends.search import allowed, polish, random_states

# The sum of scaled coefficients: more is slower (2^45: half as fast), less rounds more.
WHOLE_SUM = 2.0**36
# Sums of coefficients between which the scale to whole numbers and its inverse are floats.
SCALES = (1e-295, 1e300)
STATUS = {
    cp_model.OPTIMAL: "optimal",
    cp_model.FEASIBLE: "feasible",
}


def formulation_of(name: str, given: object) -> str:
    if given not in ("auto", "rows", "products"):
        raise ValueError(f"{name}={given!r} is not 'auto', 'rows' or 'products'")
    return str(given)


class CpSat(Backend):
    """The lowest states of a binary or a linearly constrained quadratic model, with proof.

    num_reads
        How many distinct states, lowest first (1).
    time_limit
        Seconds for all of them (30; None: no limit).
    workers
        Threads (1, with which the same seed gives the same answer unless the time runs out; 0
        takes all cores).
    formulation
        "auto", "rows" or "products"; see the module.

    info: `status` ("optimal" where all that is returned is proven, "feasible", "infeasible",
    "unknown"), `lower_bound` and `gap` of the lowest, `rounding_slack`, `timing`.
    """

    exact: ClassVar[bool] = True
    checks: ClassVar[dict[str, Check]] = {
        "num_reads": partial(count_of, least=1),
        "time_limit": seconds_of,
        "workers": count_of,
        "formulation": formulation_of,
    }

    def __init__(
        self,
        *,
        num_reads: int = 1,
        time_limit: float | None = 30.0,
        workers: int = 1,
        formulation: str = "auto",
    ) -> None:
        super().__init__(
            num_reads=num_reads, time_limit=time_limit, workers=workers, formulation=formulation
        )

    def solve(
        self, problem: Problem, settings: dict[str, Any], deadline: float, seed: int | None
    ) -> tuple[Bits, dict[str, Any]]:
        wanted, workers = settings["num_reads"], settings["workers"]
        rng = np.random.default_rng(seed)
        formulation = settings["formulation"]
        if formulation == "auto":
            formulation = "products" if problem.groups else "rows"
        program = Program(problem, formulation, rng, cut_off=wanted == 1)
        states: list[Bits] = []
        statuses: list[str] = []
        bound = -np.inf
        while len(states) < wanted:
            left = deadline - time.perf_counter()
            status, state, lower = program.solve(left, workers, seed)
            bound = lower if not statuses else bound
            if state is None:
                statuses += [status] if not states else []
                break
            statuses.append(status)
            states.append(state)
            program.exclude(state)
            if status != "optimal":
                break
        found = np.array(states, dtype=np.int8).reshape(len(states), problem.width)
        lowest = float(problem.energies(found)[0]) if len(found) else np.inf
        gap = max(0.0, lowest - bound) if len(found) else np.inf
        info = {
            "status": statuses[-1],
            "lower_bound": bound + problem.offset,
            "gap": 0.0 if statuses[0] == "optimal" and gap <= 3 * program.slack else gap,
            "rounding_slack": program.slack,
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
        self.best: Bits | None = None  # an allowed state of a quick descent
        for state in problem.excluded:
            self.exclude(state)
        terms = int((problem.linear != 0).sum() + (problem.biases != 0).sum())
        self.scale = WHOLE_SUM / float(np.clip(problem.scale, *SCALES))
        self.slack = terms / (2 * self.scale)
        # the flows behind it are rounded too
        few = len(problem.biases) <= MOST_DUAL
        dual = roof_dual(problem)[0] if few else trivial_bound(problem)
        self.dual = dual - (terms + 1) * np.finfo(float).eps * problem.scale
        # where only limits are hard, CP-SAT needs no help, and a descent may take longer than it
        hard = len(problem.biases) or not len(problem.limits)
        self.best = self._quick_best(rng) if hard else None
        self._set_objective(formulation, self.best, cut_off)
        if self.best is not None:
            for bit, value in zip(self.bits, self.best.tolist(), strict=True):
                self.model.add_hint(bit, value)

    def _add_limits(self) -> None:
        for number in range(len(self.problem.limits)):
            weights, low, high = self.problem.limits.whole(number)
            side = cp_model.LinearExpr.weighted_sum(self.bits, weights.tolist())
            if low is not None:
                self.model.add(side >= low)
            if high is not None:
                self.model.add(side <= high)

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
            self.model.add(objective >= math.floor(self.dual * self.scale - loose))
            if limited and best is not None:
                energy = float(self.problem.energies(best[np.newaxis])[0])
                self.model.add(objective <= math.ceil(energy * self.scale + loose))

    def _quick_best(self, rng: np.random.Generator) -> Bits | None:
        """The best allowed state of a quick descent."""
        problem = self.problem
        starts = random_states(problem, 50, rng=rng)
        states = allowed(problem, polish(problem, starts, rng=rng))
        states = states[problem.feasible(states)]
        return states[problem.energies(states).argmin()] if len(states) else None

    def exclude(self, state: Bits) -> None:
        """Rule out one state: at least one bit differs."""
        if self.best is not None and np.array_equal(state, self.best):
            self.best = None
        if len(self.bits) == 0:
            self.model.add_bool_or([])
            return
        self.model.add_bool_or(
            ~bit if value else bit for bit, value in zip(self.bits, state.tolist(), strict=True)
        )

    def solve(
        self, time_limit: float, workers: int, seed: int | None
    ) -> tuple[str, Bits | None, float]:
        """Status, the best state, and a lower bound in units of the problem.

        Where the time runs out before CP-SAT has a state, that of the quick descent stands in.
        """
        fallback = "unknown" if self.best is None else "feasible"
        if time_limit <= 0:
            return fallback, self.best, self.dual
        solver = cp_model.CpSolver()
        if np.isfinite(time_limit):
            solver.parameters.max_time_in_seconds = time_limit
        solver.parameters.num_workers = workers
        if seed is not None:
            solver.parameters.random_seed = int(seed) % 2**31
        status = _interruptible(solver, self.model)
        if status == cp_model.INFEASIBLE:
            return "infeasible", None, np.inf
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return fallback, self.best, self.dual
        state = np.array([solver.boolean_value(bit) for bit in self.bits], dtype=np.int8)
        bound = max(solver.best_objective_bound / self.scale - self.slack, self.dual)
        return STATUS[status], state, float(bound)


def _interruptible(solver: cp_model.CpSolver, model: cp_model.CpModel) -> Any:
    """The status of a solve that Ctrl-C ends, as it ends any Python code.

    CP-SAT would catch the signal itself, and leave the process without a handler afterwards: the
    next Ctrl-C, long after the solve, would then kill Python.
    """
    solver.parameters.catch_sigint_signal = False
    with ThreadPoolExecutor(1) as apart:  # so that this thread can be interrupted
        solving = None
        try:
            solving = apart.submit(solver.solve, model)
            return solving.result()
        except KeyboardInterrupt:
            # a solve that has not begun does not hear the first call
            while solving is not None and not solving.done():
                solver.stop_search()
                time.sleep(0.01)
            raise
