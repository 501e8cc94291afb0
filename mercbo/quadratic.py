"""`Draw`: one posterior sample as an acquisition problem that any annealer or solver can take.

`draw.bqm` and `draw.cqm` hold the same objective over the bits of `encoding.py`, always to be
*minimised* and in standardised units. In the CQM, one-hot groups and unused codewords are
constraints; in the BQM they are penalties, just strong enough that no infeasible sample beats
the best feasible one:

- group g: P (1 - sum of its bits)^2. Let h be the field on a bit, bounded over all states of the
  other bits. An empty group is mended by its cheapest bit, so P >= min over bits of max h
  suffices; a group with several ones is mended by dropping all but the one of lowest field, and
  then P >= the second largest of -min h suffices, whatever the number of ones.
- binary codewords: a codeword is unused when it is k or more. Comparing bit by bit with k - 1
  gives products of bits that must be 0; longer products pass through auxiliary bits
  ``(name, "and r")`` that stand for the product of the r highest ones of k - 1. Clearing the
  highest bit always mends, so P >= -min h of that bit suffices.

Law (bridge): ``draw.bqm.energy(draw.encode(p)) == draw.value(p)`` for every point p.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import dimod
import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index, Rows
from mercbo.encoding import Block, Encoding, Label
from mercbo.errors import MercboError, PointError
from mercbo.features import Quadratic, quadratic
from mercbo.samples import QuadraticSample, Sample
from mercbo.space import Point, Space

# Added to each penalty, relative to the largest coefficient, so that mending always pays.
MARGIN = 1e-2


class Draw:
    """One posterior sample as an object to minimise; made by `Optimizer.draw`."""

    def __init__(
        self,
        space: Space,
        encoding: Encoding,
        native: Encoding,
        sample: Sample,
        excluded: Rows,
    ) -> None:
        self.space = space
        self.encoding = encoding
        self.native = native
        self.sample = sample
        self.excluded = excluded

    def __repr__(self) -> str:
        return f"Draw({len(self.space)} variables, {self.encoding.width} bits)"

    # -- the user's side -----------------------------------------------------------------------

    def value(self, point: object) -> float:
        """The sampled function at one point, in standardised units, to be minimised."""
        return float(self.sample.value(self._one(point))[0])

    def encode(self, point: object) -> dict[Label, int]:
        """The bits of one point, auxiliary ones included: a sample of `bqm`."""
        bits = self.encoding.to_bits(self._one(point))
        chained = np.concatenate([bits, self._auxiliary_bits(bits)], axis=1)
        return dict(zip(self._labels, chained[0].tolist(), strict=True))

    def decode(self, sample: Mapping[Any, Any]) -> Point | None:
        """The point of one sample of `bqm` or `cqm`; None where its bits mean no point."""
        missing = [label for label in self.encoding.labels if label not in sample]
        if missing:
            raise PointError(f"the sample has no value for {missing[0]}")
        bits = np.array([[sample[label] > 0 for label in self.encoding.labels]], dtype=np.int8)
        rows, valid = self.encoding.from_bits(bits)
        return self.space.points(rows)[0] if valid.all() else None

    @cached_property
    def bqm(self) -> dimod.BinaryQuadraticModel:
        """The sample as a binary quadratic model with penalties; labels as in `encoding.py`."""
        linear, coupling, offset = self._penalised
        return _model(linear, coupling, offset, self._labels)

    @cached_property
    def cqm(self) -> dimod.ConstrainedQuadraticModel:
        """The sample as a constrained model: one discrete constraint per one-hot group, one
        inequality per binary-encoded variable with unused codewords, and one inequality per
        point that must not come back (seen, failed or pending)."""
        cqm = copy.deepcopy(self.constrained)
        labels = self.encoding.labels
        for number, bits in enumerate(self.encoding.to_bits(self.excluded).tolist()):
            # at least one bit differs: sum over ones of (1 - x) + sum over zeros of x >= 1
            terms = [(label, -1 if bit else 1) for label, bit in zip(labels, bits, strict=True)]
            if terms:
                cqm.add_constraint(
                    terms, sense=">=", rhs=1 - sum(bits), label=f"not excluded point {number}"
                )
        return cqm

    # -- the optimizer's side ------------------------------------------------------------------

    @cached_property
    def constrained(self) -> dimod.ConstrainedQuadraticModel:
        """`cqm` without the points that must not come back: what an `ask` hands to a backend, as
        it drops these points itself and each would cost the backend a constraint."""
        form, labels = self.form, self.encoding.labels
        cqm = dimod.ConstrainedQuadraticModel()
        cqm.set_objective(_model(form.linear, form.coupling, form.offset, labels))
        for group in self.encoding.groups:
            members = [labels[c] for c in group]
            cqm.add_discrete(members, label=f"one value of {members[0][0]}")
        for columns, size in self._unused:
            terms = [(labels[c], 2**j) for j, c in enumerate(columns)]
            name = labels[columns[0]][0]
            cqm.add_constraint(terms, sense="<=", rhs=size - 1, label=f"code of {name}")
        return cqm

    @cached_property
    def form(self) -> Quadratic:
        """The sample over the bits of the encoding."""
        return self._quadratic(self.encoding)

    @cached_property
    def native_form(self) -> Quadratic:
        """The sample over the native layout, in which moves are flips and changes in a group."""
        return self.form if self.native is self.encoding else self._quadratic(self.native)

    @property
    def is_quadratic(self) -> bool:
        return isinstance(self.sample, QuadraticSample)

    def _one(self, point: object) -> Rows:
        rows = self.space.rows(point)
        if len(rows) != 1:
            raise PointError(f"one point was wanted, {len(rows)} came")
        return rows

    @property
    def is_constrained(self) -> bool:
        """Whether some states of the bits mean no point."""
        return bool(self.encoding.groups or self._unused)

    def _quadratic(self, encoding: Encoding) -> Quadratic:
        if not isinstance(self.sample, QuadraticSample):
            raise MercboError(
                "a draw of order above 2 is not quadratic and has no bqm; use Model(order=2)"
            )
        return quadratic(self.sample.kernel, self.sample.w, self.sample.low, encoding)

    def rows_of(self, found: dimod.SampleSet) -> Rows:
        """The distinct feasible points of a sample set, repaired and polished, best first."""
        labels = self.encoding.labels
        if not labels:
            return np.zeros((1, len(self.space)), dtype=np.int64)
        order = [found.variables.index(label) for label in labels]
        bits = (found.record.sample[:, order] > 0).astype(np.int8)
        form = self.form
        mended = moves.repair(form.linear, form.coupling, self.encoding.groups, bits)
        rows, _ = self.encoding.from_bits(mended)
        return self.polish(rows)

    def polish(self, rows: Rows) -> Rows:
        """Descend the quadratic by one-variable moves; distinct local minima, best first."""
        form = self.native_form
        states = np.unique(self.native.to_bits(rows), axis=0)
        polished, energy = moves.descend(form.linear, form.coupling, self.native.groups, states)
        _, first = np.unique(polished, axis=0, return_index=True)
        best = first[np.argsort(energy[first], kind="stable")]
        return self.native.from_bits(polished[best])[0]

    # -- penalties -----------------------------------------------------------------------------

    @cached_property
    def _unused(self) -> list[tuple[Index, int]]:
        """Columns and number of values of each variable that has unused codewords."""
        return [
            (columns, block.size)
            for block in self.encoding.blocks
            if block.code == "binary" and not _is_full(block)
            for columns in block.columns
        ]

    @cached_property
    def _comparisons(self) -> list[Comparison]:
        width = self.encoding.width
        out = []
        for columns, size in self._unused:
            out.append(Comparison(columns, size, width))
            width += out[-1].auxiliaries
        return out

    @cached_property
    def _labels(self) -> tuple[Label, ...]:
        """Labels of the bqm: the encoding's, then the auxiliary ones."""
        extra = [
            (self.encoding.labels[c.columns[0]][0], f"and {r + 2}")
            for c in self._comparisons
            for r in range(c.auxiliaries)
        ]
        return (*self.encoding.labels, *extra)

    def _auxiliary_bits(self, bits: Bits) -> Bits:
        columns = [c.products(bits) for c in self._comparisons]
        return np.concatenate([np.zeros((len(bits), 0), dtype=np.int8), *columns], axis=1)

    @cached_property
    def _penalised(self) -> tuple[Floats, Floats, float]:
        form, width = self.form, len(self._labels)
        linear = np.zeros(width)
        linear[: len(form.linear)] = form.linear
        coupling = np.zeros((width, width))
        coupling[: len(form.linear), : len(form.linear)] = form.coupling
        offset = form.offset
        lowest = form.linear + np.minimum(form.coupling, 0.0).sum(axis=1)
        highest = form.linear + np.maximum(form.coupling, 0.0).sum(axis=1)
        largest = max(np.abs(form.linear).max(initial=0.0), np.abs(form.coupling).max(initial=0.0))
        margin = MARGIN * largest if largest > 0 else 1.0
        for group in self.encoding.groups:
            strength = group_penalty(lowest[group], highest[group]) + margin
            offset += strength
            linear[group] -= strength
            coupling[np.ix_(group, group)] += 2 * strength * (1.0 - np.eye(len(group)))
        for comparison in self._comparisons:
            strength = max(0.0, -float(lowest[comparison.columns[-1]])) + margin
            comparison.penalise(linear, coupling, strength)
        return linear, coupling, offset


def group_penalty(lowest: Floats, highest: Floats) -> float:
    """The smallest strength that the argument of the module's docstring allows."""
    empty = float(highest.min())
    crowded = float(np.sort(-lowest)[-2])
    return max(0.0, empty, crowded)


class Comparison:
    """Penalises the codewords of one binary-encoded variable that are not below `size`.

    With t = size - 1, a codeword exceeds t if and only if, for some bit j that is 0 in t, bit j
    and all higher bits that are 1 in t are 1. `ones` are those higher bits from the top; the
    product of the first r of them is auxiliary bit r - 2 for r >= 2.
    """

    def __init__(self, columns: Index, size: int, first_auxiliary: int) -> None:
        self.columns = columns
        top = size - 1
        bits = range(len(columns) - 1, -1, -1)
        self.zeros = [j for j in bits if not top >> j & 1]
        lowest_zero = min(self.zeros)
        self.ones = [j for j in bits if top >> j & 1 and j > lowest_zero]
        self.auxiliaries = max(0, len(self.ones) - 1)
        self.first = first_auxiliary

    def _product(self, count: int) -> int:
        """The column that holds the product of the first `count` ones."""
        return int(self.columns[self.ones[0]]) if count == 1 else self.first + count - 2

    def products(self, bits: Bits) -> Bits:
        """(N, auxiliaries): the values that the auxiliary bits should have."""
        running = np.multiply.accumulate(bits[:, self.columns[self.ones]], axis=1)
        return np.asarray(running[:, 1:])

    def penalise(self, linear: Floats, coupling: Floats, strength: float) -> None:
        def add(i: int, j: int, value: float) -> None:
            coupling[i, j] += value
            coupling[j, i] += value

        for count in range(2, len(self.ones) + 1):
            # w = x y is enforced by x y - 2 x w - 2 y w + 3 w
            x, w = self._product(count - 1), self._product(count)
            y = int(self.columns[self.ones[count - 1]])
            add(x, y, strength)
            add(x, w, -2 * strength)
            add(y, w, -2 * strength)
            linear[w] += 3 * strength
        for zero in self.zeros:
            above = sum(one > zero for one in self.ones)
            add(self._product(above), int(self.columns[zero]), strength)


def _is_full(block: Block) -> bool:
    return block.size == 1 << int(block.columns.shape[1])


def _model(
    linear: Floats, coupling: Floats, offset: float, labels: tuple[Label, ...]
) -> dimod.BinaryQuadraticModel:
    rows, columns = np.nonzero(np.triu(coupling, 1))
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        linear,
        (rows, columns, coupling[rows, columns]),
        offset,
        dimod.BINARY,
        variable_order=labels,
    )
