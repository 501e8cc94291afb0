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

With constraints on the space these arguments fail, because mending a group may break a
constraint. All penalties then have one strength, U - B: U is the energy of a known feasible point
and B a lower bound over all bits, so that whatever breaks anything, by 1 or more in whole numbers,
ends above U. Limits become squares with slack bits by dimod, "at most one of these bits" products
of pairs without slack, in whole numbers as `Limits.whole` gives them. Weights of more digits than
`WHOLE_SUM` has room for are rounded: no feasible point is lost, but one that breaks such a limit by
less than the rounding may be lowest. It decodes to None; the CQM has the weights as they are.

Terms of order 3 and 4 (`Model(terms=...)`) are made quadratic by products of two bits
(`drawing/reduction.py`), auxiliary bits labelled by the pair of labels that they multiply. The
arguments above hold for the form over all bits, products included: mending a group or a codeword
may leave wrong products behind, and putting these right costs nothing.

Law (bridge): ``draw.bqm.energy(draw.encode(p)) == draw.value(p)`` for every feasible point p, up to
rounding relative to the largest bias: penalties of large weights are squares that cancel.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo import moves
from mercbo.arrays import Bits, Floats, Index, Rows, first_of_each
from mercbo.domain.export import Levels, binary_model, constrained_model, exclude
from mercbo.domain.feasible import Feasible, mend
from mercbo.domain.variables import Point
from mercbo.drawing.reduction import Reduced, monomials, reduced
from mercbo.drawing.samples import QuadraticSample, Sample
from mercbo.encoding import Block, Encoding, Label
from mercbo.errors import MercboError, PointError
from mercbo.features import Quadratic, quadratic
from mercbo.space import Space

if TYPE_CHECKING:
    import dimod

# Added to each penalty, relative to the largest coefficient, so that mending always pays.
MARGIN = 1e-2
# Whole coefficients of a limit in the BQM add up to at most this: slack bits stay below 16.
WHOLE_SUM = 2.0**15
# Feasible points whose best value sets the strength of penalties.
EXAMPLES = 64
# Bits beyond which a problem has a million couplings, which take seconds to list.
WIDE = 1500


def is_wide(native: Encoding) -> bool:
    """Whether a draw has so many bits that an ask does without its quadratic problem."""
    return native.width > WIDE


class Draw:
    """One posterior sample as an object to minimise; made by `Optimizer.draw`."""

    def __init__(
        self,
        space: Space,
        encoding: Encoding,
        native: Encoding,
        sample: Sample,
        excluded: Rows,
        feasible: Feasible | None = None,
    ) -> None:
        self.space = space
        self.feasible = space.feasible if feasible is None else feasible
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

    def encode(self, point: object) -> dict[Any, int]:
        """The bits of one feasible point, auxiliary ones included: a sample of `bqm`."""
        row = self.space.feasible_rows(self._point(point))
        bits = self.encoding.to_bits(row)
        parts = [
            bits, self._auxiliary_bits(bits), self._levels.value_bits(row),
            self._product_bits(bits),
        ]  # fmt: skip
        known = np.concatenate(parts, axis=1)[0]
        sample = dict(zip(self._labels, known.tolist(), strict=True))
        for slack in self._slacks:
            sample.update(slack.values(sample))
        return sample

    def decode(self, sample: Mapping[Any, Any]) -> Point | None:
        """The point of one sample of `bqm` or `cqm`; None where its bits mean no feasible point."""
        if not isinstance(sample, Mapping):
            raise PointError(f"a sample gives each label of the model its bit, got {sample!r}")
        missing = [label for label in self.encoding.labels if label not in sample]
        if missing:
            raise PointError(f"the sample has no value for {missing[0]}")
        bits = np.array([[sample[label] > 0 for label in self.encoding.labels]], dtype=np.int8)
        rows, valid = self.encoding.from_bits(bits)
        fine = valid.all() and self.feasible.region.allows(rows).all()
        return self.space.points(rows)[0] if fine else None

    @cached_property
    def bqm(self) -> dimod.BinaryQuadraticModel:
        """The sample as a binary quadratic model with penalties; labels as in `encoding.py`, and
        slack bits where constraints need them."""
        linear, coupling, offset = self._penalised
        bqm = binary_model(linear, coupling, offset, self._labels)
        for row in self._penalised_rows:
            row.add_to(bqm, self._strength)
        return bqm

    @cached_property
    def cqm(self) -> dimod.ConstrainedQuadraticModel:
        """The sample as a constrained model: one discrete constraint per one-hot group, one
        inequality per binary-encoded variable with unused codewords, the constraints of the space
        (predicates and tables aside), and one inequality per point that must not come back (seen,
        failed or pending)."""
        return self._with_exclusions(self.constrained, self.encoding)

    # -- the optimizer's side ------------------------------------------------------------------

    @cached_property
    def constrained(self) -> dimod.ConstrainedQuadraticModel:
        """`cqm` without the points that must not come back: what an `ask` hands to a backend that
        would not make use of them, as it drops these points itself."""
        objective = self._objective(self.reduced, self.encoding)
        return constrained_model(self._levels, objective, self._unused)

    def model_for(self, *, constrained: bool, exact: bool) -> Any:
        """What an `ask` hands to a backend: the BQM, or the constrained model over the native
        layout, in which moves keep to the constraints; with exclusions for an exact solver."""
        if not constrained:
            return self.bqm
        native = self.constrained
        if self.native is not self.encoding:
            objective = self._objective(self._native_reduced, self.native)
            native = constrained_model(self._native_levels, objective, ())
        return self._with_exclusions(native, self.native) if exact else native

    def plain_form(self, *, constrained: bool) -> tuple[Encoding, Quadratic] | None:
        """The objective of `model_for` with the encoding whose bits it is over; None where more
        than the groups of the encoding says which states are feasible, or what they are worth."""
        if not self.feasible.region.is_free or (self.is_constrained and not constrained):
            return None
        encoding = self.native if constrained else self.encoding
        made = self._native_reduced if constrained else self.reduced
        return None if made.products or not encoding.width else (encoding, made.form)

    def _with_exclusions(
        self, model: dimod.ConstrainedQuadraticModel, encoding: Encoding
    ) -> dimod.ConstrainedQuadraticModel:
        cqm = copy.deepcopy(model)
        exclude(cqm, encoding.labels, encoding.to_bits(self.excluded))
        return cqm

    @cached_property
    def _levels(self) -> Levels:
        return self.feasible.levels(self.encoding)

    @cached_property
    def _native_levels(self) -> Levels:
        return self.feasible.levels(self.native)

    @property
    def form(self) -> Quadratic:
        """The sample over the bits of the encoding and, after them, the products."""
        return self.reduced.form

    @property
    def native_form(self) -> Quadratic:
        """The sample over the native layout, in which moves are flips and changes in a group."""
        return self._native_reduced.form

    @cached_property
    def reduced(self) -> Reduced:
        """The form with the products that it has, which are none at order 2."""
        return self._quadratic(self.encoding)

    @cached_property
    def _native_reduced(self) -> Reduced:
        return self.reduced if self.native is self.encoding else self._quadratic(self.native)

    @staticmethod
    def _objective(made: Reduced, encoding: Encoding) -> dimod.BinaryQuadraticModel:
        form, labels = made.form, (*encoding.labels, *_product_labels(made, encoding))
        return binary_model(form.linear, form.coupling, form.offset, labels)

    @property
    def is_quadratic(self) -> bool:
        return isinstance(self.sample, QuadraticSample)

    def _one(self, point: object) -> Rows:
        return self.space.rows(self._point(point))

    def _point(self, point: object) -> object:
        rows = self.space.rows(point)
        if len(rows) != 1:
            raise PointError(f"one point was wanted, {len(rows)} came")
        return point

    @property
    def is_constrained(self) -> bool:
        """Whether some states of the bits mean no feasible point."""
        return bool(self.encoding.groups or self._unused) or not self.feasible.region.is_free

    def _quadratic(self, encoding: Encoding) -> Reduced:
        sample = self.sample
        if not isinstance(sample, QuadraticSample):
            raise MercboError(
                "a draw of order above 2 is not quadratic and has no bqm; use Model(order=2), or "
                "say by Model(terms=...) how many terms of higher order it keeps"
            )
        form = quadratic(sample.kernel, sample.w, sample.low, encoding)
        if sample.higher is None:
            return Reduced(form)
        terms, coefficients = sample.higher.terms, sample.higher.coefficients
        polynomial = monomials(sample.kernel, sample.w, terms, coefficients, encoding)
        return reduced(form, polynomial)

    def rows_of(self, found: dimod.SampleSet, *, rng: np.random.Generator) -> Rows:
        """The distinct feasible points of a sample set, repaired and polished, best first."""
        native = all(label in found.variables for label in self.native.labels)
        encoding, form = (self.native, self.native_form) if native else (self.encoding, self.form)
        if not encoding.labels:
            return np.zeros((1, len(self.space)), dtype=np.int64)
        order = [found.variables.index(label) for label in encoding.labels]
        bits = (found.record.sample[:, order] > 0).astype(np.int8)
        return self.rows_of_bits(encoding, form, bits, rng=rng)

    def rows_of_bits(
        self, encoding: Encoding, form: Quadratic, bits: Bits, *, rng: np.random.Generator
    ) -> Rows:
        """The same of states of the bits of an encoding, which `form` is over."""
        own = slice(encoding.width)  # products follow from the other bits
        linear, coupling = form.linear[own], form.coupling[own, own]
        mended = moves.repair(linear, coupling, encoding.groups, bits)
        rows, _ = encoding.from_bits(mended)
        region = self.feasible.region
        if not region.is_free:
            fine = region.holds(rows)
            if not fine.all():
                rows = np.concatenate([rows[fine], mend(region, rows[~fine], rng=rng)])
        return self.polish(rows)

    def polish(self, rows: Rows) -> Rows:
        """Descend the quadratic by moves within the limits; distinct local minima, best first. A
        draw with products, in which no such move is a flip, is only put in order."""
        if self._native_reduced.products:
            rows = np.unique(rows, axis=0)
            return np.asarray(rows[np.argsort(self.sample.value(rows), kind="stable")])
        form = self.native_form
        states = self.native.to_bits(rows)
        states = states[first_of_each(states)]
        limits = None if self.feasible.region.is_free else self._native_levels.limits
        polished, energy = moves.descend(
            form.linear, form.coupling, self.native.groups, states, limits
        )
        first = first_of_each(polished)
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
    def _labels(self) -> tuple[Any, ...]:
        """Labels of the bqm before slack: the encoding's, the auxiliary and the linked ones, and
        those of products."""
        extra = [
            (self.encoding.labels[c.columns[0]][0], f"and {r + 2}")
            for c in self._comparisons
            for r in range(c.auxiliaries)
        ]
        linked = self._levels.labels[self.encoding.width :]
        products = _product_labels(self.reduced, self.encoding) if self.is_quadratic else ()
        return (*self.encoding.labels, *extra, *linked, *products)

    def _product_bits(self, bits: Bits) -> Bits:
        return self.reduced.product_bits(bits) if self.is_quadratic else bits[:, :0]

    def _auxiliary_bits(self, bits: Bits) -> Bits:
        columns = [c.products(bits) for c in self._comparisons]
        return np.concatenate([np.zeros((len(bits), 0), dtype=np.int8), *columns], axis=1)

    @cached_property
    def _penalised(self) -> tuple[Floats, Floats, float]:
        form, width = self.form, len(self._labels)
        count = len(self.reduced.products)
        # the products, which come right after the bits in the form, come last here
        place = np.r_[: self.reduced.width, width - count : width]
        linear = np.zeros(width)
        linear[place] = form.linear
        coupling = np.zeros((width, width))
        coupling[np.ix_(place, place)] = form.coupling
        offset = form.offset
        lowest = form.linear + np.minimum(form.coupling, 0.0).sum(axis=1)
        highest = form.linear + np.maximum(form.coupling, 0.0).sum(axis=1)
        largest = max(np.abs(form.linear).max(initial=0.0), np.abs(form.coupling).max(initial=0.0))
        margin = MARGIN * largest if largest > 0 else 1.0
        free = self.feasible.region.is_free
        for group in self.encoding.groups:
            needed = group_penalty(lowest[group], highest[group]) if free else self._needed
            strength = needed + margin
            offset += strength
            linear[group] -= strength
            coupling[np.ix_(group, group)] += 2 * strength * (1.0 - np.eye(len(group)))
        for comparison in self._comparisons:
            needed = max(0.0, -float(lowest[comparison.columns[-1]])) if free else self._needed
            strength = needed + margin
            comparison.penalise(linear, coupling, strength)
        return linear, coupling, offset

    @cached_property
    def _needed(self) -> float:
        """U - B of the module's docstring."""
        form = self.form
        rng = np.random.default_rng(0)  # the same examples for every draw
        known = float(self.sample.value(self.feasible.sample(EXAMPLES, rng=rng)).min())
        half = form.linear + 0.5 * np.minimum(form.coupling, 0.0).sum(axis=1)
        return known - (form.offset + float(np.minimum(half, 0.0).sum()))

    @property
    def _strength(self) -> float:
        largest = max(float(np.abs(part).max(initial=0.0)) for part in self._parts)
        return self._needed + (MARGIN * largest if largest > 0 else 1.0)

    @property
    def _parts(self) -> tuple[Floats, Floats]:
        return self.form.linear, self.form.coupling

    @cached_property
    def _penalised_rows(self) -> list[PenalisedRow]:
        """The limits of the region in whole numbers, those that always hold left out."""
        return [] if self.feasible.region.is_free else list(self._rows_in_whole_numbers())

    def _rows_in_whole_numbers(self) -> Iterator[PenalisedRow]:
        levels = self._levels
        for number in range(len(levels.limits)):
            weights, low, high = levels.limits.whole(number, most=WHOLE_SUM)
            terms = [(levels.labels[c], int(weights[c])) for c in np.flatnonzero(weights)]
            least = sum(min(w, 0) for _, w in terms)
            most = sum(max(w, 0) for _, w in terms)
            low = least if low is None else max(low, least)
            high = most if high is None else min(high, most)
            if low > least or high < most:
                yield PenalisedRow(f"{number}", terms, low, high)

    @cached_property
    def _slacks(self) -> list[PenalisedRow]:
        return [row for row in self._penalised_rows if row.slack]


@dataclass(frozen=True)
class PenalisedRow:
    """low <= sum of weight * bit <= high in whole numbers, as a penalty of the BQM."""

    name: str
    terms: list[tuple[Label, int]]
    low: int
    high: int

    @property
    def _is_at_most_one(self) -> bool:
        return self.high == 1 and self.low == 0 and all(weight == 1 for _, weight in self.terms)

    @cached_property
    def slack(self) -> list[tuple[Any, int]]:
        """Labels and weights of the slack bits, as dimod names and chooses them."""
        if self._is_at_most_one:
            return []
        import dimod

        blank = dimod.BinaryQuadraticModel("BINARY")
        return self._add_squared(blank, 1.0)

    def add_to(self, bqm: dimod.BinaryQuadraticModel, strength: float) -> None:
        if not self._is_at_most_one:
            self._add_squared(bqm, strength)
            return
        for number, (first, _) in enumerate(self.terms):
            for second, _ in self.terms[:number]:
                bqm.add_quadratic(first, second, strength)

    def _add_squared(
        self, bqm: dimod.BinaryQuadraticModel, strength: float
    ) -> list[tuple[Any, int]]:
        added = bqm.add_linear_inequality_constraint(
            self.terms, strength, self.name, lb=self.low, ub=self.high
        )
        return list(added)

    def values(self, sample: Mapping[Any, int]) -> dict[Any, int]:
        """The slack bits at a feasible sample: terms + slack = high, largest weights first."""
        rest = self.high - sum(weight * sample[label] for label, weight in self.terms)
        found = {}
        for label, weight in sorted(self.slack, key=lambda pair: -pair[1]):
            found[label] = int(rest >= weight)
            rest -= weight * found[label]
        return found


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


def _product_labels(made: Reduced, encoding: Encoding) -> list[tuple[Label, Label]]:
    return [(encoding.labels[x], encoding.labels[y]) for x, y in made.products]


def _is_full(block: Block) -> bool:
    return block.size == 1 << int(block.columns.shape[1])
