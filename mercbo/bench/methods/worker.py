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
it writes to its standard error is kept for such messages. A worker that has not answered in time
(`TIMEOUT`, or the seconds in the environment variable ``MERCBO_WORKER_TIMEOUT``) is killed, which
is such an error too.

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
import selectors
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from mercbo.arrays import Rows
from mercbo.errors import BackendError, PointError, SettingError
from mercbo.space import Space

# Infeasible points in a row after which a worker is given up.
MOST_REFUSED = 1000
# Lines of the worker's standard error, and characters of a strange answer, that a message shows.
SHOWN_LINES, SHOWN_CHARACTERS = 8, 200
# Seconds for a worker to end by itself once it was told to.
PATIENCE = 5.0
# Seconds for one answer, which takes seconds at most where nothing is wrong; and the most that may
# be set, as a wait for a pipe is counted in milliseconds of 31 bits.
TIMEOUT, LONGEST = 600.0, 1e6
# Bytes read at once, and those without an end of line after which nothing sensible will come.
CHUNK, MOST_BYTES = 2**16, 2**24


def python_of(peer: str) -> str:
    """The interpreter that runs a peer."""
    own = f"MERCBO_PEER_{peer.upper().replace('-', '_')}_PYTHON"
    return os.environ.get(own) or os.environ.get("MERCBO_PEERS_PYTHON") or sys.executable


def time_limit() -> float:
    """Seconds that a worker has for one answer."""
    text = os.environ.get("MERCBO_WORKER_TIMEOUT") or str(TIMEOUT)
    with contextlib.suppress(ValueError):
        if 0 < float(text) <= LONGEST:
            return float(text)
    raise SettingError(
        f"MERCBO_WORKER_TIMEOUT={text!r} is not a number of seconds above 0, at most {LONGEST:g}"
    )


class Worker:
    """A method that another process carries out; it ends with this object, or by `close`."""

    def __init__(
        self, name: str, command: Sequence[str], space: Space, seed: int, evaluations: int
    ) -> None:
        self.name = name
        self.space = space
        self.refused = 0
        self.limit = time_limit()
        self._unread = bytearray()  # what came after the last answer
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                # sets of strings would have another order, and SMAC another run, in every process
                env={"PYTHONHASHSEED": "0", **os.environ},
            )
        except (OSError, IndexError) as error:
            self._errors.close()
            raise BackendError(f"worker {name!r} cannot be started: {error}") from error
        self._end = weakref.finalize(self, _end, self._process, self._errors)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        # a worker that does not read would otherwise block a long message for ever
        os.set_blocking(self._stdin, False)
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

    def memory(self) -> float:
        """Peak megabytes of the process so far; 0 once it has ended, or where none can tell."""
        return _peak_memory(self._process.pid) if self._process.poll() is None else 0.0

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
            answer = json.loads(line.decode("utf-8"))
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "error" in answer:
            raise self._failure(f"answered with an error: {answer['error']}")
        if not isinstance(answer, dict) or wanted not in answer:
            shown = line.decode("utf-8", "replace").strip()[:SHOWN_CHARACTERS]
            raise self._failure(f"answered {shown!r}, a JSON object with {wanted!r} was wanted")
        return answer

    def _exchange(self, line: str) -> bytes:
        """Send a line and give the next one that comes."""
        if not self._end.alive:
            raise BackendError(f"worker {self.name!r} was closed")
        try:
            return self._talk((line + "\n").encode("utf-8"))
        except TimeoutError:
            self._process.kill()
            raise self._failure(
                f"did not answer {line[:SHOWN_CHARACTERS]} within {self.limit:g} s and was killed; "
                "MERCBO_WORKER_TIMEOUT sets the limit in seconds"
            ) from None
        except EOFError:
            raise self._failure(f"{self._ended()} instead of an answer") from None
        except OSError as error:
            raise self._failure(f"cannot be talked to: {error}") from error

    def _talk(self, unsent: bytes) -> bytes:
        """Write and read side by side: neither a full pipe nor an empty one can block for ever."""
        deadline = time.monotonic() + self.limit
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._stdout, selectors.EVENT_READ)
            pipes.register(self._stdin, selectors.EVENT_WRITE)
            while unsent or b"\n" not in self._unread:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                ready = {key.fd for key, _ in pipes.select(left)}
                if self._stdin in ready:
                    unsent = unsent[_write(self._stdin, unsent) :]
                    if not unsent:
                        pipes.unregister(self._stdin)
                if self._stdout in ready and not self._read():
                    break
        if not self._unread:
            raise EOFError
        line, _, self._unread = self._unread.partition(b"\n")
        return bytes(line)

    def _read(self) -> bool:
        """Take what is there; False at its end."""
        came = os.read(self._stdout, CHUNK)
        self._unread += came
        if len(self._unread) > MOST_BYTES:
            raise self._failure(f"wrote more than {MOST_BYTES} bytes in place of an answer")
        return bool(came)

    def _ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f"ended (exit code {self._process.wait(PATIENCE)})"
        return "closed its standard output"

    def _failure(self, what: str) -> BackendError:
        """An error that names the worker and shows the end of its standard error; it is closed."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        last = "".join(f"\n  {line}" for line in lines[-SHOWN_LINES:])
        self.close()
        return BackendError(
            f"worker {self.name!r} {what}" + (f"\nits last words:{last}" if last else "")
        )


def _write(pipe: int, data: bytes) -> int:
    """Bytes that went in; all of them where nobody reads any more, which the answer will show."""
    try:
        return os.write(pipe, data)
    except BrokenPipeError:
        return len(data)


def _peak_memory(pid: int) -> float:
    """Peak megabytes of a running process, by what Linux says of it; 0 elsewhere."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    """Tell a worker to stop, and see to it."""
    with contextlib.suppress(OSError, ValueError):
        if process.poll() is None and process.stdin is not None:
            process.stdin.write(b'{"stop": true}\n')
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
