"""Contamination control: at which of 25 stages of a food chain to prevent contamination.

Hu, Hu, Xu, Wang and Cao, "Contamination control in food supply chain" (WSC 2010), in the form
that BOCS and COMBO use: with x_i = 1 for prevention at stage i, the contaminated share becomes
Z_i = lambda_i (1 - x_i)(1 - Z_{i-1}) + (1 - gamma_i x_i) Z_{i-1} in 100 fixed simulations; the
cost is sum_i [x_i - (mean(Z_i < 0.1) - 0.95)] + penalty * sum_i x_i.

The published names are contamination-0, contamination (penalty 1e-4) and contamination-1e-2.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, published, random_initial, with_penalty
from mercbo.space import Space

STAGES, SIMULATIONS = 25, 100
BUDGET = 270  # as published
# Optima of the five published instances by enumeration of all 2^25 plans, by penalty. Costs are
# whole hundredths plus the penalty, so these are exact. Each instance has five published runs.
OPTIMA = {
    0.0: (21.35, 21.18, 21.19, 21.44, 21.02),
    1e-4: (21.3517, 21.1815, 21.1915, 21.4415, 21.0216),
    1e-2: (21.52, 21.33, 21.34, 21.59, 21.18),
}
RUNS_EACH = 5


def cost(rows: Rows, start: Floats, spread: Floats, cure: Floats, penalty: float) -> Floats:
    """start (100,), spread and cure (25, 100)."""
    total = penalty * rows.sum(axis=1)
    share = np.repeat(start[np.newaxis], len(rows), axis=0)  # (N, 100)
    for stage in range(STAGES):
        x = rows[:, stage, np.newaxis]
        share = spread[stage] * (1 - x) * (1 - share) + (1 - cure[stage] * x) * share
        total = total + rows[:, stage] - ((share < 0.1).mean(axis=1) - 0.95)
    return np.asarray(total)


def contamination(run: int, data: Path | None = None, *, penalty: float = 1e-4) -> Problem:
    """The published instance of a run where `data` is given, else one drawn by the same recipe."""
    space = Space.binary(STAGES)
    optimum = None
    if data is not None:
        stored = published(data, "contamination", run)
        start, spread, cure = stored["init_Z"], stored["lambdas"], stored["gammas"]
        initial = stored["init"].astype(np.int64)
        optimum = OPTIMA[penalty][run // RUNS_EACH] if penalty in OPTIMA else None
    else:
        rng = np.random.default_rng([run, 1])
        shape = (STAGES, SIMULATIONS)
        start = rng.beta(1.0, 30.0, SIMULATIONS)
        spread, cure = rng.beta(1.0, 17.0 / 3.0, shape), rng.beta(1.0, 3.0 / 7.0, shape)
        initial = random_initial(space, rng)
    objective = partial(cost, start=start, spread=spread, cure=cure, penalty=penalty)
    return Problem(
        with_penalty("contamination", penalty), space, objective, initial,
        "Hu et al. 2010; Oh et al. 2019", optimum, BUDGET,
    )  # fmt: skip
