"""Figure 4: six transcription factors, parallel Thompson sampling, by the size of the batch.

    python examples/paper/factors.py --data DIR [--runs 0-2] [--quick]

500 evaluations of each factor, 2 bits per base. Without `--data` the six tables are random motifs.
"""

from __future__ import annotations

from common import convergence, options, play

FACTORS = ("CRX", "EGR2", "KLF1", "PAX4", "SIX6", "WT1")
NAMES = {f"mercbo-thompson:batch={size}": f"batches of {size}" for size in (10, 50, 100)}
QUICK_BUDGET = 32


def main() -> None:
    given = options("factors", __doc__, runs="0-2")
    problems = [f"dna-bits:{factor}" for factor in FACTORS] if given.data else ["dna-bits"]
    methods = list(NAMES)[:2] if given.quick else list(NAMES)
    curves = play(problems, methods, given, QUICK_BUDGET if given.quick else None)
    convergence(
        {name: curves[name] for name in problems}, NAMES, given.out / "factors.png",
        title=lambda curve: curve.problem.removeprefix("dna-bits:"), sign=-1.0,
        ylabel="best score",
    )  # fmt: skip


if __name__ == "__main__":
    main()
