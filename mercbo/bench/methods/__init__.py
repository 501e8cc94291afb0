"""The methods of the benchmark by name; importing this module imports none of them.

| name                                    | what                                                   |
|-----------------------------------------|--------------------------------------------------------|
| mercbo, mercbo-paper, ...               | our `Optimizer`, one choice changed (`ours.py`)        |
| random, local, sa, genetic              | without a model                                        |
| combo, bocs                             | after the published methods, on our own machinery      |
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

from mercbo.bench.methods.base import Maker, Method
from mercbo.errors import SettingError, hint
from mercbo.space import Space

# name -> module and class
IN_HOUSE = {
    "random": ("random", "Random"),
    "local": ("local", "Local"),
    "sa": ("sa", "Annealed"),
    "genetic": ("genetic", "Genetic"),
    "combo": ("combo", "Combo"),
    "bocs": ("bocs", "Bocs"),
}
# name -> setting of `ours.SETTINGS`
OURS = {
    "mercbo": "default",
    "mercbo-paper": "paper",
    "mercbo-hmc": "hmc",
    "mercbo-truncated": "truncated",
    "mercbo-no-refine": "no-refine",
    "mercbo-annealing": "annealing",
}


def make(name: str, space: Space, seed: int, evaluations: int) -> Method:
    """A method by its name, for one run.

    >>> make("random", Space.binary(3), 0, 8).ask().shape
    (3,)
    """
    return maker(name)(space, seed, evaluations)


def maker(name: str) -> Maker:
    """What makes a method of this name; a `SettingError` with a close match where there is none."""
    if name not in METHODS:
        known = list(METHODS)
        raise SettingError(f"method={name!r} is not one of {known}{hint(name, METHODS)}")
    return METHODS[name]


def _in_house(module: str, kind: str, space: Space, seed: int, evaluations: int) -> Method:
    found = getattr(import_module(f"{__name__}.{module}"), kind)
    method: Method = found(space, seed, evaluations)
    return method


def _ours(setting: str, space: Space, seed: int, evaluations: int) -> Method:  # noqa: ARG001
    from mercbo.bench.methods.ours import Mercbo

    return Mercbo(space, seed, setting)


METHODS: dict[str, Maker] = {
    **{name: partial(_ours, setting) for name, setting in OURS.items()},
    **{name: partial(_in_house, *where) for name, where in IN_HOUSE.items()},
}
