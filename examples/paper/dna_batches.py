"""Figure 3: DNA binding, parallel Thompson sampling against parallel expected improvement.

    python examples/paper/dna_batches.py --data DIR [--runs 0] [--quick]

One transcription factor, 2 bits per base, 500 evaluations in batches of 1, 10, 50 and 100. Shown
are the seconds of all suggestions of a run, the mean Hamming distance (in bases) between the points
of a batch, and the best value. Without `--data` the table is that of a random motif.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
from common import Options, figure, options, play, report, save

from mercbo.bench.runs import FILE, gathered, read

SIZES, QUICK_SIZES = (1, 10, 50, 100), (1, 4)
KINDS = {"thompson": "Thompson", "ei": "expected improvement"}
QUICK_BUDGET = 32


def method(kind: str, size: int) -> str:
    return f"mercbo-{kind}:batch={size}"


def batches(given: Options, problem: str, name: str, size: int) -> Iterator[np.ndarray]:
    """The rows of each batch of each run, (size, 8) letters."""
    lines = [
        line
        for line in read(given.out / FILE)
        if (line.get("method"), line.get("problem")) == (name, problem)
        and line.get("ask") is not None
    ]
    for _, run in groupby(lines, key=lambda line: line["run"]):
        rows = np.array([list(line["point"].values()) for line in run])
        for first in range(0, len(rows), size):
            yield rows[first : first + size]


def distance(rows: np.ndarray) -> float:
    """Mean Hamming distance between different rows."""
    apart = (rows[:, np.newaxis] != rows).sum(axis=2)
    return float(apart.sum() / (len(rows) * (len(rows) - 1)))


def seconds(given: Options, problem: str, name: str) -> np.ndarray:
    """(runs,): of all suggestions of a run."""
    runs = gathered(given.out)[1]
    return np.array([sum(r.ask) for r in runs if (r.method, r.problem) == (name, problem)])


def main() -> None:
    given = options("dna_batches", __doc__, runs="0")
    sizes = QUICK_SIZES if given.quick else SIZES
    problem = "dna-bits:ARX" if given.data else "dna-bits"
    names = [method(kind, size) for kind in KINDS for size in sizes]
    curve = play([problem], names, given, QUICK_BUDGET if given.quick else None)[problem]
    drawn, axes = figure(3)
    places = np.arange(len(sizes))
    print("acquisition, batch: seconds of a run, distance in a batch, best value (mean ± 2 s.e.)")
    for number, (kind, shown) in enumerate(KINDS.items()):
        columns = []
        for size in sizes:
            name = method(kind, size)
            times = report.mean_and_error(seconds(given, problem, name))
            apart = [distance(r) for r in batches(given, problem, name, size) if len(r) > 1]
            best = report.mean_and_error(-curve.last(name))
            columns.append((times, (np.mean(apart) if apart else np.nan, np.nan), best))
            print(f"{shown}, {size}:", ", ".join(report.shown(*pair) for pair in columns[-1]))
        for axis, cells in zip(axes, zip(*columns, strict=True), strict=True):
            height, error = np.array(cells).T
            axis.bar(places + 0.4 * number - 0.2, height, 0.38, yerr=error, label=shown)
    for axis, title in zip(axes, ("seconds", "mean Hamming distance", "best score"), strict=True):
        axis.set_xticks(places, map(str, sizes))
        axis.set_xlabel("batch size")
        axis.set_title(f"{title} ({report.counted(curve.runs)})", fontsize=9)
    axes[0].set_yscale("log")
    top = -curve.optimum.mean()
    axes[2].axhline(top, color="black", linewidth=0.8, linestyle=":")
    axes[2].set_ylim(top - 0.03, top + 0.005)
    axes[0].legend(fontsize=7)
    save(drawn, given.out / "dna_batches.png")


if __name__ == "__main__":
    main()
