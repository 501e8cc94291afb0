"""`copied`: a copy of a SQLite file while other processes use the file."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from mercbo.errors import StateError
from mercbo.record.snapshot import sync_folder


def copied(file: Path, label: str, *, name: str) -> Path:
    """Copy a database to a new file beside it, such as ``run.db.v1.bak``, and return that file.

    The copy holds what was committed when it began. It is whole or not there, and no file is
    overwritten: if a copy of the name exists, the next one is ``run.db.v1.2.bak``. A `StateError`
    that calls the database `name` says why there is no copy.
    """
    try:
        target = _reserved(file, label)
        try:
            _copy(file, target)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    except (OSError, sqlite3.Error) as error:
        raise StateError(
            f"{name}: cannot be copied before its upgrade ({error}); nothing was changed. Make "
            f"room for a copy in {file.resolve().parent}, and allow mercbo to write there"
        ) from error
    return target


def _reserved(file: Path, label: str) -> Path:
    """Create an empty file of a name that nobody has."""
    for number in itertools.count(1):
        target = file.with_name(f"{file.name}.{label}{f'.{number}' * (number > 1)}.bak")
        try:
            target.touch(exist_ok=False)
        except FileExistsError:
            continue
        return target
    raise AssertionError("there are infinitely many names")


def _copy(file: Path, target: Path) -> None:
    """Copy to a temporary file, flush it to disk, and put it in the place of `target`."""
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix="mercbo-", suffix=".part")
    os.close(handle)
    try:
        with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.chmod(temporary, file.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
