"""Figures that the README and `docs/measured.md` state, measured again.

    python examples/measure.py contamination [--data DIR] [--runs 0-24] [--jobs 2]
    python examples/measure.py timing

`contamination` plays food contamination control (25 binary variables, Hu et al. 2010, as used by
BOCS and COMBO) with default settings, 20 initial points and 270 evaluations. With `--data` (or
the environment variable MERCBO_DATA) the published instances and initial points are read from
DIR/published/contamination.npz; without it, instances are drawn here by the same recipe.

`timing` prints the median seconds of an `ask()` and the peak memory, as results and variables grow.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

# One thread for each process: runs are played side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from mercbo import Optimizer, Space
from mercbo.problems.contamination import contamination as contamination_problem

BUDGET = 270
MARKS = (50, 100, 150, 200, 270)


def play(run: int, data: Path | None) -> tuple[int, list[float], float]:
    """One run: its number, the best value at each mark, the median seconds of an ask."""
    problem = contamination_problem(run, data)
    opt = Optimizer(problem.space, seed=run)
    opt.tell(problem.initial, problem.objective(problem.initial))
    best, seconds = [], []
    for count in range(len(problem.initial) + 1, BUDGET + 1):
        started = time.perf_counter()
        point = opt.ask()
        seconds.append(time.perf_counter() - started)
        opt.tell(point, problem.objective(problem.space.rows(point))[0])
        if count in MARKS:
            best.append(opt.best.value)
    return run, best, float(np.median(seconds[-40:]))


def play_random(run: int, data: Path | None) -> list[float]:
    """The best value at each mark of random points after the same initial ones."""
    problem = contamination_problem(run, data)
    rng = np.random.default_rng([run, 1])
    others = problem.space.sample_rows(BUDGET - len(problem.initial), rng=rng)
    costs = problem.objective(np.concatenate([problem.initial, others]))
    return [float(costs[:mark].min()) for mark in MARKS]


def contamination(runs: range, data: Path | None, jobs: int) -> None:
    print("run  best after " + "  ".join(f"{mark:>7}" for mark in MARKS) + "   s/ask at the end")
    rows = []
    with ProcessPoolExecutor(jobs) as pool:
        for run, best, seconds in pool.map(partial(play, data=data), runs):
            rows.append(best)
            shown = "  ".join(f"{value:7.4f}" for value in best)
            print(f"{run:3d}             {shown}   {seconds:.3f}", flush=True)
    table = np.array(rows)
    error = 2 * table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else 0 * table[0]
    print("mean            " + "  ".join(f"{value:7.4f}" for value in table.mean(axis=0)))
    print("2 std. errors   " + "  ".join(f"{value:7.4f}" for value in error))
    random = np.mean([play_random(run, data) for run in runs], axis=0)
    print("random, mean    " + "  ".join(f"{value:7.4f}" for value in random))


def history(n: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Results as a run leaves them: half random points, half close to the best of those."""
    main, pairs = rng.standard_normal(n), rng.standard_normal((n, n)) / np.sqrt(n)

    def value(rows: np.ndarray) -> np.ndarray:
        spins = 1 - 2 * rows
        return spins @ main + np.einsum("ni,ij,nj->n", spins, pairs, spins)

    rows = rng.integers(0, 2, (size // 2, n))
    best = rows[value(rows).argmin()]
    near = np.where(rng.random((size - len(rows), n)) < 0.1, 1 - best, best)
    rows = np.concatenate([rows, near])
    return rows, value(rows)


def ask_seconds(n: int, size: int, asks: int = 16) -> Iterator[float]:
    """Seconds of each ask, a result being told in between; the first ask fits from nothing."""
    rng = np.random.default_rng(n + size)
    rows, values = history(n, size + asks, rng)
    opt = Optimizer(Space.binary(n), seed=0)
    opt.tell(rows[:size], values[:size])
    for row, value in zip(rows[size:], values[size:], strict=True):
        started = time.perf_counter()
        opt.ask()
        yield time.perf_counter() - started
        opt.tell(row, value)


def timing() -> None:
    print("  n     N   first ask   later asks: median   slowest   peak memory")
    cases = [(25, 250), (25, 500), (25, 1000), (25, 2000), (50, 250), (100, 250), (200, 250)]
    for n, size in [*cases, (200, 500)]:
        with ProcessPoolExecutor(1) as pool:  # a process each, for its own peak memory
            first, median, slowest, peak = pool.submit(time_one, n, size).result()
        times = f"{first:9.2f} s {median:18.3f} s {slowest:7.2f} s"
        print(f"{n:3d}  {size:4d} {times} {peak:10.0f} MB", flush=True)


def time_one(n: int, size: int) -> tuple[float, float, float, float]:
    first, *later = ask_seconds(n, size)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return first, float(np.median(later)), max(later), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["contamination", "timing"])
    parser.add_argument("--data", type=Path, default=os.environ.get("MERCBO_DATA"))
    parser.add_argument("--runs", default="0-24", help="first-last")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.what == "timing":
        timing()
    else:
        first, last = map(int, options.runs.split("-"))
        data = Path(options.data) if options.data else None
        contamination(range(first, last + 1), data, options.jobs)


if __name__ == "__main__":
    main()
