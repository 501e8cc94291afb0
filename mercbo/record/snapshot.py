"""A run as plain values, and these as a JSON file: written whole or not at all, refused when it is
not what it says.

`described` gives the plain values of a run; `settings_of` and `state_of` take them apart again. An
entry that is added there needs another `VERSION`, and a word in `SINCE` on what older files mean.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.backend import DEFAULT
from mercbo.domain.variables import Point
from mercbo.errors import BackendError, MercboError, StateError
from mercbo.inference import Fit
from mercbo.model import Model
from mercbo.record.events import State
from mercbo.record.history import UNKNOWN, History, Marked, Metadata, mark
from mercbo.record.results import Bounds, plain_bounds
from mercbo.record.schema import (
    Schema,
    anything,
    flag,
    listed,
    mapping,
    number,
    numbers,
    optional,
    parsed,
    record,
    text,
    whole,
)
from mercbo.space import Predicates, Space

FORMAT = "mercbo run"
VERSION = 5
# What older files do not say: version -> entries that came with it.
SINCE: dict[int, dict[str, Any]] = {
    2: {"repeats": "never", "errors": None, "retries": []},
    3: {"acquisition": "thompson"},
    4: {"answered": None},
    5: {"target_bounds": None, "batches": 0, "metadata": None, "backend_given": None},
}

# Entries of a file. `settings_of` and `state_of` check those that depend on others.
POINTS = listed(mapping)
MODEL = record({}, optional={setting.name: anything for setting in fields(Model)})
RUN = record(
    {
        "space": mapping,
        "direction": text(),
        "backend": optional(text()),
        "backend_given": optional(flag),
        "model": MODEL,
        "acquisition": text(),
        "repeats": text(),
        "n_initial": whole(least=1),
        "target_bounds": optional(listed(optional(number()), count=2)),
        "entropy": whole(most=None),
        "asked": whole(),
        "answered": optional(whole()),
        "batches": whole(),
        "points": POINTS,
        "values": anything,
        "errors": anything,
        "failed": POINTS,
        "pending": POINTS,
        "retries": POINTS,
        "metadata": anything,
        "fit": anything,
        "fresh": flag,
    },
    optional={"format": anything, "version": anything},
)


# -- plain values ------------------------------------------------------------------------------


def described(
    space: Space,
    state: State,
    *,
    direction: str,
    backend: object,
    backend_given: bool,
    model: Model,
    acquisition: str,
    repeats: str,
    n_initial: int,
    target_bounds: Bounds,
    entropy: int,
) -> dict[str, Any]:
    """A run in plain values; of a backend that is an object, there is nothing to say."""
    history = state.history

    def points(marked: Marked) -> list[Point]:
        return space.points(history.stack(marked))

    return {
        "space": space.to_dict(),
        "direction": direction,
        "backend": backend if isinstance(backend, str) else None,
        "backend_given": backend_given,
        "model": model.to_dict(),
        "acquisition": acquisition,
        "repeats": repeats,
        "n_initial": n_initial,
        "target_bounds": plain_bounds(target_bounds),
        "entropy": entropy,
        "asked": state.asked,
        "answered": state.answered,
        "batches": state.batches,
        "points": space.points(history.rows),
        "values": history.values.tolist(),
        "errors": [None if np.isnan(e) else e for e in history.errors.tolist()],
        "failed": points(history.failed),
        "pending": points(history.pending),
        "retries": points(history.retries),
        "metadata": _metadata(history),
        "fit": state.committed.to_dict() if state.committed else None,
        "fresh": state.fresh,
    }


def _metadata(history: History) -> dict[str, list[Any]]:
    """Batch, time and notes of each result, failure and pending point, in their order."""

    def plain(said: Metadata) -> list[Any]:
        return [said.batch, said.time, None if said.notes is None else dict(said.notes)]

    def marked(points: Marked) -> list[list[Any]]:
        return [plain(history.marks.get(key, UNKNOWN)) for key in points]

    return {
        "points": [plain(said) for said in history.metadata],
        "failed": marked(history.failed),
        "pending": marked(history.pending),
    }


def settings_of(
    described: dict[str, Any], backend: object, where: Predicates | None
) -> dict[str, Any]:
    """What an `Optimizer` is made with; `backend` replaces the one that is named, `where` gives
    the predicates of the space's `Where` constraints."""
    named = described["backend"] if backend is None else backend
    if named is None:
        raise StateError(
            "the run used a sampler object as its backend, which a file cannot hold; "
            "pass it again: backend=..."
        )
    given = described["backend_given"]
    if given is None:  # an older file: the default, unless it says otherwise
        given = named != DEFAULT
    return {
        "space": Space.from_dict(described["space"], where=where),
        "direction": described["direction"],
        "backend": named if given or backend is not None else None,
        "model": Model(**described["model"]),
        "acquisition": described["acquisition"],
        "repeats": described["repeats"],
        "n_initial": described["n_initial"],
        "target_bounds": described["target_bounds"],
        "seed": described["entropy"],
    }


def state_of(described: dict[str, Any], space: Space, fit: Schema[Fit]) -> State:
    """What had happened to the run."""
    count = len(described["points"])
    values = numbers(count)(described["values"], "values")
    errors = optional(numbers(count, least=0.0, missing=True))(described["errors"], "errors")
    history = History.empty(len(space)).told(
        space.feasible_rows(described["points"]),
        values,
        np.full(count, np.nan) if errors is None else errors,
    )
    failed, pending, retries = (
        mark(space.feasible_rows(described[name])) for name in ("failed", "pending", "retries")
    )
    history = replace(history, failed=failed, pending=pending, retries=retries)
    if described["metadata"] is not None:
        history = _with_metadata(history, described["metadata"])
    asked = described["asked"]
    return State(
        history,
        asked,
        committed=optional(fit)(described["fit"], "fit"),
        fresh=described["fresh"],
        answered=_answered(described["answered"], asked, history),
        batches=described["batches"],
    )


def _with_metadata(history: History, described: object) -> History:
    schema = record(
        {
            "points": listed(_said, count=len(history)),
            "failed": listed(_said, count=len(history.failed)),
            "pending": listed(_said, count=len(history.pending)),
        }
    )
    found = schema(described, "metadata")
    marks = {
        **dict(zip(history.failed, found["failed"], strict=True)),
        **dict(zip(history.pending, found["pending"], strict=True)),
    }
    return replace(history, metadata=tuple(found["points"]), marks=marks)


def _said(value: object, at: str) -> Metadata:
    batch, time, notes = listed(anything, count=3)(value, at)
    return Metadata(
        optional(whole(least=1))(batch, f"{at}[0]"),
        text()(time, f"{at}[1]"),
        optional(mapping)(notes, f"{at}[2]"),
    )


def _answered(said: int | None, asked: int, history: History) -> int:
    """How many results and failures were asked for; older files do not say, and what was asked for
    and is not pending was told, but for what was cancelled."""
    if said is not None:
        return said
    return min(max(asked - len(history.pending), 0), len(history) + len(history.failed))


@contextmanager
def reading() -> Iterator[None]:
    """Say of whatever is wrong with plain values that they are no run."""
    try:
        yield
    except (StateError, BackendError):
        raise
    except MercboError as error:
        raise StateError(str(error)) from error


@contextmanager
def named(source: object) -> Iterator[None]:
    """Say of what cannot be read where it stands."""
    try:
        yield
    except StateError as error:
        raise StateError(f"{source}: {error}") from error


def warn_of_predicates(space: Space, lacks: str, back: str, *, stacklevel: int) -> None:
    """Name what cannot be written, and with what the run comes back."""
    names = [predicate.name for predicate in space.region.predicates]
    if names:
        wanted = ", ".join(f"{name!r}: ..." for name in names)
        warnings.warn(
            f"{lacks} the predicate{'s' * (len(names) > 1)} "
            f"{', '.join(map(repr, names))}; {back} it with where={{{wanted}}}",
            stacklevel=stacklevel,
        )


# -- the file ----------------------------------------------------------------------------------


def labelled(state: dict[str, Any]) -> dict[str, Any]:
    """The state with what it is and by which rules it was written."""
    return {"format": FORMAT, "version": VERSION, **state}


def write(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write `state` beside `path`, flush it to disk, then put it in `path`'s place at once."""
    target = Path(path).resolve()  # behind a link, the file itself is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder")
    text = json.dumps(labelled(state), indent=1, allow_nan=False)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix="mercbo-", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in `path`; a `StateError` that says why where there is none."""
    try:
        written = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StateError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"{path}: cannot be read as text ({error})") from None
    with named(path):
        state = parsed(written)
    return understood(state, path)


def understood(state: object, source: object) -> dict[str, Any]:
    """A labelled state of this version or an older one, with all that today's has."""
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise StateError(f"{source}: not a saved mercbo run")
    version = state.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise StateError(f"{source}: version {version!r} is not a version of a saved run")
    if version > VERSION:
        raise StateError(
            f"{source}: written by a newer mercbo (file version {version}, "
            f"this one reads up to {VERSION}); update mercbo to read it"
        )
    for since, entries in SINCE.items():
        if version < since:
            state = {**entries, **state}
    return state


def _mode(target: Path) -> int:
    """The permissions of the file being replaced, else those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be synced."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
