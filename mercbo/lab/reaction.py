"""A made-up reaction to practise on: `mercbo demo` and the example of a laboratory's loop.

The yield is a formula with effects, two interactions and an optimum that the rules allow; a
measurement adds noise of two points, and mixtures that boil dry fail.
"""

from __future__ import annotations

import numpy as np

from mercbo.domain.variables import Point

SPACE = """\
# A Suzuki-like coupling, made up. Lists of numbers have an order, lists of texts have none.
title: a made-up coupling
variables:
  catalyst: [Pd(OAc)2, Pd(PPh3)4, NiCl2, CuI]
  ligand: [none, PPh3, XPhos, SPhos]
  base: [K2CO3, Cs2CO3, NaOtBu, Et3N]
  solvent: [water, ethanol, DMF, toluene, dioxane]
  temperature: [25, 40, 60, 80, 100]          # degrees
  loading: [0.5, 1, 2, 5]                     # mol %
  hours: {kind: integer, low: 1, high: 12}
  degassed: {kind: binary}
constraints:
  # a strong base does not go into water
  - forbid: {base: NaOtBu, solvent: [water, ethanol]}
  # ethanol boils at 78 degrees
  - forbid: {solvent: ethanol, temperature: [80, 100]}
  # nickel is used with a ligand
  - implies: {if: {catalyst: NiCl2}, then: {ligand: [PPh3, XPhos, SPhos]}}
  # the palladium budget: mol % counts four times as much as an hour of the reactor
  - linear: {weights: {loading: 4, hours: 1}, at_most: 24}
"""

CATALYST = {"Pd(OAc)2": 12.0, "Pd(PPh3)4": 9.0, "NiCl2": 2.0, "CuI": -8.0}
LIGAND = {"none": -7.0, "PPh3": 0.0, "XPhos": 4.0, "SPhos": 5.0}
BASE = {"K2CO3": 3.0, "Cs2CO3": 5.0, "NaOtBu": 2.0, "Et3N": -5.0}
SOLVENT = {"water": -4.0, "ethanol": 2.0, "DMF": 3.0, "toluene": 0.0, "dioxane": 5.0}
# ligands that suit a catalyst
SUITS = {("Pd(OAc)2", "SPhos"): 8.0, ("Pd(OAc)2", "XPhos"): 6.0, ("NiCl2", "PPh3"): 7.0}
NOISE = 2.0


def true_yield(point: Point) -> float | None:
    """The yield in per cent without noise; None where the mixture boils dry."""
    temperature, loading = _number(point, "temperature"), _number(point, "loading")
    hours, solvent = _number(point, "hours"), str(point["solvent"])
    if temperature == 100 and solvent == "water" and hours > 8:
        return None
    catalyst, ligand = str(point["catalyst"]), str(point["ligand"])
    total = 40.0 + CATALYST[catalyst] + LIGAND[ligand] + BASE[str(point["base"])] + SOLVENT[solvent]
    total += SUITS.get((catalyst, ligand), 0.0)
    best_at = 80.0 if catalyst.startswith("Pd") else 60.0
    total -= 0.008 * (temperature - best_at) ** 2
    total += 4.0 * float(np.log2(loading)) + 6.0 * float(1.0 - np.exp(-hours / 4.0))
    total += 5.0 * _number(point, "degassed") * (1.0 if catalyst.startswith("Pd") else 0.2)
    return float(np.clip(total, 0.0, 99.0))


def measured(point: Point, *, rng: np.random.Generator) -> float | None:
    """A measurement of the yield, to a tenth of a point."""
    value = true_yield(point)
    if value is None:
        return None
    return round(float(np.clip(value + NOISE * rng.standard_normal(), 0.0, 100.0)), 1)


def _number(point: Point, name: str) -> float:
    value = point[name]
    assert isinstance(value, (int, float))
    return float(value)
