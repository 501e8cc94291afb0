"""Values of variables on a command line: ``solvent="DMSO, dry",heat=80``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mercbo.domain.variables import Point, Value
from mercbo.errors import PointError, hint
from mercbo.lab.cells import CellError, value_of
from mercbo.space import Space

# NAME=VALUE up to a comma or the end; a name or a value in quotes may have commas in it.
QUOTED = r"\"[^\"]*\"|'[^']*'"
ASSIGNED = re.compile(rf"\s*({QUOTED}|[^=,]*?)\s*=\s*({QUOTED}|[^,]*?)\s*(?:,|$)")


def assigned(space: Space, *texts: str) -> Point:
    """Names and values; what is wrong is a `PointError`.

    Commas separate, but not in quotes, and not where all that follows the first = is a value.
    """
    found: Point = {}
    for text in texts:
        for name, cell in _pairs(space, text):
            if name in found:
                raise PointError(f"{name!r} is given twice in {', '.join(texts)}")
            found[name] = _valued(space, name, cell)
    return found


def _pairs(space: Space, text: str) -> Iterator[tuple[str, str]]:
    name, _, rest = (piece.strip() for piece in text.partition("="))
    if "," in rest and _is_value(space, name, rest):
        yield name, rest
        return
    start = 0
    while start < len(text) or start == 0:
        part = ASSIGNED.match(text, start)
        if part is None:
            came = text[start:].split(",")[0].strip()
            raise PointError(
                f"{came!r} is not of the form NAME=VALUE; "
                "a value with a comma in it must stand in quotes"
            )
        yield _unquoted(part[1]), _unquoted(part[2])
        start = part.end()


def _unquoted(text: str) -> str:
    return text[1:-1] if re.fullmatch(QUOTED, text) else text


def _is_value(space: Space, name: str, cell: str) -> bool:
    try:
        _valued(space, name, cell)
    except PointError:
        return False
    return True


def _valued(space: Space, name: str, cell: str) -> Value:
    variables = space.variables
    if name not in variables:
        raise PointError(f"unknown variable {name!r}{hint(name, variables)}")
    try:
        return value_of(variables[name], cell)
    except CellError as error:
        raise PointError(f"{name!r}: {error}") from None
