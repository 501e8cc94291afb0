"""The methods of the benchmark by name; importing this module imports none of them.

| name                                    | what                                                   |
|-----------------------------------------|--------------------------------------------------------|
| mercbo, mercbo-paper, ...               | our `Optimizer`, one choice changed (`ours.py`)        |
| mercbo:KEY=VALUE:KEY=VALUE, ...         | any of these with more choices changed                 |
| random, local, sa, genetic              | without a model                                        |
| combo, bocs                             | after the published methods, on our own machinery      |
| optuna-tpe, optuna-gp, smac, nevergrad, | peers, each in a process of its own (`worker.py`)      |
| catcma, botorch                         |                                                        |
| worker:COMMAND                          | any program that speaks the protocol of `worker.py`    |
"""

from __future__ import annotations

import shlex
from functools import partial
from importlib import import_module
from pathlib import Path

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
    "mercbo-paper-quick": "paper-quick",
    "mercbo-ei": "ei",
    "mercbo-mes": "mes",
    "mercbo-lcb": "lcb",
    "mercbo-thompson": "thompson",
    "mercbo-hmc": "hmc",
    "mercbo-truncated": "truncated",
    "mercbo-no-refine": "no-refine",
    "mercbo-no-warp": "no-warp",
    "mercbo-no-windows": "no-windows",
    "mercbo-no-pooling": "no-pooling",
    "mercbo-no-motifs": "no-motifs",
    "mercbo-map": "map",
    "mercbo-annealing": "annealing",
}
# name -> script in peers/
PEERS = {
    "optuna-tpe": "optuna_tpe.py",
    "optuna-gp": "optuna_gp.py",
    "smac": "smac.py",
    "nevergrad": "nevergrad.py",
    "catcma": "catcma.py",
    "botorch": "botorch.py",
}
# A name that begins so goes on with a command line.
WORKER = "worker:"


def make(name: str, space: Space, seed: int, evaluations: int) -> Method:
    """A method by its name, for one run.

    >>> make("random", Space.binary(3), 0, 8).ask().shape
    (3,)
    """
    return maker(name)(space, seed, evaluations)


def maker(name: str) -> Maker:
    """What makes a method of this name; a `SettingError` with a close match where there is none."""
    if name.startswith(WORKER):
        try:
            return partial(_worker, name, shlex.split(name.removeprefix(WORKER)))
        except ValueError as error:
            raise SettingError(f"method={name!r} is no command line: {error}") from None
    setting, colon, more = name.partition(":")
    if colon and setting in OURS:
        return _ours_with(name, OURS[setting], more)
    if name not in METHODS:
        known = [*METHODS, f"{WORKER}COMMAND"]
        raise SettingError(f"method={name!r} is not one of {known}{hint(name, METHODS)}")
    return METHODS[name]


def _in_house(module: str, kind: str, space: Space, seed: int, evaluations: int) -> Method:
    found = getattr(import_module(f"{__name__}.{module}"), kind)
    method: Method = found(space, seed, evaluations)
    return method


def _ours(setting: str, space: Space, seed: int, evaluations: int) -> Method:
    from mercbo.bench.methods.ours import SETTINGS, Mercbo

    return Mercbo(space, seed, evaluations, SETTINGS[setting])


def _ours_with(name: str, setting: str, more: str) -> Maker:
    from mercbo.bench.methods.ours import Mercbo, read_settings

    try:
        settings, batch = read_settings(setting, more)
    except SettingError as error:
        raise SettingError(f"method={name!r}: {error}") from None
    return partial(Mercbo, settings=settings, batch=batch)


def _peer(name: str, script: str, space: Space, seed: int, evaluations: int) -> Method:
    from mercbo.bench.methods.worker import python_of

    path = Path(__file__).parent / "peers" / script
    return _worker(name, [python_of(name), str(path)], space, seed, evaluations)


def _worker(name: str, command: list[str], space: Space, seed: int, evaluations: int) -> Method:
    from mercbo.bench.methods.worker import Worker

    return Worker(name, command, space, seed, evaluations)


METHODS: dict[str, Maker] = {
    **{name: partial(_ours, setting) for name, setting in OURS.items()},
    **{name: partial(_in_house, *where) for name, where in IN_HOUSE.items()},
    **{name: partial(_peer, name, script) for name, script in PEERS.items()},
}
