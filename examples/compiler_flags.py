"""Tune compiler flags by really compiling and timing a small C program.

    python examples/compiler_flags.py [--evaluations 25]

Needs gcc (or another compiler that takes its flags, by CC=...); without one it says so and ends.
The time of a run is the least of several, since a busy machine only ever adds to it. Results differ
from machine to machine, so the best flags are measured again beside -O2 and -O3 at the end.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from mercbo import Binary, Categorical, Implies, Optimizer, Ordinal, Space

PROGRAM = r"""
#include <stdio.h>
#include <time.h>
#define N 96
static double a[N][N], b[N][N], c[N][N];
static int sieve[200000];
static double work(void) {
    double sum = 0;
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) { a[i][j] = i + j; b[i][j] = i - j; }
    for (int i = 0; i < N; i++) for (int j = 0; j < N; j++) {
        double s = 0;
        for (int k = 0; k < N; k++) s += a[i][k] * b[k][j];
        c[i][j] = s; sum += s > 0 ? s : -0.5 * s;
    }
    for (int i = 2; i < 200000; i++) sieve[i] = 1;
    for (int i = 2; i * i < 200000; i++)
        if (sieve[i]) for (int j = i * i; j < 200000; j += i) sieve[j] = 0;
    for (int i = 2; i < 200000; i++) sum += sieve[i];
    return sum;
}
int main(void) {
    double best = 1e9, sum = 0;
    for (int round = 0; round < 12; round++) {
        struct timespec s, e;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &s);
        sum += work();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &e);
        double t = (e.tv_sec - s.tv_sec) * 1e3 + (e.tv_nsec - s.tv_nsec) * 1e-6;
        if (t < best) best = t;
    }
    fprintf(stderr, "%g\n", sum);
    printf("%f\n", best);
    return 0;
}
"""
SWITCHES = [
    "unroll-loops", "fast-math", "tree-vectorize", "inline-functions", "omit-frame-pointer",
    "tree-loop-distribution", "split-loops", "peel-loops", "schedule-insns", "gcse",
]  # fmt: skip

SPACE = Space(
    {
        "level": Categorical(["-O1", "-O2", "-O3", "-Os"]),
        "native": Binary(),
        "prefetch": Binary(),
        "unroll": Ordinal([2, 4, 8, 16]),
        **{name: Binary() for name in SWITCHES},
    },
    # the limit on unrolling means nothing without unrolling: one value stands for all
    constraints=[Implies({"unroll-loops": 0}, {"unroll": 8})],
)


def flags(point: dict) -> list[str]:
    chosen = [point["level"]]
    chosen += [f"-f{'' if point[name] else 'no-'}{name}" for name in SWITCHES]
    chosen += ["-march=native"] * point["native"] + ["-fprefetch-loop-arrays"] * point["prefetch"]
    return [*chosen, "--param", f"max-unroll-times={point['unroll']}"]


def milliseconds(compiler: str, options: list[str], folder: Path) -> float | None:
    """The least time of some runs; None where it does not compile or crashes."""
    program = folder / "program"
    command = [compiler, *options, "-o", str(program), str(folder / "program.c")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    runs = [subprocess.run([program], capture_output=True, check=False) for _ in range(2)]
    return min(float(run.stdout) for run in runs) if not any(r.returncode for r in runs) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=25)
    given = parser.parse_args()
    compiler = shutil.which(os.environ.get("CC", "gcc"))
    if compiler is None:
        print("found nothing: there is no gcc here to try flags with")
        return
    opt = Optimizer(SPACE, seed=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.c").write_text(PROGRAM)
        for _ in range(given.evaluations):
            point = opt.ask()
            opt.tell(point, milliseconds(compiler, flags(point), folder))
        best = flags(opt.best.point)
        options = {"found": best, "-O2": ["-O2"], "-O3": ["-O3"]}
        again = {
            key: min(milliseconds(compiler, o, folder) for _ in range(3))
            for key, o in options.items()
        }
    print(f"{given.evaluations} of {SPACE.size:,} settings tried, {len(opt.failed)} failed")
    print("best:", " ".join(best))
    print(
        f"found flags that take {again['found']:.2f} ms, measured again, where -O2 takes "
        f"{again['-O2']:.2f} and -O3 {again['-O3']:.2f}: "
        f"{again['-O2'] / again['found']:.2f} times as fast as -O2"
    )


if __name__ == "__main__":
    main()
