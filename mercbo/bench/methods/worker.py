"""Methods in a process of their own: the way to any peer, in any language and environment.

The parent writes one JSON object per line to the worker's standard input, and the worker answers
each with one per line on its standard output:

| parent                                                          | worker                        |
|-----------------------------------------------------------------|-------------------------------|
| {"start": {"space": {...}, "seed": 0, "evaluations": 250}}      | {"ready": true, "name": "x",  |
|                                                                 |  "versions": {"x": "1.0"}}    |
| {"tell": {"point": {"base": "G", "n": 6}, "value": 1.2}}        | {"ok": true}                  |
| {"ask": 1}                                                      | {"point": {"base": "G", ...}} |
| {"stop": true}                                                  | (none: it ends)               |

The space is what `Space.to_dict` gives. Points are dicts of the user's values. Values are to be
minimised; null is a failed evaluation. "evaluations" is how many points will be asked for. Points
may be told that were never asked for: a run's initial ones. Where something is wrong, the worker
answers {"error": "message"}, which is raised here as a `BackendError` that names the worker. What
it writes to its standard error is kept for such messages.

A peer need not know of constraints. A point that breaks one is not evaluated: the worker is told
that it failed and is asked again, at most `MOST_REFUSED` times in a row; `Worker.refused` counts.

Peers run in the interpreter of this process, or in that of the environment variable
``MERCBO_PEER_OPTUNA_TPE_PYTHON`` (for the peer "optuna-tpe"), or of ``MERCBO_PEERS_PYTHON``.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from mercbo.arrays import Rows
from mercbo.errors import BackendError, PointError
from mercbo.space import Space

# Infeasible points in a row after which a worker is given up.
MOST_REFUSED = 1000
# Lines of the worker's standard error, and characters of a strange answer, that a message shows.
SHOWN_LINES, SHOWN_CHARACTERS = 8, 200
# Seconds for a worker to end by itself once it was told to.
PATIENCE = 5.0


def python_of(peer: str) -> str:
    """The interpreter that runs a peer."""
    own = f"MERCBO_PEER_{peer.upper().replace('-', '_')}_PYTHON"
    return os.environ.get(own) or os.environ.get("MERCBO_PEERS_PYTHON") or sys.executable


class Worker:
    """A method that another process carries out; it ends with this object, or by `close`."""

    def __init__(
        self, name: str, command: Sequence[str], space: Space, seed: int, evaluations: int
    ) -> None:
        self.name = name
        self.space = space
        self.refused = 0
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                # sets of strings would have another order, and SMAC another run, in every process
                env={"PYTHONHASHSEED": "0", **os.environ},
            )
        except (OSError, IndexError) as error:
            self._errors.close()
            raise BackendError(f"worker {name!r} cannot be started: {error}") from error
        self._end = weakref.finalize(self, _end, self._process, self._errors)
        start = {"space": space.to_dict(), "seed": seed, "evaluations": evaluations}
        ready = self._call({"start": start}, "ready")
        # what ran: for the record of a benchmark
        self.versions: dict[str, str] = dict(ready.get("versions") or {})

    def ask(self) -> Rows:
        for _ in range(MOST_REFUSED):
            point = self._call({"ask": 1}, "point")["point"]
            row = self._row(point)
            if self.space.region.allows(row[np.newaxis])[0]:
                return row
            self.refused += 1
            self._call({"tell": {"point": point, "value": None}}, "ok")
        broken = self.space.region.broken(row)
        reason = f"breaks {broken[0]!r}" if broken else "is not a row of the table"
        raise self._failure(f"gave {MOST_REFUSED} infeasible points in a row; {point} {reason}")

    def tell(self, row: Rows, value: float) -> None:
        point = self.space.points(row[np.newaxis])[0]
        told = None if math.isnan(value) else float(value)
        self._call({"tell": {"point": point, "value": told}}, "ok")

    def close(self) -> None:
        """End the process; once is enough, more does no harm."""
        self._end()

    def _row(self, point: object) -> Rows:
        try:
            return np.asarray(self.space.rows([point])[0])
        except PointError as error:
            raise self._failure(f"asked for a point that is not in the space: {error}") from error

    def _call(self, message: dict[str, Any], wanted: str) -> dict[str, Any]:
        """The answer to a message, if it has the wanted entry."""
        line = self._exchange(json.dumps(message, allow_nan=False))
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "error" in answer:
            raise self._failure(f"answered with an error: {answer['error']}")
        if not isinstance(answer, dict) or wanted not in answer:
            shown = line.strip()[:SHOWN_CHARACTERS]
            raise self._failure(f"answered {shown!r}, a JSON object with {wanted!r} was wanted")
        return answer

    def _exchange(self, line: str) -> str:
        if not self._end.alive:
            raise BackendError(f"worker {self.name!r} was closed")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except (OSError, UnicodeDecodeError) as error:
            raise self._failure(f"cannot be talked to: {error}") from error
        if not answer:
            raise self._failure(f"ended (exit code {self._waited()}) instead of an answer")
        return answer

    def _waited(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(PATIENCE)
        return None

    def _failure(self, what: str) -> BackendError:
        """An error that names the worker and shows the end of its standard error; it is closed."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        last = "".join(f"\n  {line}" for line in lines[-SHOWN_LINES:])
        self.close()
        return BackendError(
            f"worker {self.name!r} {what}" + (f"\nits last words:{last}" if last else "")
        )


def _end(process: subprocess.Popen[str], errors: IO[bytes]) -> None:
    """Tell a worker to stop, and see to it."""
    with contextlib.suppress(OSError, ValueError):
        if process.poll() is None and process.stdin is not None:
            process.stdin.write('{"stop": true}\n')
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    errors.close()
