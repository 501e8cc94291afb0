"""Figure 1: Ising sparsification and low auto-correlation sequences, against baselines.

    python examples/paper/ising_labs.py [--data DIR] [--runs 0,5] [--with FILE] [--quick]

With `--data` the Ising instances and initial points are the published ones. `--with` adds runs of a
packed file (`mercbo bench pack`), such as those of a whole benchmark. LABS is shown as the paper's
merit n^2 / E, which is to be maximised.
"""

from __future__ import annotations

from common import figure, options, play, report, save

NAMES = {
    "mercbo-paper-quick": "the paper's MerCBO",
    "mercbo": "mercbo, default",
    "combo": "COMBO-style",
    "bocs": "BOCS-style",
    "optuna-tpe": "Optuna TPE",
    "sa": "simulated annealing",
    "random": "random",
}
PROBLEMS, QUICK_PROBLEMS = ["ising", "labs-40"], ["ising", "labs-10"]
BUDGET, QUICK_BUDGET = 100, 24


def main() -> None:
    given = options("ising_labs", __doc__, runs="0,5")
    problems = QUICK_PROBLEMS if given.quick else PROBLEMS
    problems = [given.only] if given.only else problems
    methods = ["mercbo-paper-quick", "random"] if given.quick else list(NAMES)
    curves = play(problems, methods, given, QUICK_BUDGET if given.quick else BUDGET)
    drawn, axes = figure(len(problems), width=4.4, height=3.4)
    for axis, name in zip(axes, problems, strict=True):
        labs = name.startswith("labs")
        report.draw_convergence(axis, curves[name], NAMES, -1.0 if labs else 1.0)
        axis.set_title(f"{name} ({report.counted(curves[name].runs)})", fontsize=9)
        axis.set_ylabel("best n² / E" if labs else "best KL + 1e-4 edges")
        axis.set_yscale("linear" if labs else "log")
    axes[0].legend(fontsize=7)
    save(drawn, given.out / "ising_labs.png")


if __name__ == "__main__":
    main()
