"""Random changes of plain values and of JSON texts, by seed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[Any, ...]
# Values of a wrong type, sign, size or shape.
WRONG: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3.5, -0.5, 1e308, -1e308, 5e-324, 1e-9, 1e9, 2**31, 2**63,
    10**400, -(10**30), float("nan"), float("inf"), "", "text", "1", "NaN", "\x00", [], {}, [1],
    [[1.0]], [None], ["text"], {"a": 1}, [[[[[[]]]]]],
)  # fmt: skip


@dataclass(frozen=True)
class Mutation:
    """A changed copy of some plain values, and how it differs from them."""

    tree: Any
    path: Path
    change: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: {self.change}"


def nodes(tree: dict | list, path: Path = ()) -> Iterator[Path]:
    """The place of every value, containers included, but not of the whole."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from nodes(value, (*path, key))


def at(tree: Any, path: Path) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def places(tree: dict[str, Any]) -> list[list[Path]]:
    """The places of each entry of an object and below, so that each entry is changed as often."""
    found = list(nodes(tree))
    return [[path for path in found if path[0] == name] for name in tree]


def mutated(tree: dict[str, Any], rng: random.Random) -> Mutation:
    """A copy with one change: a wrong value, a value of elsewhere, another shape or number."""
    path = rng.choice(rng.choice(places(tree)))
    tree = copy.deepcopy(tree)
    parent, key = at(tree, path[:-1]), path[-1]
    value = parent[key]
    change = rng.choice(["drop", "extra", "wrap", "unwrap", "move", "number", "wrong", "wrong"])
    if change == "drop":
        del parent[key]
    elif change == "extra" and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif change == "extra":
        parent["extra"] = value
    elif change == "wrap":
        parent[key] = [value]
    elif change == "unwrap" and isinstance(value, (dict, list)) and value:
        parent[key] = next(iter(value.values())) if isinstance(value, dict) else value[0]
    elif change == "move":
        parent[key] = copy.deepcopy(at(tree, rng.choice(rng.choice(places(tree)))))
        change = f"move {parent[key]!r:.60}"
    elif change == "number" and isinstance(value, (int, float)):
        parent[key] = changed_number(value, rng)
        change = f"number {parent[key]!r:.60}"
    else:
        parent[key] = copy.deepcopy(rng.choice(WRONG))
        change = f"wrong {parent[key]!r:.60}"
    return Mutation(tree, path, change)


def changed_number(value: float, rng: random.Random) -> Any:
    changes = [-value, value + 1, value - 1, value + 0.5, 1e6 * value, 1e-6 * value, str(value)]
    return rng.choice([*changes, 10**12 * int(value), 1e300 * value])


def mangled(text: str, rng: random.Random) -> str:
    """A JSON text that is cut, has a character changed, or holds what JSON does not allow."""
    place = rng.randrange(len(text))
    colon = text.index(":", rng.randrange(text.rindex(":")))
    comma = min(text.find(mark, colon) % (len(text) + 1) for mark in ",}]")
    entry = text[text.rindex('"', 0, text.rindex('"', 0, colon)) : comma]
    return rng.choice(
        [
            text[:place],
            text[place:],
            text[:place] + text[place + 1 :],
            text[:place] + chr(rng.randrange(1, 256)) + text[place + 1 :],
            text[: colon + 1] + rng.choice(["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
            + text[comma:],
            text[: colon + 1] + "[" * 100_000 + "]" * 100_000 + text[comma:],
            text[:comma] + ", " + entry + text[comma:],
        ]
    )  # fmt: skip


def as_json(tree: Any) -> str:
    """The text of some values; NaN and infinity stand in it as Python writes them."""
    return json.dumps(tree)
