"""Symmetries that a user states: maps of points to points that leave the objective as it is.

| symbol | meaning                                                                    | shape     |
|--------|----------------------------------------------------------------------------|-----------|
| source | the variable from which each variable of an image takes its value          | (n,)      |
| maps   | what becomes of that value: indices, padded to the longest list of values  | (n, kmax) |
| G      | the group: all that the stated symmetries generate, the identity first     |           |

(g x)_i = maps_i[x_source_i]. A value map must respect the graph of its variable (any one of a
categorical variable, the reversed order of an ordinal one, exchanges of bits and of their values
for ``encoding="binary"``): then the diffusion kernel with tied contrasts is invariant under G, and
`averaging.py` averages it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mercbo.arrays import Floats, Index, Rows, keys, rows_of_keys
from mercbo.encoding import code_of, codebook
from mercbo.errors import SpaceError, hint
from mercbo.variables import Point, Value, Variable, plain, points_of

# A kernel is averaged over the group, so that each covariance costs as many as it has elements.
MOST_ELEMENTS = 64
COMPLEMENT = (("A", "T"), ("C", "G"), ("G", "C"), ("T", "A"))

Variables = Mapping[str, Variable]


class Stated:
    """What can be stated of a space: one or more maps that generate a group."""

    kind: ClassVar[str]

    def generators(self, variables: Variables) -> list[Symmetry]:
        """The maps that this stands for."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        own = {name: _listed(value) for name, value in vars(self).items()}
        return {"kind": self.kind, **own}


@dataclass(frozen=True, init=False)
class Symmetry(Stated):
    """A map of points to points: variable ``name`` of the image takes the value that
    ``sources[name]`` has, through the map ``values[name]``. What is not named stays as it is.

    >>> swap = Symmetry({"left": "right", "right": "left"})
    >>> flip = Symmetry(values={"up": {0: 1, 1: 0}})
    """

    sources: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, tuple[tuple[Value, Value], ...]], ...]

    kind: ClassVar[str] = "map"

    def __init__(
        self,
        sources: Mapping[str, str] | Iterable[Sequence[str]] = (),
        values: Mapping[str, Any] | Iterable[Sequence[Any]] = (),
    ) -> None:
        listed = _pairs("sources", values=sources)
        object.__setattr__(self, "sources", tuple((str(a), str(b)) for a, b in listed))
        maps = tuple((str(n), _value_pairs(m)) for n, m in _pairs("values", values=values))
        object.__setattr__(self, "values", maps)

    def generators(self, variables: Variables) -> list[Symmetry]:  # noqa: ARG002
        return [self]


@dataclass(frozen=True, init=False)
class _Named(Stated):
    """A symmetry of some variables, by default of all, in the order given."""

    names: tuple[str, ...] | None

    def __init__(self, names: Iterable[str] | None = None) -> None:
        object.__setattr__(self, "names", None if names is None else _names("names", names))

    def _of(self, variables: Variables) -> tuple[str, ...]:
        return tuple(variables) if self.names is None else self.names


@dataclass(frozen=True, init=False)
class Reversal(_Named):
    """The same values read from the other end."""

    kind: ClassVar[str] = "reversal"

    def generators(self, variables: Variables) -> list[Symmetry]:
        names = self._of(variables)
        return [Symmetry(zip(names, reversed(names), strict=True))]


@dataclass(frozen=True, init=False)
class CyclicShift(_Named):
    """The same values shifted along the variables, the last to the front, any number of times."""

    kind: ClassVar[str] = "cyclic shift"

    def generators(self, variables: Variables) -> list[Symmetry]:
        names = self._of(variables)
        return [Symmetry(zip(names, (*names[-1:], *names[:-1]), strict=True))]


@dataclass(frozen=True, init=False)
class Flip(_Named):
    """The other value of each of these variables at once: all spins turned over."""

    kind: ClassVar[str] = "flip"

    def generators(self, variables: Variables) -> list[Symmetry]:
        maps = {}
        for name in self._of(variables):
            values = _variable(self, variables, name).values
            if len(values) != 2:
                raise SpaceError(f"{self}: {name!r} has {len(values)} values, 2 were wanted")
            maps[name] = {values[0]: values[1], values[1]: values[0]}
        return [Symmetry(values=maps)]


@dataclass(frozen=True, init=False)
class ReverseComplement(_Named):
    """The other strand of DNA: read from the other end, each letter replaced by its partner.

    `letters` says which letter becomes which: A and T, C and G unless told otherwise.
    """

    letters: tuple[tuple[Value, Value], ...]

    kind: ClassVar[str] = "reverse complement"

    def __init__(
        self,
        names: Iterable[str] | None = None,
        letters: Mapping[Any, Any] | Iterable[Sequence[Any]] = COMPLEMENT,
    ) -> None:
        super().__init__(names)
        object.__setattr__(self, "letters", _value_pairs(letters))

    def generators(self, variables: Variables) -> list[Symmetry]:
        names = self._of(variables)
        maps = dict.fromkeys(names, self.letters)
        return [Symmetry(zip(names, reversed(names), strict=True), maps)]


@dataclass(frozen=True, init=False)
class Permutation(Stated):
    """Equal slots in any order: ``slots`` are names, or lists of names that belong together.

    >>> Permutation(["left", "right"]), Permutation([["acid1", "dose1"], ["acid2", "dose2"]])
    (Permutation([('left',), ('right',)]), Permutation([('acid1', 'dose1'), ('acid2', 'dose2')]))
    """

    slots: tuple[tuple[str, ...], ...]

    kind: ClassVar[str] = "permutation"

    def __init__(self, slots: Iterable[str | Iterable[str]]) -> None:
        if isinstance(slots, (str, Mapping)) or not isinstance(slots, Iterable):
            raise SpaceError(f"slots must be a list of slots, got {slots!r}")
        each = [_names("slots", [s] if isinstance(s, str) else s) for s in slots]
        if len({len(slot) for slot in each}) != 1:
            raise SpaceError(f"slots must be of the same length, got {each}")
        object.__setattr__(self, "slots", tuple(each))

    def __repr__(self) -> str:
        return f"Permutation({list(self.slots)})"

    def generators(self, variables: Variables) -> list[Symmetry]:  # noqa: ARG002
        # neighbours exchanged: these generate every order
        pairs = zip(self.slots, self.slots[1:], strict=False)
        return [Symmetry(zip((*a, *b), (*b, *a), strict=True)) for a, b in pairs]


KINDS: dict[str, type[Stated]] = {
    cls.kind: cls for cls in (Symmetry, Reversal, CyclicShift, Flip, ReverseComplement, Permutation)
}


def symmetry_from_dict(data: object) -> Stated:
    if not isinstance(data, Mapping) or data.get("kind") not in KINDS:
        raise SpaceError(f"{data!r} does not describe a symmetry; 'kind' is one of {list(KINDS)}")
    settings = {name: given for name, given in data.items() if name != "kind"}
    try:
        return KINDS[data["kind"]](**settings)
    except TypeError:
        raise SpaceError(f"{data['kind']} cannot be made from {settings}") from None


# -- the group ---------------------------------------------------------------------------------


class Group:
    """All maps that some symmetries of a space's variables generate."""

    def __init__(self, variables: Variables, symmetries: Sequence[Stated]) -> None:
        self.variables = dict(variables)  # a plain one can be sent to other processes
        self.sizes = np.array([v.size for v in variables.values()], dtype=np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.sizes)])
        made = [
            (stated, self._levels(stated, each))
            for stated in symmetries
            for each in stated.generators(variables)
        ]
        self.levels = closure(int(self.start[-1]), [moved for _, moved in made], symmetries)
        parts = [self._parts(moved) for moved in self.levels]
        self.source: Index = np.array([s for s, _ in parts])  # (|G|, n)
        self.maps: Rows = np.array([m for _, m in parts])  # (|G|, n, kmax)

    def __len__(self) -> int:
        return len(self.levels)

    def images(self, rows: Rows) -> Rows:
        """(|G|, N, n): every row under every element, the rows themselves first."""
        taken = rows[:, self.source].transpose(1, 0, 2)  # (|G|, N, n)
        element = np.arange(len(self))[:, np.newaxis, np.newaxis]
        return np.asarray(self.maps[element, np.arange(len(self.sizes)), taken])

    def orbits(self, rows: Rows) -> Rows:
        """The distinct images of all rows, in lexicographic order."""
        return np.unique(self.images(rows).reshape(-1, rows.shape[1]), axis=0)

    def with_images(self, rows: Rows) -> Rows:
        """The rows as they are where nothing is stated, else their orbits."""
        return rows if self.is_trivial else self.orbits(rows)

    def keys_with_images(self, found: set[bytes]) -> set[bytes]:
        """The same for rows given by their keys."""
        if self.is_trivial or not found:
            return found
        return set(keys(self.orbits(rows_of_keys(found, len(self.sizes)))))

    @cached_property
    def is_trivial(self) -> bool:
        return len(self) == 1

    def refuse_unless_allowed(
        self, rows: Rows, allows: Callable[[Rows], Any], what: Callable[[Rows], str]
    ) -> None:
        """Complain of the first of some feasible rows that has an image which is not."""
        for image in self.images(rows)[1:]:
            for bad in np.flatnonzero(~np.asarray(allows(image)))[:1]:
                point, other = (self._point(each[bad]) for each in (rows, image))
                raise SpaceError(
                    f"{what(image[bad])} does not keep to the symmetries: {point} is feasible and "
                    f"its image {other} is not"
                )

    def _point(self, row: Rows) -> Point:
        return points_of(self.variables, row[np.newaxis])[0]

    def _levels(self, stated: Stated, made: Symmetry) -> Index:
        """(L,): the level (variable and value) that each level becomes."""
        names = list(self.variables)
        source = {name: name for name in names}
        for name, other in made.sources:
            _variable(stated, self.variables, name)
            _variable(stated, self.variables, other)
            source[name] = other
        if len(set(source.values())) != len(names):
            twice = next(n for n in names if list(source.values()).count(n) > 1)
            raise SpaceError(f"{stated}: two variables take the value of {twice!r}; not one to one")
        maps = dict(made.values)
        for name in maps:
            _variable(stated, self.variables, name)
        moved = np.zeros(int(self.start[-1]), dtype=np.intp)
        for i, name in enumerate(names):
            j = names.index(source[name])
            moved[self.start[j] : self.start[j + 1]] = self.start[i] + self._values(
                stated, name, source[name], maps.get(name)
            )
        return moved

    def _values(
        self, stated: Stated, name: str, other: str, pairs: Iterable[Sequence[Value]] | None
    ) -> Index:
        """(k,): the index in `name` that each value of `other` becomes."""
        to, of = self.variables[name], self.variables[other]
        if (to.graph, to.size, to.encoding) != (of.graph, of.size, of.encoding):
            raise SpaceError(f"{stated}: {name!r} is {to!r} and {other!r} is {of!r}; not alike")
        if pairs is None and to.values != of.values:
            raise SpaceError(
                f"{stated}: {name!r} has the values {list(to.values)}, {other!r} has "
                f"{list(of.values)}; say by values= which becomes which"
            )
        becomes = dict(zip(of.values, of.values, strict=True)) if pairs is None else dict(pairs)  # type: ignore[arg-type]
        if set(becomes) != set(of.values) or set(becomes.values()) != set(to.values):
            raise SpaceError(
                f"{stated}: {becomes} does not map the values {list(of.values)} of {other!r} one "
                f"to one to the values {list(to.values)} of {name!r}"
            )
        moved = np.array([to.values.index(becomes[v]) for v in of.values], dtype=np.intp)
        if factor_map(to, moved) is None:
            kept = "order" if to.graph == "path" else "bits"
            raise SpaceError(f"{stated}: {becomes} does not keep the {kept} of {name!r}")
        return moved

    def _parts(self, moved: Index) -> tuple[Index, Rows]:
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        source = np.zeros(len(self.sizes), dtype=np.intp)
        source[owner[moved[self.start[:-1]]]] = np.arange(len(self.sizes))
        maps = np.zeros((len(self.sizes), int(self.sizes.max())), dtype=np.int64)
        for i, j in enumerate(source):
            block = moved[self.start[j] : self.start[j + 1]] - self.start[i]
            maps[i, : len(block)] = block
        return source, maps


def closure(levels: int, generators: Sequence[Index], stated: Sequence[Stated]) -> list[Index]:
    """Every product of the generators, the identity first."""
    identity = np.arange(levels)
    found = {identity.tobytes(): identity}
    front = [identity]
    while front:
        new = []
        for element in front:
            for generator in generators:
                product = generator[element]
                if product.tobytes() not in found:
                    found[product.tobytes()] = product
                    new.append(product)
        if len(found) > MOST_ELEMENTS:
            raise SpaceError(
                f"symmetries={list(stated)} generate a group of more than {MOST_ELEMENTS} "
                "elements, over which a kernel is not averaged; state fewer of them"
            )
        front = new
    return list(found.values())


def factor_map(variable: Variable, moved: Index) -> Index | None:
    """(f,): which of the model's factors each factor of a variable becomes where its values are
    moved; None where the kernel would not be the same."""
    if variable.size > 2 and variable.encoding == "binary":
        bits = codebook(variable.size, code_of(variable.size, "binary", native=False))
        before, after = (_differs(bits[order]) for order in (np.arange(len(bits)), moved))
        same = [[bool((a == b).all()) for b in after] for a in before]
        return np.argmax(same, axis=1) if all(map(any, same)) else None
    if variable.graph == "path" and variable.size > 2:
        straight = bool((np.abs(np.diff(moved)) == 1).all())
        return np.zeros(1, dtype=np.intp) if straight else None
    return np.zeros(1, dtype=np.intp)


def _differs(bits: Any) -> Floats:
    """(f, k, k): where two codewords differ in a bit."""
    return np.asarray(bits.T[:, :, np.newaxis] != bits.T[:, np.newaxis, :])


# -- what users write --------------------------------------------------------------------------


def checked_symmetries(symmetries: object) -> tuple[Stated, ...]:
    if isinstance(symmetries, (Stated, str, Mapping)) or not isinstance(symmetries, Iterable):
        raise SpaceError(f"symmetries must be a list of symmetries, got {symmetries!r}")
    listed = tuple(symmetries)
    for each in listed:
        if not isinstance(each, Stated):
            raise SpaceError(
                f"{each!r} is not a symmetry; use Permutation, CyclicShift, Reversal, "
                "ReverseComplement, Flip or Symmetry"
            )
    return listed


def _variable(stated: Stated, variables: Variables, name: str) -> Variable:
    if name not in variables:
        raise SpaceError(f"{stated}: unknown variable {name!r}{hint(name, variables)}")
    return variables[name]


def _names(what: str, names: object) -> tuple[str, ...]:
    if isinstance(names, (str, Mapping)) or not isinstance(names, Iterable):
        raise SpaceError(f"{what} must be a list of names, got {names!r}")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or listed.count(name) > 1:
            raise SpaceError(f"{what} must be different names, got {list(listed)}")
    return listed


def _pairs(what: str, *, values: object) -> list[tuple[Any, Any]]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SpaceError(f"{what} must be a dict, got {values!r}")
    listed = list(values.items() if isinstance(values, Mapping) else values)
    if not all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in listed):
        raise SpaceError(f"{what} must be a dict or a list of pairs, got {values!r}")
    return [(pair[0], pair[1]) for pair in listed]


def _value_pairs(values: object) -> tuple[tuple[Value, Value], ...]:
    return tuple((plain(a), plain(b)) for a, b in _pairs("values", values=values))


def _listed(value: Any) -> Any:
    return [_listed(v) for v in value] if isinstance(value, tuple) else value
