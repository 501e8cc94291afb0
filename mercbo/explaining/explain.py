"""`Explanation`: what the model has learned, in the user's values and units.

Built by `Optimizer.explain` from the parts of the posterior (`anova.py`) and its leave-one-out
predictions (`crossval.py`). An effect is the change that a value makes, against the average over
all values of its variable, the other variables averaged over as well; an interaction is what a
pair of values adds beyond the effects of the two.

Where the model works on warped results, effects add up on the warped scale. They are shown in the
user's units as the change that each alone makes from the average: the ends of an interval go
through the warp exactly, sums of effects do not. Shares are of the variance on the model's scale.

Intervals are quantiles of the posterior averaged over states of the hyper-parameters
(`explanatory.py`). One fitted state would leave out that it is an estimate too: its intervals are
too narrow, the more so the fewer and the noisier the results. `predict` and `ask` go by the
optimizer's own states, so that a prediction here may differ from theirs by a part of its interval.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Point, Value
from mercbo.drawing.surrogate import Units
from mercbo.errors import SettingError, choose
from mercbo.explaining.anova import Decomposition, Gauss, variances
from mercbo.explaining.crossval import CrossValidation, cross_validation
from mercbo.explaining.mixture import Mixture
from mercbo.fitting.warp import Warp
from mercbo.posterior import Posterior
from mercbo.space import Space

# Lines of each kind that `repr` shows.
SHOWN = 8


@dataclass(frozen=True)
class Effect:
    """The change that one value makes, with an interval, in the user's units."""

    variable: str
    value: Value
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Interaction:
    """What a pair of values adds beyond its two effects."""

    variables: tuple[str, str]
    values: tuple[Value, Value]
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Importance:
    """The share of the objective's variance that comes from a variable or a pair of variables.

    main
        Of the variable alone, or of the pair beyond its two variables.
    total
        With all interactions that it takes part in; None for a pair.
    settled
        The part of `main` that is due to the estimated effects; the rest is their uncertainty.
    """

    variables: tuple[str, ...]
    main: float
    total: float | None
    settled: float


@dataclass(frozen=True)
class Contribution:
    """What one or two of a point's values add to its prediction."""

    variables: tuple[str, ...]
    values: tuple[Value, ...]
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Why:
    """One point: what its prediction is made of, and what is not known about it.

    chance
        Probability that the objective is better there than the best result so far.
    rest
        What the prediction holds beyond the parts of one and two variables.
    nearest
        In how many variables it differs from the nearest point with a result.
    """

    point: Point
    predicted: float
    low: float
    high: float
    average: float
    parts: tuple[Contribution, ...]
    rest: float
    chance: float
    nearest: int

    def __repr__(self) -> str:
        lines = [
            f"Why {self.point}",
            f"  predicted {_interval(self.predicted, self.low, self.high)}, "
            f"chance of a new best {self.chance:.0%}, "
            f"{self.nearest} variable{'s' * (self.nearest != 1)} from the nearest result",
            f"  {self.average:+.4g}  the average of the space",
        ]
        for part in self.parts[:SHOWN]:
            shown = ", ".join(
                f"{n}={v!r}" for n, v in zip(part.variables, part.values, strict=True)
            )
            lines.append(f"  {_signed(part.estimate, part.low, part.high)}  {shown}")
        lines.append(f"  {self.rest:+.4g}  everything else")
        unsure = max(self.parts, key=lambda part: part.high - part.low, default=None)
        if unsure is not None:
            lines.append(f"  least sure: {' x '.join(unsure.variables)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """Effects, interactions, importance and a check of the model; `to_frame` gives tables."""

    direction: str
    level: float
    average: float
    effects: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]
    importance: tuple[Importance, ...]
    pairs: tuple[Importance, ...]
    # pairs of variables that were too many or too large to look at
    left_out: int
    # the share of variance of parts of three and more variables, and of pairs left out
    higher: float
    check: CrossValidation
    warped: bool
    why: Why | None = None
    # whether rules or a table leave points out, of which averages know nothing
    ruled: bool = False

    def to_frame(self, what: str = "effects") -> Any:
        """A pandas DataFrame: "effects", "interactions", "importance", "pairs", "check", "why"."""
        choose("what", what, ["effects", "interactions", "importance", "pairs", "check", "why"])
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        if what == "why" and self.why is None:
            raise SettingError("to_frame('why') needs a point: explain(point)")
        return pandas.DataFrame(self.records(what))

    def records(self, what: str) -> list[dict[str, Any]]:
        """The rows of `to_frame`, as dicts."""
        if what == "check":
            return [
                {**left.point, "observed": left.observed, "predicted": left.predicted,
                 "low": left.low, "high": left.high, "residual": left.residual}
                for left in self.check.results
            ]  # fmt: skip
        listed = self.why.parts if what == "why" and self.why else getattr(self, what)
        return [_flat(asdict(each)) for each in listed]

    def __repr__(self) -> str:
        lines = [
            f"Explanation of {len(self.check.results)} results ({self.direction}), "
            f"{self.level:.0%} intervals, average of the space {self.average:.4g}",
            "Importance (share of variance: alone, with interactions)",
        ]
        ranked = sorted(self.importance, key=lambda each: -(each.total or 0.0))
        lines += [
            f"  {each.variables[0]}: {each.main:.0%}, {each.total:.0%}" for each in ranked[:SHOWN]
        ]
        lines += _more(len(ranked))
        lines.append("Effects (largest first)")
        strongest = sorted(self.effects, key=lambda each: -abs(each.estimate))
        lines += [
            f"  {e.variable}={e.value!r}: {_signed(e.estimate, e.low, e.high)}"
            for e in strongest[:SHOWN]
        ]
        lines += _more(len(strongest))
        lines.append("Interactions (largest first)")
        pairs = sorted(self.interactions, key=lambda each: -abs(each.estimate))
        lines += [
            f"  {p.variables[0]}={p.values[0]!r} x {p.variables[1]}={p.values[1]!r}: "
            f"{_signed(p.estimate, p.low, p.high)}"
            for p in pairs[:SHOWN]
        ]
        lines += _more(len(pairs))
        if self.left_out:
            lines.append(f"  {self.left_out} pairs of variables were not looked at")
        shown = ", ".join(f"{c.rate:.0%} in {c.stated:.0%}" for c in self.check.calibration)
        lines.append(f"Left-out results: R2 {self.check.r2:.2f}; in their intervals: {shown}")
        if self.warped:
            lines.append("Results are modelled on a warped scale: effects do not quite add up")
        if self.ruled:
            lines.append("Averages run over all combinations, also those that are not allowed")
        return "\n".join([*lines, *([repr(self.why)] if self.why else [])])


# -- building ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scale:
    """From the model's units to the user's, with intervals of a level."""

    units: Units
    warp: Warp
    level: float

    def value(self, mean: Floats) -> Floats:
        return self.units.value(self.warp.inverse(mean))

    def interval(self, part: Mixture, centre: float = 0.0) -> tuple[Floats, Floats, Floats]:
        """Mean, low and high of `centre` + part."""
        ends = (part.quantile(0.5 + side * self.level / 2) for side in (-1, 1))
        sides = [self.value(centre + at) for at in (part.mean, *ends)]
        # a very skewed mixture has its mean outside of a very short interval
        return sides[0], np.min(sides, axis=0), np.max(sides, axis=0)

    def changes(self, part: Mixture, centre: float) -> tuple[Floats, Floats, Floats]:
        """Estimate, low and high of the change from `centre` to `centre` + part."""
        origin = self.value(np.array(centre))
        middle, low, high = self.interval(part, centre)
        return middle - origin, low - origin, high - origin


def explain(
    space: Space,
    posteriors: list[Posterior],
    units: Units,
    direction: str,
    rows: Rows,
    values: Floats,
    *,
    level: float = 0.95,
    row: Rows | None = None,
) -> Explanation:
    """What posteriors that count alike say of the results `values` at `rows`, and of one more
    row."""
    if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 < level < 1:
        raise SettingError(f"level={level!r} is not a number between 0 and 1")
    scale = _Scale(units, posteriors[0].data.warp, level)
    parts = [Decomposition(posterior) for posterior in posteriors]
    names, listed = space.names, [v.values for v in space.variables.values()]
    centre = float(np.mean([part.constant()[0] for part in parts]))
    varied = [i for i, each in enumerate(listed) if len(each) > 1]
    mains = {i: _mixed([part.main(i) for part in parts]) for i in varied}
    looked = parts[0].pairs()
    pairs = _pairs(parts, looked)
    squares = variances(parts)
    total = squares.total
    shares = [_importance((names[i],), mains[i], total, squares.own[i]) for i in varied]
    pair_shares = [_importance((names[i], names[j]), pairs[i, j], total) for i, j in looked]
    effects = [
        Effect(names[i], *each)
        for i, sides in zip(varied, _listed(scale, centre, list(mains.values())), strict=True)
        for each in zip(listed[i], *sides, strict=True)
    ]
    interactions = [
        Interaction((names[i], names[j]), *each)
        for (i, j), sides in zip(pairs, _listed(scale, centre, list(pairs.values())), strict=True)
        for each in zip([(a, b) for a in listed[i] for b in listed[j]], *sides, strict=True)
    ]
    known = sum(each.main for each in [*shares, *pair_shares])
    return Explanation(
        direction=direction,
        level=level,
        average=float(scale.value(np.array(centre))),
        effects=tuple(effects),
        interactions=tuple(interactions),
        importance=tuple(shares),
        pairs=tuple(pair_shares),
        left_out=len(varied) * (len(varied) - 1) // 2 - len(looked),
        higher=max(1.0 - known, 0.0) if total > 0 else 0.0,
        check=cross_validation(posteriors, units, space.points(rows), values, level),
        warped=scale.warp.name is not None,
        ruled=not space.region.is_free,
        why=None if row is None else _why(space, scale, centre, mains, pairs, posteriors, row),
    )


def _pairs(
    parts: list[Decomposition], looked: list[tuple[int, int]]
) -> dict[tuple[int, int], Mixture]:
    found: dict[tuple[int, int], Mixture] = {}
    for i in dict.fromkeys(i for i, _ in looked):
        others = [j for first, j in looked if first == i]
        each = [part.interactions(i, others) for part in parts]
        found |= {
            (i, j): _mixed(list(several))
            for j, several in zip(others, zip(*each, strict=True), strict=True)
        }
    return found


def _mixed(parts: list[Gauss]) -> Mixture:
    return Mixture(
        np.array([part.mean for part in parts]), np.array([part.variance for part in parts])
    )


def _listed(scale: _Scale, centre: float, parts: list[Mixture]) -> list[list[list[float]]]:
    """Per part its estimates, lows and highs: all of them in one go, there may be hundreds."""
    if not parts:
        return []
    sides = scale.changes(Mixture.together(parts), centre)
    ends = np.cumsum([part.means.shape[1] for part in parts])[:-1]
    split = [np.split(side, ends) for side in sides]
    return [[side.tolist() for side in each] for each in zip(*split, strict=True)]


def _importance(
    variables: tuple[str, ...], part: Mixture, total: float, own: float | None = None
) -> Importance:
    square = float(np.mean(part.mean**2))
    expected = square + float(np.mean(part.variance))
    if total <= 0 or expected <= 0:
        return Importance(variables, 0.0, None if own is None else 0.0, 0.0)
    share = None if own is None else min(max(own / total, 0.0), 1.0)
    return Importance(variables, expected / total, share, square / expected)


def _why(
    space: Space,
    scale: _Scale,
    centre: float,
    mains: dict[int, Mixture],
    pairs: dict[tuple[int, int], Mixture],
    posteriors: list[Posterior],
    row: Rows,
) -> Why:
    there = _mixed([Gauss(*posterior.predict(row[np.newaxis])) for posterior in posteriors])
    found: list[Contribution] = []
    at: dict[tuple[int, ...], tuple[Mixture, int]]
    at = {(i,): (part, int(row[i])) for i, part in mains.items()}
    for (i, j), part in pairs.items():
        at[i, j] = part, int(row[i]) * space.variables[space.names[j]].size + int(row[j])
    point = space.points(row[np.newaxis])[0]
    beyond = there.mean - centre
    for chosen, (part, where) in at.items():
        one = Mixture(part.means[:, [where]], part.variances[:, [where]])
        beyond = beyond - one.mean
        sides = (float(side[0]) for side in scale.changes(one, centre))
        names = tuple(space.names[i] for i in chosen)
        found.append(Contribution(names, tuple(point[n] for n in names), *sides))
    found.sort(key=lambda part: -abs(part.estimate))
    data = posteriors[0].data
    predicted, low, high = (float(side[0]) for side in scale.interval(there))
    average = float(scale.value(np.array(centre)))
    return Why(
        point=point,
        predicted=predicted,
        low=low,
        high=high,
        average=average,
        parts=tuple(found),
        rest=float(scale.value(centre + beyond)[0]) - average,
        chance=float(there.below(float(data.y.min()))[0]) if there.variance[0] > 0 else 0.0,
        nearest=int((data.rows != row).sum(axis=1).min()),
    )


# -- writing -----------------------------------------------------------------------------------


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """Pairs of names and values as columns of their own."""
    out: dict[str, Any] = {}
    for name, value in record.items():
        if not isinstance(value, (tuple, list)):
            out[name] = value
        elif name == "variables":
            out["variables"] = " x ".join(value)
        else:
            out |= {f"value {number}": each for number, each in enumerate(value, start=1)}
    return out


def _interval(estimate: float, low: float, high: float) -> str:
    return f"{estimate:.4g} ({low:.4g} to {high:.4g})"


def _signed(estimate: float, low: float, high: float) -> str:
    return f"{estimate:+.4g} ({low:+.4g} to {high:+.4g})"


def _more(count: int) -> list[str]:
    return [f"  ... {count} in all"] if count > SHOWN else []
