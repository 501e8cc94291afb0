"""Small charts as inline SVG, for the report: no library, no network, readable by machines.

A chart is 360 units wide, the width of a phone, and grows with its column; colours are classes
of the page's style sheet, so that it follows light and dark. Every chart has a title and a
description for those who do not see it. All text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 360.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 8.0, 10.0, 36.0


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between two others.

    >>> ticks(0.0, 10.0), ticks(-0.3, 0.4)
    ([0.0, 2.0, 4.0, 6.0, 8.0, 10.0], [-0.2, 0.0, 0.2, 0.4])
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


class Frame:
    """Axes from data to the chart's units; the ends are widened a little, and never equal."""

    def __init__(self, x: Sequence[float], y: Sequence[float]) -> None:
        self.x_low, self.x_high = _ends(x)
        self.y_low, self.y_high = _ends(y)

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x_low) / (self.x_high - self.x_low)
        up = (y - self.y_low) / (self.y_high - self.y_low)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    def axes(self, x_name: str, y_name: str) -> list[str]:
        parts = []
        for value in ticks(self.y_low, self.y_high):
            _, y = self.at(self.x_low, value)
            parts.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        below = HEIGHT - BOTTOM + 14
        for value in ticks(self.x_low, self.x_high):
            x, _ = self.at(value, self.y_low)
            parts.append(f'<text x="{x:.1f}" y="{below}" text-anchor="middle">{value:g}</text>')
        base = HEIGHT - BOTTOM
        parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>'
        )
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(
            f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_name)}</text>'
        )
        up = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<text transform="translate(11 {up}) rotate(-90)" text-anchor="middle">'
            f"{escape(y_name)}</text>"
        )
        return parts


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or max(abs(low) * 0.05, 0.5)
    return low - margin, high + margin


def chart(name: str, title: str, description: str, parts: Sequence[str]) -> str:
    """An SVG image with its text alternative."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(description)}</desc>{"".join(parts)}</svg>'
    )


def progress(values: Sequence[float], best: Sequence[float], target: str, direction: str) -> str:
    """Results in the order told, and the best so far."""
    number = [float(i + 1) for i in range(len(values))]
    frame = Frame(number, [*values, *best])
    parts = frame.axes("results, in the order told", target)
    for x, y in zip(number, values, strict=True):
        a, b = frame.at(x, y)
        parts.append(
            f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="2.5">'
            f"<title>result {x:g}: {y:g}</title></circle>"
        )
    path = ""
    for x, y in zip(number, best, strict=True):
        a, b = frame.at(x, y)
        path += f"H{a:.1f}V{b:.1f}" if path else f"M{a:.1f} {b:.1f}"
    parts.append(f'<path class="line" d="{path}"/>')
    description = (
        f"{len(values)} results. The best of the first was {best[0]:g}, "
        f"the best of all is {best[-1]:g} ({direction})."
    )
    return chart("progress", "Results and the best so far", description, parts)


def against(observed: Sequence[float], predicted: Sequence[float], r2: float) -> str:
    """Results against their leave-one-out predictions."""
    both = [*observed, *predicted]
    frame = Frame(both, both)
    parts = frame.axes("predicted from the others", "observed")
    (x1, y1), (x2, y2) = frame.at(min(both), min(both)), frame.at(max(both), max(both))
    parts.append(f'<line class="axis" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    for x, y in zip(predicted, observed, strict=True):
        a, b = frame.at(x, y)
        parts.append(
            f'<circle class="dot strong" cx="{a:.1f}" cy="{b:.1f}" r="2.5">'
            f"<title>predicted {x:.4g}, observed {y:.4g}</title></circle>"
        )
    description = (
        f"{len(observed)} results, each against its prediction from all others; the predictions "
        f"explain {r2:.0%} of the variance."
    )
    return chart("check", "Predicted and observed", description, parts)


def interval(low: float, middle: float, high: float, most: float) -> str:
    """A bar from low to high around zero, of a row whose cells say the same in numbers."""

    def at(value: float) -> float:
        return 60.0 + 56.0 * max(min(value / most, 1.0), -1.0) if most > 0 else 60.0

    return (
        '<svg class="interval" viewBox="0 0 120 14" aria-hidden="true" focusable="false">'
        '<line class="axis" x1="60" x2="60" y1="0" y2="14"/>'
        f'<line class="range" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="7" y2="7"/>'
        f'<circle class="mark" cx="{at(middle):.1f}" cy="7" r="3.5"/></svg>'
    )


def bar(share: float) -> str:
    """A bar of a share of 1."""
    width = 120.0 * max(min(share, 1.0), 0.0)
    return (
        '<svg class="interval" viewBox="0 0 120 14" aria-hidden="true" focusable="false">'
        '<rect class="back" x="0" y="3" width="120" height="8"/>'
        f'<rect class="full" x="0" y="3" width="{width:.1f}" height="8"/></svg>'
    )
