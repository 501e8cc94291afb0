"""Trust regions: where to look when the whole space has brought nothing better for a while.

A model can be wrong about a basin and sure of it: two changes that help only together look bad by
what each does alone. Expected improvement then measures ever smaller gains around the best point,
and the way out is a search that starts elsewhere. So, when results have been *stale* for some time,
every second suggestion comes from a ball in Hamming distance around another good point: it moves and grows with
each gain there, shrinks after failures, and when it is spent it is closed and another one opened,
away from all that were closed. As soon as anything beats the best point, all of that is over.

Everything here follows from the results in the order told, so that no state is kept: `replay` is a
fold over the history.

| symbol | meaning                                                             |
|--------|---------------------------------------------------------------------|
| stale  | results since the last gain that matters                            |
| level  | the lowest result of the ball                                       |
| closed | centres of balls that are spent, the first of them the best point   |
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows

# A gain matters when it exceeds this share of the distance from the median to the best.
MATTERS = 0.01
# Results without a gain that matters, per variable and at least, before a ball is opened.
PATIENCE, LEAST_PATIENCE = 1.0, 20
# The first radius as a share of the variables, the distance of a new ball from closed ones, and
# the failures in a row after which a ball shrinks.
FIRST_RADIUS, APART = 0.25, 0.25
FAILURES = 8


@dataclass(frozen=True)
class Ball:
    """The rows that differ from a centre in at most `radius` variables."""

    centre: Rows  # (n,)
    radius: int

    def holds(self, rows: Rows) -> Mask:
        return np.asarray((rows != self.centre).sum(axis=1) <= self.radius)

    def moves(self, rows: Rows, variable: Index, value: Rows) -> Mask:
        """(P, L): whether a row is inside when a variable takes a value."""
        off = rows != self.centre  # (P, n)
        away = value != self.centre[variable]  # (L,)
        after = off.sum(axis=1)[:, np.newaxis] - off[:, variable] + away
        return np.asarray(after <= self.radius)


@dataclass(frozen=True)
class Search:
    """Where the search stands after some results."""

    best: float = np.inf
    stale: int = 0
    ball: Ball | None = None
    level: float = np.inf
    failures: int = 0
    closed: tuple[Rows, ...] = field(default=())


def replay(rows: Rows, y: Floats, initial: int) -> Search:
    """The state after all results, lower being better, of which `initial` were a design."""
    state = Search()
    for t in range(len(y)):
        state = after(state, rows[: t + 1], y[: t + 1], initial)
    return state


def after(state: Search, rows: Rows, y: Floats, initial: int) -> Search:
    """The state after the last of some results."""
    matters = MATTERS * float(np.median(y) - y.min())
    new, row = float(y[-1]), rows[-1]
    if new < state.best - matters or len(y) <= initial:
        return Search(best=min(new, state.best))
    state = replace(state, best=min(new, state.best), stale=state.stale + 1)
    n = rows.shape[1]
    if state.ball is None:
        if state.stale < max(LEAST_PATIENCE, PATIENCE * n):
            return state
        return opened(replace(state, closed=(rows[int(y.argmin())],)), rows, y)
    if not state.ball.holds(row[np.newaxis])[0]:
        return state
    if new < state.level - matters:
        radius = min(state.ball.radius + 1, n)
        return replace(state, ball=Ball(row, radius), level=new, failures=0)
    state = replace(state, failures=state.failures + 1)
    if state.failures < FAILURES:
        return state
    ball = Ball(state.ball.centre, state.ball.radius // 2)
    if ball.radius >= 1:
        return replace(state, ball=ball, failures=0)
    return opened(replace(state, closed=(*state.closed, ball.centre)), rows, y)


def opened(state: Search, rows: Rows, y: Floats) -> Search:
    """With a ball around the best point that is away from all that are closed."""
    n = rows.shape[1]
    closed = np.stack(state.closed)
    distance = (rows[:, np.newaxis, :] != closed).sum(axis=2).min(axis=1)
    apart = distance >= min(APART * n, distance.max())
    centre = int(np.where(apart, y, np.inf).argmin())
    radius = max(2, round(FIRST_RADIUS * n))
    return replace(state, ball=Ball(rows[centre], radius), level=float(y[centre]), failures=0)
