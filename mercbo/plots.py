"""Pictures of a run, with matplotlib: every function draws on axes and returns them.

Each takes an `Optimizer` and, as keywords, the axes to draw on (new ones by default). Colours are
the first of a set that people with colour blindness can tell apart (Okabe and Ito), and nothing is
said by colour alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.arrays import Floats
from mercbo.domain.variables import Point
from mercbo.errors import NoResults, SettingError, hint
from mercbo.explaining.explain import Effect, Explanation
from mercbo.optimizer import Optimizer

BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#767676"
CYCLE = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9", "#F0E442", "#000000")
# Rows of a chart that can still be read.
MOST_ROWS = 40


def _axes(ax: Any, width: float = 6.4, height: float = 4.0) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'mercbo[demo]'") from error
    # not by pyplot, which would keep the figure open and want a screen
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def save(ax: Any, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write the figure of some axes to a file, whose ending says what kind of picture it is."""
    check_ending(path)
    ax.figure.savefig(path, dpi=dpi)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Refuse a file that is no kind of picture, or that does not say which."""
    ending = Path(path).suffix.lower().removeprefix(".")
    known = sorted(_axes(None).figure.canvas.get_supported_filetypes())
    if ending not in known:
        came = f"the ending .{ending} is none of a picture" if ending else "has no ending"
        possible = ", ".join(f".{each}" for each in known)
        raise SettingError(f"{path}: {came}; possible are {possible}")


def _checked(opt: object, wanted: str = "an Optimizer") -> Optimizer:
    if not isinstance(opt, Optimizer):
        raise SettingError(f"{wanted} was wanted, got {type(opt).__name__}")
    return opt


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)


def _text(value: object, most: int = 24) -> str:
    """A label: dollar signs are no mathematics here, and long ones are cut."""
    text = str(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.replace("$", r"\$")


def _shown(value: float) -> str:
    return f"{value:.3g}"


# -- the run -----------------------------------------------------------------------------------


def convergence(opt: Optimizer, *, ax: Any = None) -> Any:
    """Every result in the order told, and the best so far."""
    values = np.array([seen.value for seen in _checked(opt).observations])
    if len(values) == 0:
        raise NoResults("no result has been told yet, so there is nothing to draw")
    ax = _axes(ax)
    best = (np.minimum if opt.direction == "minimize" else np.maximum).accumulate(values)
    number = np.arange(1, len(values) + 1)
    ax.plot(number, values, "o", color=GREY, alpha=0.6, markersize=4, label="results")
    ax.step(number, best, where="post", color=BLUE, linewidth=2, label="best so far")
    ax.set_xlabel("results")
    ax.set_ylabel("value")
    ax.set_title(f"Convergence ({opt.direction})")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(frameon=False)
    _tidy(ax)
    return ax


def best_designs(opt: Optimizer, *, count: int = 15, ax: Any = None) -> Any:
    """The best designs as a matrix: a row per design, a column per variable."""
    seen = _checked(opt).observations
    if not seen:
        raise NoResults("no result has been told yet, so there is nothing to draw")
    sign = 1.0 if opt.direction == "minimize" else -1.0
    unique: dict[str, tuple[Point, float]] = {}
    for each in sorted(seen, key=lambda each: sign * each.value):
        unique.setdefault(repr(each.point), (each.point, each.value))
    chosen = list(unique.values())[:count]
    rows = opt.space.rows([point for point, _ in chosen])
    shade = rows / np.maximum(opt.space.sizes - 1, 1)
    ax = _axes(ax, max(4.0, 1.0 + 1.0 * len(opt.space)), 1.6 + 0.32 * len(chosen))
    ax.imshow(shade, cmap="Blues", vmin=-0.15, vmax=1.4, aspect="auto")
    if len(opt.space) <= 16:
        for at, (point, _) in enumerate(chosen):
            for column, value in enumerate(point.values()):
                ax.text(column, at, _text(value, 11), ha="center", va="center", fontsize=8,
                        color="white" if shade[at, column] > 0.7 else "black")  # fmt: skip
    ax.set_xticks(range(len(opt.space)), [_text(n, 14) for n in opt.space.names], rotation=30,
                  ha="left")  # fmt: skip
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(chosen)), [_shown(value) for _, value in chosen])
    ax.set_ylabel("result")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def batch_diversity(opt: Optimizer, *, points: object = None, ax: Any = None) -> Any:
    """In how many variables the designs of a batch (by default the pending ones) differ."""
    rows = _checked(opt).space.rows(opt.pending if points is None else points)
    if len(rows) < 2:
        raise SettingError(f"a batch of at least 2 designs is wanted, got {len(rows)}")
    distance = (rows[:, np.newaxis] != rows[np.newaxis]).sum(axis=2)
    between = distance[np.triu_indices(len(rows), 1)]
    ax = _axes(ax)
    counts = np.bincount(between, minlength=len(opt.space) + 1)
    ax.bar(range(len(counts)), counts, color=BLUE, width=0.8)
    ax.axvline(between.mean(), color=RED, linestyle="--", linewidth=1.5)
    ax.set_ylim(0, 1.12 * counts.max())
    ax.text(between.mean(), 1.1 * counts.max(), f" mean {between.mean():.1f}", color=RED, va="top")
    ax.set_xlabel("variables in which two designs differ")
    ax.set_ylabel("pairs of designs")
    ax.set_title(f"Diversity of {len(rows)} designs")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _tidy(ax)
    return ax


# -- the model ---------------------------------------------------------------------------------


def _explained(source: Optimizer | Explanation) -> Explanation:
    if isinstance(source, Explanation):
        return source
    return _checked(source, "an Optimizer or its Explanation").explain()


def effects(
    source: Optimizer | Explanation, *, variables: Sequence[str] | None = None, ax: Any = None
) -> Any:
    """The effect of each value with its interval; of the most important variables, if many."""
    found = _explained(source)
    ranked = sorted(found.importance, key=lambda each: -(each.total or 0.0))
    names = list(variables or [each.variables[0] for each in ranked])
    known = {each.variables[0] for each in found.importance}
    for name in names:
        if name not in known:
            raise SettingError(f"variables: {name!r} has no effect{hint(name, known)}")
    listed: list[Effect] = []
    for name in names:
        own = [each for each in found.effects if each.variable == name]
        if listed and len(listed) + len(own) > MOST_ROWS:
            break
        listed += own
    ax = _axes(ax, 6.4, 1.4 + 0.26 * len(listed))
    at = _positions([each.variable for each in listed])
    for group, name in enumerate(dict.fromkeys(each.variable for each in listed)):
        where = [i for i, each in enumerate(listed) if each.variable == name]
        colour = (BLUE, RED)[group % 2]
        middle = np.array([listed[i].estimate for i in where])
        sides = np.array([[listed[i].low, listed[i].high] for i in where]).T
        ax.errorbar(middle, at[where], xerr=np.abs(sides - middle), fmt="o", color=colour,
                    markersize=4, capsize=2, linewidth=1.5)  # fmt: skip
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_yticks(at, [f"{_text(e.variable, 14)} = {_text(e.value, 14)}" for e in listed])
    ax.invert_yaxis()
    ax.set_xlabel(f"change from the average, with {found.level:.0%} intervals")
    ax.set_title("Effects")
    _tidy(ax)
    return ax


def _positions(groups: list[str]) -> Floats:
    """One step per row, and a gap between groups."""
    steps = [0.0] + [1.0 if a == b else 1.6 for a, b in pairwise(groups)]
    return np.cumsum(steps)


def interactions(
    source: Optimizer | Explanation,
    *,
    variables: tuple[str, ...] | None = None,
    ax: Any = None,
) -> Any:
    """A heat map: of all pairs of variables by their share, or of two by their values."""
    found = _explained(source)
    return _pair_map(found, variables, ax) if variables else _share_map(found, ax)


def _share_map(found: Explanation, ax: Any) -> Any:
    names = [each.variables[0] for each in found.importance]
    if len(names) < 2:
        raise SettingError("interactions take at least two variables that vary")
    shares = np.full((len(names), len(names)), np.nan)
    for each in found.pairs:
        i, j = (names.index(name) for name in each.variables)
        shares[i, j] = shares[j, i] = each.main
    size = 2.5 + 0.45 * min(len(names), MOST_ROWS)
    ax = _axes(ax, size + 1.2, size)
    image = ax.imshow(100 * shares, cmap="Blues", vmin=0.0)
    ax.set_xticks(range(len(names)), [_text(n, 14) for n in names], rotation=45, ha="right")
    ax.set_yticks(range(len(names)), [_text(n, 14) for n in names])
    if len(names) <= 12:
        dark = np.nanmax(shares) * 0.55
        for i, j in np.argwhere(~np.isnan(shares)).tolist():
            ax.text(j, i, f"{shares[i, j]:.1%}", ha="center", va="center", fontsize=7,
                    color="white" if shares[i, j] > dark else "black")  # fmt: skip
    ax.figure.colorbar(image, ax=ax, label="share of variance, %", shrink=0.8)
    ax.set_title("Interactions of pairs")
    ax.spines[:].set_visible(False)
    return ax


def _pair_map(found: Explanation, variables: tuple[str, ...], ax: Any) -> Any:
    if len(variables) != 2:
        raise SettingError(f"variables: two names were wanted, got {list(variables)}")
    order = next(
        (each.variables for each in found.pairs if set(each.variables) == {*variables}), None
    )
    if order is None:
        raise SettingError(f"variables: no interaction of {variables[0]!r} and {variables[1]!r}")
    cells = [each for each in found.interactions if each.variables == order]
    sides: list[list[Any]] = [list(dict.fromkeys(each.values[i] for each in cells)) for i in (0, 1)]
    table = np.array([each.estimate for each in cells]).reshape(len(sides[0]), len(sides[1]))
    sure = np.array([each.low > 0 or each.high < 0 for each in cells]).reshape(table.shape)
    ax = _axes(ax, 2.5 + 0.7 * len(sides[1]), 1.8 + 0.45 * len(sides[0]))
    most = float(np.abs(table).max()) or 1.0
    image = ax.imshow(table, cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
    if table.size <= 150:
        for i, j in np.ndindex(table.shape):
            ax.text(j, i, f"{table[i, j]:+.2g}{'*' if sure[i, j] else ''}", ha="center",
                    va="center", fontsize=8,
                    color="white" if abs(table[i, j]) > 0.7 * most else "black")  # fmt: skip
    ax.set_xticks(range(len(sides[1])), [_text(v, 14) for v in sides[1]], rotation=30, ha="right")
    ax.set_yticks(range(len(sides[0])), [_text(v, 14) for v in sides[0]])
    ax.set_xlabel(_text(order[1]))
    ax.set_ylabel(_text(order[0]))
    ax.figure.colorbar(image, ax=ax, label="beyond the two effects")
    ax.set_title(f"* the {found.level:.0%} interval leaves out 0", fontsize=9)
    ax.spines[:].set_visible(False)
    return ax


def predicted(source: Optimizer | Explanation, *, ax: Any = None) -> Any:
    """Each result against its prediction from all the others."""
    found = _explained(source)
    results = found.check.results
    observed = np.array([each.observed for each in results])
    middle = np.array([each.predicted for each in results])
    sides = np.array([[each.low, each.high] for each in results]).T
    ax = _axes(ax, 5.0, 5.0)
    ax.errorbar(middle, observed, xerr=np.abs(sides - middle), fmt="o", color=BLUE,
                ecolor="#9ecae1", markersize=4, linewidth=1)  # fmt: skip
    ends = [min(observed.min(), middle.min()), max(observed.max(), middle.max())]
    ax.plot(ends, ends, color=GREY, linewidth=1)
    ax.set_xlabel(f"predicted without it, with {found.level:.0%} intervals")
    ax.set_ylabel("observed")
    nearest = min(found.check.calibration, key=lambda each: abs(each.stated - found.level))
    ax.set_title(f"{nearest.rate:.0%} of the results in their {nearest.stated:.0%} intervals",
                 fontsize=10)  # fmt: skip
    _tidy(ax)
    return ax


# -- sequences ---------------------------------------------------------------------------------


def sequence_logo(opt: Optimizer, *, count: int = 20, ax: Any = None) -> Any:
    """The letters at each position of the best designs; a stack is as high as they agree (bits).

    For spaces whose variables have the same values, single characters, as sequences do.
    """
    alphabets = {variable.values for variable in _checked(opt).space.variables.values()}
    letters = [str(value) for value in next(iter(alphabets))]
    if len(alphabets) > 1 or len(letters) < 2 or any(len(letter) != 1 for letter in letters):
        raise SettingError("a logo needs variables with the same values, single characters")
    seen = opt.observations
    if not seen:
        raise NoResults("no result has been told yet, so there is nothing to draw")
    sign = 1.0 if opt.direction == "minimize" else -1.0
    best = sorted(seen, key=lambda each: sign * each.value)[:count]
    rows = opt.space.rows([each.point for each in best])
    # (positions, letters), with a pseudo-count shared by the letters
    share = np.stack([(rows == letter).sum(axis=0) for letter in range(len(letters))], axis=1)
    share = (share + 1.0 / len(letters)) / (len(best) + 1.0)
    height = np.log2(len(letters)) + (share * np.log2(share)).sum(axis=1)
    ax = _axes(ax, max(4.0, 1.2 + 0.45 * len(rows[0])), 2.6)
    for position in range(len(rows[0])):
        _stack(ax, position, share[position] * height[position], letters)
    ax.set_xlim(-0.6, len(rows[0]) - 0.4)
    ax.set_ylim(0.0, float(np.log2(len(letters))))
    ax.set_xticks(range(len(rows[0])), [_text(n, 8) for n in opt.space.names],
                  rotation=90 if max(map(len, opt.space.names)) > 3 else 0)  # fmt: skip
    ax.set_ylabel("bits")
    ax.set_title(f"The {len(best)} best designs")
    _tidy(ax)
    return ax


def _stack(ax: Any, position: int, heights: Floats, letters: list[str]) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    bottom = 0.0
    for letter in np.argsort(heights).tolist():
        if heights[letter] < 0.01:
            continue
        glyph = TextPath((0, 0), letters[letter], size=1, prop=FontProperties(weight="bold"))
        box = glyph.get_extents()
        scale = Affine2D().translate(-box.x0, -box.y0)
        scale = scale.scale(0.9 / max(box.width, 0.3), heights[letter] / max(box.height, 1e-9))
        scale = scale.translate(position - 0.45 + 0.45 * (1 - min(box.width / 0.3, 1.0)), bottom)
        ax.add_patch(
            PathPatch(glyph, transform=scale + ax.transData, lw=0,
                      color=CYCLE[letter % len(CYCLE)])
        )  # fmt: skip
        bottom += float(heights[letter])


# -- several runs ------------------------------------------------------------------------------


def comparison(
    runs: Mapping[str, Sequence[Sequence[float]]], *, direction: str = "minimize", ax: Any = None
) -> Any:
    """Backends, or any methods, against each other: the mean best value by number of results.

    `runs` has for each name the results of one or more runs, in the order told; the band is two
    standard errors of the mean.
    """
    _check_runs(runs)
    ax = _axes(ax)
    best = np.minimum if direction == "minimize" else np.maximum
    styles = ("-", "--", "-.", ":")
    for number, (name, results) in enumerate(runs.items()):
        length = min(map(len, results))
        curves = np.array([best.accumulate(np.array(each[:length])) for each in results])
        mean, at = curves.mean(axis=0), np.arange(1, length + 1)
        colour = CYCLE[number % len(CYCLE)]
        ax.plot(
            at, mean, color=colour, linestyle=styles[number % 4], linewidth=2, label=_text(name)
        )
        if len(curves) > 1:
            error = 2 * curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
            ax.fill_between(at, mean - error, mean + error, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("results")
    ax.set_ylabel("best value so far")
    ax.legend(frameon=False)
    _tidy(ax)
    return ax


def _check_runs(runs: object) -> None:
    wanted = "runs must hold, for each name, the results of at least one run"
    if not isinstance(runs, Mapping):
        raise SettingError(f"{wanted}; a dict was wanted, got {type(runs).__name__}")
    try:
        shortest = min((min(map(len, each), default=0) for each in runs.values()), default=0)
    except TypeError:  # of one run its results, and not a list of runs
        raise SettingError(f"{wanted}, such as {{'mercbo': [[3.0, 1.0], [2.0, 2.0]]}}") from None
    if shortest == 0:
        raise SettingError(wanted)
