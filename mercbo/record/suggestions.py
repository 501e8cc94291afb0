"""Why a point was suggested: one record for each point of an `ask`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mercbo.domain.variables import Point
from mercbo.record.frames import free_name, pandas, to_frame
from mercbo.space import Space

# Suffix of columns of suggestions if the name is taken.
MODEL = "model"


@dataclass(frozen=True)
class Suggestion:
    """A suggested point, its source, and what the model says about it.

    Attributes
    ----------
    point
        The point.
    source
        - "initial design": a point of the space-filling design, before the model is used.
        - "retry": a failed point that `Optimizer.retry` put back.
        - "backend": a local minimum of the acquisition function that a descent from one of the
          backend's answers reaches, or the best unseen point next to the minimum. Other descents
          may reach the same minimum.
        - "local search": the same, but only descents from the best points measured, from points
          near them or from random points reach the minimum. Also the best unseen point at some
          distance from all minima if every point next to a minimum is seen.
        - "enumeration": the best of all points that are left, each of them evaluated. This happens
          in a table, in a small space after half of its points are seen, and in a space of which
          constraints leave few points.
        - "random search": the best of some random points, if everything near the minima is seen.
    acquisition
        The acquisition function that chose the point: "thompson", "ei", "ei-liar", "mes" or "lcb".
        None for "initial design" and "retry".
    value
        The value of the acquisition function; larger is better. "ei" and "ei-liar": the logarithm
        of the expected improvement. "mes": the logarithm of the information about the minimum.
        "thompson" and "lcb": minus the sampled function or minus the lower confidence bound. The
        units are those of the model: standardized results, perhaps warped. If evaluations have
        failed, the value includes the probability that the evaluation works. None if `acquisition`
        is None.
    mean, std
        The prediction of `Optimizer.predict` at the time of the ask, in the units of the results.
        None if `acquisition` is None.
    note
        A fallback that was taken, such as a backend that was not called; empty if there was none.
    """

    point: Point
    source: str
    acquisition: str | None = None
    value: float | None = None
    mean: float | None = None
    std: float | None = None
    note: str = ""


class Suggestions(list[Suggestion]):
    """The records of one `ask`, in the order of its points."""

    def __init__(self, space: Space, listed: Iterable[Suggestion] = ()) -> None:
        super().__init__(listed)
        self._space = space

    def to_frame(self) -> Any:
        """A pandas DataFrame with a column per variable, then the fields of `Suggestion`. A field
        whose name is taken gets " (model)" behind it."""
        frame = to_frame(self._space, [each.point for each in self])
        kinds = {"value": "float64", "mean": "float64", "std": "float64"}
        for field in ("source", "acquisition", "value", "mean", "std", "note"):
            cells = [getattr(each, field) for each in self]
            column = free_name(frame.columns, field, MODEL)
            frame[column] = pandas().Series(cells, dtype=kinds.get(field, "object"))
        return frame
