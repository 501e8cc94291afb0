"""What all backends share: a dimod model as arrays, and arrays as a `SampleSet`.

| symbol   | meaning                                                           | shape  |
|----------|-------------------------------------------------------------------|--------|
| B        | bits, in the order of `labels`                                    |        |
| linear   | linear biases, everything over zeros and ones                     | (B,)   |
| coupling | symmetric couplings, zero diagonal                                | (B, B) |
| groups   | one-hot groups: exactly one bit of each is 1                      |        |
| limits   | low <= matrix @ bits <= high                                      | (m, B) |
| excluded | states that must not be returned                                  | (E, B) |

Energies inside leave the offset out. Couplings inside a group never act on a feasible state and
are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import dimod
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index, first_of_each
from mercbo.domain.limits import Limits

# Moves work on a dense matrix of couplings; 8,000 bits take half a gigabyte.
MAX_BITS = 8000
# Bound and energy meet when they differ by less than this, relative to the sum of coefficients.
MEETS = 1e-12


@dataclass(frozen=True)
class Problem:
    """Minimise offset + linear . x + x' coupling x / 2 over feasible bits x."""

    labels: tuple[Any, ...]
    offset: float
    linear: Floats
    heads: Index  # (m,) each coupled pair once
    tails: Index
    biases: Floats
    groups: tuple[Index, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits.none(0))
    excluded: Bits = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int8))

    @classmethod
    def of_bqm(cls, bqm: dimod.BinaryQuadraticModel) -> Problem:
        binary = bqm if bqm.vartype is dimod.BINARY else bqm.change_vartype("BINARY", inplace=False)
        vectors = binary.to_numpy_vectors(return_labels=True)
        heads, tails, biases = vectors.quadratic
        return cls._checked(
            tuple(vectors.labels), vectors.offset, vectors.linear_biases, heads, tails, biases
        )

    @classmethod
    def of_form(cls, linear: Floats, coupling: Floats, groups: Sequence[Index] = ()) -> Problem:
        """Of arrays; `coupling` is symmetric, and zero on its diagonal and inside groups."""
        heads, tails = np.nonzero(np.triu(coupling, 1))
        labels = tuple(range(len(linear)))
        return cls._checked(
            labels, 0.0, linear, heads, tails, coupling[heads, tails], tuple(groups)
        )

    @classmethod
    def of_cqm(cls, cqm: dimod.ConstrainedQuadraticModel) -> Problem:
        check_supported(cqm)
        if any(cqm.vartype(v) is dimod.SPIN for v in cqm.variables):
            cqm = cqm.spin_to_binary()
        labels = tuple(cqm.variables)
        position = {label: i for i, label in enumerate(labels)}
        objective = cqm.objective
        linear = np.zeros(len(labels))
        for label, bias in objective.iter_linear():
            linear[position[label]] = bias
        pairs = [(position[u], position[v], bias) for u, v, bias in objective.iter_quadratic()]
        heads, tails, biases = np.array(pairs, dtype=float).reshape(-1, 3).T
        groups, rows, excluded = read_constraints(cqm, position)
        inside = np.full(len(labels), -1)
        for number, group in enumerate(groups):
            inside[group] = number
        heads, tails = heads.astype(np.intp), tails.astype(np.intp)
        acts = (inside[heads] < 0) | (inside[heads] != inside[tails])
        return cls._checked(
            labels, objective.offset, linear, heads[acts], tails[acts], biases[acts],
            groups, Limits.stack(rows, len(labels)), excluded,
        )  # fmt: skip

    @classmethod
    def _checked(
        cls,
        labels: tuple[Any, ...],
        offset: Any,
        linear: Any,
        heads: Any,
        tails: Any,
        biases: Any,
        groups: tuple[Index, ...] = (),
        limits: Limits | None = None,
        excluded: Bits | None = None,
    ) -> Problem:
        linear = np.asarray(linear, dtype=np.float64)
        biases = np.asarray(biases, dtype=np.float64)
        if not (np.isfinite(linear).all() and np.isfinite(biases).all() and np.isfinite(offset)):
            raise ValueError("the model has a NaN or infinite bias")
        if len(labels) > MAX_BITS:
            raise ValueError(f"the model has {len(labels)} variables, at most {MAX_BITS} are taken")
        return cls(
            labels, float(offset), linear,
            np.asarray(heads, dtype=np.intp), np.asarray(tails, dtype=np.intp), biases, groups,
            Limits.none(len(labels)) if limits is None else limits,
            np.zeros((0, len(labels)), dtype=np.int8) if excluded is None else excluded,
        )  # fmt: skip

    @property
    def width(self) -> int:
        return len(self.linear)

    @property
    def is_free(self) -> bool:
        """Whether every state is feasible."""
        return not (self.groups or len(self.limits) or len(self.excluded))

    @property
    def entropy(self) -> float:
        """log2 of the number of states with one bit in each group."""
        sizes = [len(group) for group in self.groups]
        return self.width - sum(sizes) + float(np.log2(sizes).sum() if sizes else 0.0)

    @cached_property
    def scale(self) -> float:
        """The sum of all coefficients: no energy is larger, and rounding is relative to it."""
        return float(np.abs(self.linear).sum() + np.abs(self.biases).sum()) or 1.0

    @cached_property
    def coupling(self) -> Floats:
        dense = np.zeros((self.width, self.width))
        np.add.at(dense, (self.heads, self.tails), self.biases)
        return dense + dense.T

    def energies(self, states: Bits) -> Floats:
        return moves.energies(self.linear, self.coupling, states)

    def feasible(self, states: Bits) -> Any:
        """(R,): which states satisfy groups and limits and are not excluded."""
        fine = self.limits.satisfied(states)
        for group in self.groups:
            fine &= states[:, group].sum(axis=1) == 1
        if len(self.excluded):
            barred = {row.tobytes() for row in self.excluded}
            fine &= np.array([row.tobytes() not in barred for row in states], dtype=np.bool_)
        return fine


def check_supported(cqm: dimod.ConstrainedQuadraticModel) -> None:
    for variable in cqm.variables:
        if cqm.vartype(variable) not in (dimod.BINARY, dimod.SPIN):
            kind = cqm.vartype(variable).name
            raise ValueError(f"variable {variable!r} is {kind}; only BINARY and SPIN are taken")
    for label, constraint in cqm.constraints.items():
        if not constraint.lhs.is_linear():
            raise ValueError(f"constraint {label!r} is quadratic; only linear ones are taken")
        if constraint.lhs.is_soft():
            raise ValueError(f"constraint {label!r} is soft; only hard ones are taken")


def read_constraints(
    cqm: dimod.ConstrainedQuadraticModel, position: dict[Any, int]
) -> tuple[tuple[Index, ...], list[tuple[Floats, float, float]], Bits]:
    """One-hot groups, rows of linear limits, and excluded states."""
    groups: list[Index] = []
    rows: list[tuple[Floats, float, float]] = []
    excluded: list[Bits] = []
    taken = np.zeros(len(position), dtype=np.bool_)  # bits that are in a group
    # what was declared discrete goes first: of groups that overlap, the first stays one
    for label in sorted(cqm.constraints, key=lambda label: label not in cqm.discrete):
        row, sense, bound = read_row(cqm.constraints[label], label, position)
        members = np.flatnonzero(row)
        state = forbidden_state(row, sense, bound)
        if is_one_hot(row, sense, bound) and not taken[members].any():
            taken[members] = True
            groups.append(members)
        elif state is not None:
            excluded.append(state)
        else:
            low = -np.inf if sense == "<=" else bound
            rows.append((row, low, np.inf if sense == ">=" else bound))
    states = np.array(excluded, dtype=np.int8).reshape(len(excluded), len(position))
    return tuple(groups), rows, states


def read_row(constraint: Any, label: Any, position: dict[Any, int]) -> tuple[Floats, str, float]:
    """Coefficients, sense and right-hand side of a linear constraint."""
    row = np.zeros(len(position))
    for variable, bias in constraint.lhs.iter_linear():
        row[position[variable]] = bias
    bound = float(constraint.rhs) - float(constraint.lhs.offset)
    if not (np.isfinite(row).all() and np.isfinite(bound)):
        raise ValueError(f"constraint {label!r} has a NaN or infinite coefficient")
    return row, constraint.sense.value, bound


def is_one_hot(row: Floats, sense: str, bound: float) -> bool:
    """Whether a constraint says that exactly one of two or more bits is 1."""
    members = row[row != 0]
    return sense == "==" and bound == 1 and len(members) > 1 and bool((members == 1).all())


def forbidden_state(row: Floats, sense: str, bound: float) -> Bits | None:
    """The one state that a constraint rules out, where it rules out just one.

    That is the form "at least one bit differs": plus one for each zero of the state, minus one
    for each of its ones, at least one minus the number of ones (or all that negated).
    """
    if sense == "<=":
        row, sense, bound = -row, ">=", -bound
    if sense != ">=" or len(row) == 0 or not np.all(np.abs(row) == 1.0):
        return None
    state = (row < 0).astype(np.int8)
    return state if bound == 1 - int(state.sum()) else None


def distinct(states: Bits, energies: Floats) -> Index:
    """Positions of the distinct states, lowest energy first."""
    first = first_of_each(states)
    return np.asarray(first[np.argsort(energies[first], kind="stable")])


def bqm_samples(
    bqm: dimod.BinaryQuadraticModel, problem: Problem, states: Bits, info: dict[str, Any]
) -> dimod.SampleSet:
    """Samples in the model's own vartype, with energies by the model itself, lowest first."""
    values = states if bqm.vartype is dimod.BINARY else (2 * states - 1).astype(np.int8)
    found = dimod.SampleSet.from_samples_bqm(
        (values, list(problem.labels)), bqm, info=info, sort_labels=False
    )
    return found.slice(len(found)) if len(found) else found


def cqm_samples(
    cqm: dimod.ConstrainedQuadraticModel, problem: Problem, states: Bits, info: dict[str, Any]
) -> dimod.SampleSet:
    """Samples of a constrained model, or none; `is_feasible` and `is_satisfied` are dimod's."""
    spin = np.array([cqm.vartype(v) is dimod.SPIN for v in problem.labels], dtype=np.bool_)
    values = np.where(spin, 2 * states - 1, states).astype(np.int8)
    if len(values) == 0:
        return dimod.SampleSet.from_samples(
            (values, list(problem.labels)), "INTEGER", energy=[], info=info
        )
    found = dimod.SampleSet.from_samples_cqm((values, list(problem.labels)), cqm)
    found.info.update(info)
    return found.slice(len(found))


def count_of(name: str, number: object, *, least: int = 0) -> int:
    """A whole number setting; an error that quotes what came."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise ValueError(f"{name}={number!r} is not a whole number of at least {least}")
    return int(number)


def seconds_of(name: str, number: object) -> float:
    """A time limit in seconds; None is no limit."""
    if number is None:
        return float("inf")
    if isinstance(number, bool) or not isinstance(number, Real) or not float(number) > 0:
        raise ValueError(f"{name}={number!r} is not a number of seconds above 0")
    return float(number)
