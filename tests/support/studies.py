"""The space of a study in a file, and tables of its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mercbo.lab.tables import read_table, write_table

SPACE = """
variables:
  solvent: [water, DMSO, THF]
  heat: [20, 40, 80]
  hours: {kind: integer, low: 1, high: 4}
  stir: {kind: binary}
constraints:
  - forbid: {solvent: water, heat: 80}
"""


def yields(solvent: object, heat: object, hours: object, stir: object) -> float:
    return 10.0 * (solvent == "DMSO") + float(heat) / 10 + float(hours) + 2.0 * float(stir)


def filled(
    file: str, out: str, change: Callable[[list[list[object]]], object] | None = None
) -> None:
    """A plate with results in its last column, after a change by hand."""
    table = read_table(file)
    rows = []
    for line in table.lines:
        cells = list(line.cells.values())
        names = ["solvent", "heat", "hours", "stir"]
        if line.cells["solvent"]:
            cells[-1] = yields(*(line.cells[name] for name in names))
        rows.append(cells)
    if change is not None:
        change(rows)
    write_table(out, table.header, rows)


def past(*rows: str, header: str = "solvent,heat,hours,stir,yield", name: str = "past.csv") -> str:
    """A table of results, written by hand."""
    Path(name).write_text("\n".join([header, *rows, ""]))
    return name
