"""Feasible moves on a quadratic form over bits, many states at a time (numpy only).

A state is a row of zeros and ones. Its *moves* are the flips of free bits and, inside a one-hot
group, the change to another bit of the group; a move is known by its column. With the field
h = linear + coupling q of a state, a flip of bit b changes the energy by (1 - 2 q_b) h_b and a
change inside a group from bit a to bit b by h_b - h_a (bits of one group are not coupled).

| symbol  | meaning                                                  | shape     |
|---------|----------------------------------------------------------|-----------|
| R, B, G | states, bits, one-hot groups                             |           |
| fields  | h of each state                                          | (R, B)    |
| present | the bit that is 1 in each group                          | (R, G)    |
| gains   | change of the energy by each move; negative is better    | (R, B)    |
| shifts  | change of the left-hand sides of the limits by each move | (R, B, m) |

Where linear limits bind, single moves are often not enough (a swap changes two bits and keeps a
sum), so descent then also takes pairs of moves.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Bits, Floats, Index, Mask
from mercbo.domain.limits import Limits

# A move must gain more than rounding does, or two states could follow each other for ever.
RELATIVE_GAIN = 1e-12
# Choices that break limits alike, relative to their coefficients, are told apart at random.
TIE = 1e-9
# Pairs of moves looked at together (2 million doubles are 16 MB), and first moves of a pair.
PAIR_ENTRIES, FIRST_MOVES = 1 << 21, 64
# Numbers looked at in one step of a dive: 8 MB.
DIVE_ENTRIES = 1 << 20
# Attempts to mend a state that breaks limits, each from a stronger shake.
MENDING_ROUNDS = 30


def random_states(k: int, width: int, groups: Sequence[Index], *, rng: np.random.Generator) -> Bits:
    """`k` states with exactly one bit in each group, uniform."""
    states = rng.integers(0, 2, size=(k, width), dtype=np.int8)
    for group in groups:
        states[:, group] = 0
        states[np.arange(k), rng.choice(group, size=k)] = 1
    return states


def energies(linear: Floats, coupling: Floats, states: Bits) -> Floats:
    floats = states.astype(float)
    return np.asarray(floats @ linear + 0.5 * np.einsum("rb,rb->r", floats @ coupling, floats))


def repair(linear: Floats, coupling: Floats, groups: Sequence[Index], states: Bits) -> Bits:
    """States near the given ones with one bit in each group: a group with no or several ones
    keeps the bit of lowest field among its ones (among all, where it has none)."""
    states = states.copy()
    for group in groups:
        ones = states[:, group].sum(axis=1)
        wrong = np.flatnonzero(ones != 1)
        if len(wrong) == 0:
            continue
        part = states[np.ix_(wrong, group)]
        field = linear[group] + states[wrong].astype(float) @ coupling[:, group]
        blocked = (part == 0) & (ones[wrong] > 0)[:, np.newaxis]
        keep = np.where(blocked, np.inf, field).argmin(axis=1)
        states[np.ix_(wrong, group)] = 0
        states[wrong, group[keep]] = 1
    return states


def descend(
    linear: Floats,
    coupling: Floats,
    groups: Sequence[Index],
    states: Bits,
    limits: Limits | None = None,
) -> tuple[Bits, Floats]:
    """Follow the best feasible move from each state until none gains; states and energies.

    States must be feasible; with limits, pairs of moves are tried where no single one gains.
    """
    if states.size == 0:
        return states.astype(np.int8), np.zeros(len(states))
    walk = Walk.of(linear, coupling, groups, states, limits)
    tolerance = _rounding(linear, coupling, groups)
    active = np.arange(len(states))
    while len(active):
        gains = walk.gains(active)
        if walk.limits is not None:
            gains = np.where(walk.within_limits(active), gains, np.inf)
        best, moving = _best_moves(gains, tolerance)
        stuck = active[~moving]
        active, best = active[moving], best[moving]
        walk.move(active, best)
        if walk.limits is not None:
            active = np.concatenate([active, walk.move_pairs(stuck, tolerance)])
    done = walk.states.astype(np.int8)
    return done, energies(linear, coupling, done)


def _best_moves(gains: Floats, tolerance: Floats) -> tuple[Index, Mask]:
    """(R,): the best move of each state that gains more than rounding, and where there is one."""
    rows, best = np.arange(len(gains)), gains.argmin(axis=1)
    lowest = gains[rows, best]
    moving = lowest < -tolerance[best]
    # the rounding of another move may be less
    unsure = np.flatnonzero((lowest < 0) & ~moving)
    if len(unsure):
        real = np.where(gains[unsure] < -tolerance, gains[unsure], np.inf)
        best[unsure] = real.argmin(axis=1)
        moving[unsure] = np.isfinite(real.min(axis=1))
    return best, moving


def _rounding(linear: Floats, coupling: Floats, groups: Sequence[Index]) -> Floats:
    """(B,): gains of a move that are not told from rounding, by the bits that it changes."""
    size = RELATIVE_GAIN * (np.abs(linear) + np.abs(coupling).sum(axis=1))
    for group in groups:
        size[group] = 2.0 * size[group].max()
    return np.asarray(size)


def neighbours(groups: Sequence[Index], state: Bits) -> Bits:
    """All states one move away from a state, (B, n): its free bits flipped, its groups changed."""
    around = np.repeat(state[np.newaxis], len(state), axis=0)
    column = np.arange(len(state))
    around[column, column] = 1 - around[column, column]
    for group in groups:
        around[np.ix_(group, group)] = np.eye(len(group), dtype=np.int8)
    moved = (around != state).any(axis=1)
    return np.asarray(around[moved])


def mend(
    groups: Sequence[Index], limits: Limits, states: Bits, *, rng: np.random.Generator
) -> tuple[Bits, Mask]:
    """States that satisfy the limits, near the given ones, and which of them were reached.

    Each state follows the moves that break the limits least; where that ends early, it is shaken
    (some random moves, more each time) and tries again.
    """
    width = states.shape[1]
    if len(limits) == 0 or width == 0:
        return states, limits.satisfied(states)
    walk = Walk.of(np.zeros(width), np.zeros((width, width)), groups, states, limits)
    open_ = np.flatnonzero(limits.excess(walk.sides) > 0)
    for turn in range(MENDING_ROUNDS):
        walking = open_
        while len(walking):
            now = limits.excess(walk.sides[walking])
            after = limits.excess(walk.sides[walking][:, np.newaxis] + walk.shifts(walking))
            # ties are broken at random, or all states would end alike
            best = (after + TIE * rng.random(after.shape)).argmin(axis=1)
            better = after[np.arange(len(walking)), best] < now - TIE
            walking, best = walking[better], best[better]
            walk.move(walking, best)
        open_ = np.flatnonzero(limits.excess(walk.sides) > 0)
        if len(open_) == 0:
            break
        for _ in range(2 + turn):
            walk.move(open_, rng.integers(0, width, len(open_)))
    return walk.states.astype(np.int8), np.asarray(limits.excess(walk.sides) == 0)


def dive(
    k: int, width: int, groups: Sequence[Index], limits: Limits, *, rng: np.random.Generator
) -> tuple[Bits, Mask]:
    """`k` random states, each built bit by bit and group by group in its own random order, and
    which of them satisfy the limits.

    Of the choices that leave every limit within reach one is taken at random, else one that misses
    them least.
    """
    units = units_of(width, groups)
    most = max((len(unit) for unit in units), default=1)
    together = max(1, DIVE_ENTRIES // max(1, most * len(limits)))
    if k > together:
        parts = [
            dive(min(together, k - i), width, groups, limits, rng=rng)
            for i in range(0, k, together)
        ]
        states, fine = (np.concatenate(both) for both in zip(*parts, strict=True))
        return states, fine
    # (U, C) the bit that each choice sets, `width` for none: a free bit may stay 0
    choice = np.full((len(units), max(most, 2)), -1, dtype=np.intp)
    for number, unit in enumerate(units):
        choice[number, : len(unit)] = unit
    choice[: len(units) - len(groups), 1] = width
    barred = choice < 0
    adds = np.concatenate([limits.matrix.T, np.zeros((1, len(limits)))])[choice]  # (U, C, m)
    low = np.where(barred[:, :, np.newaxis], np.inf, adds).min(axis=1)
    high = np.where(barred[:, :, np.newaxis], -np.inf, adds).max(axis=1)
    states = np.zeros((k, width + 1), dtype=np.int8)
    sides = np.zeros((k, len(limits)))
    rest_low, rest_high = low.sum(axis=0) + sides, high.sum(axis=0) + sides
    order = rng.permuted(np.tile(np.arange(len(units)), (k, 1)), axis=1)
    everyone = np.arange(k)
    slack, size = limits.slack, limits.size
    for unit in order.T:
        rest_low, rest_high = rest_low - low[unit], rest_high - high[unit]
        after = sides[:, np.newaxis] + adds[unit]  # (k, C, m)
        short = np.maximum(after + rest_low[:, np.newaxis] - limits.high - slack, 0.0)
        short += np.maximum(limits.low - slack - after - rest_high[:, np.newaxis], 0.0)
        worth = (short / size).sum(axis=2) + TIE * rng.random(barred[unit].shape)
        worth[barred[unit]] = np.inf
        chosen = worth.argmin(axis=1)
        states[everyone, choice[unit, chosen]] = 1
        sides = after[everyone, chosen]
    states = states[:, :width]
    return states, limits.satisfied(states)


def units_of(width: int, groups: Sequence[Index]) -> list[Index]:
    """What can be chosen independently: free bits, one each, and the groups."""
    free = np.ones(width, dtype=np.bool_)
    for group in groups:
        free[group] = False
    return [np.array([bit]) for bit in np.flatnonzero(free)] + list(groups)


@dataclass
class Walk:
    """States on the move, with what makes each step cheap; lives for one search."""

    coupling: Floats
    group_of: Index  # (B,) number of the bit's group, or -1
    states: Floats
    fields: Floats
    present: Index
    limits: Limits | None
    sides: Floats  # (R, m) left-hand sides of the limits

    @classmethod
    def of(
        cls,
        linear: Floats,
        coupling: Floats,
        groups: Sequence[Index],
        states: Bits,
        limits: Limits | None,
    ) -> Walk:
        group_of = np.full(states.shape[1], -1)
        for number, group in enumerate(groups):
            group_of[group] = number
        ones = [group[states[:, group].argmax(axis=1)] for group in groups]
        present = np.stack(ones, axis=1) if ones else np.zeros((len(states), 0), dtype=np.intp)
        floats = states.astype(float)
        limits = limits if limits is not None and len(limits) else None
        sides = floats @ limits.matrix.T if limits else np.zeros((len(states), 0))
        return cls(coupling, group_of, floats, linear + floats @ coupling, present, limits, sides)

    @cached_property
    def _grouped(self) -> Mask:
        return self.group_of >= 0

    @cached_property
    def _only_groups(self) -> bool:
        """Whether there are no free bits."""
        return bool(self._grouped.all())

    def gains(self, rows: Index) -> Floats:
        return self._gains(self.states[rows], self.fields[rows], self.present[rows])

    def all_gains(self) -> Floats:
        """`gains` of every state, without the cost of picking them."""
        return self._gains(self.states, self.fields, self.present)

    def _gains(self, states: Floats, fields: Floats, present: Index) -> Floats:
        if not present.shape[1]:
            return np.asarray((1.0 - 2.0 * states) * fields)
        # the field of the bit that is present in each group
        leaving = fields[np.arange(len(fields))[:, np.newaxis], present]
        if self._only_groups:
            return np.asarray(fields - leaving.take(self.group_of, axis=1))
        out, grouped = (1.0 - 2.0 * states) * fields, self._grouped
        out[:, grouped] = fields[:, grouped] - leaving[:, self.group_of[grouped]]
        return np.asarray(out)

    def undone_by(self, rows: Index, columns: Index) -> Index:
        """The column of the move that would take each of these moves back."""
        if not self.present.shape[1]:
            return columns
        groups = self.group_of[columns]
        return np.where(groups >= 0, self.present[rows, groups], columns)

    def shifts(self, rows: Index) -> Floats:
        assert self.limits is not None
        columns = self.limits.matrix.T  # (B, m)
        out = (1.0 - 2.0 * self.states[rows])[:, :, np.newaxis] * columns
        if self.present.shape[1]:
            grouped = self.group_of >= 0
            leaving = columns[self.present[rows]][:, self.group_of[grouped]]
            out[:, grouped] = columns[grouped] - leaving
        return np.asarray(out)

    @property
    def units(self) -> list[Index]:
        groups = [np.flatnonzero(self.group_of == g) for g in range(self.present.shape[1])]
        return units_of(len(self.group_of), groups)

    def gains_of(self, unit: Index) -> Floats:
        """(R, choices): gains of the moves of one unit."""
        fields = self.fields[:, unit]
        number = self.group_of[unit[0]]
        if number < 0:
            return np.asarray((1.0 - 2.0 * self.states[:, unit]) * fields)
        leaving = self.fields[np.arange(len(fields)), self.present[:, number]]
        return np.asarray(fields - leaving[:, np.newaxis])

    def shifts_of(self, unit: Index) -> Floats:
        """(R, choices, m): shifts of the moves of one unit."""
        assert self.limits is not None
        columns = self.limits.matrix.T
        number = self.group_of[unit[0]]
        if number < 0:
            return np.asarray((1.0 - 2.0 * self.states[:, unit])[:, :, np.newaxis] * columns[unit])
        return np.asarray(columns[unit] - columns[self.present[:, number]][:, np.newaxis])

    def move(self, rows: Index, columns: Index) -> None:
        """Make one move in each of `rows`; a move to the present bit of a group is none."""
        if len(rows) == 0:
            return
        if not self.present.shape[1]:
            self._flip(rows, columns)
            return
        groups = self.group_of[columns]
        inside = groups >= 0
        real = ~inside | (self.present[rows, groups] != columns)
        if not real.all():
            rows, columns, groups, inside = rows[real], columns[real], groups[real], inside[real]
        self._flip(rows, columns)
        if not inside.all():
            rows, columns, groups = rows[inside], columns[inside], groups[inside]
        if len(rows):
            old = self.present[rows, groups]
            self.states[rows, old] = 0.0
            self.fields[rows] -= self.coupling[old]
            if self.limits is not None:
                self.sides[rows] -= self.limits.matrix.T[old]
            self.present[rows, groups] = columns

    def _flip(self, rows: Index, columns: Index) -> None:
        step = 1.0 - 2.0 * self.states[rows, columns]
        self.states[rows, columns] += step
        self.fields[rows] += step[:, np.newaxis] * self.coupling[columns]
        if self.limits is not None:
            self.sides[rows] += step[:, np.newaxis] * self.limits.matrix.T[columns]

    def move_pairs(self, rows: Index, tolerance: Floats) -> Index:
        """Make the best feasible pair of moves of each of `rows`; those for which one gained."""
        assert self.limits is not None
        width = len(self.group_of)
        step = max(1, PAIR_ENTRIES // max(1, width * min(width, FIRST_MOVES)))
        moved = [rows[:0]]
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            which, first, second = self._best_pairs(part, tolerance)
            self.move(part[which], first)
            self.move(part[which], second)
            moved.append(part[which])
        return np.concatenate(moved)

    def _best_pairs(self, rows: Index, tolerance: Floats) -> tuple[Index, Index, Index]:
        """Positions in `rows` that have a feasible pair that gains, and the best such pairs.

        One move of a pair is among those that gain most (or cost least) alone, feasible or not.
        """
        assert self.limits is not None
        gains = self.gains(rows)
        if self.present.shape[1]:  # a move to the present bit is none
            np.put_along_axis(gains, self.present[rows], np.inf, axis=1)
        first = np.argsort(gains, axis=1, kind="stable")[:, :FIRST_MOVES]  # (R, T)
        alone = np.take_along_axis(gains, first, axis=1)
        total = alone[:, :, np.newaxis] + gains[:, np.newaxis, :] + self._interactions(rows, first)
        total[self._unit[first][:, :, np.newaxis] == self._unit] = np.inf
        both = tolerance[first][:, :, np.newaxis] + tolerance
        # limits are checked for the pairs that gain only
        which, at, second = np.nonzero(total < -both)
        fine = np.flatnonzero(self._pairs_within_limits(rows, which, first[which, at], second))
        which, at, second = which[fine], at[fine], second[fine]
        # by row and then by gain: the first of each row is its best
        order = np.lexsort((total[which, at, second], which))
        found, best = np.unique(which[order], return_index=True)
        best = order[best]
        return found, first[found, at[best]], second[best]

    def _pairs_within_limits(self, rows: Index, which: Index, first: Index, second: Index) -> Mask:
        """(K,): whether the limits hold after both moves, in state `rows[which]` each."""
        assert self.limits is not None
        if not self.limits.are_sparse:
            shifts = self.shifts(rows)
            sides = self.sides[rows[which]] + shifts[which, first] + shifts[which, second]
            return self.limits.holds(sides)
        step = max(1, PAIR_ENTRIES // (8 * max(1, self.limits.touching.shape[1])))
        parts = []
        for start in range(0, len(which), step):
            part = slice(start, start + step)
            state = rows[which[part]]
            changes = [*self._changes(state, first[part]), *self._changes(state, second[part])]
            parts.append(self.limits.hold_after(self.sides, state, changes))
        return np.concatenate([np.zeros(0, dtype=np.bool_), *parts])

    def within_limits(self, rows: Index) -> Mask:
        """(R, B): whether the limits hold after each move of some states that are within them."""
        assert self.limits is not None
        if not self.limits.are_sparse:
            return self.limits.holds(self.sides[rows][:, np.newaxis] + self.shifts(rows))
        width = len(self.group_of)
        state, columns = np.repeat(rows, width), np.tile(np.arange(width), len(rows))
        fine = self.limits.hold_after(self.sides, state, self._changes(state, columns))
        return fine.reshape(len(rows), width)

    def _changes(self, state: Index, columns: Index) -> list[tuple[Index, Floats]]:
        """The bits that one move in each of some states changes, with their steps."""
        steps = 1.0 - 2.0 * self.states[state, columns]
        if not self.present.shape[1]:
            return [(columns, steps)]
        groups = self.group_of[columns]
        grouped = groups >= 0
        leaving = np.where(grouped, self.present[state, groups], columns)
        # a move to the present bit of a group is none
        real = grouped & (leaving != columns)
        arriving = np.where(grouped, real.astype(float), steps)
        return [(columns, arriving), (leaving, -real.astype(float))]

    @cached_property
    def _unit(self) -> Index:
        """(B,): the number of each bit's unit."""
        bits = np.arange(len(self.group_of))
        return np.where(self.group_of >= 0, len(bits) + self.group_of, bits)

    def _interactions(self, rows: Index, first: Index) -> Floats:
        """(R, T, B): what a first and any second move change together beyond each alone."""
        signs = 1.0 - 2.0 * self.states[rows]
        if not self.present.shape[1]:
            own = np.take_along_axis(signs, first, axis=1)
            return np.asarray(own[:, :, np.newaxis] * self.coupling[first] * signs[:, np.newaxis])
        # a move inside a group adds its bit and drops the present one
        grouped = self.group_of >= 0
        signs[:, grouped] = 1.0
        leaving = np.zeros(signs.shape, dtype=np.intp)
        leaving[:, grouped] = self.present[rows][:, self.group_of[grouped]]
        own = np.take_along_axis(signs, first, axis=1)
        half = own[:, :, np.newaxis] * self.coupling[first]
        dropped = np.take_along_axis(leaving, first, axis=1)
        half -= grouped[first][:, :, np.newaxis] * self.coupling[dropped]
        across = np.take_along_axis(half, leaving[:, np.newaxis, :], axis=2)
        return np.asarray(half * signs[:, np.newaxis] - across * grouped)


def tabu(
    linear: Floats,
    coupling: Floats,
    groups: Sequence[Index],
    states: Bits,
    *,
    steps: int,
    rng: np.random.Generator,
    deadline: float = np.inf,
) -> tuple[Bits, Floats]:
    """Tabu search from each state: always the best move that does not undo a recent one.

    A move may undo a recent one if it leads below the best energy of its walk. Returns the best
    state of each walk and its energy; stops early when `time.perf_counter()` passes `deadline`.
    """
    if states.size == 0 or steps == 0:
        return states.astype(np.int8), energies(linear, coupling, states)
    walk = Walk.of(linear, coupling, groups, states, None)
    rows = np.arange(len(states))
    energy = energies(linear, coupling, states)
    best, lowest = walk.states.copy(), energy.copy()
    blocked_until = np.zeros(states.shape, dtype=np.int64)
    # the usual tenure: a share of the moves, with some randomness against cycles
    moves_each = max(1, int((walk.group_of < 0).sum()) + len(groups))
    tenure, spread = min(20, moves_each // 4), max(1, min(10, moves_each // 4))
    tenures = tenure + rng.integers(0, spread, (steps, len(rows)))
    for step in range(1, steps + 1):
        if time.perf_counter() > deadline:
            break
        gains = walk.all_gains()
        undoes = blocked_until >= step
        undoes &= gains >= (lowest - energy)[:, np.newaxis]
        gains[undoes] = np.inf
        if groups:
            gains[rows[:, np.newaxis], walk.present] = np.inf
        chosen = gains.argmin(axis=1)
        gained = gains[rows, chosen]
        undone = walk.undone_by(rows, chosen)
        if np.isfinite(gained).all():
            walk.move(rows, chosen)
            energy += gained
        else:  # walks whose every move is blocked wait
            open_ = np.isfinite(gained)
            walk.move(rows[open_], chosen[open_])
            energy[open_] += gained[open_]
        blocked_until[rows, undone] = step + tenures[step - 1]
        better = np.flatnonzero(energy < lowest)
        if len(better):
            best[better], lowest[better] = walk.states[better], energy[better]
    done = best.astype(np.int8)
    return done, energies(linear, coupling, done)
