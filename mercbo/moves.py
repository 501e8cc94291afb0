"""Feasible moves on a quadratic form over bits, many states at a time (numpy only).

A state is a row of zeros and ones. Its moves are the flips of free bits and, inside a one-hot
group, the change to another bit of the group; both keep the state feasible. With the field
h = linear + coupling q of a state, a flip of bit b changes the energy by (1 - 2 q_b) h_b and a
change inside a group from bit a to bit b by h_b - h_a (bits of one group are not coupled).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercbo.arrays import Bits, Floats, Index

# A move must gain more than rounding does, or two states could follow each other for ever.
RELATIVE_GAIN = 1e-12


def random_states(k: int, width: int, groups: Sequence[Index], *, rng: np.random.Generator) -> Bits:
    """`k` feasible states, uniform."""
    states = rng.integers(0, 2, size=(k, width), dtype=np.int8)
    for group in groups:
        states[:, group] = 0
        states[np.arange(k), rng.choice(group, size=k)] = 1
    return states


def energies(linear: Floats, coupling: Floats, states: Bits) -> Floats:
    floats = states.astype(float)
    return np.asarray(floats @ linear + 0.5 * np.einsum("rb,rb->r", floats @ coupling, floats))


def repair(linear: Floats, coupling: Floats, groups: Sequence[Index], states: Bits) -> Bits:
    """Feasible states near the given ones: a group with no or several ones keeps the bit of
    lowest field among its ones (among all, where it has none)."""
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
    linear: Floats, coupling: Floats, groups: Sequence[Index], states: Bits
) -> tuple[Bits, Floats]:
    """Follow the best feasible move from each state until none gains; states and energies."""
    if states.size == 0:
        return states.astype(np.int8), np.zeros(len(states))
    group_of = np.full(states.shape[1], -1)
    for number, group in enumerate(groups):
        group_of[group] = number
    grouped = group_of >= 0
    # present (R, G): the bit that is 1 in each group
    ones = [group[states[:, group].argmax(axis=1)] for group in groups]
    present = np.stack(ones, axis=1) if ones else np.zeros((len(states), 0), dtype=np.intp)
    floats = states.astype(float)
    fields = linear + floats @ coupling
    tolerance = RELATIVE_GAIN * float(np.abs(linear).sum() + np.abs(coupling).sum())
    active = np.arange(len(states))
    while True:
        gains = (1.0 - 2.0 * floats[active]) * fields[active]
        if groups:
            leaving = np.take_along_axis(fields[active], present[active], axis=1)
            changes = fields[active][:, grouped] - leaving[:, group_of[grouped]]
            gains[:, grouped] = changes
        best = gains.argmin(axis=1)
        moving = gains[np.arange(len(active)), best] < -tolerance
        active, best = active[moving], best[moving]
        if len(active) == 0:
            break
        step = 1.0 - 2.0 * floats[active, best]
        floats[active, best] += step
        fields[active] += step[:, np.newaxis] * coupling[best]
        inside = grouped[best]
        if inside.any():
            rows, new = active[inside], best[inside]
            old = present[rows, group_of[new]]
            floats[rows, old] = 0.0
            fields[rows] -= coupling[old]
            present[rows, group_of[new]] = new
    done = floats.astype(np.int8)
    return done, energies(linear, coupling, done)
