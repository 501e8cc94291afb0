"""A cluster of Dask on loopback: a scheduler and workers, each a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# Seconds within which processes are up, on a busy machine.
PATIENCE = 120


class Cluster:
    """Processes of Dask's own commands; the address is what clients need."""

    def __init__(self, folder: Path, workers: int):
        self._file = folder / "scheduler.json"
        self._log = (folder / "log").open("ab")
        self.workers: list[subprocess.Popen] = []
        common = ["--scheduler-file", str(self._file), "--no-dashboard"]
        self._scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", *common
        )
        self.address = self._found_address()
        self.workers = [
            self._start("dask_worker", self.address, "--nthreads", "1", "--no-nanny",
                        "--no-dashboard", "--local-directory", str(folder))
            for _ in range(workers)
        ]  # fmt: skip

    def _start(self, command: str, *arguments: str) -> subprocess.Popen:
        paths = [str(ROOT), str(ROOT / "backends"), str(ROOT / "tests")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"distributed.cli.{command}", *arguments],
            stdout=self._log, stderr=self._log, env=environment,
        )  # fmt: skip

    def _found_address(self) -> str:
        until = time.monotonic() + PATIENCE
        while True:
            assert self._scheduler.poll() is None, "the scheduler ended"
            assert time.monotonic() < until, "the scheduler does not come up"
            try:
                return json.loads(self._file.read_text())["address"]
            except (FileNotFoundError, json.JSONDecodeError):
                time.sleep(0.05)

    def stop(self) -> None:
        for process in [*self.workers, self._scheduler]:
            process.kill()
        for process in [*self.workers, self._scheduler]:
            process.wait()
        self._log.close()


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    running = Cluster(folder, workers)
    try:
        yield running
    finally:
        running.stop()
