"""`Trust`: the part of the space in which the minima of Thompson draws are sought.

A function drawn from the posterior follows the results near them; far from all of them it is a
function drawn from the prior. In a rugged landscape almost everything is far, the lowest value of a
draw is somewhere in the unknown, and Thompson sampling is random search. So a draw is descended
only where the model claims to know something, by what it has learned about the landscape:

    correlation of x with the best point  >=  exp(-reach)

| symbol | meaning                                                                        | shape |
|--------|--------------------------------------------------------------------------------|-------|
| centre | the best point measured                                                        | (n,)  |
| cost   | -log of the correlation between centre and the same with one variable changed, | (L,)  |
|        | for each of the kernel's levels; zero at the centre's own                      |       |

The kernel is a product, so costs add up; where it has further terms, as with windows or pooling
(`fitting/structured.py`), the cost of a change is that under the sum, and costs are added all the
same. There is no schedule: where the fit says that the landscape is smooth everything is in reach,
and the lower the fitted correlations are, the fewer changes are; a change in a variable that
matters little counts for less.

Where most of the space fails, there is another reason to stay near: the model of failures
(`failures.py`) learns what is tried, and far from all that has worked it is tried in vain. `radius`
is how many changes are worth while; where that is few, each change costs 1.

The acquisition problem that goes to the backend stays the draw on the whole space. Its answers are
drawn in, and moves that lead out of reach are not taken. (To solve the problem within reach, as one
more linear constraint, was tried: it took twice the time and lost all that the region had gained.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Mask, Rows
from mercbo.drawing.prediction import covariances_of
from mercbo.kernel import Kernel
from mercbo.posterior import Posterior

# Minus the log of the least correlation: that of opposite points at the centre of the prior.
REACH = 2.0
# Changes of typical variables that are always within reach.
CHANGES = 2
# So many points tried at a distance, of which so few have worked, are enough to come nearer. Chosen
# on Ehrlich functions, where next to nothing works far from what does: with 5 and 0.25, 115 of 180
# evaluations of a run failed, with these 91, and about 165 without a radius.
TRIES, SHARE = 4, 0.4
# Entries of the distances between failures and results that are held at a time.
ENTRIES = 1 << 22
ROUNDING = 1e-9
# Under a quadratic function, neighbours may even be opposites.
LEAST_CORRELATION = 1e-6


@dataclass(frozen=True)
class Trust:
    """The rows within reach of a centre."""

    kernel: Kernel
    centre: Rows  # (n,)
    cost: Floats  # (L,)
    reach: float

    @classmethod
    def around(cls, centre: Rows, posteriors: Sequence[Posterior]) -> Trust | None:
        """By the correlations of some states, on average; None where everything is within reach."""
        kernel = posteriors[0].kernel
        cost = np.mean([_costs(posterior, centre) for posterior in posteriors], axis=0)
        farthest = np.zeros(len(centre))
        np.maximum.at(farthest, kernel.level_variable, cost)
        reach = max(REACH, CHANGES * float(np.median(farthest)))
        return None if farthest.sum() <= reach else cls(kernel, centre, cost, reach)

    @classmethod
    def within(cls, changes: int, centre: Rows, kernel: Kernel) -> Trust:
        """The rows that differ from a centre in at most so many variables."""
        own = kernel.level_value == centre[kernel.level_variable]
        return cls(kernel, centre, np.where(own, 0.0, 1.0), float(changes))

    def distance(self, rows: Rows) -> Floats:
        """(P,): minus the log of the correlation with the centre."""
        return np.asarray(self.kernel.onehot(rows) @ self.cost)

    def holds(self, rows: Rows) -> Mask:
        return np.asarray(self.distance(rows) <= self.reach + ROUNDING)

    def moves(self, rows: Rows) -> Mask:
        """(P, L): whether a row is within reach when its variable takes a level."""
        held = self.kernel.held(rows)[:, self.kernel.level_variable]
        after = self.distance(rows)[:, np.newaxis] - self.cost[held] + self.cost
        return np.asarray(after <= self.reach + ROUNDING)

    def drawn_in(self, rows: Rows, *, rng: np.random.Generator) -> Rows:
        """Rows within reach on the way from the centre to each of these: variable by variable, in
        a random order, the centre takes on their values as long as that does not go too far."""
        # (P, n); a variable of one value has no level
        cost = np.where(rows == self.centre, 0.0, self.cost[self.kernel.held(rows)])
        order = np.argsort(rng.random(rows.shape), axis=1)
        ordered = np.take_along_axis(cost, order, axis=1)
        taken = np.zeros(rows.shape, dtype=np.bool_)
        spent = np.zeros(len(rows))
        for step in range(rows.shape[1]):
            fits = spent + ordered[:, step] <= self.reach
            spent += np.where(fits, ordered[:, step], 0.0)
            taken[np.arange(len(rows)), order[:, step]] = fits
        return np.where(taken, rows, self.centre)


def _costs(posterior: Posterior, centre: Rows) -> Floats:
    kernel = posterior.kernel
    costs = [_costs_of(kernel, each.tables, centre) for each in posterior.summands]
    if len(posterior.terms) == 1:
        return costs[0]
    amplitudes = np.array([each.amplitude for each in posterior.summands])
    shared, there = amplitudes @ np.exp(-np.array(costs)), np.full(kernel.levels, amplitudes.sum())
    here = amplitudes.sum()
    one, levels = centre[np.newaxis], np.arange(kernel.levels)[np.newaxis]
    for each in covariances_of(kernel, [], posterior.pools, posterior.motifs, kernel.onehot(one)):
        cross, own = each.around(one, levels)
        shared, there = shared + cross[0, :, 0], there + own[0]
        here = here + each.at(one)[1][0]
    correlation = np.clip(shared / np.sqrt(here * there), LEAST_CORRELATION, 1.0)
    return np.asarray(-np.log(correlation))


def _costs_of(kernel: Kernel, tables: Sequence[Floats], centre: Rows) -> Floats:
    cost = np.zeros(kernel.levels)
    for part, table in zip(kernel.parts, tables, strict=True):
        own = np.einsum("vkk->vk", table)
        held = np.arange(len(part.variables)), centre[part.variables]
        cost[part.levels] = 0.5 * (own + own[held][:, np.newaxis]) - table[held]
    return np.maximum(cost, 0.0)


# -- failures ----------------------------------------------------------------------------------


def radius(worked: Rows, failed: Rows, designed: int, *, answered: int | None = None) -> int:
    """In how many variables a point may differ from what has worked: all, or half as many as long
    as hardly any point that was tried at the larger distance worked.

    The first `designed` results are no tries: whoever told them may have known that they work.
    That cannot be said of those that were asked for, nor where failures were told unasked as well.
    `answered` is how many of all results and failures were asked for, where that is known.
    """
    changes = int(worked.shape[1])
    if len(failed) == 0 or len(worked) == 0:
        return changes
    known = min(designed, len(worked))
    if answered is not None:
        unasked = len(worked) + len(failed) - answered
        known = 0 if len(failed) > answered else min(known, max(unasked, 0))
    tried = slice(max(known, 1), None)  # the first is at no distance from another
    near = np.append(nearest(failed, worked), nearest_before(worked)[tried])
    works = np.arange(len(near)) >= len(failed)
    while changes > 1:
        ring = (near > changes // 2) & (near <= changes)
        if ring.sum() < TRIES or works[ring].mean() >= SHARE:
            break
        changes //= 2
    return changes


def nearest(rows: Rows, others: Rows) -> Floats:
    """(R,): in how many variables each row differs from the nearest of the others."""
    step = max(1, ENTRIES // max(1, others.size))
    parts = [
        (rows[i : i + step, np.newaxis] != others).sum(axis=2).min(axis=1)
        for i in range(0, len(rows), step)
    ]
    return np.concatenate([np.zeros(0), *parts])


def nearest_before(rows: Rows) -> Floats:
    """(R,): the same of each row and those before it; infinite for the first."""
    step = max(1, ENTRIES // max(1, rows.size))
    number = np.arange(len(rows))
    parts = []
    for i in range(0, len(rows), step):
        some = number[i : i + step]
        before = rows[: some[-1] + 1]
        apart = (rows[some, np.newaxis] != before).sum(axis=2).astype(float)
        apart[number[: len(before)] >= some[:, np.newaxis]] = np.inf
        parts.append(apart.min(axis=1))
    return np.concatenate([np.zeros(0), *parts])
