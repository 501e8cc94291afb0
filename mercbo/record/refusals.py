"""What is asked of an `Optimizer`, checked; what is said where it is refused.

Nothing here changes a state: every function gives back what came, read, or raises an error that
says what came and what was wanted.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mercbo.arrays import Rows
from mercbo.domain.feasible import Feasible, contradicted
from mercbo.errors import (
    MercboError,
    NoneFound,
    NoResults,
    PointError,
    SettingError,
    SpaceExhausted,
    whole,
)
from mercbo.kernels.interactions import between_variables
from mercbo.model import Model
from mercbo.record.events import Event, State
from mercbo.record.history import History
from mercbo.space import Space

# Bounds of the default number of initial points, which otherwise is that of the variables.
FEWEST_INITIAL, MOST_INITIAL = 5, 20


# -- settings ----------------------------------------------------------------------------------


def check_kinds(space: object, model: object) -> None:
    if not isinstance(space, Space):
        raise SettingError(f"space={space!r} is not a Space")
    if model is not None and not isinstance(model, Model):
        raise SettingError(f"model={model!r} is not a Model")


def check_together(space: Space, model: Model) -> None:
    """Refuse a model that is not one of this space."""
    if model.interactions is not None:
        between_variables(model.interactions, tuple(space.variables))
    if space.group.is_trivial:
        return
    if model.inference == "slice":
        raise SettingError(
            "inference='slice' does not tie what symmetries tie; use 'auto', 'map' or 'hmc'"
        )
    if model.terms is not None:
        raise SettingError(
            f"terms={model.terms} are not averaged over symmetries; state none, or leave terms out"
        )


def warn_of_unused(space: Space, model: Model, backend: object) -> None:
    """Warn the caller of a constructor if no ask will call the backend that the user passed."""
    if model.order > 2 and model.terms is None:
        why = (
            f"a draw of order {model.order} has no BQM; use Model(order=2), or state how many "
            "terms of higher order a draw keeps: Model(terms=...)"
        )
    elif space.region.table is not None:
        why = (
            f"the space is a table of {space.size} points, and the acquisition function is "
            "evaluated at each of them"
        )
    else:
        return
    name = repr(backend) if isinstance(backend, str) else type(backend).__name__
    warnings.warn(f"backend={name} is not called: {why}", stacklevel=3)


def initial(n_initial: int | None, space: Space) -> int:
    """The number of initial points, the default where none is said."""
    if n_initial is not None:
        return whole("n_initial", n_initial)
    return min(max(len(space), FEWEST_INITIAL), MOST_INITIAL)


# -- points ------------------------------------------------------------------------------------


def one(space: Space, point: object) -> Rows:
    rows = space.rows(point)
    if len(rows) != 1:
        raise PointError(f"one point was wanted, {len(rows)} came")
    return rows


def need_results(history: History, otherwise: str) -> None:
    if len(history) == 0:
        raise NoResults(f"no result has been told yet, so {otherwise}")


def check_event(space: Space, state: State, event: Event) -> None:
    """Complain of the first point that the event cannot happen to."""
    refused, complaint = state.refuses(event)
    for number in np.flatnonzero(refused).tolist():
        where = f"point {number}: " if len(event.rows) > 1 else ""
        point = space.points(event.rows[number : number + 1])[0]
        raise PointError(f"{where}{point} {complaint}")


def meant(space: Space, state: State, event: Event) -> Event:
    """The event at the points that it can happen to: in place of one that it cannot, the image of
    it, by the symmetries of the space, that it can."""
    if space.group.is_trivial:
        return event
    refused, complaint = state.refuses(event)
    rows = event.rows.copy()
    for number in np.flatnonzero(refused).tolist():
        images = space.group.orbits(rows[number : number + 1])
        fine = images[~state.refuses(replace(event, rows=images))[0]]
        if len(fine) > 1:
            point, *others = space.points(np.concatenate([rows[number : number + 1], fine]))
            raise PointError(
                f"{point} {complaint}, and it may stand for any of its images {others}; name one"
            )
        if len(fine) == 1:
            rows[number] = fine[0]
    return replace(event, rows=rows)


# -- asks --------------------------------------------------------------------------------------


def distance(space: Space, diversity: int) -> int:
    """In how many variables points are to differ, if they can."""
    wanted = whole("diversity", diversity)
    most = int((space.sizes > 1).sum())
    if wanted > max(most, 1):
        raise SettingError(f"diversity={wanted}: points of the space differ in at most {most}")
    return wanted


def held(space: Space, fixed: dict[str, Any] | None) -> Feasible:
    """The rows that an ask may choose from, where some variables are held at given values."""
    if fixed is None:
        return space.feasible
    region = space.region
    levels = [int(region.start[i]) + value for i, value in space.partial(fixed).items()]
    feasible = space.fixed(levels)
    blamed = contradicted(feasible, region, levels)
    if blamed is not None:
        shown = "; ".join(map(repr, blamed))
        cannot = f" cannot hold together with {shown}"
        raise PointError(
            f"fixed={fixed}{cannot if shown else ': no row of the table has these values'}"
        )
    return feasible


def exhausted(
    feasible: Feasible,
    count: int,
    left: int,
    *,
    fixed: dict[str, Any] | None,
    diversity: int = 1,
    repeats: bool,
) -> MercboError:
    """Why an ask for `count` points cannot be answered."""
    among = f" with fixed={fixed}" if fixed else ""
    if feasible.region.predicates and feasible.listed is None:
        # no solver sees predicates, so that there is no proof
        return NoneFound(
            f"{count} asked for, {left} found: long search{among} met no other point that "
            f"satisfies {list(feasible.region.predicates)}; say it by other constraints",
            left=left,
        )
    told = "" if repeats else "told, "
    if diversity > 1:
        return SpaceExhausted(
            f"{count} asked for, {left} found: all other points of the space{among} are {told}"
            f"failed, or differ in less than {diversity} variables from one that is pending or "
            "comes before; ask for fewer, or with a lower diversity",
            left=left,
        )
    return SpaceExhausted(
        f"{count} asked for, {left} left: all other points of the space{among} are {told}"
        "failed or pending",
        left=left,
    )
