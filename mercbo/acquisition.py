"""From one posterior draw to one row: solve, refine, and take the best that is new.

| acquisition | what is descended (the *score*)                                              |
|-------------|------------------------------------------------------------------------------|
| "thompson"  | the draw's sampled function of all orders: the draw is the acquisition       |
| "ei"        | minus log expected improvement (`asking/improvement.py`)                     |
| "mes"       | minus log information about the lowest value (`asking/entropy.py`)           |
| "lcb"       | a lower confidence bound (`asking/bound.py`)                                 |

The draw's quadratic problem goes to the backend; its answers, repaired and polished, and the best
points measured so far are where descent on the score starts. Every step keeps to the feasible
rows: moves that leave them are not taken, and where constraints bind, two variables move at once
(a swap keeps a sum that no single move keeps).
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercbo import backend
from mercbo.arrays import Floats, Index, Mask, Rows, first_of_each, key, keys
from mercbo.asking.trust import Trust
from mercbo.domain.feasible import Feasible, mend
from mercbo.domain.region import Region
from mercbo.drawing.samples import Sample
from mercbo.kernel import Kernel
from mercbo.quadratic import Draw

log = logging.getLogger(__name__)

# Points of the backend's pool, and of the history, from which a sampled function is descended.
POOL, INCUMBENTS = 16, 5
# Descents on a score of moments from there, each step of which predicts at all neighbours, and, for
# each of these, rows looked at around each of the best points; two thirds as many descents start
# from the best of those. (In the later half of 8 to 10 runs of MaxSAT-28, NK-24-4, Ising and
# microarray, log EI was 0.38 to 0.63 below the most that 60 descents found without these, and up to
# 0.07 below it with them.)
CLIMBS, SPRAYED = 6, 10
# Random starts if no backend is called: the draw has no BQM, or too many bits for the default one.
RANDOM_STARTS = 32
# Where everything around the minima has been seen: the best seen rows there whose neighbours are
# looked at.
BEYOND = 32
# Unseen points that stand in where these have been seen too; fewer where each must be searched for.
SPARE, RARE_SPARE = 2000, 128
# Where constraints bind: minima that go on by pairs of moves, and first moves of such pairs.
PAIRED, FIRST_MOVES = 6, 48
# Where none do and pairs are wanted: the same. They are not by default: after the backend and
# descent, of 60 draws on nk-30-3 and labs-50 (given random and local results, not those of runs)
# none had a lower value a pair of moves away.
FREE_PAIRED, FREE_FIRST_MOVES = 2, 24
RELATIVE_GAIN = 1e-12
# Levels from which on a space with no more rows than levels is looked at row by row.
MANY_LEVELS = 64
# Rows of a table that are looked at together.
CHUNK = 4096
# Sources of a row, in the words of `record.suggestions.Suggestion`.
BACKEND, ENUMERATION, LOCAL, RANDOM = "backend", "enumeration", "local search", "random search"


@dataclass(frozen=True)
class Choice:
    """A row that was chosen, and why."""

    row: Rows  # (n,)
    source: str
    score: float | None = None  # lower is better; None without an acquisition function
    acquisition: str | None = None  # its name
    note: str = ""  # a fallback that was taken

    @property
    def value(self) -> float | None:
        """The value of the acquisition function: larger is better."""
        return None if self.score is None else -self.score


def lowest_new(
    draw: Draw,
    score: Sample,
    kernel: Kernel,
    sampler: Any,
    incumbents: Rows,
    seen: Collection[bytes],
    *,
    climbs: int | None = None,
    near: bool = False,
    pairs: bool = False,
    rng: np.random.Generator,
) -> Choice | None:
    """The unseen feasible row of lowest score; None where there is none left.

    `climbs` limits the descents to the starts of lowest score, where the score is costly; with
    `near` some more start around the best points measured (`near_starts`). With `pairs` the lowest
    minima go on by pairs of moves also where no constraint asks for that.
    """
    feasible = draw.feasible
    if feasible.listed is not None and is_short(feasible, len(seen)):
        spare = best_spare(score, feasible, seen, len(feasible.listed), rng=rng)
        return None if spare is None else Choice(spare.row, ENUMERATION, spare.value)
    found = minima_of(
        draw, score, kernel, sampler, incumbents, climbs=climbs, near=near, pairs=pairs, rng=rng
    )
    return lowest_of(found, score, kernel, feasible, seen)


@dataclass(frozen=True)
class Minima:
    """Where descent on a score ended, and the random numbers from there on."""

    rows: Rows  # (P, n)
    values: Floats  # (P,)
    around: Floats  # (P, L), as in `Moves`
    rng: np.random.Generator
    by_backend: Mask  # (P,): whether the descent started at an answer of the backend
    note: str = ""  # why there are no such starts

    def source(self, which: int) -> str:
        """The source of a minimum. Several descents may reach it; the backend's go first."""
        same = (self.rows == self.rows[which]).all(axis=1)
        return BACKEND if self.by_backend[same].any() else LOCAL


def minima_of(
    draw: Draw,
    score: Sample,
    kernel: Kernel,
    sampler: Any,
    incumbents: Rows,
    *,
    climbs: int | None = None,
    near: bool = False,
    pairs: bool = False,
    trust: Trust | None = None,
    rng: np.random.Generator,
) -> Minima:
    """The search of `lowest_new`, which knows nothing of what was seen; with `trust` it keeps
    within reach of the best point."""
    region = draw.feasible.region
    begun, known = starts(draw, sampler, rng=rng), incumbents[:INCUMBENTS]
    pool = begun.rows
    if trust is not None:
        pool, known = trust.drawn_in(pool, rng=rng), known[trust.holds(known)]
        if not region.is_free:
            # between a feasible row and another is mostly none; there may be one beside
            pool = mend(region, pool, rng=rng)
            pool = pool[trust.holds(pool)]
    begin, first = _once(np.concatenate([pool, known]))
    by_backend = begun.by_backend & (first < len(pool))
    if not region.is_free:
        allowed = region.allows(begin)
        begin, by_backend = begin[allowed], by_backend[allowed]
    if climbs is not None:
        if len(begin) > climbs:
            best = np.argsort(score.path(begin), kind="stable")[:climbs]
            begin, by_backend = begin[best], by_backend[best]
        if near:
            around = near_starts(score, kernel, region, known, climbs, rng=rng)
            begin, first = _once(np.concatenate([begin, around]))
            by_backend = np.append(by_backend, np.zeros(len(around), dtype=np.bool_))[first]
    moves = Moves(score, kernel, region, pairs=pairs, trust=trust)
    return Minima(*moves.descend(begin), rng, by_backend, begun.note)


def _once(rows: Rows) -> tuple[Rows, Index]:
    """Each row once, and where it is first met."""
    first = first_of_each(rows)
    return rows[first], first


def near_starts(
    score: Sample,
    kernel: Kernel,
    region: Region,
    rows: Rows,
    climbs: int,
    *,
    rng: np.random.Generator,
) -> Rows:
    """The lowest rows found one or two changes away from some.

    A score of moments is worst at what was measured. So descent by single moves from the best
    points, whose neighbours were mostly measured too, ends where it begins.
    """
    near = sprayed(rows, kernel, SPRAYED * climbs, rng=rng)
    near = near[first_of_each(near)]
    near = near if region.is_free else near[region.holds(near)]
    near = near[np.argsort(score.path(near), kind="stable")]
    most = -(-2 * climbs // 3)
    if region.predicates:  # which may take long
        near = near[: 4 * most]
        near = near[region.allows(near)]
    return np.asarray(near[:most])


def sprayed(rows: Rows, kernel: Kernel, count: int, *, rng: np.random.Generator) -> Rows:
    """`count` rows around each of some, with up to two variables changed at random."""
    if kernel.levels == 0:
        return rows[:0]
    out = np.repeat(rows, count, axis=0)
    for level in rng.integers(0, kernel.levels, (2, len(out))):
        out[np.arange(len(out)), kernel.level_variable[level]] = kernel.level_value[level]
    return out


def lowest_of(
    found: Minima, score: Sample, kernel: Kernel, feasible: Feasible, seen: Collection[bytes]
) -> Choice | None:
    """The lowest of some minima and what is around them that is not in `seen`; where there is
    none, the lowest one more move away; the best of some others where all these were seen."""
    moves = Moves(score, kernel, feasible.region)
    chosen = moves.best_unseen(found.rows, found.values, found.around, seen)
    if chosen is not None:
        return Choice(chosen.row, found.source(chosen.which), chosen.value, note=found.note)
    log.debug("all points around the minima of a draw were seen; looking farther")
    rows = moves.lowest_around(found.rows, found.values, found.around, BEYOND)
    chosen = moves.best_unseen(rows, score.path(rows), moves.around(rows), seen)
    if chosen is not None:
        return Choice(chosen.row, LOCAL, chosen.value, note=found.note)
    most = SPARE if feasible.fair or feasible.listed is not None else RARE_SPARE
    spare = best_spare(score, feasible, seen, most, rng=copy.deepcopy(found.rng))
    return None if spare is None else Choice(spare.row, RANDOM, spare.value, note=found.note)


def is_short(feasible: Feasible, seen: int) -> bool:
    """Whether all that is left of a listed space is looked at, row by row: of a table, where more
    than half was seen, so that the minima that the backend finds are mostly old, and where there
    are no more rows than many levels: a problem of so many bits would take far longer."""
    listed, levels = feasible.listed, len(feasible.region.open)
    if listed is None or feasible.region.table is not None:
        return feasible.region.table is not None
    return 2 * seen > len(listed) or len(listed) <= levels >= MANY_LEVELS


def best_spare(
    score: Sample,
    feasible: Feasible,
    seen: Collection[bytes],
    most: int,
    *,
    rng: np.random.Generator,
) -> Unseen | None:
    """The lowest of up to `most` unseen feasible rows: all of them, where they are few."""
    spare = feasible.unseen(seen, most, rng=rng)
    if len(spare) == 0:
        return None
    values = np.concatenate([score.path(spare[i : i + CHUNK]) for i in range(0, len(spare), CHUNK)])
    lowest = int(values.argmin())
    return Unseen(np.asarray(spare[lowest]), float(values[lowest]), lowest)


class Unseen(NamedTuple):
    """The lowest unseen row of some, its value, and which row it is or was next to."""

    row: Rows
    value: float
    which: int


class Starts(NamedTuple):
    """Rows at which descents start, and whether the backend gave them; else why not."""

    rows: Rows
    by_backend: bool
    note: str = ""


def starts(draw: Draw, sampler: Any | None, *, rng: np.random.Generator) -> Starts:
    """Distinct low feasible rows of the draw's acquisition problem, best first: the backend's, or
    random ones without a backend or a problem that it can take."""
    feasible = draw.feasible
    if sampler is None or not draw.is_quadratic:
        why = "the draw has no BQM" if sampler is not None else f"{draw.native.width:,} bits"
        rows = feasible.sample(RANDOM_STARTS, rng=rng)
        return Starts(rows, by_backend=False, note=f"backend not called: {why}")
    rows = _answers(draw, sampler, exact=backend.is_exact(sampler), rng=rng)
    if feasible.region.predicates:
        rows = rows[feasible.region.allows(rows)]
    if len(rows) > 0:
        return Starts(rows[:POOL], by_backend=True)
    rows = feasible.unseen((), POOL, rng=rng)
    return Starts(rows, by_backend=False, note="backend gave no feasible point")


def _answers(draw: Draw, sampler: Any, *, exact: bool, rng: np.random.Generator) -> Rows:
    """The points of the backend's answer, best first."""
    constrained = backend.wants_constraints(sampler, constrained=draw.is_constrained)
    plain = draw.plain_form(constrained=constrained)
    if plain is not None and not exact and backend.takes_forms(sampler):
        encoding, form = plain
        groups = encoding.groups
        bits = backend.solve_form(sampler, form.linear, form.coupling, groups, rng=rng)
        return draw.rows_of_bits(encoding, form, bits, rng=rng)
    model = draw.model_for(constrained=constrained, exact=exact)
    found = backend.solve(sampler, model, rng=rng)
    # an answer without samples need not name any variables
    return draw.rows_of(found, rng=rng) if len(found) else draw.excluded[:0]


class Moves:
    """Descent on a sampled function over the rows of a region.

    | symbol | meaning                                                          | shape  |
    |--------|------------------------------------------------------------------|--------|
    | around | the function where one variable takes another value, infinite    | (P, L) |
    |        | where that row is not feasible; columns as in the kernel         |        |
    """

    def __init__(
        self,
        score: Sample,
        kernel: Kernel,
        region: Region,
        *,
        pairs: bool = False,
        trust: Trust | None = None,
    ) -> None:
        self.score = score
        self.trust = trust
        self.kernel = kernel
        self.region = region
        # the region's level of each of the kernel's
        self.level: Index = region.start[kernel.level_variable] + kernel.level_value
        bound = len(region.limits) > 0
        self.first_moves = FIRST_MOVES if bound else FREE_FIRST_MOVES
        self.paired = PAIRED if bound else FREE_PAIRED * pairs
        self._known: dict[bytes, Floats] = {}  # what is around rows that a descent has met

    def around(self, rows: Rows) -> Floats:
        values = self.score.path_neighbours(rows)
        if self.trust is not None:
            values = np.where(self.trust.moves(rows), values, np.inf)
        return values if self.region.is_free else np.where(self._open(rows), values, np.inf)

    def _open(self, rows: Rows) -> Mask:
        return np.asarray(self.region.moves(rows)[:, self.level])

    def moved(self, rows: Rows, columns: Index) -> Rows:
        """Each row with its variable of one column at that column's value."""
        out = rows.copy()
        out[np.arange(len(rows)), self.kernel.level_variable[columns]] = self.kernel.level_value[
            columns
        ]
        return out

    def descend(self, rows: Rows) -> tuple[Rows, Floats, Floats]:
        """Follow the best feasible move from each row until none gains.

        Returns the minima (P, n), their values (P,) and what is around them (P, L).
        """
        rows = rows.copy()
        values, around = self.score.path(rows), self._met(rows)
        self._singles(rows, values, around, np.arange(len(rows)))
        best = self._lowest(rows, values)
        while len(best):
            best = self._pairs(rows, values, around, best)
            self._singles(rows, values, around, best)
        return rows, values, around

    def _lowest(self, rows: Rows, values: Floats) -> Index:
        """The minima that go on by pairs of moves, each once."""
        if self.paired == 0:
            return np.zeros(0, dtype=np.intp)
        once = first_of_each(rows)
        return np.asarray(once[np.argsort(values[once], kind="stable")[: self.paired]])

    def _singles(self, rows: Rows, values: Floats, around: Floats, active: Index) -> None:
        """Descend the rows of `active` in place by one-variable moves."""
        while len(active):
            best = around[active].argmin(axis=1)
            lowest = around[active, best]
            moving = values[active] - lowest > RELATIVE_GAIN * (1.0 + np.abs(values[active]))
            active, best, lowest = active[moving], best[moving], lowest[moving]
            if len(active) == 0:
                return
            new = self.moved(rows[active], best)
            going = self._allowed(new)
            around[active[~going], best[~going]] = np.inf
            gone = active[going]
            rows[gone], values[gone] = new[going], lowest[going]
            around[gone] = self._met(rows[gone])

    def _met(self, rows: Rows) -> Floats:
        """What is around rows on the way down, where several descents often meet: it is looked at
        once for each row."""
        found = keys(rows)
        new = {k: i for i, k in enumerate(found) if k not in self._known}
        if new:
            self._known.update(zip(new, self.around(rows[list(new.values())]), strict=True))
        return np.array([self._known[k] for k in found]).reshape(len(rows), self.kernel.levels)

    def _allowed(self, rows: Rows) -> Mask:
        """What the predicates say about rows within the limits."""
        if not self.region.predicates:
            return np.ones(len(rows), dtype=np.bool_)
        return self.region.allows(rows)

    def _pairs(self, rows: Rows, values: Floats, around: Floats, active: Index) -> Index:
        """Take the best pair of moves of each row of `active`, in place; those that gained."""
        gained = []
        for row, pairs in zip(active.tolist(), self.pairs(rows[active]), strict=True):
            level = values[row] - RELATIVE_GAIN * (1.0 + abs(values[row]))
            found = self._first_of(pairs, level, ())
            if found is not None:
                values[row], rows[row] = found
                gained.append(row)
        gone = np.array(gained, dtype=np.intp)
        around[gone] = self.around(rows[gone])
        return gone

    def pairs(self, rows: Rows) -> list[Pairs]:
        """For each row, the rows within the limits that differ from it in two variables: the
        first moves are those of lowest value, feasible or not, the second all that lead back."""
        variable, value = self.kernel.level_variable, self.kernel.level_value
        own = rows[:, variable] == value  # (P, L)
        closed = own | ~self.region.open[self.level]
        alone = np.where(closed, np.inf, self.score.path_neighbours(rows))
        first = np.argsort(alone, axis=1, kind="stable")[:, : self.first_moves]  # (P, T)
        between = self.moved(np.repeat(rows, first.shape[1], axis=0), first.ravel())
        table = self.around(between).reshape(*first.shape, -1)  # (P, T, L)
        # the second move changes another variable, and changes it
        table[variable[first][:, :, np.newaxis] == variable] = np.inf
        table = np.where(own[:, np.newaxis, :], np.inf, table)
        table[~np.isfinite(np.take_along_axis(alone, first, axis=1))] = np.inf
        between = between.reshape(*first.shape, -1)
        return [Pairs(self, *parts) for parts in zip(between, table, strict=True)]

    def _first_of(
        self, pairs: Pairs, level: float, seen: Collection[bytes]
    ) -> tuple[float, Rows] | None:
        """The lowest pair below `level` that is allowed and not in `seen`."""
        for value, row in pairs:
            if value >= level:
                return None
            if key(row) not in seen and self._allowed(row[np.newaxis])[0]:
                return value, row
        return None

    def lowest_around(self, rows: Rows, values: Floats, around: Floats, count: int) -> Rows:
        """The `count` lowest of some rows and of what is around them, each once."""
        table = np.column_stack([values, around])  # as in `best_unseen`
        which, column = np.divmod(np.argsort(table, axis=None, kind="stable"), table.shape[1])
        reached = np.isfinite(table[which, column])
        which, column = which[reached], column[reached]
        out = self.moved(rows[which], np.maximum(column - 1, 0))
        out[column == 0] = rows[which[column == 0]]
        return np.asarray(out[np.sort(first_of_each(out))][:count])

    def best_unseen(
        self, rows: Rows, values: Floats, around: Floats, seen: Collection[bytes]
    ) -> Unseen | None:
        """The lowest of the minima and what is around them that is not in `seen`."""
        table = np.column_stack([values, around])  # (P, 1 + L); column 0 is the minimum itself
        chosen, lowest = None, np.inf
        for flat in np.argsort(table, axis=None, kind="stable"):
            which, column = divmod(int(flat), table.shape[1])
            if not np.isfinite(table[which, column]):
                break
            row: Rows = rows[which].copy()
            if column:
                row = self.moved(row[np.newaxis], np.array([column - 1]))[0]
            if key(row) not in seen and self._allowed(row[np.newaxis])[0]:
                lowest = float(table[which, column])
                chosen = Unseen(row, lowest, which)
                break
        if len(self.region.limits) == 0:
            return chosen
        # where constraints bind, what is around a seen minimum is two moves away
        known = [i for i in np.argsort(values, kind="stable")[:PAIRED] if values[i] < lowest]
        for which, pairs in zip(known, self.pairs(rows[known]), strict=True) if known else []:
            found = self._first_of(pairs, lowest, seen)
            if found is not None:
                lowest, row = found
                chosen = Unseen(row, lowest, which)
        return chosen


@dataclass(frozen=True)
class Pairs:
    """The rows two moves away from one row, lowest first when iterated."""

    moves: Moves
    between: Rows  # (T, n) the row after each first move
    table: Floats  # (T, L) values after each second move, infinite where not feasible

    def __iter__(self) -> Iterator[tuple[float, Rows]]:
        flat = self.table.ravel()
        lowest = int(flat.argmin())
        yield float(flat[lowest]), self._row(lowest)
        for position in np.argsort(flat, kind="stable")[1:].tolist():
            if not np.isfinite(flat[position]):
                return
            yield float(flat[position]), self._row(position)

    def _row(self, position: int) -> Rows:
        which, second = divmod(position, self.table.shape[1])
        moved = self.moves.moved(self.between[which : which + 1], np.array([second]))
        return np.asarray(moved[0])
