"""Symmetries that a user states: maps of points to points that leave the objective as it is.

Each statement stands for one or more maps (`Symmetry`), which generate a group (`group.py`). These
know names and values; what becomes of index rows is the group's matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mercbo.domain.variables import Value, Variable, plain
from mercbo.errors import SpaceError, hint

COMPLEMENT = (("A", "T"), ("C", "G"), ("G", "C"), ("T", "A"))

Variables = Mapping[str, Variable]


class Stated(ABC):
    """What can be stated of a space: one or more maps that generate a group."""

    kind: ClassVar[str]

    @abstractmethod
    def generators(self, variables: Variables) -> list[Symmetry]:
        """The maps that this stands for."""

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
            values = named(self, variables, name).values
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
    if not isinstance(data, Mapping) or data.get("kind") not in list(KINDS):
        raise SpaceError(f"{data!r} does not describe a symmetry; 'kind' is one of {list(KINDS)}")
    settings = {name: given for name, given in data.items() if name != "kind"}
    try:
        return KINDS[data["kind"]](**settings)
    except TypeError:
        raise SpaceError(f"{data['kind']} cannot be made from {settings}") from None


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


def named(stated: Stated, variables: Variables, name: str) -> Variable:
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
