"""`render`: a study as one HTML page that needs nothing else, to mail, to print and to keep.

No network: style and script stand in the page, and its content policy allows those two by their
hashes and nothing more, so that a value of a study could do no harm even if it were not escaped.
It is: all text goes through `html.escape`. Every chart has a text alternative, every table a
caption and headings, and the page works without its script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib import resources

import numpy as np

from mercbo import __version__
from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Value
from mercbo.explaining.explain import Explanation
from mercbo.lab import charts, listing
from mercbo.lab.markup import cell, number, table
from mercbo.lab.study import Study
from mercbo.optimizer import Optimizer

# Rows of the tables, variables with effects and pairs with a map that a page holds.
BEST, PENDING, VARIABLES, PAIRS, MAPS = 20, 400, 30, 15, 4
# Cells of a map that fit a page.
MOST_CELLS = 200


def render(study: Study) -> str:
    """The report of a study, as it is now: other processes may write meanwhile."""
    changed, study = _last_change(study.optimizer), study.snapshot()
    optimizer = study.optimizer
    told = optimizer.observations
    explained = optimizer.explain() if told else None
    listed = listing.listed(study, explained)
    sections = [("summary", "Summary", _summary(study))]
    if any(each.is_surprising for each in listed):
        sections.append(("surprising", "Results to check", listing.surprising(study, listed)))
    if told:
        sections += [
            ("progress", "Progress", _progress(study)),
            ("best", "Best designs", _best(study)),
        ]
    if explained is not None and explained.effects:
        sections += [
            ("effects", "What matters", _importance(explained) + _effects(explained, study.target)),
            ("interactions", "Interactions", _interactions(explained)),
            ("trust", "How far to trust the model", _trust(explained)),
        ]
    if listed:
        sections.append(("results", "All results", listing.results(study, listed)))
    controls = study.notes.controls()
    if controls:
        sections.append(("controls", "Controls", listing.controls(study, controls)))
    sections += [
        ("pending", "Pending designs", _pending(study)),
        ("settings", "Space and settings", _settings(study)),
    ]
    title = study.notes.get("title") or f"Study {study.path.name}"
    return _page(str(title), study, changed, sections)


def _page(title: str, study: Study, changed: str, sections: list[tuple[str, str, str]]) -> str:
    style, script = _resource("report.css"), _resource("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    links = "".join(f'<li><a href="#{name}">{escape(head)}</a></li>' for name, head, _ in sections)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(head)}</h2>'
        f"{content}</section>"
        for name, head, content in sections
    )
    goal = f"{study.optimizer.direction} {study.target}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{escape(title)}</h1>
<p class="soft">Goal: {escape(goal)}. Last change: {escape(changed)}.</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main">{body}</main>
<footer><p>Written by mercbo {escape(__version__)} from {escape(study.path.name)}.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _resource(name: str) -> str:
    return resources.files("mercbo.lab").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _last_change(optimizer: Optimizer) -> str:
    entries = optimizer._log.entries(0)
    return f"{entries[-1].at[:16].replace('T', ' ')} UTC" if entries else "unknown"


# -- sections ----------------------------------------------------------------------------------


def _summary(study: Study) -> str:
    optimizer = study.optimizer
    ranked = study.ranked()
    facts = [
        ("Results", str(len(optimizer.observations))),
        ("Best", number(ranked[0].mean) if ranked else "none yet"),
        ("Pending", str(len(optimizer.pending))),
        ("Failed", str(len(optimizer.failed))),
        ("Variables", str(len(study.space))),
        (
            "Combinations",
            f"{study.space.size:,}" if study.space.size < 10**9 else f"{study.space.size:.1e}",
        ),
    ]
    listed = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts)
    best = ""
    if ranked:
        first = ranked[0]
        shown = ", ".join(f"{name} = {value}" for name, value in first.point.items())
        value = number(first.mean) + first.remark
        best = f"<p>The best result, {value}, came from {escape(shown)}.</p>"
    return f'<dl class="facts">{listed}</dl>{best}'


def _progress(study: Study) -> str:
    optimizer = study.optimizer
    history = optimizer._history
    best = _best_so_far(history.rows, history.values, optimizer.direction)
    return charts.progress(history.values.tolist(), best, study.target, optimizer.direction)


def _best_so_far(rows: Rows, values: Floats, direction: str) -> list[float]:
    """After each result the best mean of a design, as `Study.ranked` has it at the end."""
    _, design = np.unique(rows, axis=0, return_inverse=True)
    fold = np.min if direction == "minimize" else np.max
    sums, counts = np.zeros(len(rows)), np.zeros(len(rows))
    best = []
    for each, value in zip(design.ravel().tolist(), values.tolist(), strict=True):
        sums[each] += value
        counts[each] += 1
        told = counts > 0
        best.append(float(fold(sums[told] / counts[told])))
    return best


def _best(study: Study) -> str:
    ranked = study.ranked()
    # results of a design are counted where some has several
    counted = len(ranked) < len(study.optimizer.observations)
    rows = [
        [cell(rank), cell(each.mean), *[cell(len(each.results))] * counted,
         *(cell(value) for value in each.point.values())]
        for rank, each in enumerate(ranked[:BEST], start=1)
    ]  # fmt: skip
    if counted:
        header = ["Rank", f"Mean {study.target}", "Times", *study.space.names]
        return table(f"The {len(rows)} best designs", header, rows, sortable=True)
    header = ["Rank", study.target, *study.space.names]
    return table(f"The {len(rows)} best results", header, rows, sortable=True)


def _importance(found: Explanation) -> str:
    ranked = sorted(found.importance, key=lambda each: -(each.total or 0.0))[:VARIABLES]
    rows = [
        [
            f'<th scope="row">{escape(each.variables[0])}</th>',
            cell("", raw=charts.bar(each.total or 0.0)),
            cell(f"{each.main:.0%}"),
            cell(f"{each.total or 0.0:.0%}"),
        ]
        for each in ranked
    ]
    header = ["Variable", "Importance", "Alone", "With interactions"]
    caption = "Share of the objective's variance that comes from each variable"
    return table(caption, header, rows)


def _effects(found: Explanation, target: str) -> str:
    ranked = sorted(found.importance, key=lambda each: -(each.total or 0.0))[:VARIABLES]
    most = max((max(abs(e.low), abs(e.high)) for e in found.effects), default=0.0)
    blocks = []
    for each in ranked:
        name = each.variables[0]
        rows = [
            [
                f'<th scope="row">{escape("none" if e.value is None else str(e.value))}</th>',
                cell(f"{e.estimate:+.3g}"),
                cell("", raw=charts.interval(e.low, e.estimate, e.high, most)),
                cell(f"{e.low:+.3g} to {e.high:+.3g}"),
            ]
            for e in found.effects
            if e.variable == name
        ]
        header = ["Value", "Effect", "Chart", f"{found.level:.0%} interval"]
        blocks.append(
            f"<div><h3>{escape(name)}</h3>{table(f'Effects of {name}', header, rows)}</div>"
        )
    note = (
        f"<p>The effect of a value is the change of {escape(target)} that it makes against the "
        "average over all values, the other variables averaged over too.</p>"
    )
    if found.warped:
        note += (
            "<p>The model works on a warped scale of the results, where effects add up; here each "
            "is shown as the change that it alone makes from the average.</p>"
        )
    return f'{note}<div class="columns">{"".join(blocks)}</div>'


def _interactions(found: Explanation) -> str:
    ranked = sorted(found.pairs, key=lambda each: -each.main)
    if not ranked:
        return "<p>There is only one variable.</p>"
    rows = [
        [
            f'<th scope="row">{escape(" × ".join(each.variables))}</th>',
            cell("", raw=charts.bar(each.main / ranked[0].main if ranked[0].main > 0 else 0.0)),
            cell(f"{each.main:.1%}"),
            cell(f"{each.settled:.0%}"),
        ]
        for each in ranked[:PAIRS]
    ]
    header = ["Pair", "Chart", "Share of variance", "Settled by the data"]
    listed = table("The strongest interactions", header, rows)
    maps: list[str] = []
    for each in ranked:
        cells = [c for c in found.interactions if c.variables == each.variables]
        if 0 < len(cells) <= MOST_CELLS and len(maps) < MAPS:
            maps.append(_map(found, each.variables))
    return f'{listed}<div class="columns">{"".join(maps)}</div>'


def _map(found: Explanation, variables: tuple[str, ...]) -> str:
    cells = [each for each in found.interactions if each.variables == variables]
    columns = list(dict.fromkeys(each.values[1] for each in cells))
    most = max(abs(each.estimate) for each in cells) or 1.0
    rows = []
    for value in dict.fromkeys(each.values[0] for each in cells):
        row = [f'<th scope="row">{escape(str(value))}</th>']
        for each in cells:
            if each.values[0] == value:
                sure = "*" if each.low > 0 or each.high < 0 else ""
                row.append(
                    f'<td class="{_shade(each.estimate / most)}">{each.estimate:+.2g}{sure}</td>'
                )
        rows.append(row)
    name = " × ".join(variables)
    caption = f"{name}: beyond the two effects (* the interval leaves out 0)"
    made = table(caption, [f"{variables[0]} \\ {variables[1]}", *map(str, columns)], rows)
    return f"<div><h3>{escape(name)}</h3>{made.replace('<table', '<table class=heat', 1)}</div>"


def _shade(share: float) -> str:
    size = abs(share)
    step = 0 if size < 0.15 else 1 if size < 0.4 else 2 if size < 0.7 else 3
    return "" if step == 0 else f"{'up' if share > 0 else 'down'}{step}"


def _trust(found: Explanation) -> str:
    check = found.check
    drawn = charts.against(
        [each.observed for each in check.results],
        [each.predicted for each in check.results],
        check.r2,
    )
    rows = [
        [cell(f"{each.stated:.0%}"), cell(f"{each.rate:.0%}"),
         cell(f"{each.inside} of {each.of}"), cell(f"±{each.tolerance:.0%}")]
        for each in check.calibration
    ]  # fmt: skip
    header = ["Stated", "Found", "Results inside", "Expected scatter"]
    rates = table("Results that lie in their intervals", header, rows)
    return (
        "<p>Each result was predicted from all the others. The closer to the line, and the nearer "
        f"the found rates to the stated ones, the better.</p>"
        f'<div class="columns"><div>{drawn}</div><div>{rates}</div></div>'
    )


def _pending(study: Study) -> str:
    optimizer = study.optimizer
    points = optimizer.pending
    if not points:
        return "<p>None: every design that was asked for has a result or was cancelled.</p>"
    shown = points[:PENDING]
    extra: list[list[str]] = [[] for _ in shown]
    header = ["Number", *study.space.names]
    if optimizer.observations:
        mean, std = optimizer.predict(shown)
        extra = [[cell(float(m)), cell(float(2 * s))] for m, s in zip(mean, std, strict=True)]
        header += [f"Predicted {study.target}", "± 2 sd"]
    rows = [
        [cell(i), *(cell(value) for value in point.values()), *more]
        for i, (point, more) in enumerate(zip(shown, extra, strict=True), start=1)
    ]
    more = f"<p>{len(points)} are pending in all.</p>" if len(points) > PENDING else ""
    return table(f"{len(shown)} designs to evaluate", header, rows, sortable=True) + more


def _settings(study: Study) -> str:
    optimizer = study.optimizer
    variables = [
        [
            f'<th scope="row">{escape(name)}</th>',
            cell(variable.kind),
            cell(_values(variable.values)),
        ]
        for name, variable in study.space.variables.items()
    ]
    space = table("Variables", ["Name", "Kind", "Values"], variables)
    rules = "".join(
        f"<li><code>{escape(repr(rule))}</code></li>" for rule in study.space.constraints
    )
    state = optimizer.to_dict()
    names = ["direction", "target_bounds", "backend", "acquisition", "repeats", "n_initial"]
    settings = [(name, str(state[name])) for name in names if state.get(name) is not None]
    settings += [("seed", str(state["entropy"]))]
    settings += [(f"model: {name}", str(value)) for name, value in state["model"].items()]
    rows = [[f'<th scope="row">{escape(n)}</th>', cell(v)] for n, v in settings]
    return (
        space
        + (f"<h3>Constraints</h3><ul>{rules}</ul>" if rules else "<p>There are no constraints.</p>")
        + "<h3>Settings and seed</h3>"
        + table("Settings", ["Name", "Value"], rows)
    )


def _values(values: Sequence[Value]) -> str:
    shown = ", ".join("none" if value is None else str(value) for value in values[:20])
    return f"{shown}, ... {len(values)} in all" if len(values) > 20 else shown
