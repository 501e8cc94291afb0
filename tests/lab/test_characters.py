"""Characters that terminals, tables and workbooks cannot hold."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from mercbo.lab.characters import for_terminal, for_text, for_workbook, unwritable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/] \\[/x]", "plain [bold]text[/] \\[/x]"),
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("a\x1b]0;a title\x07b", "ab"),
        ("a\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("a\x1bcb\x1b(Bc", "abc"),
        ("a\x1b", "a\ufffd"),
        ("over\x08\rwrite\x00", "over\ufffd\ufffdwrite\ufffd"),
        ("half \ud83d", "half \ufffd"),
        ("two\nlines\tü 😀", "two\nlines\tü 😀"),
    ],
)
def test_no_escape_code_reaches_a_terminal(text: str, shown: str) -> None:
    assert for_terminal(text) == shown


def test_every_character_is_held_or_refused() -> None:
    """All of Unicode: what is called writable survives, and is no control character."""
    fine = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unwritable(c) is None)
    assert for_terminal(fine) == for_text(fine) == fine
    assert for_text(fine).encode().decode() == fine
    controls = {c for c in fine if unicodedata.category(c) in ("Cc", "Cs")}
    assert controls == {"\n", "\t"}
    # a workbook is checked by the library that writes it
    cells = pytest.importorskip("openpyxl.cell.cell")
    assert not cells.ILLEGAL_CHARACTERS_RE.search(fine)


def test_a_workbook_holds_text_of_limited_length() -> None:
    assert for_workbook("x" * 40_000) == "x" * 32_767
    assert for_workbook("a\r\nb\rc\x0b") == "a\nb\nc\ufffd"
