"""A run that is killed in the middle and goes on: nothing told is lost, nothing is evaluated twice.

    python examples/resume.py

A first process optimises with a store and is killed (SIGKILL, as a power cut or a full node would)
after some evaluations. The same call, made again, goes on where it stood.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import mercbo
from mercbo import Optimizer, Space

SPACE = Space.binary(10)
BUDGET = 30


def energy(point: dict) -> float:
    """Merit of a +-1 sequence: its squared autocorrelations, to be small."""
    s = [2 * bit - 1 for bit in point.values()]
    return float(sum(sum(a * b for a, b in zip(s, s[k:], strict=False)) ** 2 for k in range(1, 10)))


def play(folder: Path, deadly: int | None) -> mercbo.Result:
    def evaluate(point: dict) -> float:
        with (folder / "evaluated.jsonl").open("a") as log:
            log.write(json.dumps(point) + "\n")
        if (
            deadly is not None
            and len((folder / "evaluated.jsonl").read_text().splitlines()) > deadly
        ):
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
        return energy(point)

    storage = f"sqlite:///{folder / 'run.db'}"
    return mercbo.minimize(evaluate, SPACE, budget=BUDGET, storage=storage, progress=False, seed=0)


def main() -> None:
    if len(sys.argv) > 1:
        play(Path(sys.argv[1]), deadly=12)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killed = subprocess.run([sys.executable, __file__, name], check=False).returncode
        kept = len(Optimizer.open(f"sqlite:///{folder / 'run.db'}").observations)
        print(f"the first process ended with {killed}; {kept} results are in the store")
        result = play(folder, deadly=None)
        lines = (folder / "evaluated.jsonl").read_text().splitlines()
    best = min(energy(point) for point in SPACE.points(SPACE.enumerate_rows()))
    # the one that was under way at the kill is evaluated again, and must be
    print(f"{len(lines)} evaluations, {len(lines) - len(set(lines))} of them a second time")
    print(
        f"found {result.best.value:g} with {BUDGET} results; the best of {SPACE.size} is {best:g}"
    )


if __name__ == "__main__":
    main()
