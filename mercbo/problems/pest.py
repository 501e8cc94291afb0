"""Pest control: at each of 25 stations nothing (0) or one of four pesticides (1 to 4).

The form of COMBO (Oh et al. 2019). A pesticide's price falls with its use (quantity discount), its
effect falls too (tolerance). Cost: discounted prices plus, at each station, the share of 100
simulations with more than 10 % pest.

As published, pest draws its simulations anew at each evaluation: they are a pure function of the
run and of the evaluation's number. In pest-fixed all evaluations share those of number 0.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Ordinal
from mercbo.problems.base import Problem, published, random_initial
from mercbo.space import Space

BUDGET = 320  # as published
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
        # what a station finds is counted, not what it leaves to the next
        total += float((pest > 0.1).mean())
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
    return total


def costs(rows: Rows, seed: int) -> Floats:
    """All rows have the simulations of evaluation 0."""
    return np.array([cost_of(row, np.random.default_rng([seed, 4, 0])) for row in rows])


def noisy_costs(rows: Rows, seed: int, *, first: int = 0) -> Floats:
    """Row i is evaluation number first + i, and has the simulations of that number."""
    return np.array(
        [cost_of(row, np.random.default_rng([seed, 4, first + i])) for i, row in enumerate(rows)]
    )


def pest(run: int, data: Path | None = None, *, noisy: bool = True) -> Problem:
    """Choices are a path graph, as in the published code."""
    space = Space({f"station{i}": Ordinal(range(CHOICES)) for i in range(STATIONS)})
    if data is not None:
        initial = published(data, "pest", run)["init"].astype(np.int64)
    else:
        initial = random_initial(space, np.random.default_rng([run, 5]))
    objective = partial(noisy_costs if noisy else costs, seed=run)
    return Problem(
        "pest" if noisy else "pest-fixed", space, objective, initial, "Oh et al. 2019",
        None, BUDGET, noisy,
    )  # fmt: skip
