"""Well plates: where each design of a batch goes, and which wells are set aside for controls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mercbo.errors import SettingError

# wells: rows and columns
FORMATS = {
    6: (2, 3),
    12: (3, 4),
    24: (4, 6),
    48: (6, 8),
    96: (8, 12),
    384: (16, 24),
    1536: (32, 48),
}


def row_letters(row: int) -> str:
    """A to Z, then AA to AF.

    >>> [row_letters(r) for r in (0, 25, 26, 31)]
    ['A', 'Z', 'AA', 'AF']
    """
    return chr(ord("A") + row) if row < 26 else "A" + chr(ord("A") + row - 26)


@dataclass(frozen=True)
class Plate:
    """A plate of a standard size; `controls` are wells that no design goes into."""

    size: int
    controls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size not in FORMATS:
            raise SettingError(f"a plate of {self.size} wells is not one of {list(FORMATS)}")
        known = set(self.wells())
        for well in self.controls:
            if well not in known:
                last = self.wells()[-1]
                raise SettingError(f"{well!r} is not a well of this plate, A1 to {last}")
        if len(set(self.controls)) == self.size:
            raise SettingError("all wells of the plate are set aside for controls")

    def wells(self) -> list[str]:
        """All wells, row by row."""
        rows, columns = FORMATS[self.size]
        return [f"{row_letters(r)}{c + 1}" for r in range(rows) for c in range(columns)]

    def free(self) -> list[str]:
        return [well for well in self.wells() if well not in self.controls]

    def filled(self, designs: int) -> Iterator[tuple[int, str, int | None]]:
        """(plate, well, number of the design or None for a control), plate after plate."""
        number, plate = 0, 0
        while number < designs:
            plate += 1
            for well in self.wells():
                if well in self.controls:
                    yield plate, well, None
                elif number < designs:
                    yield plate, well, number
                    number += 1


def controls_of(text: str, size: int) -> tuple[str, ...]:
    """Wells by name ("A1,H12"), by column ("column 12"), or a number of them, spread evenly.

    >>> controls_of("A1, h12", 96), controls_of("2", 24), controls_of("column 3", 6)
    (('A1', 'H12'), ('A1', 'D6'), ('A3', 'B3'))
    """
    wells = Plate(size).wells()
    column = re.fullmatch(r"\s*columns?\s+(\d+)\s*", text, flags=re.IGNORECASE)
    if column:
        found = tuple(w for w in wells if w.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == column[1])
        if not found:
            raise SettingError(f"a plate of {size} wells has no column {column[1]}")
        return found
    if re.fullmatch(r"[0-9]{1,6}", text.strip()):
        count = int(text)
        if not 0 <= count < size:
            raise SettingError(f"{count} controls do not leave a free well of {size}")
        return _spread(wells, count)
    return tuple(dict.fromkeys(part.strip().upper() for part in text.split(",") if part.strip()))


def _spread(wells: Sequence[str], count: int) -> tuple[str, ...]:
    if count < 2:
        return tuple(wells[:count])
    return tuple(wells[round(i * (len(wells) - 1) / (count - 1))] for i in range(count))
