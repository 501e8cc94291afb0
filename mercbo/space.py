"""The search space: the first stop of a `tell`, the last of an `ask`.

Users write and read *values* (``"THF"``, ``80``, ``None``); everything behind this module works
on *index rows*: an int64 array with one row per point and one column per variable, each entry
the position of the value in its variable's list. This is the only module that sees both, with the
two that it is built from: `domain/variables.py` and `domain/constraints.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from mercbo.arrays import Rows, keys
from mercbo.domain.constraints import Constraint, Where, constraint_from_dict
from mercbo.domain.feasible import Feasible, conflict, is_empty
from mercbo.domain.group import Group
from mercbo.domain.region import Region, check_names
from mercbo.domain.symmetry import Stated, checked_symmetries, symmetry_from_dict
from mercbo.domain.variables import (
    Binary,
    Categorical,
    Ordinal,
    Point,
    Value,
    Variable,
    ordered,
    plain,
    points_of,
    variable_from_dict,
)
from mercbo.errors import PointError, SettingError, SpaceError, hint

Predicates = Mapping[str, Callable[[Point], bool]]

# Points on which predicates are tried when a space is made.
FEW = 2000
# Points of a product that are listed to be looked through.
ENUMERATED = 10_000_000
# Feasible points on which symmetries are tried, where not all points are listed.
EXAMPLES = 512
# Choices of fixed values for which it is remembered what is feasible.
REMEMBERED = 16


class Space:
    """A finite search space: named variables, each with its list of values; which points there
    are (`constraints`) and which of them are known to be equally good (`symmetries`).

    >>> from mercbo import AtMost, Categorical, Integer, Space
    >>> space = Space({"base": Categorical(["A", "C", "G", "T"]), "n": Integer(1, 6)})
    >>> space.size
    24
    >>> space.rows([{"base": "G", "n": 6}]).tolist()
    [[2, 5]]
    """

    def __init__(
        self,
        variables: Mapping[str, Variable],
        constraints: Iterable[Constraint] = (),
        *,
        symmetries: Iterable[Stated] = (),
        _table: Rows | None = None,
    ) -> None:
        if not isinstance(variables, Mapping):
            raise SpaceError(
                f"a space is made from a dict of name: variable, got {type(variables).__name__}"
            )
        if not variables:
            raise SpaceError("the space has no variables")
        for name, variable in variables.items():
            if not isinstance(name, str) or not name:
                raise SpaceError(f"a variable's name must be a non-empty str, got {name!r}")
            if not isinstance(variable, Variable):
                raise SpaceError(
                    f"{name!r}: {variable!r} is not a variable; "
                    "use Binary, Categorical, Ordinal or Integer"
                )
        self.variables: Mapping[str, Variable] = MappingProxyType(dict(variables))
        self.constraints = _checked_constraints(constraints)
        self.region = region = Region.of(self.variables, self.constraints, _table)
        # functools locks its cache: optimizers in several threads may share a space
        self._fixed = lru_cache(REMEMBERED)(lambda levels: Feasible(region.fixed(levels)))
        _check_solvable(self.feasible)
        self.symmetries = checked_symmetries(symmetries)
        self.group = Group(self.variables, self.symmetries)
        self._check_invariant()

    @classmethod
    def binary(cls, n: int, *, symmetries: Iterable[Stated] = ()) -> Space:
        """The space of `n` binary variables, named ``x0`` to ``x{n-1}``."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise SpaceError(f"Space.binary needs a number of variables of at least 1, got {n!r}")
        return cls({f"x{i}": Binary() for i in range(n)}, symmetries=symmetries)

    @classmethod
    def table(
        cls,
        rows: object,
        *,
        variables: Mapping[str, Variable] | None = None,
        constraints: Iterable[Constraint] = (),
        symmetries: Iterable[Stated] = (),
    ) -> Space:
        """The space of a finite list of designs, such as a catalogue: only these are suggested.

        `rows` is a list of dicts with the same names, or a DataFrame. A column of numbers becomes
        an `Ordinal` variable of its sorted values, any other a `Categorical` one, sorted as well,
        so that columns of the same letters list them alike; `variables` says otherwise for the
        columns that it names.

        >>> space = Space.table([{"metal": "Pd", "mol": 5}, {"metal": "Ni", "mol": 10}])
        >>> space.size, space.variables["mol"]
        (2, Ordinal(values=(5, 10)))
        """
        names, columns = _columns(rows)
        given = {} if variables is None else variables
        if not isinstance(given, Mapping):
            raise SpaceError(f"variables must be a dict of name: variable, got {given!r}")
        for name in given:
            if name not in names:
                raise SpaceError(f"variables: no column is named {name!r}{hint(name, names)}")
        built = {
            name: given[name] if name in given else _column_variable(name, cells)
            for name, cells in zip(names, columns, strict=True)
        }
        plain_space = cls(built)
        listed = plain_space.rows(
            [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        )
        _refuse_twins(listed)
        return cls(built, constraints, symmetries=symmetries, _table=listed)

    def _check_invariant(self) -> None:
        """Refuse constraints that allow a point and forbid an image of it: by all points where
        these are listed, else by examples."""
        if self.group.is_trivial or self.region.is_free:
            return
        rows = self.feasible.listed
        if rows is None:
            rows = self.feasible.sample(EXAMPLES, rng=np.random.default_rng(0))
        rows = rows[self.region.allows(rows)]
        self.group.refuse_unless_allowed(rows, self.region.allows, self._blamed)

    def _blamed(self, row: Rows) -> str:
        broken = self.region.broken(row)
        return repr(broken[0]) if broken else "the table"

    @cached_property
    def feasible(self) -> Feasible:
        """The rows that may be suggested."""
        return Feasible(self.region)

    def fixed(self, levels: Sequence[int]) -> Feasible:
        """The rows that may be suggested with some levels fixed."""
        return self._fixed(tuple(sorted(levels)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.variables)

    @cached_property
    def sizes(self) -> Rows:
        """The number of values of each variable, (n,)."""
        return np.array([v.size for v in self.variables.values()], dtype=np.int64)

    @property
    def size(self) -> int:
        """The number of points before any constraint, exact however large; the rows of a table."""
        if self.region.table is not None:
            return len(self.region.table)
        return math.prod(v.size for v in self.variables.values())

    def __len__(self) -> int:
        return len(self.variables)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        table = self.region.table
        listed = None if table is None else (table.shape, table.tobytes())
        return tuple(self.variables.items()), self.constraints, listed, self.symmetries

    def __reduce__(self) -> tuple[Any, ...]:
        parts = dict(self.variables), self.constraints, self.region.table, self.symmetries
        return _rebuilt, parts

    def __repr__(self) -> str:
        listed = ", ".join(f"{name!r}: {v!r}" for name, v in list(self.variables.items())[:8])
        more = f", ... {len(self)} variables" if len(self) > 8 else ""
        shown = f"{{{listed}{more}}}"
        ruled = f", constraints={list(self.constraints)}" if self.constraints else ""
        ruled += f", symmetries={list(self.symmetries)}" if self.symmetries else ""
        if self.region.table is not None:
            return f"Space.table({len(self.region.table)} rows of {shown}{ruled})"
        return f"Space({shown}{ruled})"

    def to_dict(self) -> dict[str, Any]:
        """A description that survives JSON; `from_dict` reads it back.

        >>> Space.from_dict(Space.binary(3).to_dict()) == Space.binary(3)
        True
        """
        table = self.region.table
        described = {
            "variables": {name: v.to_dict() for name, v in self.variables.items()},
            "constraints": [c.to_dict() for c in self.constraints],
            "table": None if table is None else table.tolist(),
        }
        if self.symmetries:
            described["symmetries"] = [s.to_dict() for s in self.symmetries]
        return described

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: Predicates | None = None) -> Space:
        """The space of `to_dict`; `where` gives the predicates of its `Where` constraints."""
        if not isinstance(data, Mapping) or not isinstance(data.get("variables"), Mapping):
            raise SpaceError("a space's dict needs an entry 'variables' that maps names")
        built: dict[str, Variable] = {}
        for name, described in data["variables"].items():
            try:
                built[name] = variable_from_dict(described)
            except (SpaceError, SettingError) as error:
                raise SpaceError(f"{name!r}: {error}") from None
        described = data.get("constraints", [])
        if not isinstance(described, list):
            raise SpaceError(f"'constraints' must be a list, got {described!r}")
        where = {} if where is None else where
        if not isinstance(where, Mapping):
            raise SpaceError(f"where must be a dict of name: predicate, got {where!r}")
        constraints = [constraint_from_dict(c, where) for c in described]
        known = [c.name for c in constraints if isinstance(c, Where)]
        for name in where:
            if name not in known:
                raise SpaceError(
                    f"where: no predicate is named {name!r}, they are {known}{hint(name, known)}"
                )
        stated = data.get("symmetries", [])
        if not isinstance(stated, list):
            raise SpaceError(f"'symmetries' must be a list, got {stated!r}")
        symmetries = [symmetry_from_dict(s) for s in stated]
        table = _read_table(data.get("table"), built)
        return cls(built, constraints, symmetries=symmetries, _table=table)

    def sample(self, k: int, *, rng: np.random.Generator) -> list[Point]:
        """`k` random feasible points (repeats are possible): uniform over the space, except where
        constraints leave so few that they must be searched for; then only spread out."""
        return self.points(self.sample_rows(k, rng=rng))

    def sample_rows(self, k: int, *, rng: np.random.Generator) -> Rows:
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
            raise SettingError(f"k={k!r} is not a whole number of at least 0")
        if not isinstance(rng, np.random.Generator):
            raise SettingError(f"rng={rng!r} is not a numpy.random.Generator")
        return self.feasible.sample(int(k), rng=rng)

    def enumerate_rows(self) -> Rows:
        """Every feasible point of a small space, in lexicographic order; a table's in its own."""
        rows = self.feasible.listed
        if rows is None:
            if self.size > ENUMERATED:
                raise SpaceError(f"{self.size:,} points are too many to list them all")
            rows = np.zeros((self.size, len(self)), dtype=np.int64)
            rest = np.arange(self.size)
            for column in range(len(self) - 1, -1, -1):
                rest, rows[:, column] = np.divmod(rest, self.sizes[column])
        return rows if self.region.is_free else rows[self.region.allows(rows)]

    def broken(self, point: object) -> list[Constraint]:
        """The constraints that a point breaks (that it is no row of a table, none of them says).

        >>> from mercbo import AtMost
        >>> Space({"a": Binary(), "b": Binary()}, [AtMost(1, ["a", "b"])]).broken([1, 1])
        [AtMost(1, ['a', 'b'])]
        """
        rows = self.rows(point)
        if len(rows) != 1:
            raise PointError(f"one point was wanted, {len(rows)} came")
        return self.region.broken(rows[0])

    def feasible_rows(self, points: object) -> Rows:
        """As `rows`, but a point that breaks a constraint is refused."""
        rows = self.rows(points)
        fine = self.region.allows(rows)
        if fine.all():
            return rows
        number = int(np.flatnonzero(~fine)[0])
        where = "" if is_single(points) else f"point {number}: "
        broken = self.region.broken(rows[number])
        reason = f"breaks {broken[0]!r}" if broken else "is not a row of the table"
        raise PointError(f"{where}{self.points(rows[number : number + 1])[0]} {reason}")

    def partial(self, fixed: object) -> dict[int, int]:
        """Some variables at fixed values, as positions and value indices."""
        if not isinstance(fixed, Mapping):
            raise PointError(f"fixed must be a dict of name: value, got {fixed!r}")
        found = {}
        for name, value in fixed.items():
            if name not in self.variables:
                raise PointError(f"fixed: unknown variable {name!r}{hint(name, self.names)}")
            found[self.names.index(name)] = self._index(name, value)
        return found

    def points(self, rows: Rows) -> list[Point]:
        """Index rows -> dicts of the user's own values."""
        return points_of(self.variables, rows)

    def rows(self, points: object) -> Rows:
        """Points in any accepted form -> index rows (N, n); one point gives one row.

        Accepted: a dict, a list of dicts, a list of values in the space's order, a list of such
        lists, a 1-d or 2-d array of values, a pandas DataFrame with a column per variable (others
        are left alone), a row of one or a list of them.
        """
        if hasattr(points, "columns") and hasattr(points, "to_dict"):
            return self._rows_of_frame(points)
        if isinstance(points, str):
            raise PointError(
                f"points are dicts, rows of values or a DataFrame, got {points!r}"
                f"{self._spelt([points])}"
            )
        if is_single(points):
            return self._row(points)[np.newaxis]
        parsed = [self._numbered(i, p) for i, p in enumerate(points)]  # type: ignore[arg-type, var-annotated]
        return np.array(parsed, dtype=np.int64).reshape(len(parsed), len(self))

    def _numbered(self, number: int, point: object) -> Rows:
        try:
            return self._row(point)
        except PointError as error:
            raise PointError(f"point {number}: {error}") from None

    def _row(self, point: object) -> Rows:
        if is_series(point):
            point = dict(point.items())  # type: ignore[attr-defined]
        if isinstance(point, Mapping):
            self._check_names(point)
            ordered: Sequence[object] = [point[name] for name in self.names]
        elif isinstance(point, (Sequence, np.ndarray)) and not isinstance(point, (str, bytes)):
            ordered = list(point)
            if len(ordered) != len(self):
                raise PointError(
                    f"a row of {len(ordered)} values came, the space has {len(self)} variables"
                    f"{self._spelt(ordered)}"
                )
        else:
            raise PointError(
                f"a point is a dict or a list of values, got {point!r}{self._spelt([point])}"
            )
        return np.array(
            [self._index(name, value) for name, value in zip(self.names, ordered, strict=True)],
            dtype=np.int64,
        )

    def _spelt(self, values: Iterable[object]) -> str:
        """Advice where a text has a letter for each variable, else an empty string."""
        texts = (str(value) for value in values if isinstance(value, str))
        spelt = next((text for text in texts if len(text) == len(self)), None)
        return "" if spelt is None else f"; a point of its letters is list({spelt!r})"

    def _index(self, name: str, value: object) -> int:
        try:
            return self.variables[name].index(value)
        except PointError as error:
            raise PointError(f"{name!r}: {error}") from None

    def _check_names(self, given: Iterable[object]) -> None:
        known = set(given)
        for name in sorted(known - set(self.names), key=str):
            raise PointError(f"unknown variable {name!r}{hint(name, self.names)}")
        missing = [name for name in self.names if name not in known]
        if missing:
            raise PointError(f"missing variable{'s' * (len(missing) > 1)} {missing}")

    def _rows_of_frame(self, frame: Any) -> Rows:
        found = Counter(frame.columns)
        missing = [name for name in self.names if name not in found]
        if missing:  # of the other columns, one that is near to these is to blame
            near = (c for c in found if c in self.variables or hint(c, missing))
            self._check_names(near)
        twice = next((name for name in self.names if found[name] > 1), None)
        if twice is not None:
            raise PointError(f"two columns are named {twice!r}")
        columns = [self._column(name, frame[name].tolist()) for name in self.names]
        return np.array(columns, dtype=np.int64).reshape(len(self), len(frame)).T.copy()

    def _column(self, name: str, cells: list[object]) -> list[int]:
        # pandas writes a missing value as NaN; where None is an allowed value, that is meant.
        if None in self.variables[name].values:
            cells = [None if is_missing(cell) else cell for cell in cells]
        found = []
        for number, cell in enumerate(cells):
            try:
                found.append(self._index(name, cell))
            except PointError as error:
                raise PointError(f"point {number}: {error}") from None
        return found


def is_missing(cell: object) -> bool:
    """Whether a cell of a table is NaN or pandas' NA, neither of which equals itself."""
    try:
        return bool(cell != cell)
    except TypeError:
        return True


def is_series(point: object) -> bool:
    """Whether `point` is a pandas Series: a row of a DataFrame, whose labels are the names."""
    return hasattr(point, "items") and hasattr(point, "iloc") and getattr(point, "ndim", 0) == 1


def is_single(points: object) -> bool:
    """Whether `points` is one point (a dict or a flat row) rather than several."""
    if isinstance(points, Mapping) or is_series(points):
        return True
    if hasattr(points, "columns"):
        return False
    if isinstance(points, np.ndarray) and points.ndim > 0:
        return points.ndim == 1 and not any(isinstance(p, Mapping) for p in points[:1])
    if isinstance(points, Sequence) and not isinstance(points, (str, bytes)):
        first = points[0] if len(points) else {}
        nested = isinstance(first, (Mapping, Sequence, np.ndarray)) and not isinstance(first, str)
        return not (nested or is_series(first))
    raise PointError(f"points are dicts, rows of values or a DataFrame, got {points!r}")


def _rebuilt(
    variables: Mapping[str, Variable],
    constraints: Sequence[Constraint],
    table: Rows | None,
    symmetries: Sequence[Stated] = (),
) -> Space:
    return Space(variables, constraints, symmetries=symmetries, _table=table)


# -- constraints -------------------------------------------------------------------------------


def _checked_constraints(constraints: object) -> tuple[Constraint, ...]:
    if isinstance(constraints, Constraint):
        raise SpaceError(f"constraints must be a list, got {constraints!r} alone")
    if isinstance(constraints, (str, Mapping)) or not isinstance(constraints, Iterable):
        raise SpaceError(f"constraints must be a list of constraints, got {constraints!r}")
    listed = tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, Constraint):
            raise SpaceError(
                f"{constraint!r} is not a constraint; use Exactly, AtMost, AtLeast, Linear, "
                "Forbid, Implies, AllDifferent, Tied or Where"
            )
    check_names(listed)
    return listed


def _check_solvable(feasible: Feasible) -> None:
    """Refuse constraints that have no solution, and say which are to blame."""
    region = feasible.region
    if region.is_free:
        return
    if is_empty(region):
        blamed = conflict(region)
        shown = "; ".join(map(repr, blamed))
        together = " together" if len(blamed) > 1 else ""
        what = "point" if region.table is None else "row of the table"
        raise SpaceError(f"no {what} satisfies all constraints: {shown} cannot hold{together}")
    listed = feasible.listed if region.predicates else None
    if listed is not None and len(listed) <= FEW and feasible.left((), 1) == 0:
        raise SpaceError(
            f"none of the {len(listed)} points within the other constraints "
            f"satisfies {list(region.predicates)}"
        )


# -- tables ------------------------------------------------------------------------------------


def _columns(rows: object) -> tuple[list[str], list[list[Value]]]:
    """The names and the cells of a table, column by column."""
    if hasattr(rows, "columns") and hasattr(rows, "to_dict"):
        names = list(rows.columns)
        for name in names:
            if names.count(name) > 1:
                raise SpaceError(f"two columns are named {name!r}")
        cells = [[None if is_missing(c) else c for c in rows[name].tolist()] for name in names]  # type: ignore[index]
    else:
        if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
            raise SpaceError(f"a table is a list of dicts or a DataFrame, got {rows!r}")
        listed = list(rows)
        for number, row in enumerate(listed):
            if not isinstance(row, Mapping):
                raise SpaceError(f"row {number}: {row!r} is not a dict of name: value")
            if list(row) != list(listed[0]) and set(row) != set(listed[0]):
                raise SpaceError(
                    f"row {number} has the names {list(row)}, row 0 has {list(listed[0])}"
                )
        names = list(listed[0]) if listed else []
        cells = [[row[name] for row in listed] for name in names]
    if not cells or not cells[0]:
        raise SpaceError("the table has no rows")
    return names, [[plain(cell) for cell in column] for column in cells]


def _column_variable(name: str, cells: Sequence[Value]) -> Variable:
    """The variable of a column: numbers have an order, other values have none."""
    try:
        if all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in cells):
            return Ordinal(sorted(set(cells)))  # type: ignore[type-var]
        return Categorical(ordered(cells))
    except SpaceError as error:
        raise SpaceError(f"{name!r}: {error}") from None


def _refuse_twins(rows: Rows) -> None:
    first: dict[bytes, int] = {}
    for number, found in enumerate(keys(rows)):
        if found in first:
            raise SpaceError(f"rows {first[found]} and {number} of the table are the same")
        first[found] = number


def _read_table(table: object, variables: Mapping[str, Variable]) -> Rows | None:
    if table is None:
        return None
    try:
        rows = np.array(table)
    except ValueError:
        rows = np.zeros(0)
    if rows.ndim != 2 or rows.shape[1] != len(variables) or rows.dtype.kind != "i":
        raise SpaceError(f"'table' is not a list of rows of {len(variables)} indices")
    sizes = np.array([v.size for v in variables.values()])
    if (rows < 0).any() or (rows >= sizes).any():
        raise SpaceError("'table' has rows that are not in the space")
    _refuse_twins(rows)
    return rows.astype(np.int64)
