"""A run as a JSON file: written whole or not at all, refused when it is not what it says."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from mercbo.errors import StateError

FORMAT = "mercbo run"
VERSION = 3
# What older files do not say: version -> entries that came with it.
SINCE: dict[int, dict[str, Any]] = {
    2: {"repeats": "never", "errors": None, "retries": []},
    3: {"acquisition": "thompson"},
}


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
    _sync_folder(target.parent)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The state in `path`; a `StateError` that says why where there is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StateError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"{path}: cannot be read as text ({error})") from None
    try:
        state = json.loads(text)
    except json.JSONDecodeError as error:
        raise StateError(
            f"{path}: not complete JSON, the file may be cut short ({error})"
        ) from None
    except (RecursionError, ValueError) as error:
        raise StateError(f"{path}: JSON that no run would hold ({error})") from None
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


def _sync_folder(folder: Path) -> None:
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
