"""`Region`: the rows that the constraints allow, as arrays. The user's terms end here.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| L      | levels: the values of all variables side by side                            |        |
| levels | the level of each entry of a row                                            | (N, n) |
| open   | the levels that a row may have at all                                       | (L,)   |
| limits | low <= sum of the matrix over a row's levels <= high                        | (m, L) |
| sides  | those sums                                                                  | (N, m) |

Rows of a constraint that speak of one variable only close levels; the others become limits. What
else there may be: predicates (`Where`), and a table that lists all rows there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercbo.arrays import Bits, Floats, Index, Mask, Rows, keys
from mercbo.domain.constraints import Constraint, Row, Where
from mercbo.domain.limits import Limits
from mercbo.domain.variables import Variable, points_of
from mercbo.errors import SpaceError

# Answers of predicates that are remembered; each is a row and a bit.
MOST_ANSWERS = 200_000
# Rows whose neighbours are checked at a time, by entries of their (rows, L, m) array.
CHUNK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Region:
    """The feasible rows of some variables."""

    variables: Mapping[str, Variable]
    constraints: tuple[Constraint, ...]
    open: Mask
    limits: Limits
    owner: Index  # (m,) which constraint a limit comes from, -1 for none
    table: Rows | None = None
    _answers: dict[tuple[str, bytes], bool] = field(default_factory=dict, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # a space's view of its variables cannot be sent to another process, a copy can
        return {**self.__dict__, "variables": dict(self.variables)}

    @classmethod
    def of(
        cls,
        variables: Mapping[str, Variable],
        constraints: Sequence[Constraint] = (),
        table: Rows | None = None,
    ) -> Region:
        sizes = [v.size for v in variables.values()]
        start = dict(zip(variables, np.cumsum([0, *sizes]).tolist(), strict=False))
        width = sum(sizes)
        open_ = np.ones(width, dtype=np.bool_)
        rows: list[tuple[Floats, float, float]] = []
        owner: list[int] = []
        for number, constraint in enumerate(constraints):
            for row in constraint.rows(variables):
                line = np.zeros(width)
                for (name, index), weight in row.weights.items():
                    line[start[name] + index] = weight
                # a row that weighs nothing always holds or never: any variable can say so
                named = {n for (n, _), weight in row.weights.items() if weight} or {
                    next(iter(variables))
                }
                if len(named) == 1:
                    name = named.pop()
                    open_ &= _unary(line, row, start[name], variables[name].size)
                else:
                    rows.append((line, row.low, row.high))
                    owner.append(number)
        limits = Limits.stack(rows, width)
        return cls(
            variables, tuple(constraints), open_, limits, np.array(owner, dtype=np.intp), table
        )

    def apart(self, rows: Rows, distance: int) -> Region:
        """The rows that also differ from each of these in at least so many variables: of the
        levels of such a row, a feasible one has no more than the others."""
        hot = np.zeros((len(rows), len(self.open)))
        np.put_along_axis(hot, self.start + rows, 1.0, axis=1)
        own = self.limits
        limits = Limits(
            np.concatenate([own.matrix, hot]),
            np.append(own.low, np.full(len(rows), -np.inf)),
            np.append(own.high, np.full(len(rows), float(len(self.sizes) - distance))),
        )
        nobody = np.full(len(rows), -1, dtype=np.intp)
        return replace(self, limits=limits, owner=np.append(self.owner, nobody))

    # -- levels --------------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> Rows:
        return np.array([v.size for v in self.variables.values()], dtype=np.int64)

    @cached_property
    def start(self) -> Rows:
        """(n,): the first level of each variable."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.int64)

    @cached_property
    def groups(self) -> tuple[Index, ...]:
        """The levels of each variable."""
        return tuple(
            np.arange(first, first + size)
            for first, size in zip(self.start.tolist(), self.sizes.tolist(), strict=True)
        )

    @cached_property
    def variable_of(self) -> Index:
        """(L,): the variable of each level."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def columns(self) -> Floats:
        """(L, m): what each level adds to the sides."""
        return np.ascontiguousarray(self.limits.matrix.T)

    @cached_property
    def open_groups(self) -> tuple[Index, ...]:
        """The open levels of each variable, numbered among the open ones."""
        number = np.cumsum(self.open) - 1
        return tuple(number[group[self.open[group]]] for group in self.groups)

    @cached_property
    def open_limits(self) -> Limits:
        """The limits over the open levels only."""
        return Limits(self.limits.matrix[:, self.open], self.limits.low, self.limits.high)

    def open_states(self, rows: Rows) -> Bits:
        """(N, open levels): 1 where a row of open levels has the level."""
        hot = np.zeros((len(rows), len(self.open)), dtype=np.int8)
        np.put_along_axis(hot, self.start + rows, 1, axis=1)
        return hot[:, self.open]

    def rows_of(self, states: Bits) -> Rows:
        """The rows of states over the open levels."""
        value = (np.arange(len(self.open)) - self.start[self.variable_of])[self.open]
        columns = [value[group[states[:, group].argmax(axis=1)]] for group in self.open_groups]
        return np.stack(columns, axis=1).astype(np.int64)

    @property
    def predicates(self) -> tuple[Where, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Where))

    @property
    def is_free(self) -> bool:
        """Whether every row of the product is allowed."""
        return self.is_linear and not len(self.limits) and bool(self.open.all())

    @property
    def is_linear(self) -> bool:
        """Whether closed levels and limits say everything."""
        return not self.predicates and self.table is None

    def fixed(self, levels: Sequence[int]) -> Region:
        """The rows that have all of these levels, one of each of some variables."""
        open_ = self.open.copy()
        for level in levels:
            others = self.groups[int(self.variable_of[level])]
            open_[others[others != level]] = False
        return replace(self, open=open_)

    # -- which rows are allowed ----------------------------------------------------------------

    def sides(self, rows: Rows) -> Floats:
        named = self._named
        levels = self.start[named] + rows[:, named]
        step = max(1, CHUNK_ENTRIES // max(1, len(named) * len(self.limits)))
        parts = [self.columns[levels[i : i + step]].sum(axis=1) for i in range(0, len(rows), step)]
        return np.concatenate([np.zeros((0, len(self.limits))), *parts])

    @cached_property
    def _named(self) -> Index:
        """The variables that limits speak of."""
        return np.unique(self.variable_of[self.columns.any(axis=1)])

    def holds(self, rows: Rows) -> Mask:
        """(N,): which rows satisfy everything but predicates and table."""
        return np.asarray(
            self.open[self.start + rows].all(axis=1) & self.limits.holds(self.sides(rows))
        )

    def satisfies(self, rows: Rows) -> Mask:
        """(N,): which rows satisfy everything but predicates."""
        fine = self.holds(rows)
        if self.table is not None and fine.any():
            fine[fine] = [found in self._listed for found in keys(rows[fine])]
        return fine

    def allows(self, rows: Rows) -> Mask:
        """(N,): which rows are feasible. Predicates see only rows that satisfy the rest."""
        fine = self.satisfies(rows)
        for predicate in self.predicates:
            fine[fine] = self._ask(predicate, rows[fine])
        return fine

    @cached_property
    def _listed(self) -> frozenset[bytes]:
        return frozenset(keys(self.table)) if self.table is not None else frozenset()

    def _ask(self, predicate: Where, rows: Rows) -> list[bool]:
        if len(self._answers) > MOST_ANSWERS:
            self._answers.clear()
        answers = []
        for found, row in zip(keys(rows), rows, strict=True):
            known = (predicate.name, found)
            answer = self._answers.get(known)  # another thread may clear them at any time
            if answer is None:
                point = points_of(self.variables, row[np.newaxis])[0]
                answer = self._answers[known] = predicate.allows(point)
            answers.append(answer)
        return answers

    def broken(self, row: Rows) -> list[Constraint]:
        """The constraints that one row breaks."""
        fine = [
            Region.of(self.variables, [c]).holds(row[np.newaxis])[0]
            if not isinstance(c, Where)
            else c.allows(points_of(self.variables, row[np.newaxis])[0])
            for c in self.constraints
        ]
        return [c for c, holds in zip(self.constraints, fine, strict=True) if not holds]

    # -- moves ---------------------------------------------------------------------------------

    def moves(self, rows: Rows) -> Mask:
        """(P, L): which levels a feasible row may take one at a time, predicates aside."""
        out = np.repeat(self.open[np.newaxis], len(rows), axis=0)
        if len(self.limits) == 0:
            return out
        sides = self.sides(rows)
        if self.limits.are_sparse:
            return out & self._sparse_moves(rows, sides)
        entries = max(1, self.columns.size)
        step = max(1, CHUNK_ENTRIES // entries)
        for i in range(0, len(rows), step):
            part = slice(i, i + step)
            shifted = sides[part, np.newaxis] + self.shifts(rows[part])
            out[part] &= self.limits.holds(shifted)
        return out

    def _sparse_moves(self, rows: Rows, sides: Floats) -> Mask:
        """(P, L): `moves` under many limits, each of which touches few levels: those that some row
        breaks are looked at for all moves, the others only for moves that touch them."""
        row = np.repeat(np.arange(len(rows)), len(self.open))
        level = np.tile(np.arange(len(self.open)), len(rows))
        own = (self.start + rows)[row, self.variable_of[level]]
        step = (level != own).astype(float)
        fine = self.limits.hold_after(sides, row, [(level, step), (own, -step)])
        broken = np.asarray(self.limits.broken(sides).any(axis=0))
        if broken.any():
            some = self.limits.some(broken)
            added = self.columns[:, broken]
            shifts = added[level] - added[own]
            fine &= some.holds(sides[:, broken][row] + shifts)
        return fine.reshape(len(rows), len(self.open))

    def shifts(self, rows: Rows) -> Floats:
        """(P, L, m): what taking each level changes in the sides."""
        here = self.columns[self.start + rows]  # (P, n, m)
        return np.asarray(self.columns - here[:, self.variable_of])


def _unary(line: Floats, row: Row, first: int, size: int) -> Mask:
    """The levels that a row about one variable leaves open."""
    fine = np.ones(len(line), dtype=np.bool_)
    here = slice(first, first + size)
    size_of = np.abs(line).max(keepdims=True)[np.newaxis]
    one = Limits(size_of, np.array([row.low]), np.array([row.high]))
    fine[here] = one.holds(line[here, np.newaxis])
    return fine


def check_names(constraints: Sequence[Constraint]) -> None:
    """Predicates are told apart by their names."""
    names = [c.name for c in constraints if isinstance(c, Where)]
    for name in names:
        if names.count(name) > 1:
            raise SpaceError(f"two predicates are named {name!r}; give one another name=...")
