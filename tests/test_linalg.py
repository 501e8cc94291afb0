"""Threads: SciPy is imported late, and its BLAS must be held to one thread all the same."""

from __future__ import annotations

import subprocess
import sys


def test_every_blas_that_is_used_is_held_to_one_thread() -> None:
    code = """
import mercbo
from mercbo.linalg import threads_for
with threads_for(10):
    import numpy, scipy.linalg
    from threadpoolctl import threadpool_info
    print([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"])
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
    )
    assert set(eval(done.stdout)) == {1}, done.stdout
