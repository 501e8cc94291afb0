"""Pest control: at each of 25 stations nothing (0) or one of four pesticides (1 to 4).

The form of COMBO (Oh et al. 2019). A pesticide's price falls with its use (quantity discount), its
effect falls too (tolerance). Cost: discounted prices plus, at each station, the share of 100
simulations with more than 10 % pest. Published results draw the simulations anew at each
evaluation; here they are fixed by the run.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.problems.base import Problem, published, random_initial
from mercbo.space import Space
from mercbo.variables import Ordinal

STATIONS, CHOICES, SIMULATIONS = 25, 5, 100
PRICE = np.array([1.0, 0.8, 0.7, 0.5])
DISCOUNT = np.array([0.2, 0.3, 0.3, 0.0])
TOLERANCE = np.array([1.0 / 7.0, 2.5 / 7.0, 2.0 / 7.0, 0.5 / 7.0])
STRENGTH = np.array([2.0 / 7.0, 3.0 / 7.0, 3.0 / 7.0, 5.0 / 7.0])


def cost_of(plan: Rows, rng: np.random.Generator) -> float:
    """Cost of one plan (25,)."""
    pest = rng.beta(1.0, 30.0, SIMULATIONS)
    strength = STRENGTH.copy()
    total = 0.0
    for choice in plan:
        spread = rng.beta(1.0, 17.0 / 3.0, SIMULATIONS)
        if choice > 0:
            which = choice - 1
            effect = rng.beta(1.0, strength[which], SIMULATIONS)
            strength[which] += TOLERANCE[which] / STATIONS
            used = float((plan == choice).sum())
            total += PRICE[which] * (1.0 - DISCOUNT[which] / STATIONS * used)
            pest = (1.0 - effect) * pest
        else:
            pest = spread * (1.0 - pest) + pest
        total += float((pest > 0.1).mean())
    return total


def costs(rows: Rows, seed: int) -> Floats:
    return np.array([cost_of(row, np.random.default_rng([seed, 4])) for row in rows])


def pest(run: int, data: Path | None = None) -> Problem:
    """Choices are a path graph, as in the published code."""
    space = Space({f"station{i}": Ordinal(range(CHOICES)) for i in range(STATIONS)})
    if data is not None:
        initial = published(data, "pest", run)["init"].astype(np.int64)
    else:
        initial = random_initial(space, np.random.default_rng([run, 5]))
    return Problem("pest", space, partial(costs, seed=run), initial, "Oh et al. 2019")
