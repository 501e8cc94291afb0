"""Worker: Optuna's Gaussian-process sampler, with its defaults but for the initial points.

It needs torch, and starts by random points until `n_startup_trials` results are there.
"""

from __future__ import annotations

import warnings
from typing import Any


def begin(start: Any) -> Any:
    import optuna
    import torch  # noqa: F401 (the sampler imports it only later)

    # the sampler is marked experimental
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return Study(start, optuna.samplers.GPSampler(seed=start.seed))


if __name__ == "__main__":
    from optuna_tpe import Study
    from peerlib import serve

    serve("optuna-gp", ["optuna", "torch", "scipy"], begin)
