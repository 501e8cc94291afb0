"""Samplers of binary quadratic models, usable with or without Bayesian optimisation.

Each is a `dimod.Sampler` in a file of its own and is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercbo_backends.annealing import Annealing as Annealing
    from mercbo_backends.cpsat import CpSat as CpSat
    from mercbo_backends.exhaustive import Exhaustive as Exhaustive
    from mercbo_backends.graphcut import GraphCut as GraphCut
    from mercbo_backends.leap import LeapBqm as LeapBqm
    from mercbo_backends.leap import LeapCqm as LeapCqm

__all__ = ["Annealing", "CpSat", "Exhaustive", "GraphCut", "LeapBqm", "LeapCqm"]

_HOMES = {
    "Annealing": "annealing",
    "CpSat": "cpsat",
    "Exhaustive": "exhaustive",
    "GraphCut": "graphcut",
    "LeapBqm": "leap",
    "LeapCqm": "leap",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mercbo_backends' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"mercbo_backends.{_HOMES[name]}"), name)
