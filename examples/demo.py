"""What `make demo` runs: a mixed categorical space, a progress bar, a table and a plot.

The objective is a made-up screening of a coupling reaction with 8 factors and about 500,000
possible conditions. It has main effects, a few strong interactions and some measurement noise.
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mercbo import Binary, Categorical, Integer, Optimizer, Ordinal, Point, Space

mpl.use("Agg")
import matplotlib.pyplot as plt

BUDGET = 120
RUNS_OF_RANDOM = 20
PICTURE = Path("demo.png")

SPACE = Space(
    {
        "catalyst": Categorical(["Pd(OAc)2", "Pd2(dba)3", "NiCl2", "CuI", "none"]),
        "ligand": Categorical(["XPhos", "SPhos", "BINAP", "dppf", "PPh3", None]),
        "base": Categorical(["K2CO3", "Cs2CO3", "NaOtBu", "Et3N"]),
        "solvent": Categorical(["toluene", "dioxane", "DMF", "THF", "water"]),
        "celsius": Ordinal([25, 50, 70, 90, 110]),
        "hours": Integer(1, 12),
        "equivalents": Ordinal([1.0, 1.2, 1.5, 2.0]),
        "dry": Binary(),
    }
)


class Reaction:
    """Yield in percent: drawn once from a seed, then a fixed function of the conditions."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.main = [rng.normal(0, 8, k) for k in SPACE.sizes]
        pairs = [(0, 1), (0, 3), (2, 3), (3, 4), (1, 7)]
        self.pairs = [(i, j, rng.normal(0, 8, (SPACE.sizes[i], SPACE.sizes[j]))) for i, j in pairs]
        # ordered variables act smoothly, with a peak somewhere
        for i, name in enumerate(SPACE.names):
            if SPACE.variables[name].graph == "path":
                levels = np.linspace(0, 1, SPACE.sizes[i])
                self.main[i] = 12 - 40 * (levels - rng.uniform(0.2, 0.8)) ** 2
        self.rng = rng

    def exact(self, rows: np.ndarray) -> np.ndarray:
        total = 30.0 + sum(m[rows[:, i]] for i, m in enumerate(self.main))
        total = total + sum(t[rows[:, i], rows[:, j]] for i, j, t in self.pairs)
        return 100.0 / (1.0 + np.exp(-(total - 50.0) / 25.0))

    def measure(self, point: Point) -> float:
        return float(self.exact(SPACE.rows(point))[0] + self.rng.normal(0, 0.5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=BUDGET)
    budget = parser.parse_args().experiments
    console = Console()
    reaction = Reaction(seed=7)
    everything = reaction.exact(SPACE.enumerate_rows())
    console.print(f"{SPACE.size:,} possible conditions, {budget} experiments", highlight=False)
    opt = Optimizer(SPACE, direction="maximize", seed=0)
    columns = [
        TextColumn("experiments"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("best so far {task.fields[best]:.1f} %"),
    ]  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=budget, best=0.0)
        while len(opt.observations) < budget:
            batch = opt.ask(min(4, budget - len(opt.observations)))
            opt.tell(batch, [reaction.measure(point) for point in batch])
            progress.update(task, advance=len(batch), best=opt.best.value)
    console.print(table_of_best(opt, reaction))
    draw_convergence(opt, everything)
    found = float(reaction.exact(SPACE.rows(opt.best.point))[0])
    better = int((everything > found).sum())
    console.print(
        f"found a yield of {found:.1f} %; the best possible is {everything.max():.1f} % "
        f"({better} of {SPACE.size:,} conditions are better)",
        highlight=False,
    )
    console.print(f"convergence plot: {PICTURE}", highlight=False)


def table_of_best(opt: Optimizer, reaction: Reaction) -> Table:
    """One column for each design, one row for each variable: that fits a narrow terminal."""
    ranked = sorted(opt.observations, key=lambda seen: -seen.value)[:5]
    points = [seen.point for seen in ranked]
    mean, std = opt.predict(points)
    true = reaction.exact(SPACE.rows(points))
    table = Table("", *map(str, range(1, 6)), title="the five best measured designs (yield in %)")
    for name in SPACE.names:
        table.add_row(name, *(str(point[name]) for point in points))
    table.add_section()
    table.add_row("measured", *(f"{seen.value:.1f}" for seen in ranked))
    table.add_row("predicted", *(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, std, strict=True)))
    table.add_row("true", *(f"{value:.1f}" for value in true))
    return table


def draw_convergence(opt: Optimizer, everything: np.ndarray) -> None:
    values = [seen.value for seen in opt.observations]
    rng = np.random.default_rng(1)
    random = rng.choice(everything, size=(RUNS_OF_RANDOM, len(values)))
    figure, axes = plt.subplots(figsize=(6.4, 3.8), constrained_layout=True)
    steps = np.arange(1, len(values) + 1)
    axes.plot(steps, values, ".", color="0.75", label="each experiment")
    axes.plot(steps, np.maximum.accumulate(values), color="C0", lw=2, label="mercbo, best so far")
    axes.plot(
        steps,
        np.maximum.accumulate(random, axis=1).mean(axis=0),
        color="C1",
        label=f"random, mean of {RUNS_OF_RANDOM} runs",
    )
    axes.axhline(everything.max(), color="0.3", ls="--", lw=1, label="best possible")
    axes.set(xlabel="experiments", ylabel="yield, %", title="Finding reaction conditions")
    axes.legend(loc="lower right", frameon=False)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
