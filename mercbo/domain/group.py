"""The group that the symmetries of a space generate, and what it does to index rows.

| symbol | meaning                                                                    | shape     |
|--------|----------------------------------------------------------------------------|-----------|
| source | the variable from which each variable of an image takes its value          | (n,)      |
| maps   | what becomes of that value: indices, padded to the longest list of values  | (n, kmax) |
| G      | the group: all that the stated symmetries generate, the identity first     |           |

(g x)_i = maps_i[x_source_i]. A value map must respect the graph of its variable (any one of a
categorical variable, the reversed order of an ordinal one, exchanges of bits and of their values
for ``encoding="binary"``): then the diffusion kernel with tied contrasts is invariant under G, and
`kernels/averaging.py` averages it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Index, Rows, keys, rows_of_keys
from mercbo.domain.symmetry import Stated, Symmetry, Variables, named
from mercbo.domain.variables import Point, Value, Variable, points_of
from mercbo.encoding import code_of, codebook
from mercbo.errors import SpaceError

# A kernel is averaged over the group, so that each covariance costs as many as it has elements.
MOST_ELEMENTS = 64


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

    def orbit_count(self, rows: Rows) -> int:
        """How many of some rows are left where one stands for all of its images."""
        known: set[bytes] = set()
        count = 0
        for found, row in zip(keys(rows), rows, strict=True):
            if found not in known:
                known.update(keys(self.orbits(row[np.newaxis])))
                count += 1
        return count

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
            named(stated, self.variables, name)
            named(stated, self.variables, other)
            source[name] = other
        if len(set(source.values())) != len(names):
            twice = next(n for n in names if list(source.values()).count(n) > 1)
            raise SpaceError(f"{stated}: two variables take the value of {twice!r}; not one to one")
        maps = dict(made.values)
        for name in maps:
            named(stated, self.variables, name)
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
        if pairs is None and set(to.values) != set(of.values):
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
