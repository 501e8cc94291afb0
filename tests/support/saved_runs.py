"""Access to the saved runs and stores in tests/data, which earlier versions of mercbo wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import dimod

from mercbo import MercboError, Optimizer

DATA = Path(__file__).parent.parent / "data"
FILES = DATA / "saved"  # one folder per version of the file format
STORES = DATA / "stores"  # one folder per version of the store format
EXPECTED = "expected.json"


def not_all_equal(point: dict) -> bool:
    """The predicate of the saved runs with a `Where` constraint."""
    return len(set(list(point.values())[:3])) > 1


def needed(name: str) -> dict[str, Any]:
    """The arguments of `load` and `open` that the file of a run cannot hold, by the run's name."""
    if "where" in name:
        return {"where": {"not_all_equal": not_all_equal}}
    return {"backend": dimod.ExactSolver()} if "sampler-object" in name else {}


def expected(folder: Path) -> dict[str, Any]:
    """Summaries of the runs in a folder, by the mercbo that wrote the folder."""
    return json.loads((folder / EXPECTED).read_text(encoding="utf-8"))["runs"]


def versions(root: Path) -> list[Path]:
    return sorted(folder for folder in root.iterdir() if folder.is_dir())


def listed(root: Path) -> list[tuple[Path, str]]:
    """Every run below a folder: where it is, and its name."""
    return [(folder, name) for folder in versions(root) for name in sorted(expected(folder))]


def address(name: str, folder: Path) -> str:
    """The URL of a stored run; a run is named FILE or FILE/RUN."""
    file, _, run = name.partition("/")
    return f"sqlite:///{folder / file}.db" + (f"?run={run}" if run else "")


def opened(folder: Path, name: str, scratch: Path) -> Optimizer:
    """A run, from a copy of its file in `scratch`."""
    if folder.parent == FILES:
        return Optimizer.load(folder / f"{name}.json", **needed(name))
    shutil.copy(folder / f"{name.partition('/')[0]}.db", scratch)
    return Optimizer.open(address(name, scratch), **needed(name))


def summary(opt: Optimizer) -> dict[str, Any]:
    """Counts, best point, predictions and suggestions of a run. The suggestions become pending."""
    rows = opt.space.enumerate_rows() if opt.space.size < 5000 else opt.space.region.table
    points = opt.space.points(rows[[0, len(rows) // 2, -1]]) if rows is not None else corners(opt)
    said: dict[str, Any] = {
        "results": len(opt.observations),
        "pending": len(opt.pending),
        "failed": len(opt.failed),
        "best": best(opt),
        "points": points,
    }
    if opt.observations:
        predicted = opt.predict(points)
        said |= {"mean": predicted.mean.tolist(), "std": predicted.std.tolist()}
    try:
        said["next"] = opt.ask(3)
    except MercboError as error:
        said["next"] = type(error).__name__
    return said


def corners(opt: Optimizer) -> list[dict]:
    """Three points of a large space: all first values, all middle ones, all last ones."""
    sizes = opt.space.sizes
    return [opt.space.points(row[None])[0] for row in (0 * sizes, sizes // 2, sizes - 1)]


def best(opt: Optimizer) -> dict[str, Any] | None:
    if not opt.observations:
        return None
    seen = opt.best
    return {"point": seen.point, "value": seen.value}
