"""What a cell means: a value of a variable, a result, a failure, or nothing yet."""

from __future__ import annotations

import difflib
import math
import re
from bisect import bisect
from collections.abc import Collection

from mercbo.domain.variables import Binary, Value, Variable
from mercbo.errors import quoted
from mercbo.lab.rows import Cell

# How people and spreadsheets write that an evaluation failed.
FAILED = {
    "failed", "fail", "failure", "na", "n/a", "n.a.", "nan", "none", "null", "error", "err",
    "#n/a", "#na", "#div/0!", "#value!", "#num!", "#ref!", "-", "--", "x",
}  # fmt: skip
# How people write that there is no number, for one of several reasons.
UNCLEAR = {
    "nd", "n.d.", "n. d.", "not detected", "not determined", "nm", "n.m.", "not measured", "trace",
    "traces", "tr", "tr.", "bdl", "b.d.l.", "bql", "lod", "<lod", "loq", "<loq", "below lod",
    "below loq", "tbd", "pending", "?",
}  # fmt: skip
YES, NO = {"yes", "y", "true", "on", "1"}, {"no", "n", "false", "off", "0"}
NOTHING = {"none", "null", "nothing", "-", "--"}

PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
# 1.234,5 and 1,234.5, and the ambiguous 1,234
GROUPED = re.compile(r"[+-]?\d{1,3}(([.,' ]\d{3})+)([.,]\d+)?")


# "<1", "> 99", "≤ 0.5"
BOUND = re.compile(r"[<>≤≥]")


class CellError(Exception):
    """What is wrong with a cell; whoever knows where it stands says so."""


def number_of(cell: Cell, *, decimal_comma: bool = False) -> float | None:
    """The finite number in a cell, None where there is no number in it.

    >>> [number_of(c) for c in ("71,5", "1.234,5", "1,234.5", "5e-3", "DMSO", 3)]
    [71.5, 1234.5, 1234.5, 0.005, None, 3.0]
    """
    if cell is None or isinstance(cell, bool):
        return None
    if isinstance(cell, (int, float)):
        return float(cell) if math.isfinite(cell) else None
    text = cell.replace("\u2212", "-")
    if COMMA.fullmatch(text):
        grouped = GROUPED.fullmatch(text)
        if grouped and not decimal_comma and not text.lstrip("+-").startswith("0"):
            raise CellError(
                f"{cell!r} may be {text.replace(',', '')} or {text.replace(',', '.')}; "
                "write it without the comma"
            )
        text = text.replace(",", ".")
    elif GROUPED.fullmatch(text) and len(re.findall(r"[.,' ]", text)) > 1:
        marks = re.findall(r"[.,' ]", text)
        point = marks[-1] if marks[-1] != marks[0] else ""
        whole, _, part = text.rpartition(point) if point else (text, "", "")
        text = re.sub(r"[.,' ]", "", whole) + (f".{part}" if part else "")
    if not PLAIN.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def is_empty(cell: Cell) -> bool:
    return cell is None or cell == ""


def result_of(
    cell: Cell, *, decimal_comma: bool = False, failures: Collection[str] = FAILED
) -> float | None:
    """The result in a cell; None where it says, by one of `failures`, that it failed."""
    if isinstance(cell, str) and cell.lower() in failures:
        return None
    number = number_of(cell, decimal_comma=decimal_comma)
    if number is None:
        raise CellError(f"{quoted(cell)} {_advice(cell)}")
    return number


def is_formula(cell: Cell) -> bool:
    """Return True if a cell holds a formula instead of a value."""
    return isinstance(cell, str) and cell.startswith(("=", "@"))


CALCULATE = (
    "is a formula, and the file does not hold its value; open the file in a spreadsheet program "
    "and save it again, or write the number"
)


def _advice(cell: Cell) -> str:
    """Say why a result is no number, and what to write instead."""
    text = str(cell).strip().lower()
    if is_formula(cell):
        return CALCULATE
    if BOUND.match(text):
        return (
            "is a bound, not a number; write the number that was read off, or 0 if nothing was "
            "detected, or leave the cell empty if it was not measured"
        )
    if text in UNCLEAR:
        return (
            "is not a number; write 0 if nothing was detected, leave the cell empty if it was not "
            "measured, or write 'failed' if the experiment failed"
        )
    return f"is not a number{_near_number(text)}; write 'failed' for a failure"


def _near_number(text: str) -> str:
    """A question about the only number in a text, such as 85 in "85 %"."""
    found = re.findall(r"(?<![\w.,])[+-]?\d+(?:[.,]\d+)?", text)
    digits = re.findall(r"\d+", text)
    alone = len(found) == 1 and len(digits) == len(re.findall(r"\d+", found[0]))
    return f" (is {found[0].replace(',', '.')} meant?)" if alone else ""


def value_of(variable: Variable, cell: Cell) -> Value:
    """The value of a variable that a cell stands for; a `CellError` names the nearest."""
    return Values(variable).of(cell)


class Values:
    """The values of a variable by the cells that may stand for them."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self._values = {value: value for value in variable.values}
        self._written = {_written(value): value for value in variable.values}
        self._folded: dict[str, list[Value]] = {}
        for text, value in self._written.items():
            self._folded.setdefault(text.casefold(), []).append(value)
        # texts that a spreadsheet takes for a number
        self._texts: dict[float, list[Value]] = {}
        for value in variable.values:
            number = _number_in(value)
            if number is not None:
                self._texts.setdefault(number, []).append(value)
        self._floats = sorted(value for value in variable.values if isinstance(value, float))
        self._is_truth = isinstance(variable, Binary) or set(self._values) == {False, True}

    def of(self, cell: Cell, *, decimal_comma: bool = False, advise: bool = True) -> Value:
        """The value that a cell stands for; a `CellError` names the nearest, unless `advise` is
        False, since looking for it takes long."""
        cell = "" if cell is None else cell  # a workbook has no empty text
        # True equals 1 in Python, but is no cell of that number
        other = isinstance(cell, bool) and self._values.get(cell) is not cell
        if not is_empty(cell) and not other and cell in self._values:
            return self._values[cell]
        if isinstance(cell, str):
            if cell in self._written:
                return self._written[cell]
            folded = self._folded.get(cell.casefold(), [])
            if len(folded) == 1:
                return folded[0]
        if None in self._values and (is_empty(cell) or str(cell).lower() in NOTHING):
            return None
        truth = _truth(cell)
        if truth is not None and self._is_truth:
            return self._values[truth]
        number = number_of(cell, decimal_comma=decimal_comma)
        found = [] if number is None else self._of_number(number)
        if len(found) == 1:
            return found[0]
        if found:
            raise CellError(
                f"{cell!r} may be {' or '.join(map(repr, found))}, which a spreadsheet takes for "
                "the same number; write the text, in a column that is formatted as text"
            )
        raise CellError(_refusal(self.variable, cell, number, advise=advise))

    def _of_number(self, number: float) -> list[Value]:
        """The values that a number may stand for: itself, one that a spreadsheet rounded to 15
        digits, or texts."""
        if number in self._values:
            return [self._values[number]]
        at = bisect(self._floats, number)
        near = [
            v
            for v in self._floats[max(at - 1, 0) : at + 1]
            if math.isclose(v, number, rel_tol=1e-14)
        ]
        return [*near] if near else self._texts.get(number, [])


def _number_in(value: Value) -> float | None:
    """The number that a spreadsheet would make of a text, such as 100000 of "1e5"."""
    try:
        return number_of(value) if isinstance(value, str) else None
    except CellError:  # one of two, depending on where the spreadsheet runs
        return None


def was_changed(cell: Cell, value: Value) -> bool:
    """Whether a cell stands for a text only by its number, as after a spreadsheet changed it.

    >>> was_changed(7, "007"), was_changed("7", "7"), was_changed("dmso", "DMSO")
    (True, False, False)
    """
    if not isinstance(value, str) or str(cell).casefold() == value.casefold():
        return False
    return _number_in(value) is not None


def _written(value: Value) -> str:
    return "" if value is None else str(value)


def _truth(cell: Cell) -> bool | None:
    word = str(cell).lower()
    return True if word in YES else False if word in NO else None


def _refusal(variable: Variable, cell: Cell, number: float | None, *, advise: bool) -> str:
    if is_empty(cell):
        return f"is empty; one of {_some(variable)} was wanted"
    if is_formula(cell):
        return f"{quoted(cell)} {CALCULATE}"
    complaint = f"{quoted(cell)} {variable.expected()}"
    near = nearest(variable, cell, number) if advise else None
    return f"{complaint}; the nearest is {near!r}" if near is not None else complaint


def _some(variable: Variable) -> str:
    shown = list(variable.values[:8])
    return f"{str(shown)[:-1]}, ...]" if variable.size > len(shown) else str(shown)


def nearest(variable: Variable, cell: Cell, number: float | None) -> Value:
    """The allowed value most like a cell, None where none is like it."""
    numbers = [v for v in variable.values if isinstance(v, (int, float))]
    if number is not None and numbers:
        return min(numbers, key=lambda value: abs(value - number))
    by_text = {str(value).casefold(): value for value in variable.values if value is not None}
    close = difflib.get_close_matches(str(cell).casefold(), list(by_text), n=1, cutoff=0.5)
    return by_text[close[0]] if close else None
