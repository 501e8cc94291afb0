"""Figure 1: Ising sparsification and low auto-correlation sequences, against baselines.

    python examples/paper/ising_labs.py [--data DIR] [--runs 0-9] [--known FILE] [--quick]

With `--data` the Ising instances and initial points are the published ones. Runs in the packed file
`--known`, such as examples/results/published.jsonl.xz, are not played again. LABS is shown as the
paper's merit n^2 / E, which is to be maximised.
"""

from __future__ import annotations

from common import figure, options, play, report, save

NAMES = {
    "mercbo-paper-quick": "the paper's MerCBO",
    "mercbo": "mercbo, default",
    "mercbo-thompson": "mercbo, Thompson",
    "combo": "COMBO-style",
    "bocs": "BOCS-style",
    "optuna-tpe": "Optuna TPE",
    "smac": "SMAC3",
    "sa": "simulated annealing",
    "random": "random",
}
PROBLEMS, QUICK_PROBLEMS = ["ising", "labs-50"], ["ising", "labs-10"]
QUICK_BUDGET = 24


def main() -> None:
    given = options("ising_labs", __doc__, runs="0-9")
    problems = QUICK_PROBLEMS if given.quick else PROBLEMS
    problems = [given.only] if given.only else problems
    methods = ["mercbo-paper-quick", "random"] if given.quick else list(NAMES)
    curves = play(problems, methods, given, QUICK_BUDGET if given.quick else None)
    drawn, axes = figure(len(problems), width=4.4, height=3.4)
    for axis, name in zip(axes, problems, strict=True):
        labs = name.startswith("labs")
        report.draw_convergence(axis, curves[name], NAMES, -1.0 if labs else 1.0)
        axis.set_title(f"{name} ({report.counted(curves[name].runs)})", fontsize=9)
        axis.set_ylabel("best n² / E" if labs else "best KL + 1e-4 edges")
        axis.set_yscale("linear" if labs else "log")
    axes[-1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(0.0, 0.93))
    save(drawn, given.out / "ising_labs.png")


if __name__ == "__main__":
    main()
