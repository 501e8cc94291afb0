"""Cells and tables of the HTML report. All text is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mercbo.domain.variables import Value

_NUMBER = ' class="number"'


def number(value: float) -> str:
    return f"{value:.4g}"


def cell(value: Value | str, *, raw: str | None = None) -> str:
    """A cell of a table: numbers to the right, and with their full value for sorting."""
    if raw is not None:
        return f'<td class="picture">{raw}</td>'
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"<td>{escape('none' if value is None else str(value))}</td>"
    shown = number(value) if isinstance(value, float) else str(value)
    return f'<td{_NUMBER} data-v="{value!r}">{escape(shown)}</td>'


def table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, sortable: bool = False
) -> str:
    # a heading stands over its numbers
    first = rows[0] if rows else [""] * len(header)
    head = "".join(
        f'<th scope="col"{_NUMBER if _NUMBER in cell else ""}>{escape(name)}</th>'
        for name, cell in zip(header, first, strict=True)
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    kind = ' class="sortable"' if sortable else ""
    # the region can be scrolled by keyboard where the table is wider than the page
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table{kind}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
