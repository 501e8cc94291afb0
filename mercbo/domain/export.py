"""Arrays -> dimod: an objective over the bits of an encoding, with the constraints of a region.

Constraints are rows over *levels* (`region.py`); models are over *bits* (`encoding.py`). A level
is affine in the bits, hot = origin + bits @ slope, for every code but "binary", where it is a
product of bits. A binary-encoded variable that a constraint names therefore gets one more bit per
value, labelled ``(name, "is 'G'")``, which *links* tie to its code: exactly one of them is 1, and
each code bit is the sum of those values whose codeword has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mercbo.arrays import Bits, Floats, Index, Rows
from mercbo.domain.limits import Limits
from mercbo.domain.region import Region
from mercbo.encoding import Encoding, Label

if TYPE_CHECKING:
    import dimod


@dataclass(frozen=True)
class Levels:
    """The levels of a region as affine functions of bits; one object per region and encoding."""

    region: Region
    encoding: Encoding

    @cached_property
    def linked(self) -> list[tuple[int, Index, Bits]]:
        """Binary-encoded variables that constraints name: position, code columns, codebook."""
        region = self.region
        named = region.columns.any(axis=1) | ~region.open
        return [
            (int(variable), columns, block.codebook)
            for block in self.encoding.blocks
            if block.code == "binary"
            for variable, columns in zip(block.variables, block.columns, strict=True)
            if named[region.groups[int(variable)]].any()
        ]

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The encoding's labels, then those of the linked value bits."""
        variables = list(self.region.variables.items())
        extra = [
            (variables[position][0], f"is {value!r}")
            for position, _, _ in self.linked
            for value in variables[position][1].values
        ]
        return (*self.encoding.labels, *extra)

    def value_columns(self) -> Iterator[tuple[int, Index, Bits, Index]]:
        """The linked variables, each with the columns of its value bits."""
        first = self.encoding.width
        for position, code, codebook in self.linked:
            yield position, code, codebook, np.arange(first, first + len(codebook))
            first += len(codebook)

    def value_bits(self, rows: Rows) -> Bits:
        """(N, value bits): what the linked bits are at some rows."""
        parts = [np.eye(len(book), dtype=np.int8)[rows[:, i]] for i, _, book in self.linked]
        return np.concatenate([np.zeros((len(rows), 0), dtype=np.int8), *parts], axis=1)

    @cached_property
    def affine(self) -> tuple[Floats, Floats]:
        """origin (L,) and slope (B, L); B counts the linked bits as well."""
        region = self.region
        origin = np.zeros(len(region.open))
        slope = np.zeros((len(self.labels), len(region.open)))
        for block in self.encoding.blocks:
            for variable, columns in zip(block.variables, block.columns, strict=True):
                levels = region.groups[int(variable)]
                if block.code == "none":
                    origin[levels] = 1.0
                elif block.code == "bit":
                    origin[levels[0]] = 1.0
                    slope[columns[0], levels] = (-1.0, 1.0)
                elif block.code == "one-hot":
                    slope[columns, levels] = 1.0
        for position, _, _, columns in self.value_columns():
            slope[columns, region.groups[position]] = 1.0
        return origin, slope

    @cached_property
    def limits(self) -> Limits:
        """Closed levels, the region's limits and the links, over the bits."""
        return Limits.stack([row for _, row in self._rows], len(self.labels))

    @cached_property
    def names(self) -> list[str]:
        """What each of `limits` is about."""
        return [name for name, _ in self._rows]

    @cached_property
    def _rows(self) -> list[tuple[str, tuple[Floats, float, float]]]:
        return [*self._closed(), *self._limits(), *self._links()]

    def _over_bits(self, line: Floats, low: float, high: float) -> tuple[Floats, float, float]:
        origin, slope = self.affine
        constant = float(line @ origin)
        return slope @ line, low - constant, high - constant

    def _closed(self) -> Iterator[tuple[str, tuple[Floats, float, float]]]:
        for name, group in zip(self.region.variables, self.region.groups, strict=True):
            line = np.zeros(len(self.region.open))
            line[group] = ~self.region.open[group]
            if line.any():
                yield f"values of {name!r}", self._over_bits(line, -np.inf, 0.0)

    def _limits(self) -> Iterator[tuple[str, tuple[Floats, float, float]]]:
        region, limits = self.region, self.region.limits
        # the last is for what no constraint says (`Region.apart`), whose owner is -1
        shown = [*map(repr, region.constraints), "apart"]
        for number, owner in enumerate(region.owner.tolist()):
            row = limits.matrix[number], float(limits.low[number]), float(limits.high[number])
            yield f"{owner}: {shown[owner]}, row {number}", self._over_bits(*row)

    def _links(self) -> Iterator[tuple[str, tuple[Floats, float, float]]]:
        for position, code, codebook, columns in self.value_columns():
            name = list(self.region.variables)[position]
            line = np.zeros(len(self.labels))
            line[columns] = 1.0
            yield f"one value of {name!r}", (line, 1.0, 1.0)
            for bit, column in enumerate(code):
                line = np.zeros(len(self.labels))
                line[columns] = codebook[:, bit]
                line[column] = -1.0
                yield f"bit {bit} of {name!r}", (line, 0.0, 0.0)


def binary_model(
    linear: Floats, coupling: Floats, offset: float, labels: Sequence[Hashable]
) -> dimod.BinaryQuadraticModel:
    import dimod

    rows, columns = np.nonzero(np.triu(coupling, 1))
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        linear,
        (rows, columns, coupling[rows, columns]),
        offset,
        dimod.BINARY,
        variable_order=labels,
    )


def constrained_model(
    levels: Levels,
    objective: dimod.BinaryQuadraticModel,
    unused: Iterable[tuple[Index, int]],
) -> dimod.ConstrainedQuadraticModel:
    """The objective with one discrete constraint per one-hot group, one inequality per
    binary-encoded variable with unused codewords, and the limits of the region."""
    import dimod

    labels = levels.labels
    cqm = dimod.ConstrainedQuadraticModel()
    for label in labels[levels.encoding.width :]:
        objective.add_variable(label)
    cqm.set_objective(objective)
    for group in levels.encoding.groups:
        members = [labels[c] for c in group]
        # groups of an encoding are disjoint; dimod would look at all pairs of them
        name = f"one value of {members[0][0]!r}"
        cqm.add_discrete(members, label=name, check_overlaps=False)
    for columns, size in unused:
        terms = [(labels[c], 2**j) for j, c in enumerate(columns)]
        name = labels[columns[0]][0]
        cqm.add_constraint(terms, sense="<=", rhs=size - 1, label=f"code of {name!r}")
    limits = levels.limits
    for name, row, low, high in zip(
        levels.names, limits.matrix, limits.low, limits.high, strict=True
    ):
        terms = [(labels[c], float(row[c])) for c in np.flatnonzero(row)]
        for sense, bound in _sides(low, high):
            if terms:
                cqm.add_constraint(terms, sense=sense, rhs=bound, label=name)
    return cqm


def _sides(low: float, high: float) -> list[tuple[str, float]]:
    if low == high:
        return [("==", low)]
    sides = ((">=", low), ("<=", high))
    return [(sense, bound) for sense, bound in sides if np.isfinite(bound)]


def exclude(cqm: dimod.ConstrainedQuadraticModel, labels: Sequence[Label], states: Bits) -> None:
    """Rule out states of some bits: at least one of them differs, that is
    sum over ones of (1 - x) + sum over zeros of x >= 1."""
    for number, bits in enumerate(states.tolist()):
        terms = [(label, -1 if bit else 1) for label, bit in zip(labels, bits, strict=True)]
        if terms:
            cqm.add_constraint(
                terms, sense=">=", rhs=1 - sum(bits), label=f"not excluded point {number}"
            )
