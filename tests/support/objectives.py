"""Objectives that worker processes import: they leave a trace, wait, fail, or end their worker."""

import os
import time
from pathlib import Path


def total(point: dict) -> float:
    return float(sum(point.values()))


def name_of(point: dict) -> str:
    return "".join(str(value) for value in point.values())


class Traced:
    """The sum of the bits; every call leaves a file, and some calls something worse."""

    def __init__(self, folder: Path, *, seconds: float = 0.0, deadly: int = 0, hanging: int = 0):
        self.folder, self.seconds = str(folder), seconds
        self.deadly, self.hanging = deadly, hanging  # the first bits that must be 1 for it

    def __call__(self, point: dict) -> float:
        bits = list(point.values())
        number = len(list(Path(self.folder).glob(f"{name_of(point)}-*")))
        (Path(self.folder) / f"{name_of(point)}-{number}-{os.getpid()}").touch()
        if self.deadly and all(bits[: self.deadly]):
            os._exit(1)
        if self.hanging and all(bits[: self.hanging]):
            wait_for(Path(self.folder).parent / "release")
        time.sleep(self.seconds)
        return total(point)


def wait_for(path: Path) -> None:
    """Wait until a file exists, as compiled code may: no signal that Python handles ends it."""
    while not path.exists():
        try:
            time.sleep(0.01)
        except BaseException:
            continue


class HangingOnce:
    """The sum of the bits; the first evaluation waits until the file `release` exists."""

    def __init__(self, folder: Path):
        self.folder = str(folder)

    def __call__(self, point: dict) -> float:
        try:
            (Path(self.folder) / "hung").touch(exist_ok=False)
        except FileExistsError:
            return total(point)
        wait_for(Path(self.folder) / "release")
        return total(point)


def traces(folder: Path) -> dict[str, list[int]]:
    """Of each point the processes that evaluated it, in order."""
    found: dict[str, list[int]] = {}
    for path in sorted(Path(folder).iterdir(), key=lambda path: int(path.name.split("-")[1])):
        name, _, process = path.name.split("-")
        found.setdefault(name, []).append(int(process))
    return found


class Killing:
    """Ends its worker once, the first time that it gets there; a trace says that it did."""

    def __init__(self, folder: Path):
        self.folder = str(folder)

    def __call__(self, point: dict) -> float:
        flag = Path(self.folder) / "killed"
        traced = len(list(Path(self.folder).glob("*-*")))
        (Path(self.folder) / f"{name_of(point)}-{time.monotonic_ns()}-{os.getpid()}").touch()
        if traced >= 5:
            try:
                flag.touch(exist_ok=False)
            except FileExistsError:
                return total(point)
            os.kill(os.getpid(), 9)
        return total(point)
