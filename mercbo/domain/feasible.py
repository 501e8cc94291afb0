"""Finding rows that a region allows: lists of them, random ones, unseen ones, or a proof of none.

Three ways, from cheap to certain:

- *rejection*: uniform rows, where a fair share of them is allowed;
- *dives*: one variable after another, in a random order, takes a random value that leaves every
  limit within reach; what ends outside is mended by the moves that break the limits least;
- *CP-SAT*, which finds a row if there is one and proves it if there is none.

A region with few rows is listed instead, by the same reasoning as a dive but with all values.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo import backend, moves
from mercbo.arrays import Bits, Floats, Mask, Rows, keys, rows_of_keys
from mercbo.domain.constraints import Constraint
from mercbo.domain.export import Levels, binary_model, constrained_model, exclude
from mercbo.domain.limits import Limits
from mercbo.domain.region import Region
from mercbo.encoding import Encoding
from mercbo.errors import BackendError, SpaceError

if TYPE_CHECKING:
    import dimod

# A region with at most so many rows is listed; on the way there may be so many beginnings.
LISTED, BEGINNINGS = 20_000, 100_000
# Numbers in the left-hand sides of all beginnings together: 32 MB.
SIDES = 1 << 22
# Uniform rows are tried on the region once, and used where at least this share is allowed.
TRIED, FAIR_SHARE = 2000, 0.01
# Rows drawn at a time, at least.
BATCH = 64
# Rows that bring nothing new before CP-SAT is asked: more where there are predicates, which it
# cannot see, and of its rows so many may be refused by them.
PATIENCE, LONG_PATIENCE, REFUSED = 200, 20_000, 50
# Rows that CP-SAT is asked for at a time.
PROVEN_TOGETHER = 32
# Where of so many dives one in eight or less stays within the limits, CP-SAT lists the rows, if
# there are no more than so many.
RARE_TRIED, RARE = 64, 256
# Seconds for CP-SAT to find or refute one row.
PROOF_SECONDS = 60.0


# -- listing -----------------------------------------------------------------------------------


def listing(region: Region, most: int) -> Rows | None:
    """All rows within the limits (predicates aside) in lexicographic order; None where there are
    more than `most`, or where finding them would take too long."""
    if region.table is not None:
        return region.table[region.holds(region.table)]
    involved = np.asarray(region.columns.any(axis=1))
    choices = [np.flatnonzero(region.open[group]) for group in region.groups]
    if not all(map(len, choices)):
        return np.zeros((0, len(choices)), dtype=np.int64)
    named = [bool(involved[group].any()) for group in region.groups]
    if math.prod(len(c) for c, bound in zip(choices, named, strict=True) if not bound) > most:
        return None
    order = sorted(range(len(choices)), key=lambda i: (not named[i], len(choices[i])))
    beginnings = min(BEGINNINGS, SIDES // max(1, len(region.limits)))
    low, high = reach(region)
    slack = region.limits.slack
    rest_low = np.asarray(low.sum(axis=0))
    rest_high = np.asarray(high.sum(axis=0))
    rows = np.zeros((1, 0), dtype=np.int16)  # one column per variable so far, in that order
    sides = np.zeros((1, len(region.limits)))
    for variable in order:
        rest_low, rest_high = rest_low - low[variable], rest_high - high[variable]
        step = max(1, beginnings // len(choices[variable]))  # beginnings extended at a time
        parts, count = [], 0
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            values = np.tile(choices[variable], len(rows[part]))
            added = region.columns[region.start[variable] + values]
            after = np.repeat(sides[part], len(choices[variable]), axis=0) + added
            fine = (after + rest_low <= region.limits.high + slack).all(axis=1)
            fine &= (after + rest_high >= region.limits.low - slack).all(axis=1)
            longer = np.repeat(rows[part], len(choices[variable]), axis=0)[fine]
            parts.append((np.column_stack([longer, values[fine].astype(np.int16)]), after[fine]))
            count += len(longer)
            if count > beginnings:
                return None
        if count == 0:
            return np.zeros((0, len(choices)), dtype=np.int64)
        rows, sides = (np.concatenate(both) for both in zip(*parts, strict=True))
    if len(rows) > most:
        return None
    found = np.zeros(rows.shape, dtype=np.int64)
    found[:, order] = rows
    return np.asarray(found[np.lexsort(found.T[::-1])])


def rare_rows(region: Region) -> Rows | None:
    """All rows within limits that dives hardly ever meet, by CP-SAT; None where dives do meet
    them, or where there are more than a few."""
    if len(dive(region, RARE_TRIED, rng=np.random.default_rng(0))) > RARE_TRIED // 8:
        return None
    rows = np.zeros((0, len(region.sizes)), dtype=np.int64)
    while len(rows) <= RARE:
        more, refuted = solve(region, rows, most=RARE + 1 - len(rows))
        if len(more) == 0:
            return rows[np.lexsort(rows.T[::-1])] if refuted else None
        rows = np.concatenate([rows, more])
    return None


def reach(region: Region) -> tuple[Floats, Floats]:
    """(n, m) each: the least and the most that a variable can add to the sides."""
    m = len(region.limits)
    low, high = np.zeros((len(region.groups), m)), np.zeros((len(region.groups), m))
    for variable, group in enumerate(region.groups):
        part = region.columns[group][region.open[group]]
        if len(part):
            low[variable], high[variable] = part.min(axis=0), part.max(axis=0)
    return low, high


# -- random rows -------------------------------------------------------------------------------


def uniform(region: Region, k: int, *, rng: np.random.Generator) -> Rows:
    """`k` rows of open levels, uniform; limits are not looked at."""
    if region.open.all():
        return rng.integers(0, region.sizes, size=(k, len(region.sizes)), dtype=np.int64)
    columns = [
        rng.choice(np.flatnonzero(region.open[group]), size=k).astype(np.int64)
        for group in region.groups
    ]
    return np.stack(columns, axis=1)


def _dives(region: Region, k: int, *, rng: np.random.Generator) -> tuple[Rows, Mask]:
    """`k` rows, each by its own random order of the variables, and which are within the limits."""
    limits, groups = region.open_limits, region.open_groups
    states, fine = moves.dive(k, limits.matrix.shape[1], groups, limits, rng=rng)
    return region.rows_of(states), fine


def dive(region: Region, k: int, *, rng: np.random.Generator) -> Rows:
    """Up to `k` random rows within the limits: dives, mended where they end outside."""
    rows, fine = _dives(region, k, rng=rng)
    return np.concatenate([rows[fine], mend(region, rows[~fine], rng=rng)])


def mend(region: Region, rows: Rows, *, rng: np.random.Generator) -> Rows:
    """Rows within the limits near the given ones, where moves lead there."""
    # a closed level is replaced by the first open one of its variable
    first = np.array([np.argmax(region.open[group]) for group in region.groups])
    rows = np.where(region.open[region.start + rows], rows, first)
    limits, groups = region.open_limits, region.open_groups
    if len(rows) == 0:
        return rows
    states, reached = moves.mend(groups, limits, region.open_states(rows), rng=rng)
    return region.rows_of(states[reached])


# -- CP-SAT ------------------------------------------------------------------------------------


def solve(
    region: Region, barred: Rows, *, most: int = 1, rng: np.random.Generator | None = None
) -> tuple[Rows, bool]:
    """Up to `most` rows within the limits that are not in `barred`, at least one where there is
    one; and, where there is none, whether that was proven.

    With `rng` they are the best of a random linear objective, so that others come another time.
    """
    levels = Levels(region, Encoding(region, native=True))
    width, limits = levels.encoding.width, levels.limits
    none = np.zeros((0, len(region.sizes)), dtype=np.int64)
    # limits that no bit can change are not in the model, and without bits there is no model
    fixed = ~limits.matrix.any(axis=1)
    if not Limits(limits.matrix[fixed], limits.low[fixed], limits.high[fixed]).holds(np.zeros(1)):
        return none, True
    if width == 0:
        only = np.zeros((1, len(region.sizes)), dtype=np.int64)
        return (none, True) if len(barred) else (only, False)
    linear = np.zeros(width) if rng is None else rng.standard_normal(width)
    objective = binary_model(linear, np.zeros((width, width)), 0.0, levels.labels)
    while True:
        cqm = constrained_model(levels, objective, ())
        exclude(cqm, levels.encoding.labels, levels.encoding.to_bits(barred))
        found = _cp_sat().sample_cqm(cqm, seed=0, time_limit=PROOF_SECONDS, num_reads=most)
        if len(found) == 0:
            return none, _is_refuted(found)
        rows, _ = levels.encoding.from_bits(_bits(found, levels.labels))
        fine = region.holds(rows)
        if fine.any():
            return rows[fine], False
        # coefficients that cannot be made whole are rounded for CP-SAT, in favour of such rows
        barred = np.concatenate([barred, rows])


def _cp_sat() -> Any:
    return backend.resolve("cp-sat")


def _is_refuted(found: dimod.SampleSet) -> bool:
    return bool(found.info.get("status") == "infeasible")


def _bits(found: dimod.SampleSet, labels: Sequence[Any]) -> Bits:
    order = [found.variables.index(label) for label in labels]
    return np.asarray(found.record.sample[:, order] > 0, dtype=np.int8)


def is_empty(region: Region) -> bool:
    """Whether no row is within the limits (of a table: none is feasible): cheap where one is
    easily found, else proven."""
    if region.table is not None:
        return not region.allows(region.table).any()
    if not all(region.open[group].any() for group in region.groups):
        return True
    if len(region.limits) == 0 or _dives(region, 16, rng=np.random.default_rng(0))[1].any():
        return False
    found, refuted = solve(region, np.zeros((0, len(region.sizes)), dtype=np.int64))
    if len(found) == 0 and not refuted:
        raise _undecided()
    return refuted


def conflict(region: Region, fixed: Sequence[int] = ()) -> list[Constraint]:
    """A smallest part of the constraints that has no solution, where all of them have none (with
    some levels fixed): runs of constraints are dropped, long ones first, while what is left has
    none."""
    kept = list(region.constraints)
    length = max(1, len(kept) // 2)
    while True:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + length :]
            if is_empty(Region.of(region.variables, rest, region.table).fixed(fixed)):
                kept = rest
            else:
                start += length
        if length == 1:
            return kept
        length //= 2


# -- what a space and an ask use ---------------------------------------------------------------


@dataclass(frozen=True)
class Feasible:
    """The feasible rows of a region, with what is worth finding out once."""

    region: Region

    def __getstate__(self) -> dict[str, Any]:
        # levels are made again faster than they are sent to another process
        return {name: known for name, known in self.__dict__.items() if name != "_levels"}

    def apart(self, rows: Rows, distance: int) -> Feasible:
        """Those that also differ from each of some rows in at least so many variables."""
        found = Feasible(self.region.apart(rows, distance))
        listed = self.listed
        # of rows that are too many to list, what is left is not listed either
        found.__dict__["listed"] = None if listed is None else listed[found.region.holds(listed)]
        return found

    def levels(self, encoding: Encoding) -> Levels:
        """The levels over the bits of an encoding of the region, made once per layout.

        They have an encoding of their own: a space outlives the optimizers that ask for levels,
        and must not keep the encodings of the optimizers alive.
        """
        known = self._levels.get(encoding.native)
        if known is None:
            own = Encoding(self.region, native=encoding.native)
            known = self._levels[encoding.native] = Levels(self.region, own)
        return known

    @cached_property
    def _levels(self) -> dict[bool, Levels]:
        return {}

    @cached_property
    def listed(self) -> Rows | None:
        """All rows within the limits where they are few, predicates aside. It depends on the
        region only, so that a loaded run finds the same."""
        rows = listing(self.region, LISTED)
        return rare_rows(self.region) if rows is None and not self.fair else rows

    @cached_property
    def fair(self) -> bool:
        """Whether uniform rows are within the limits often enough to draw them that way."""
        if len(self.region.limits) == 0:
            return True
        tried = uniform(self.region, TRIED, rng=np.random.default_rng(0))
        return float(self.region.holds(tried).mean()) >= FAIR_SHARE

    def left(self, seen: Collection[bytes], wanted: int) -> int:
        """How many feasible rows are not in `seen`, or `wanted` where there are as many, or where
        only a search could tell."""
        if self.region.is_free:
            return min(wanted, int(math.prod(self.region.sizes.tolist())) - len(seen))
        if self.listed is None:
            return wanted
        return len(self.unseen(seen, wanted, rng=np.random.default_rng(0)))

    def sample(self, k: int, *, rng: np.random.Generator) -> Rows:
        """`k` random feasible rows, repeats possible: uniform where rows are listed or often met
        by chance, else only spread out."""
        if self.region.is_free:
            return uniform(self.region, k, rng=rng)
        if self.listed is not None:
            fine = self.listed[self.region.allows(self.listed)]
            if len(fine) == 0:
                raise _nothing(self.region)
            return fine[rng.integers(0, len(fine), size=k)]
        found: list[Rows] = [np.zeros((0, len(self.region.sizes)), dtype=np.int64)]
        count = tried = 0
        while count < k:
            rows = self._drawn(max(BATCH, 2 * k), rng=rng)
            if len(rows) == 0:
                rows, refuted = solve(self.region, rows, rng=rng)
                if len(rows) == 0:
                    raise _nothing(self.region) if refuted else _undecided()
            tried += max(BATCH, len(rows))
            found.append(rows[self.region.allows(rows)])
            count += len(found[-1])
            if count == 0 and tried > LONG_PATIENCE:
                raise SpaceError(
                    f"none of the points tried within the other constraints satisfies "
                    f"{list(self.region.predicates)}"
                )
        return np.concatenate(found)[:k]

    def unseen(
        self,
        seen: Collection[bytes],
        k: int,
        *,
        tries: float = math.inf,
        rng: np.random.Generator,
    ) -> Rows:
        """Up to `k` distinct random feasible rows not in `seen`; fewer only where no more exist.

        Rows that are few are listed. Otherwise random ones are drawn until enough are new; where
        that brings nothing new, CP-SAT finds the others or proves that there are none. It cannot
        see predicates: with these, fewer come also where they refused too many rows, and, once
        there is one, where as many as `tries` were drawn.
        """
        if self.listed is not None:
            return self._unseen_listed(seen, k, rng=rng)
        taken: dict[bytes, Rows] = {}
        idle, patience = 0, LONG_PATIENCE if self.region.predicates else PATIENCE
        tried, enough = 0, tries if self.region.predicates else math.inf
        while len(taken) < k and idle < patience:
            if taken and tried >= enough:
                return _stacked(taken, self._n)
            rows = self._drawn(max(BATCH, 2 * k), rng=rng)
            new = self._new(rows, seen, taken)
            taken.update(new)
            tried += len(rows)
            # dives that find nothing once will hardly do so later
            idle = 0 if new else idle + (len(rows) or (1 if self.fair else patience))
        if len(taken) < k:
            taken.update(self._proven(seen, taken, k - len(taken), rng=rng))
        return _stacked(taken, self._n)[:k]

    @property
    def _n(self) -> int:
        return len(self.region.sizes)

    def _drawn(self, k: int, *, rng: np.random.Generator) -> Rows:
        """Random rows, `k` tried: uniform ones within the limits, or dives."""
        if not self.fair:
            return dive(self.region, k, rng=rng)
        rows = uniform(self.region, k, rng=rng)
        return rows if self.region.is_free else rows[self.region.holds(rows)]

    def _new(
        self, rows: Rows, seen: Collection[bytes], taken: Mapping[bytes, Rows]
    ) -> dict[bytes, Rows]:
        """The feasible ones of some rows that are in neither collection, by their keys."""
        fresh = {
            found: row
            for found, row in zip(keys(rows), rows, strict=True)
            if found not in seen and found not in taken
        }
        if not fresh or self.region.is_free:
            return fresh
        fine = self.region.allows(np.stack(list(fresh.values())))
        return {f: row for (f, row), good in zip(fresh.items(), fine, strict=True) if good}

    def _proven(
        self,
        seen: Collection[bytes],
        taken: Mapping[bytes, Rows],
        k: int,
        *,
        rng: np.random.Generator,
    ) -> dict[bytes, Rows]:
        """Up to `k` more rows by CP-SAT; fewer only where there are no more, or where predicates
        refused as many as `REFUSED`."""
        new: dict[bytes, Rows] = {}
        barred = rows_of_keys(sorted({*seen, *taken}), self._n)
        refused = 0
        while len(new) < k and refused < REFUSED:
            most = min(k - len(new), PROVEN_TOGETHER)
            rows, refuted = solve(self.region, barred, most=most, rng=rng)
            if len(rows) == 0 and not refuted and not taken and not new:
                raise _undecided()
            if len(rows) == 0:
                return new
            barred = np.concatenate([barred, rows])
            allowed = self._new(rows, seen, taken)
            refused += len(rows) - len(allowed)
            new.update(allowed)
        return new

    def _unseen_listed(self, seen: Collection[bytes], k: int, *, rng: np.random.Generator) -> Rows:
        assert self.listed is not None
        fresh = self.listed[[found not in seen for found in self._listed_keys]]
        mixed = fresh[rng.permutation(len(fresh))]
        if not self.region.predicates:
            return mixed[:k]
        found, start = [mixed[:0]], 0
        while sum(map(len, found)) < k and start < len(mixed):
            part = mixed[start : start + max(1, k)]
            found.append(part[self.region.allows(part)])
            start += len(part)
        return np.concatenate(found)[:k]

    @cached_property
    def _listed_keys(self) -> list[bytes]:
        return keys(self.listed) if self.listed is not None else []


def _stacked(taken: Mapping[bytes, Rows], width: int) -> Rows:
    return np.array(list(taken.values()), dtype=np.int64).reshape(-1, width)


def _nothing(region: Region) -> SpaceError:
    return SpaceError(f"no point satisfies {list(region.constraints)}")


def _undecided() -> BackendError:
    return BackendError(
        f"no point that satisfies the constraints was found within {PROOF_SECONDS:g} s, "
        "nor a proof that there is none"
    )


def contradicted(
    feasible: Feasible, region: Region, levels: Sequence[int]
) -> Sequence[Constraint] | None:
    """The constraints that leave nothing of a region with some levels fixed; None where something
    is left. There are none of them where a table has no such row at all."""
    if is_empty(feasible.region):
        return conflict(region, levels)
    few = region.predicates and feasible.listed is not None
    return region.predicates if few and feasible.left((), 1) == 0 else None
