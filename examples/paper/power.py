"""Figure 2: design of a power system, energy and mass.

    python examples/paper/power.py [--runs 0-3] [--quick]

The paper's simulator is not public; ours (`mercbo/problems/power.py`) has its shape: five design
variables of many levels as 16 bits, initial points from the worst tenth. Both objectives are
minimised. The optimum, by enumeration, is the dotted line.
"""

from __future__ import annotations

from common import convergence, options, play

NAMES = {
    "mercbo-paper-quick": "the paper's MerCBO",
    "mercbo": "mercbo, default",
    "combo": "COMBO-style",
    "bocs": "BOCS-style",
    "optuna-tpe": "Optuna TPE",
    "random": "random",
}
PROBLEMS = ["power-energy-bits", "power-mass-bits"]
BUDGET, QUICK_BUDGET = 120, 24


def main() -> None:
    given = options("power", __doc__, runs="0-3")
    methods = ["mercbo-paper-quick", "random"] if given.quick else list(NAMES)
    curves = play(PROBLEMS, methods, given, QUICK_BUDGET if given.quick else BUDGET)
    convergence({name: curves[name] for name in PROBLEMS}, NAMES, given.out / "power.png")


if __name__ == "__main__":
    main()
