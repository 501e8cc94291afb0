"""What the workers of the peers share: the loop of the protocol (`../worker.py`), and the space.

This file and the scripts beside it use nothing but the standard library and the peer, so that
they run in any environment. A script calls `serve(name, packages, begin)`; `begin(start)` imports
the peer and returns an object with

    ask() -> row                    a list with the index of each variable's value
    tell(row, value)                of any point, asked for or not

Peers see positions in the lists of values, not the values: 0 to size - 1, ordered or not.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TextIO


class Variable:
    """One variable: its name, its values, and whether their order means something."""

    def __init__(self, name: str, described: Mapping[str, Any]) -> None:
        kind = described["kind"]
        self.name = name
        self.ordered = kind in ("ordinal", "integer")
        if kind == "binary":
            self.values = [0, 1]
        elif kind == "integer":
            self.values = list(range(described["low"], described["high"] + 1))
        else:
            self.values = list(described["values"])

    @property
    def size(self) -> int:
        return len(self.values)


class Start:
    """What a worker is started with; `evaluations` are those still to come."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        described = message["space"]["variables"]
        self.variables = [Variable(name, d) for name, d in described.items()]
        self.seed = int(message["seed"])
        self.evaluations = int(message["evaluations"])

    def row(self, point: Mapping[str, Any]) -> list[int]:
        return [v.values.index(point[v.name]) for v in self.variables]

    def point(self, row: Sequence[Any]) -> dict[str, Any]:
        return {v.name: v.values[int(i)] for v, i in zip(self.variables, row, strict=True)}


class Failures:
    """Gives failures a value, as peers need one: the worst so far, and they wait for the first.

    Peers that can be told of a failure as such (Optuna, SMAC) learn nothing from it, and may ask
    for the same point for ever.
    """

    def __init__(self) -> None:
        self.worst: float | None = None
        self.waiting: list[list[int]] = []

    def valued(self, row: list[int], value: float | None) -> list[tuple[list[int], float]]:
        """What the peer is to be told now."""
        if value is None:
            if self.worst is not None:
                return [(row, self.worst)]
            self.waiting.append(row)
            return []
        self.worst = value if self.worst is None else max(self.worst, value)
        waited, self.waiting = self.waiting, []
        return [(row, value), *((failed, self.worst) for failed in waited)]


def serve(name: str, packages: Sequence[str], begin: Callable[[Start], Any]) -> None:
    """Answer the parent until it says stop or is gone."""
    # What libraries print must not get between the answers: it goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Scripts here may be named as the package they import.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != here]
    loop(name, packages, begin, sys.stdin, answers)


def loop(
    name: str,
    packages: Sequence[str],
    begin: Callable[[Start], Any],
    questions: TextIO,
    answers: TextIO,
) -> None:
    start: Start | None = None
    peer: Any = None
    failures = Failures()
    for line in questions:
        message = json.loads(line)
        if "stop" in message:
            return
        try:
            if "start" in message:
                start = Start(message["start"])
                peer = begin(start)
                answer = {"ready": True, "name": name, "versions": versions(packages)}
            elif start is None:
                raise ValueError("the first message must be 'start'")
            elif "tell" in message:
                told = message["tell"]
                for pair in failures.valued(start.row(told["point"]), told["value"]):
                    peer.tell(*pair)
                answer = {"ok": True}
            else:
                answer = {"point": start.point(peer.ask())}
        except ImportError as error:
            answer = {"error": f"{error}; in its environment ({sys.executable}): pip install "
                      f"{' '.join(packages)}"}  # fmt: skip
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
