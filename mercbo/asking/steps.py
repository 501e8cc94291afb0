"""Failures by steps: a value that must not follow another, wherever in a row that is.

Letters of a sequence, stages of a process, shifts of a week: where evaluations fail, it is often
because of a short pattern, and of that alone. The model of `failures.py` learns each place by
itself. This one ties them: a *step* is a value and the one that follows it, at any place among
variables side by side that have the same values. What it says is

    H: an evaluation fails if and only if its row has a banned step.

| symbol | meaning                                                                        | shape  |
|--------|--------------------------------------------------------------------------------|--------|
| S      | steps there can be: k^2 for every set of like variables of k values            |        |
| M      | places of a row at which a step begins                                         |        |
| code   | the number of a step, below S                                                  | (P, M) |
| shared | how many rows that worked have a step; where it is 0 the step is *unproven*    | (S,)   |
| clause | the unproven steps of a failure, one of which is banned                        | (C, S) |
| share  | the prior probability that a step is banned                                    |        |
| p      | the posterior probability that a step is banned; 0 where it is proven          | (S,)   |

All steps of a row that worked are allowed, so the chance of a row is the product of 1 - p over the
unproven steps it has, each counted once. p follows by belief propagation: bans are independent
beforehand, a clause makes each of its steps the likelier the less the others explain it, and a
clause of one step is a proof. That is exact where clauses form a tree. A clause that contains
another says nothing beyond it and is left out.

H is refuted by a failure all of whose steps are proven. Until then the results decide (`log_odds`).
A row is *novel* where it has a step that no other row that worked has. Without H novel rows fail as
often as others do; under H only novel rows fail. Where H is wrongly believed, rows of proven steps
are tried, and the first of them that fails refutes it.
There is no randomness: the answer depends on the set of rows told and on nothing else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercbo.arrays import Floats, Index, Mask, Rows, first_of_each
from mercbo.asking.failures import Works, fit_works, labelled
from mercbo.kernel import Kernel

log = logging.getLogger(__name__)

# Variables side by side that have steps in common: with fewer, each step is at two places at most.
SHORTEST = 4
# Values of such a variable: of more, hardly any of the k^2 steps is met twice in a run.
MOST_VALUES = 64
# Log odds from which on H is believed, 20 to 1. Of random rows that fail by chance, in 45 settings
# of values, places, rates and results, 3.5 % of the sets at most were taken for H.
LEAST_ODDS = 3.0
# The prior of the share of banned steps: one seen banned and three seen allowed.
BANNED, ALLOWED = 1.0, 3.0
# The chance that is left to a step that must be banned. Of two rows with such steps a descent shall
# see which has fewer (`Discounted`), and to have none shall be worth more than a gain.
LEAST_CHANCE = 1e-6
# Belief propagation: half of each step is taken, so that loops of clauses do not swing; it stops
# where log odds change by less than this.
DAMPING, TOLERANCE, ROUNDS = 0.5, 1e-6, 200


def learn_works(kernel: Kernel, worked: Rows, failed: Rows) -> Works:
    """What to expect of evaluations by the rows that `worked` and those that `failed`: by steps
    where these explain all failures, else by `failures.py`."""
    return fit_steps(kernel, worked, failed) or fit_works(kernel, worked, failed)


def fit_steps(kernel: Kernel, worked: Rows, failed: Rows) -> StepModel | None:
    """The model, where H is credible; a row in both has worked."""
    steps = Steps.of(kernel)
    data = labelled(kernel, worked, failed)
    if steps.count == 0 or (data.y > 0).all() or (data.y < 0).all():
        return None
    rows = kernel.ranked(data.rows)
    good, bad = steps.had(rows[data.y > 0]), steps.had(rows[data.y < 0])
    odds = log_odds(good, bad)
    if odds < LEAST_ODDS:
        return None
    shared = good.sum(axis=0)
    log.debug("failures are taken to be due to steps: log odds %.1f", odds)
    return StepModel(kernel, steps, banned(shared > 0, bad & (shared == 0)))


def log_odds(good: Mask, bad: Mask) -> float:
    """For H, from the steps (., S) of rows that worked and of those that failed.

    The rows are given, and whether they fail is to be explained: without H all fail at one rate,
    under H only novel ones do, at one rate. Any rate from 0 to 1 is as likely beforehand, so that
    f failures among n rows have the evidence f! (n - f)! / (n + 1)!.
    """
    from scipy.special import betaln

    shared = good.sum(axis=0)
    if not (bad & (shared == 0)).any(axis=1).all():
        return -np.inf
    novel = int((good & (shared == 1)).any(axis=1).sum())
    failures = len(bad)
    under = betaln(failures + 1, novel + 1)
    return float(under - betaln(failures + 1, len(good) + 1))


# -- steps of a row ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """Where a row has steps, and their codes: base + size * value + next value. Values are numbered
    in the order that like variables share (`Kernel.ranked`)."""

    base: Index  # (M,) the first code of the like variables
    size: Index  # (M,) their number of values
    first: Index  # (M,) the variable at which the step begins; it ends at the one behind it
    count: int  # S

    @classmethod
    def of(cls, kernel: Kernel) -> Steps:
        """With none where no variables side by side are alike."""
        sizes = np.zeros(kernel.variables, dtype=np.intp)
        np.maximum.at(sizes, kernel.level_variable, kernel.level_value + 1)
        first = np.concatenate([np.zeros(0, dtype=np.intp), *stretches(kernel.alike, sizes)])
        groups, which = np.unique(kernel.alike[first], return_inverse=True)
        size = sizes[first]
        each = np.zeros(len(groups), dtype=np.intp)
        each[which] = size**2
        base = np.cumsum(each) - each
        return cls(base[which], size, first, int(each.sum()))

    def codes(self, rows: Rows) -> Index:
        """(P, M)."""
        return self.base + self.size * rows[:, self.first] + rows[:, self.first + 1]

    def had(self, rows: Rows) -> Mask:
        """(P, S): whether a row has a step."""
        found = np.zeros((len(rows), self.count), dtype=np.bool_)
        np.put_along_axis(found, self.codes(rows), values=True, axis=1)
        return found

    def counts(self, rows: Rows) -> Index:
        """(P, S): how often a row has a step."""
        codes = self.codes(rows) + self.count * np.arange(len(rows))[:, np.newaxis]
        flat = np.bincount(codes.ravel(), minlength=len(rows) * self.count)
        return flat.reshape(len(rows), self.count)


def stretches(alike: Index, sizes: Index) -> list[Index]:
    """The variables at which steps begin, for each stretch of like ones."""
    ends = np.flatnonzero(np.diff(alike, append=-1)) + 1
    begins = np.append(0, ends[:-1])
    return [
        np.arange(begin, end - 1)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        if end - begin >= SHORTEST and 1 < sizes[begin] <= MOST_VALUES
    ]


# -- which steps are banned --------------------------------------------------------------------


def banned(proven: Mask, suspects: Mask) -> Floats:
    """p of each step, given which are proven and the unproven ones of each failure (F, S)."""
    clauses = minimal(suspects)
    alone = clauses.sum(axis=1) == 1
    certain = clauses[alone].any(axis=0)
    unsure = clauses[~alone]
    known = np.flatnonzero(unsure.any(axis=0))
    counts = BANNED + certain.sum(), ALLOWED + proven.sum()
    likely, share = propagate(unsure[:, known], *map(float, counts))
    p = np.where(proven, 0.0, share)
    p[known] = likely
    p[certain] = 1.0
    return p


def minimal(clauses: Mask) -> Mask:
    """Each clause once, without those that contain another."""
    clauses = clauses[first_of_each(np.packbits(clauses, axis=1))]
    common = clauses.astype(np.float64) @ clauses.T
    within = common == common.diagonal()  # (C, C): whether the second is part of the first
    return np.asarray(clauses[within.sum(axis=1) == 1])


def propagate(clauses: Mask, bans: float, passes: float) -> tuple[Floats, float]:
    """The probability that each step of some clauses is banned, and the share of such steps, from
    what is known of the others: so many banned, so many allowed."""
    steps = clauses.shape[1]
    share, belief = bans / (bans + passes), np.zeros(steps)
    push = np.zeros(clauses.shape)  # what a clause adds to the log odds of its steps
    for _ in range(ROUNDS):
        prior = np.log(share) - np.log1p(-share)
        total = prior + push.sum(axis=0)
        belief = _expit(total)
        share = (bans + belief.sum()) / (bans + passes + steps)
        # log of the chance that a step is allowed, by all clauses but one
        free = np.where(clauses, -np.logaddexp(0.0, total - push), 0.0)
        others = np.minimum(free.sum(axis=1, keepdims=True) - free, -np.finfo(float).tiny)
        change = np.where(clauses, -np.log(-np.expm1(others)) - push, 0.0)
        push += DAMPING * change
        if np.abs(change).max(initial=0.0) < TOLERANCE:
            break
    return belief, float(share)


def _expit(x: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


# -- the model ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepModel:
    """How likely an evaluation is to work under H, by `p`, (S,)."""

    kernel: Kernel
    steps: Steps
    p: Floats

    @cached_property
    def _log(self) -> Floats:
        """(S,): the log of what a step leaves of the chance."""
        return np.log(np.maximum(1.0 - self.p, LEAST_CHANCE))

    def chance(self, rows: Rows) -> Floats:
        return np.asarray(np.exp(self.steps.had(self.kernel.ranked(rows)) @ self._log))

    def chance_neighbours(self, rows: Rows) -> Floats:
        """A move takes the steps to and from a variable out and puts two others in. What counts is
        which steps a row has then, that it did not have, and the other way round."""
        rows = self.kernel.ranked(rows)
        counts = self.steps.counts(rows)
        total = (counts > 0) @ self._log
        touched = self._touched(rows)  # (4, P, L)
        sign = np.array([-1, -1, 1, 1])
        change = np.zeros((len(rows), self.kernel.levels))
        for i, code in enumerate(touched):
            here = code >= 0
            before = np.take_along_axis(counts, np.maximum(code, 0), axis=1)
            same = touched == code
            after = before + np.tensordot(sign, same, axes=1)
            gained = (after > 0).astype(np.int64) - (before > 0)
            once = here & ~same[:i].any(axis=0)
            change += np.where(once, gained * self._log[code], 0.0)
        return np.asarray(np.exp(total[:, np.newaxis] + change))

    def _touched(self, rows: Rows) -> Index:
        """(4, P, L): codes of the steps to and from a level's variable, as they are and as they
        would be if it took the level; -1 where there is none."""
        steps, variable, value = self.steps, self.kernel.level_variable, self.kernel.level_rank
        begin, end = self._places
        codes = np.column_stack([steps.codes(rows), np.full(len(rows), -1, dtype=np.intp)])
        held = rows[:, variable]
        into, out = codes[:, end[variable]], codes[:, begin[variable]]
        size = np.append(steps.size, 0)[begin[variable]]
        return np.stack(
            [
                into,
                out,
                np.where(into < 0, -1, into + value - held),
                np.where(out < 0, -1, out + size * (value - held)),
            ]
        )

    @cached_property
    def _places(self) -> tuple[Index, Index]:
        """(variables,): the place of the step that begins at each variable, and of the one that
        ends there; M where there is none."""
        places = len(self.steps.first)
        begin = np.full(self.kernel.variables, places, dtype=np.intp)
        end = begin.copy()
        begin[self.steps.first] = np.arange(places)
        end[self.steps.first + 1] = np.arange(places)
        return begin, end
