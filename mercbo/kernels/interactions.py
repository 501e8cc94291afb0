"""Which variables may interact, as a user states it: what makes a draw's quadratic problem sparse.

A statement is a list of groups of names; two variables interact where some group has both. A pair
is a group of two, so that the edges of a graph are a statement, and so are blocks of variables
that belong together. "chain" lets each variable interact with the next in the space's order.

The draw then holds these pairs only. What the data say of all others is not lost with the
projected posterior: it is in the refinement, as are the orders above 2 (`posterior.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

import numpy as np

from mercbo.arrays import Mask
from mercbo.errors import SettingError, hint

CHAIN = "chain"
# "chain", which is an iterable of strings as well, or groups of names
Stated: TypeAlias = Iterable[Iterable[str]]


def checked(interactions: object) -> Stated | None:
    """A statement as a tuple of tuples of names, or "chain"; None stands for all pairs."""
    if interactions is None:
        return None
    if isinstance(interactions, str) and interactions == CHAIN:
        return interactions
    wanted = f"interactions must be {CHAIN!r} or a list of groups of names"
    if isinstance(interactions, str) or not isinstance(interactions, Iterable):
        raise SettingError(f"{wanted}, got {interactions!r}")
    groups = []
    for group in interactions:
        if isinstance(group, (str, Mapping)) or not isinstance(group, Iterable):
            raise SettingError(f"{wanted}, and {group!r} is no group")
        names = tuple(group)
        if len(names) < 2 or not all(isinstance(n, str) for n in names):
            raise SettingError(f"{wanted}, and {list(names)} is not two names or more")
        if len(set(names)) < len(names):
            raise SettingError(f"interactions: a name comes twice in {list(names)}")
        groups.append(names)
    return tuple(groups)


def between_variables(stated: Stated, names: Sequence[str]) -> Mask:
    """(variables, variables): whether two variables may interact; symmetric, no variable with
    itself. Names that are not those of the space are refused."""
    allowed = np.zeros((len(names), len(names)), dtype=np.bool_)
    position = {name: i for i, name in enumerate(names)}
    groups = pairwise(names) if stated == CHAIN else stated
    for group in groups:
        for name in group:
            if name not in position:
                raise SettingError(f"interactions: unknown variable {name!r}{hint(name, names)}")
        for a, b in combinations(group, 2):
            allowed[position[a], position[b]] = allowed[position[b], position[a]] = True
    return allowed
