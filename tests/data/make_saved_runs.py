"""Writes the saved runs and stores in this folder with the mercbo that is installed.

The files of a version are written once and then stay as they are: they show that later versions
read them. `expected.json` holds what mercbo reported of each run when the files were written.

| folder    | format           | written by                                                       |
|-----------|------------------|------------------------------------------------------------------|
| saved/v1  | file, version 1  | `early_runs.py` at commit 60c49e7                                |
| saved/v2  | file, version 2  | `early_runs.py` at commit 6de6b5a                                |
| saved/v3  | file, version 3  | `early_runs.py` at commit 6b67de1; first-*.json at 9efacca       |
| saved/v4  | file, version 4  | this script at commit 317c090 (mercbo 0.1.0)                     |
| stores/v1 | store, version 1 | this script at commit 317c090; early.db: `early_runs.py`, 9efacca|

`make_saved_runs.py write FOLDER` writes `saved/vN` and `stores/vN` below FOLDER, each with its
`expected.json`. `make_saved_runs.py expect FOLDER` adds runs that `FOLDER/expected.json` does not
list. Both need the parent of this folder on PYTHONPATH. Commit 317c090 wrote every `expected.json`.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dimod
import numpy as np
from support.saved_runs import EXPECTED, address, expected, needed, not_all_equal, summary
from typer.testing import CliRunner

import mercbo
from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    CyclicShift,
    Exactly,
    Flip,
    Forbid,
    Implies,
    Integer,
    Linear,
    Model,
    Optimizer,
    Ordinal,
    Permutation,
    Reversal,
    ReverseComplement,
    Space,
    Symmetry,
    Tied,
    Where,
)
from mercbo.cli import app
from mercbo.record import snapshot, store
from mercbo.record.events import Event

# -- spaces ------------------------------------------------------------------------------------

KINDS = {
    "bit": Binary(),
    "letter": Categorical(["A", "C", "G"]),
    "coded": Categorical(["p", "q", "r", "s", "t"], encoding="binary"),
    "dose": Ordinal([0.5, 1.0, 2.5, None]),
    "count": Integer(-1, 3),
    "only": Categorical(["one"]),
}
CODES = {
    "a": Binary(),
    "b": Binary(),
    "c": Binary(),
    "n": Integer(0, 3),
    "s": Categorical(["x", "y", "z"]),
    "t": Categorical(["x", "y", "z", "w", "v"], encoding="binary"),
    "u": Categorical(["x", "y", "z"], encoding="binary"),
}
CONSTRAINTS = {
    "exactly": Exactly(2, ["a", "b", "c", ("s", "x"), ("t", "y")]),
    "at-most": AtMost(1, ["a", "b", ("t", "x"), ("u", "z")]),
    "at-least": AtLeast(3, ["a", "b", "c", ("n", 3), ("u", "y")]),
    "linear": Linear({"a": 1.5, "n": 2.0, ("t", "w"): -1.25}, "<=", 3.1),
    "forbid": Forbid([{"s": "x", "t": ["x", "y"]}, {"a": 1, "b": 1}]),
    "implies": Implies({"a": 1, "s": ["x", "y"]}, {"t": ["z", "w"], "n": [0, 1]}),
    "all-different": AllDifferent(["s", "t", "u"]),
    "tied": Tied(["s", "u"]),
    "where": Where(not_all_equal),
}
SYMMETRIES = {
    "reversal": (Space.binary(6), Reversal()),
    "shift": (Space.binary(6), CyclicShift()),
    "flip": (Space.binary(6), Flip()),
    "complement": (
        Space({f"x{i}": Categorical(list("ACGT")) for i in range(4)}),
        ReverseComplement(),
    ),
    "permutation": (
        Space({"l": Categorical("abc"[i] for i in range(3)), "r": Categorical(list("abc")),
               "n": Integer(0, 4)}),
        Permutation(["l", "r"]),
    ),
    "map": (Space.binary(5), Symmetry({"x0": "x1", "x1": "x0"}, {"x4": {0: 1, 1: 0}})),
}  # fmt: skip
LETTERS = Space({f"x{i}": Categorical(list("ACGT")) for i in range(7)})
STATIONS = Space({f"x{i}": Categorical(["none", "low", "high"]) for i in range(5)})
CATALOGUE = [
    {"metal": metal, "ligand": ligand, "mol": mol}
    for metal in ("Pd", "Ni")
    for ligand in ("a", "b", "c", "d")
    for mol in (5, 10)
]
TABLE = Space.table([row for number, row in enumerate(CATALOGUE) if number % 3])


# -- objectives, the same in every process -----------------------------------------------------


def score(opt: Optimizer, point: dict) -> float:
    """Linear and pairwise parts, the mean over the images of the point by symmetries."""
    rows = opt.space.group.images(opt.space.rows(point))[:, 0].astype(float)
    values = rows @ np.cos(1 + np.arange(rows.shape[1])) + 0.5 * rows[:, 0] * rows[:, -1]
    return float((values - rows[:, 0]).mean())


def neighbours(opt: Optimizer, point: dict) -> float:
    """Products of neighbours."""
    row = 2.0 * opt.space.rows(point)[0] - 1.0
    return float(-(row[:-1] * row[1:] * np.cos(np.arange(len(row) - 1))).sum() * 3)


def counted(opt: Optimizer, point: dict) -> float:
    """A function of how often each value occurs."""
    row = opt.space.rows(point)[0]
    counts = np.bincount(row, minlength=3)
    return float(2.0 * counts[1] - (counts[2] - 2.0) ** 2)


def motif(_opt: Optimizer, point: dict) -> float:
    """A value of some letters in a row, wherever they stand."""
    text = "".join(point.values())
    return -3.0 * text.count("GAT") - 1.5 * text.count("GA") - text.count("AC")


def either_strand(opt: Optimizer, point: dict) -> float:
    """The same of DNA, whichever strand is read."""
    other = [{"A": "T", "C": "G", "G": "C", "T": "A"}[letter] for letter in point.values()][::-1]
    return motif(opt, point) + motif(opt, dict(zip(point, other, strict=True)))


def skewed(opt: Optimizer, point: dict) -> float:
    return float(np.exp(2.5 * score(opt, point)))


def wild(opt: Optimizer, point: dict) -> float:
    """Ordinary values, and now and then one that is far off, to either side."""
    value = score(opt, point)
    return {0: -1e5, 5: 1e4}.get(sum(point.values()), 1.0) * (value + 0.1)


# -- what happens in a run ---------------------------------------------------------------------

Play = Callable[[Optimizer, Callable[[Optimizer, dict], float]], None]


def rounds(count: int, *, fail: int = 0, std: float | None = None) -> Play:
    """Some asks and tells, every `fail`-th a failure; a fit is committed, one point is pending."""

    def play(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
        for number in range(count):
            point = opt.ask()
            failed = fail and number % fail == fail - 1
            opt.tell(point, None if failed else value(opt, point), std=std)
        opt.ask()

    return play


def random_results(count: int) -> Play:
    """Results at random points, then two asks and one more result."""

    def play(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
        rows = np.unique(opt.space.sample_rows(count, rng=np.random.default_rng(1)), axis=0)
        points = opt.space.points(rows)
        opt.tell(points, [value(opt, point) for point in points])
        first, _ = opt.ask(2)
        opt.tell(first, value(opt, first))

    return play


def everything(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
    """Every kind of event, and some of them twice."""
    points = opt.ask(6)
    opt.tell(points[:3], [value(opt, point) for point in points[:3]], std=[0.1, None, 0.3])
    opt.tell(points[3], None)
    opt.cancel(points[4])
    opt.retry(points[3])
    opt.ask()  # comes back first
    opt.tell(points[3], value(opt, points[3]))
    for _ in range(5):
        point = opt.ask()
        opt.tell(point, value(opt, point))
    opt.amend(points[0], value(opt, points[0]) - 0.25)
    opt.amend(points[1], None)
    opt.forget(points[2])
    more = opt.ask(4)
    opt.tell(more[:2], [value(opt, more[0]), None])
    opt.retry(more[1])
    opt._record(Event("adopt", opt.space.rows(opt.pending)))  # as `minimize` does
    opt.ask()


def replicated(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
    """A noisy objective; some points are measured again."""
    rng = np.random.default_rng(3)
    for _ in range(14):
        point = opt.ask()
        opt.tell(point, value(opt, point) + rng.standard_normal())
    opt.tell([point, point], [value(opt, point) + 0.5, None])
    opt.ask(2)


def answered_by_images(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
    """Pending points that are told as images of themselves."""
    for _ in range(7):
        point = opt.ask()
        image = opt.space.points(opt.space.group.images(opt.space.rows(point))[-1])[0]
        opt.tell(image, value(opt, image))
    opt.ask(2)
    opt.tell(opt.ask(), None)


def to_be_retried(opt: Optimizer, value: Callable[[Optimizer, dict], float]) -> None:
    """Failures that are taken back and not asked for yet."""
    rounds(6)(opt, value)
    failing = opt.ask(3)
    opt.tell(failing, [None, None, None])
    opt.retry(failing[:2])


def failures_only(opt: Optimizer, _value: object) -> None:
    opt.tell(opt.ask(2), [None, None])
    opt.ask()


def nothing(_opt: Optimizer, _value: object) -> None:
    pass


# -- the runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A run to be written."""

    space: Space
    play: Play = field(default_factory=lambda: rounds(9, fail=5))
    value: Callable[[Optimizer, dict], float] = score
    settings: dict[str, Any] = field(default_factory=dict)

    def made(self, **more: Any) -> Optimizer:
        options = {"seed": 7, "n_initial": 4, **self.settings, **more}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that predicates are not written
            opt = Optimizer(self.space, **options)
        self.play(opt, self.value)
        return opt


def quick(**options: Any) -> dict[str, Any]:
    return {"model": Model(**{"inference": "map", "warp": "none", **options})}


SMALL, MIXED = Space.binary(6), Space(KINDS)
RUNS = {
    "default": Run(Space.binary(7), rounds(12, fail=5)),
    "kinds": Run(MIXED, rounds(9, fail=4), settings={"direction": "maximize"}),
    "nothing": Run(MIXED, nothing),
    "failures-only": Run(MIXED, failures_only),
    "retries": Run(MIXED, to_be_retried, settings=quick()),
    "everything": Run(SMALL, everything),
    "everything-kinds": Run(MIXED, everything, settings=quick()),
    "known-errors": Run(MIXED, rounds(8, std=0.2)),
    "sampler-object": Run(SMALL, settings={"backend": dimod.ExactSolver(), **quick()}),
    "cp-sat": Run(SMALL, settings={"backend": "cp-sat", **quick()}),
    "repeats": Run(Space.binary(4), replicated, settings={"repeats": "allow"}),
    "repeats-map": Run(
        Space.binary(4), replicated, settings={"repeats": "allow", **quick(warp="learn")}
    ),
    "table": Run(TABLE, rounds(6, fail=4), settings=quick()),
    "table-where": Run(
        Space.table(
            TABLE.points(TABLE.enumerate_rows()), constraints=[Where(not_all_equal)]
        ), rounds(5), settings=quick(),
    ),
    # inference
    "paper": Run(SMALL, rounds(7), settings={"model": Model.paper()}),
    "paper-coded": Run(
        Space({"a": KINDS["coded"], "b": KINDS["coded"], "c": Binary()}),
        rounds(7), settings={"model": Model.paper(), "direction": "maximize"},
    ),
    "hmc": Run(MIXED, settings={"model": Model(inference="hmc")}),
    "hmc-plain": Run(
        SMALL,
        settings={"model": Model(inference="hmc", warp="none", pooling="none", failures="ignore")},
    ),
    "map": Run(MIXED, settings={"model": Model(inference="map")}),
    "slice": Run(
        SMALL, rounds(7), settings={"model": Model(inference="slice", sweeps=2, warp="none")}
    ),
    "truncated": Run(SMALL, settings=quick(posterior="truncated", refine=False)),
    "hierarchical": Run(SMALL, settings=quick(weights="hierarchical")),
    # further terms of the kernel
    "windows": Run(Space.binary(12), random_results(60), neighbours,
                   quick(pooling="none", motifs="none")),
    "pooling": Run(STATIONS, random_results(30), counted, quick(windows="none")),
    "pooling-hmc": Run(STATIONS, random_results(20), counted),
    "motifs": Run(LETTERS, random_results(40), motif),
    "motifs-map": Run(LETTERS, random_results(40), motif, quick()),
    "motifs-strands": Run(LETTERS, random_results(60), either_strand, quick()),
    "windows-auto": Run(Space.binary(9), random_results(40), neighbours),
    "no-terms": Run(
        Space.binary(8), settings=quick(windows="none", pooling="none", motifs="none")
    ),
    # warps
    "warp-log": Run(SMALL, random_results(30), skewed, quick(warp="learn")),
    "warp-wild": Run(SMALL, random_results(30), wild, quick(warp="learn")),
    # draws
    "trust-none": Run(SMALL, settings={**quick(trust="none"), "acquisition": "thompson"}),
    "chain": Run(SMALL, settings=quick(interactions="chain")),
    "groups": Run(SMALL, settings=quick(interactions=[["x0", "x1", "x2"], ["x3", "x5"]])),
    "order-1": Run(MIXED, settings={**quick(order=1), "acquisition": "thompson"}),
    "order-3": Run(SMALL, settings={**quick(order=3), "acquisition": "thompson"}),
    "terms-3": Run(SMALL, settings={**quick(order=3, terms=4), "acquisition": "thompson"}),
    "terms-4": Run(SMALL, settings={**quick(order=4, terms=6), "acquisition": "thompson"}),
    **{
        f"acquisition-{name}": Run(MIXED, rounds(8), settings={**quick(), "acquisition": name})
        for name in ("auto", "thompson", "ei", "ei-liar", "mes", "lcb")
    },
    **{
        f"constraint-{name}": Run(Space(CODES, [constraint]), rounds(6, fail=4), settings=quick())
        for name, constraint in CONSTRAINTS.items()
    },
    "constraints": Run(
        Space(CODES, [CONSTRAINTS[name] for name in ("at-most", "forbid", "implies", "linear")]),
        rounds(6),
    ),
    **{
        f"symmetry-{name}": Run(
            Space(space.variables, symmetries=[stated]), answered_by_images, settings=quick()
        )
        for name, (space, stated) in SYMMETRIES.items()
    },
    "symmetries-constrained": Run(
        Space(
            Space.binary(8).variables,
            [AtMost(4, [f"x{i}" for i in range(8)])],
            symmetries=[Reversal(), CyclicShift()],
        ),
        answered_by_images,
    ),
}  # fmt: skip
# Those that are also stored, by file: the tables of a file take 30 kB, a run some more.
STORED = {
    "calls": ["everything", "everything-kinds", "known-errors", "nothing", "failures-only",
              "retries", "repeats", "sampler-object"],
    "models": ["default", "kinds", "paper", "slice", "hmc", "windows", "pooling-hmc", "motifs",
               "warp-log", "chain", "terms-3", "acquisition-mes"],
    "spaces": ["table", "constraint-where", "constraint-exactly", "constraints",
               "symmetry-complement", "symmetries-constrained"],
}  # fmt: skip


# -- writing -----------------------------------------------------------------------------------


def write_files(folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    found = {}
    for name, run in RUNS.items():
        opt = run.made()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opt.save(folder / f"{name}.json")
        found[name] = summary(opt)
    return found


def write_stores(folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    found = {}
    for file, names in STORED.items():
        for name in names:
            run = f"{file}/{name}"
            RUNS[name].made(storage=address(run, folder))
        tidy(folder / f"{file}.db")
        found |= read_stores(folder, [f"{file}/{name}" for name in names])
    write_study(folder)
    return found | read_stores(folder, ["study/main"])


def read_stores(folder: Path, names: list[str]) -> dict[str, Any]:
    """The summaries of stored runs, from copies."""
    copies = folder / "copies"
    copies.mkdir()
    found = {}
    for name in names:
        file = f"{name.partition('/')[0]}.db"
        (copies / file).write_bytes((folder / file).read_bytes())
        found[name] = summary(Optimizer.open(address(name, copies), **needed(name)))
    for file in copies.iterdir():
        file.unlink()
    copies.rmdir()
    return found


SPACE_FILE = """
variables:
  solvent: [water, DMSO, THF]
  heat: [20, 40, 80]
  hours: {kind: integer, low: 1, high: 4}
  stir: {kind: binary}
constraints:
  - forbid: {solvent: water, heat: 80}
"""


def write_study(folder: Path) -> None:
    """A study of the command line: plates with controls, columns of notes, corrections."""
    study, space, plate = folder / "study.db", folder / "space.yaml", folder / "plate.csv"
    space.write_text(SPACE_FILE, encoding="utf-8")

    def mercbo(*arguments: object) -> None:
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, result.output

    mercbo("init", study, "--space", space, "--maximize", "--target", "yield", "--seed", 1,
           "--title", "Coupling")  # fmt: skip
    for number in range(2):
        mercbo("ask", study, "--plate", 6, "--controls", "A1,B3", "--out", plate, "--force")
        header, *lines = plate.read_text(encoding="utf-8").splitlines()
        rows = [line.split(",") for line in lines]
        filled = [[*row[:-1], measured(row), f"run {number}", str(0.5 + i)]
                  for i, row in enumerate(rows)]  # fmt: skip
        text = [",".join([header, "operator", "mass"]), *map(",".join, filled)]
        plate.write_text("\n".join(text) + "\n", encoding="utf-8")
        mercbo("tell", study, plate, "--empty", "failed")
    mercbo("ask", study, "-k", 2)
    for file in (space, plate):
        file.unlink()
    tidy(study)


def measured(row: list[str]) -> str:
    """The yield of a row of a plate; empty where it failed, and in a control well."""
    _, well, _, solvent, heat, hours, stir, _ = row
    if solvent == "" or well == "B1":
        return ""
    return str(10.0 * (solvent == "DMSO") + float(heat) / 10 + float(hours) + 2.0 * (stir == "1"))


def tidy(file: Path) -> None:
    """Take out what differs from machine to machine, and what was deleted."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(
            "UPDATE mercbo_events SET writer = 'laboratory/1/1', "
            "written = strftime('%Y-%m-%dT%H:%M:%f+00:00', 1.7e9 + 60 * number, 'unixepoch')"
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write_expected(folder: Path, runs: dict[str, Any]) -> None:
    said = {"mercbo": mercbo.__version__, "runs": runs}
    (folder / EXPECTED).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def write(target: Path) -> None:
    files = target / "saved" / f"v{snapshot.VERSION}"
    write_expected(files, write_files(files))
    stores = target / "stores" / f"v{store.VERSION}"
    write_expected(stores, write_stores(stores))


def expect(folder: Path) -> None:
    known = expected(folder) if (folder / EXPECTED).exists() else {}
    for file in sorted(folder.glob("*.json")):
        if file.name != EXPECTED and file.stem not in known:
            known[file.stem] = summary(Optimizer.load(file, **needed(file.stem)))
    for file in sorted(folder.glob("*.db")):
        tidy(file)
        names = [f"{file.stem}/{run}" for run in store.Store.names(f"sqlite:///{file}")]
        known |= read_stores(folder, [name for name in names if name not in known])
    write_expected(folder, known)


if __name__ == "__main__":
    {"write": write, "expect": expect}[sys.argv[1]](Path(sys.argv[2]))
