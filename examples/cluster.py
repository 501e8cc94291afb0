"""Evaluate on a Dask cluster: the same call as on a laptop, with a client for an executor.

    python examples/cluster.py                      # two worker threads here
    python examples/cluster.py tcp://scheduler:8786   # a cluster that runs

Needs ``pip install distributed``. As soon as an evaluation is done its worker gets the next point.
"""

import sys

import mercbo
from mercbo import Categorical, Integer, Space

SPACE = Space(
    {
        "solver": Categorical(["cg", "gmres", "direct"]),
        "smoother": Categorical(["jacobi", "sor", "none"]),
        "levels": Integer(1, 6),
        "sweeps": Integer(1, 4),
    }
)


def seconds(point: dict) -> float:
    """A made-up simulation whose time depends on its settings."""
    time = {"cg": 4.0, "gmres": 5.0, "direct": 9.0}[point["solver"]]
    time += {"jacobi": 1.0, "sor": 0.0, "none": 3.0}[point["smoother"]]
    return time + abs(point["levels"] - 4) + 0.5 * abs(point["sweeps"] - 2)


def main() -> None:
    from dask.distributed import Client

    where = sys.argv[1] if len(sys.argv) > 1 else None
    settings = {
        "processes": False,
        "n_workers": 1,
        "threads_per_worker": 2,
        "dashboard_address": None,
    }
    with Client(where) if where else Client(**settings) as client:
        result = mercbo.minimize(seconds, SPACE, budget=30, executor=client, progress=False, seed=0)
    best = min(map(seconds, SPACE.points(SPACE.enumerate_rows())))
    print(f"{len(result.failures)} evaluations failed; best settings: {result.best.point}")
    found = result.best.value
    print(f"found {found:g} s in 30 of {SPACE.size} settings; the best of all is {best:g} s")


if __name__ == "__main__":
    main()
