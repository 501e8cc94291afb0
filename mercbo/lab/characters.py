"""Characters that a table, a workbook or a terminal cannot hold, and text without them."""

from __future__ import annotations

import re

# Control characters but tab and line feed, halves of surrogate pairs, and the two non-characters
# that XML leaves out.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
NOT_IN_TEXT = re.compile("[\x00\ud800-\udfff]")
# Terminal escape codes: of colours and the cursor (CSI), of titles and links (OSC), and others.
ESCAPE_CODES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]"
)
REPLACEMENT = "\ufffd"
# Characters that a cell of a workbook holds.
LONGEST = 32_767


def unwritable(text: str) -> str | None:
    """Why a text cannot be a name or a value in a table; None if it can.

    >>> unwritable("a\\x1b[2J"), unwritable("DMSO")
    ("the character '\\\\x1b'", None)
    """
    found = FORBIDDEN.search(text)
    if found:
        return f"the character {found.group()!r}"
    return f"{len(text):,} characters, more than {LONGEST:,}" if len(text) > LONGEST else None


def for_text(text: str) -> str:
    """A text with a replacement for each character that a file of text cannot hold."""
    return NOT_IN_TEXT.sub(REPLACEMENT, text)


def for_workbook(text: str) -> str:
    """A text as a cell of a workbook holds it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return FORBIDDEN.sub(REPLACEMENT, lines)[:LONGEST]


def for_terminal(text: str) -> str:
    """A text without terminal escape codes and control characters.

    >>> for_terminal("\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07 \\x08!")
    'red \\ufffd!'
    """
    return FORBIDDEN.sub(REPLACEMENT, ESCAPE_CODES.sub("", text))
