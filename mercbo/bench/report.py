"""`mercbo bench report`: tables and plots from the file of a benchmark.

| symbol | meaning                                                                          |
|--------|----------------------------------------------------------------------------------|
| best   | lowest value up to and including an evaluation, by problem, method and run       |
| regret | (best - lowest) / (start - lowest) at the end of a run: `lowest` is the optimum  |
|        | of that run, where the file has it, or the lowest that any method found on it,   |
|        | `start` the lowest initial value; 0 is the best there is, 1 no gain at all       |
| wins   | runs on which one method, `against`, ended lower than another, paired by run      |
| p      | two-sided sign test of wins against losses, ties left out                        |
| rank   | place among the methods on one run, ties sharing the mean of their places;       |
|        | averaged over the runs of a problem first: problems, not runs, are independent   |

Only runs that all methods of a problem have finished are compared. So that a method which was
hardly played does not take a problem away from the others, those with fewer than half of the most
runs are left out (`comparable`). The report says who lacks which runs, and who is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest, rankdata, studentized_range

from mercbo.arrays import Floats
from mercbo.bench.runs import SAME, Run, alike, gathered
from mercbo.errors import SettingError, hint

MARKS = (50, 100, 150)


@dataclass(frozen=True)
class Curves:
    """The runs of one problem that are compared."""

    problem: str
    runs: tuple[int, ...]
    best: dict[str, Floats]  # method -> (runs, evaluations), NaN while there is none
    ask: dict[str, tuple[float, float]]  # method -> median and mean seconds of an ask
    initial: int
    optimum: Floats  # (runs,): NaN where it is not known
    lacking: dict[str, tuple[int, ...]]  # method, left out or not -> runs that others finished
    cut: tuple[str, ...] = ()  # methods with longer runs, of which the rest is not looked at

    @property
    def methods(self) -> list[str]:
        return list(self.best)

    @property
    def left_out(self) -> list[str]:
        return [method for method in self.lacking if method not in self.best]

    @property
    def length(self) -> int:
        return min(int(best.shape[1]) for best in self.best.values())

    def last(self, method: str) -> Floats:
        """(runs,): where each run ended."""
        return np.asarray(self.best[method][:, self.length - 1])


def load(source: Path, *more: Path) -> tuple[list[Curves], list[str]]:
    """The curves of each problem, and a line for each run that failed.

    `source` is the folder of a benchmark or a packed file; of `more` such, the runs that are not
    in it are added.
    """
    _, runs = gathered(Path(source), *map(Path, more))
    played = [run for run in runs if run.error is None]
    check_instances(played)
    methods = list(dict.fromkeys(run.method for run in runs))
    curves = [
        _curves(problem, methods, [run for run in played if run.problem == problem])
        for problem in dict.fromkeys(run.problem for run in played)
    ]
    failed = [run for run in runs if run.error is not None]
    return curves, [f"{r.method} on {r.problem}, run {r.run}: {r.error}" for r in failed]


def check_instances(played: Sequence[Run]) -> None:
    """Refuse runs that only have the same number, such as some on drawn and some on published
    instances: all methods begin with the same results."""
    first: dict[tuple[str, int], Run] = {}
    for run in played:
        one = first.setdefault((run.problem, run.run), run)
        if one.initial and run.initial and not alike(one.values[0], run.values[0]):
            raise SettingError(
                f"run {run.run} of {run.problem} is not the same instance for {one.method} (first "
                f"result {one.values[0]}) and for {run.method} ({run.values[0]}); are some drawn "
                "and some published (--data)?"
            )


def _curves(problem: str, everyone: Sequence[str], played: Sequence[Run]) -> Curves:
    """The runs of one problem; methods that others have played elsewhere lack every run."""
    names = dict.fromkeys([*(run.method for run in played), *everyone])
    runs = {name: {run.run: run for run in played if run.method == name} for name in names}
    compared, common = comparable({name: set(own) for name, own in runs.items()})
    lengths = {n: max(len(runs[n][run].values) for run in common) for n in compared}
    shortest = min(len(runs[name][run].values) for name in compared for run in common)
    finished = sorted({run.run for run in played})
    lacking = {name: tuple(r for r in finished if r not in own) for name, own in runs.items()}
    optima = {run.run: run.optimum for run in played if run.optimum is not None}
    return Curves(
        problem,
        tuple(common),
        {n: np.stack([_best(runs[n][run])[:shortest] for run in common]) for n in compared},
        {n: _seconds([s for run in runs[n].values() for s in run.ask]) for n in compared},
        max(run.initial for run in played),
        np.array([optima.get(run, np.nan) for run in common]),
        {name: which for name, which in lacking.items() if which},
        tuple(name for name, length in lengths.items() if length > shortest),
    )


def _best(run: Run) -> Floats:
    """(evaluations,): the lowest value so far, NaN while there is none."""
    values = [np.nan if value is None else value for value in run.values]
    return np.asarray(np.fmin.accumulate(np.array(values, dtype=np.float64)))


def _seconds(asks: Sequence[float]) -> tuple[float, float]:
    """Median and mean: most asks of a method may be quick because one worked for all of them."""
    return (float(np.median(asks)), float(np.mean(asks))) if asks else (np.nan, np.nan)


def comparable(finished: Mapping[str, Set[int]]) -> tuple[list[str], list[int]]:
    """The methods to compare, and the runs that all of them have finished: at least one of each.

    Left out are methods with fewer than half of the most runs, and such as share no run with the
    ones that have as many or more.

    >>> comparable({"a": {0, 1, 2, 3}, "b": {2, 3, 4}, "c": {2}, "d": {5, 6}, "e": set()})
    (['a', 'b'], [2, 3])
    """
    most = max(len(runs) for runs in finished.values())
    common = set().union(*finished.values())
    kept = set()
    for method in sorted(finished, key=lambda method: -len(finished[method])):
        if 2 * len(finished[method]) >= most and common & finished[method]:
            common &= finished[method]
            kept.add(method)
    return [method for method in finished if method in kept], sorted(common)


# -- numbers -----------------------------------------------------------------------------------


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean, and two standard errors of it (NaN for a single value)."""
    error = 2 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def regrets(curves: Curves) -> dict[str, Floats]:
    """method -> (runs,) normalised regret."""
    ends = {method: curves.last(method) for method in curves.methods}
    lowest = np.fmin.reduce([*ends.values(), curves.optimum])
    start = curves.best[curves.methods[0]][:, min(max(curves.initial, 1), curves.length) - 1]
    width = np.where(start - lowest > 0, start - lowest, 1.0)
    return {method: np.asarray((end - lowest) / width) for method, end in ends.items()}


@dataclass(frozen=True)
class Duel:
    """The first method against another on the same runs."""

    wins: int
    ties: int
    losses: int
    p: float


def duel(one: Floats, other: Floats) -> Duel:
    """Paired by run; lower is better, and a run without any value loses to one with."""
    one, other = (np.where(np.isnan(x), np.inf, x) for x in (one, other))
    size = np.where(np.isfinite(one), np.abs(one), 0.0)
    with np.errstate(invalid="ignore"):
        gap = np.where(one == other, 0.0, one - other)
    wins, losses = int((gap < -SAME * (1 + size)).sum()), int((gap > SAME * (1 + size)).sum())
    decided = wins + losses
    p = float(binomtest(wins, decided).pvalue) if decided else 1.0
    return Duel(wins, len(gap) - decided, losses, p)


def ranks(curves: Sequence[Curves]) -> tuple[list[str], Floats]:
    """The methods compared on all problems, and their mean ranks on each, (problems, methods)."""
    shared = [m for m in curves[0].methods if all(m in c.methods for c in curves)]
    rows = []
    for curve in curves if shared else ():
        ends = np.stack([curve.last(method) for method in shared], axis=1)
        ends = np.where(np.isnan(ends), np.inf, ends)
        size = 1.0 + np.abs(ends[np.isfinite(ends)]).max(initial=0.0)
        rows.append(np.mean([rankdata(np.round(row / (SAME * size))) for row in ends], axis=0))
    return shared, np.array(rows)


def critical_difference(methods: int, problems: int, level: float = 0.05) -> float:
    """Mean ranks that differ by less are not told apart (Nemenyi; Demsar 2006)."""
    quantile = float(studentized_range.ppf(1 - level, methods, np.inf)) / np.sqrt(2.0)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6.0 * problems)))


def reference(methods: Sequence[str], against: str | None = None) -> str:
    """The method that the others are paired with: `against` where it was played, else mercbo as it
    comes, one of its settings, the first.

    >>> reference(["bocs", "mercbo-paper", "mercbo"]), reference(["bocs", "random"])
    ('mercbo', 'bocs')
    """
    ours = [method for method in methods if method.startswith("mercbo")]
    for name in (against, "mercbo"):
        if name in methods:
            return str(name)
    return (*ours, *methods)[0]


# -- text --------------------------------------------------------------------------------------


def markdown(
    curves: Sequence[Curves], failures: Sequence[str] = (), against: str | None = None
) -> str:
    played = list(dict.fromkeys(name for curve in curves for name in curve.methods))
    if against is not None and against not in played:
        raise SettingError(f"against={against!r} is none of {played}{hint(against, played)}")
    parts = [problem_table(curve, against) for curve in curves]
    if curves:
        parts.append(rank_table(curves))
    if failures:
        parts.append("Failed:\n" + "\n".join(f"- {line}" for line in failures))
    return "\n\n".join(parts)


def problem_table(curves: Curves, against: str | None = None) -> str:
    marks = [mark for mark in MARKS if mark < curves.length] + [curves.length]
    first = reference(curves.methods, against)
    heads = [f"best after {mark}" for mark in marks]
    columns = ["method", *heads, "regret", f"{first} wins-ties-losses (p)", "s per ask, mean"]
    lines = [
        f"### {curves.problem} ({counted(curves.runs)}{optimum_shown(curves.optimum)})",
        "",
        f"| {' | '.join(columns)} |",
        "|---" * len(columns) + "|",
    ]
    regret = regrets(curves)
    for method in curves.methods:
        cells = [shown(*mean_and_error(curves.best[method][:, mark - 1])) for mark in marks]
        cells.append(f"{regret[method].mean():.3f}")
        found = duel(curves.last(first), curves.last(method))
        pairs = f"{found.wins}-{found.ties}-{found.losses} ({found.p:.2g})"
        cells.append("" if method == first else pairs)
        cells.append(seconds_shown(*curves.ask[method]))
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join([*lines, *coverage(curves)])


def coverage(curves: Curves) -> list[str]:
    """Who lacks which runs, who is left out, whose runs are longer; nothing where all have all."""
    longer = [
        "",
        f"Longer runs, looked at up to {curves.length} evaluations: {', '.join(curves.cut)}.",
    ]
    if not curves.lacking:
        return longer if curves.cut else []
    finished = {run for runs in (curves.runs, *curves.lacking.values()) for run in runs}
    lines = [
        "",
        f"Compared on {len(curves.runs)} of {counted(finished)}, "
        f"those that all methods in the table have finished ({spans(curves.runs)}):",
        "",
    ]
    for method, runs in curves.lacking.items():
        which = "every run" if len(runs) == len(finished) else f"{counted(runs)} ({spans(runs)})"
        role = " is left out: it" if method in curves.left_out else ""
        lines.append(f"- {method}{role} lacks {which}")
    return [*lines, *longer] if curves.cut else lines


def counted(runs: Collection[int]) -> str:
    return f"{len(runs)} run" if len(runs) == 1 else f"{len(runs)} runs"


def spans(runs: Sequence[int]) -> str:
    """Sorted runs in the form that `mercbo bench run` takes.

    >>> spans([0, 1, 2, 7, 9, 10])
    '0-2,7,9-10'
    """
    groups: list[list[int]] = []
    for run in runs:
        if groups and run == groups[-1][-1] + 1:
            groups[-1].append(run)
        else:
            groups.append([run])
    return ",".join(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)


def optimum_shown(optimum: Floats) -> str:
    known = optimum[~np.isnan(optimum)]
    if not len(known):
        return ""
    if len(known) < len(optimum):
        return f", optimum known of {len(known)}"
    return f", {'' if np.ptp(known) == 0 else 'mean '}optimum {known.mean():.5g}"


def shown(mean: float, error: float) -> str:
    return f"{mean:.5g}" if np.isnan(error) else f"{mean:.5g} ± {error:.2g}"


def seconds_shown(median: float, mean: float) -> str:
    """Nothing where no point was asked for: all were initial ones."""
    return "" if np.isnan(median) else f"{median:.2g}, {mean:.2g}"


def rank_table(curves: Sequence[Curves]) -> str:
    methods, table = ranks(curves)
    others = sorted({m for c in curves for m in [*c.methods, *c.left_out]} - set(methods))
    outside = f"Not compared on every problem, and so not here: {', '.join(others)}."
    if not methods:
        return f"### All {len(curves)} problems\n\n{outside}"
    every = [regrets(curve) for curve in curves]
    regret = {m: float(np.mean([r[m].mean() for r in every])) for m in methods}
    lines = [
        f"### All {len(curves)} problems ({sum(len(curve.runs) for curve in curves)} runs)",
        "",
        "| method | mean rank | mean regret |",
        "|---|---|---|",
    ]
    for place in np.argsort(table.mean(axis=0), kind="stable"):
        name = methods[place]
        lines.append(f"| {name} | {table[:, place].mean():.2f} | {regret[name]:.3f} |")
    if len(methods) > 1:
        gap = critical_difference(len(methods), len(table))
        lines += [
            "",
            f"Mean ranks closer than {gap:.2f} are not told apart (Nemenyi, 5 %, on "
            f"{len(table)} problems).",
        ]
    if others:
        lines += ["", outside]
    return "\n".join(lines)


# -- plots -------------------------------------------------------------------------------------


def plot(curves: Sequence[Curves], out: Path) -> list[Path]:
    """Convergence of each problem and mean ranks, as PNG and SVG."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mercbo[bench]'") from error
    mpl.use("Agg")
    written = []
    for curve in curves:
        written += _save(_convergence(curve), out / f"convergence-{_file_name(curve.problem)}")
    if curves and len(ranks(curves)[0]) > 1:
        written += _save(_ranks(curves), out / "ranks")
    return written


def _file_name(problem: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "-" for c in problem).strip("-")


def _save(figure: Any, stem: Path) -> list[Path]:
    from matplotlib import pyplot as plt

    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    return paths


def _convergence(curves: Curves) -> Any:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    draw_convergence(axes, curves)
    axes.legend(fontsize=8)
    return figure


def draw_convergence(
    axes: Any, curves: Curves, names: Mapping[str, str] | None = None, sign: float = 1.0
) -> None:
    """Mean best values with two standard errors, on axes of matplotlib.

    `names` are those to show in place of the methods' own; with `sign` -1 what was negated to be
    minimised is shown as it is.
    """
    steps = np.arange(1, curves.length + 1)
    for method in curves.methods:
        best = sign * curves.best[method][:, : curves.length]
        mean = best.mean(axis=0)
        (line,) = axes.plot(steps, mean, label=(names or {}).get(method, method), linewidth=1.4)
        if len(best) > 1:
            error = 2 * best.std(axis=0, ddof=1) / np.sqrt(len(best))
            axes.fill_between(
                steps, mean - error, mean + error, color=line.get_color(), alpha=0.15, linewidth=0
            )
    if not np.isnan(curves.optimum).any():
        axes.axhline(sign * curves.optimum.mean(), color="black", linewidth=0.8, linestyle=":")
    axes.axvline(curves.initial, color="grey", linewidth=0.6, linestyle="--")
    axes.set_xlabel("evaluations")
    axes.set_ylabel("best value, mean ± 2 s.e.")
    axes.set_title(f"{curves.problem}, {counted(curves.runs)}", fontsize=10)


def _ranks(curves: Sequence[Curves]) -> Any:
    from matplotlib import pyplot as plt

    methods, table = ranks(curves)
    mean = table.mean(axis=0)
    order = np.argsort(mean)[::-1]
    figure, axes = plt.subplots(figsize=(6, 0.4 * len(methods) + 1.2))
    axes.plot(mean[order], np.arange(len(order)), "o", color="black")
    axes.set_yticks(np.arange(len(order)), [methods[i] for i in order])
    gap = critical_difference(len(methods), len(table))
    axes.axvspan(mean.min(), mean.min() + gap, color="tab:blue", alpha=0.12, linewidth=0)
    axes.set_xlabel("mean rank (within the band: not told apart from the first)")
    axes.grid(axis="x", linewidth=0.3)
    return figure
