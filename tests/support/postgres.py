"""A PostgreSQL server of our own, on loopback, from Debian's package or wherever it is found."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Seconds within which a server is up, on a busy machine.
PATIENCE = 120


def binaries() -> Path | None:
    """The folder with initdb and postgres, the newest where there are several."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    folders += [Path(found).resolve().parent] if found else []
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def lacking() -> str | None:
    """Why no server can be started here; None where one can."""
    if binaries() is None:
        return "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and _user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres"
    return None


def _user() -> str | None:
    """Whom the server runs as: ourselves, or postgres where we are root."""
    if os.geteuid() != 0:
        return None
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else None


def _free_port() -> int:
    """One below those that the system gives to whoever asks for any: nobody takes it by chance
    before the server has it."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise OSError("none of a hundred ports is free")


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder: Path):
        self._folder, self._bin = folder, binaries()
        self.port = _free_port()
        self._process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://mercbo@127.0.0.1:{self.port}/postgres"

    def _options(self) -> dict:
        user = _user()
        return {"user": user, "group": user} if user else {}

    def prepare(self) -> None:
        command = [self._bin / "initdb", "-D", self._folder / "data", "-A", "trust", "-U", "mercbo"]
        subprocess.run(
            [*command, "--no-sync"], check=True, capture_output=True, cwd=self._folder,
            **self._options(),
        )  # fmt: skip

    def start(self) -> None:
        command = [self._bin / "postgres", "-D", self._folder / "data", "-p", str(self.port)]
        settings = ["listen_addresses=127.0.0.1", f"unix_socket_directories={self._folder}"]
        command += [part for setting in settings for part in ("-c", setting)]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self._folder, **self._options()
        )
        log.close()
        self._wait()

    def _wait(self) -> None:
        ready = [self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        until = time.monotonic() + PATIENCE
        while subprocess.run(ready).returncode != 0:
            said = (self._folder / "log").read_text(errors="replace")
            assert self._process is not None
            assert self._process.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.05)

    def stop(self) -> None:
        """At once: whoever is connected is cut off."""
        if self._process is not None:
            self._process.send_signal(2)  # SIGINT: fast shutdown
            self._process.wait(PATIENCE)
            self._process = None


@contextmanager
def server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="mercbo-postgres-"))
    user = _user()
    if user:
        shutil.chown(folder, user, user)
    running = Server(folder)
    try:
        running.prepare()
        running.start()
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)
