"""Figure 5 (the appendix's first): Mercer features of order 1, 2, 3 and 4.

    python examples/paper/orders.py [--data DIR] [--runs 0-9] [--quick]

Thompson sampling by the truncated posterior, as in the paper, with hyper-parameters by MAP in
place of slice sampling, which would take most of the time. Draws of order 1 and 2 are minimised by
the graph-cut backend, those of order 3 and 4 by local search from random starts.
"""

from __future__ import annotations

from common import convergence, options, play

NAMES = {f"mercbo-truncated:warp=none:order={m}": f"order {m}" for m in (2, 1, 3, 4)}
PROBLEMS, QUICK_PROBLEMS = ["ising", "labs-16"], ["labs-8"]
BUDGET, QUICK_BUDGET = 60, 24


def main() -> None:
    given = options("orders", __doc__, runs="0-9")
    problems = QUICK_PROBLEMS if given.quick else PROBLEMS
    curves = play(problems, list(NAMES), given, QUICK_BUDGET if given.quick else BUDGET)
    convergence({name: curves[name] for name in problems}, NAMES, given.out / "orders.png")


if __name__ == "__main__":
    main()
