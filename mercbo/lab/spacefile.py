"""A space in a file: YAML, TOML or JSON, checked against `space.schema.json`, errors in words.

Files are not trusted: at most a megabyte, no anchors, aliases or tags in YAML (with them a few
lines can stand for gigabytes), no name twice, no deep nesting. Scalars are those of YAML 1.2, so
that NO is a text and not "false", and 1:10 a ratio and not a number of seconds; numbers such as 007
are refused, as in TOML and JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from mercbo.domain.constraints import (
    AllDifferent,
    AtLeast,
    AtMost,
    Constraint,
    Exactly,
    Forbid,
    Implies,
    Linear,
    Test,
    Tied,
)
from mercbo.domain.variables import (
    LARGEST,
    MAX_VALUES,
    Categorical,
    Ordinal,
    Variable,
    variable_from_dict,
)
from mercbo.errors import SpaceError, hint, quoted
from mercbo.lab.cells import CellError, value_of
from mercbo.lab.rows import TableError
from mercbo.lab.tables import check_size
from mercbo.space import Space

MOST_BYTES = 2**20
DEEPEST = 12


def read_space(path: str | os.PathLike[str]) -> Space:
    """The space that a file describes; a `SpaceError` says where it is wrong."""
    return read_titled(path)[0]


def read_titled(path: str | os.PathLike[str]) -> tuple[Space, str]:
    """The space that a file describes, and its title, empty where it has none."""
    file = Path(path)
    try:
        check_size(file, MOST_BYTES)
        text = file.read_bytes().decode("utf-8-sig")
    except TableError as error:
        raise SpaceError(str(error)) from None
    except UnicodeDecodeError:
        raise SpaceError(f"{file.name}: not a text in UTF-8") from None
    try:
        data = parse(text, file.suffix.lower())
        space = space_of(data)
    except SpaceError as error:
        raise SpaceError(f"{file.name}: {error}") from None
    return space, str(data.get("title", "")) if isinstance(data, dict) else ""


def space_of(data: object) -> Space:
    """The space that plain data of the schema's shape describe."""
    check(data)
    assert isinstance(data, dict)
    variables = {name: _variable(name, each) for name, each in data["variables"].items()}
    constraints = []
    for number, each in enumerate(data.get("constraints") or [], start=1):
        ((kind, body),) = each.items()
        try:
            constraints.append(_constraint(kind, body, variables))
        except (SpaceError, CellError) as error:
            raise SpaceError(f"constraint {number} ({kind}): {error}") from None
    return Space(variables, constraints)


# -- text -> plain data ------------------------------------------------------------------------


def parse(text: str, suffix: str) -> object:
    """Plain data from YAML, TOML or JSON, by the ending of the file's name."""
    if suffix == ".json":
        return _json(text)
    if suffix == ".toml":
        return _toml(text)
    if suffix in (".yaml", ".yml"):
        return _yaml(text)
    raise SpaceError(
        f"a space is written in .yaml, .toml or .json, not in {suffix or 'such a file'!r}"
    )


def _json(text: str) -> object:
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        raise SpaceError(f"line {error.lineno}: not JSON ({error.msg})") from None
    except RecursionError:
        raise SpaceError("nested too deeply") from None


def _unique(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, value in pairs:
        if name in found:
            raise SpaceError(f"{name!r} is there twice")
        found[name] = value
    return found


def _integer(text: str) -> int:
    """A whole number; a number of more digits than Python reads is a `SpaceError`."""
    try:
        return int(text)
    except ValueError:
        raise SpaceError(f"{_ends(text)} is too large; a number has at most 308 digits") from None


def _ends(digits: str) -> str:
    """A long number by its ends."""
    return f"{digits[:12]}...{digits[-12:]} ({len(digits.lstrip('+-')):,} digits)"


def _no_constant(name: str) -> float:
    raise SpaceError(f"{name} is not a number that a space can hold")


def _toml(text: str) -> object:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SpaceError(f"not TOML ({error})") from None
    except ValueError:  # an integer of more digits than Python reads
        longest = max(re.findall(r"[+-]?[0-9_]+", text), key=len)
        _integer(longest.replace("_", ""))
        raise


def _yaml(text: str) -> object:
    try:
        import yaml
    except ImportError as error:
        raise ImportError("reading YAML needs PyYAML: pip install 'mercbo[cli]'") from error
    loader = _loader()
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            mark, tag = event.start_mark, getattr(event, "tag", None)
            line = mark.line + 1 if mark else 1  # what is parsed from a text has marks
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise SpaceError(f"line {line}: anchors and aliases (& and *) are not allowed here")
            if tag:
                raise SpaceError(f"line {line}: the tag {tag!r} is not allowed here")
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise SpaceError(f"line {line}: nested too deeply")
        return yaml.load(text, Loader=loader)  # derived from SafeLoader
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise SpaceError(f"{where}not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise SpaceError(f"not YAML ({error})") from None


@lru_cache(maxsize=1)
def _loader() -> Any:
    """A safe loader that knows the scalars of YAML 1.2 only, and refuses a name given twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: Any = {}  # noqa: RUF012 (as its base has it)

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
            pairs = [
                (self.construct_object(key, deep=True), self.construct_object(value, deep=True))
                for key, value in node.value
            ]
            try:
                return _unique(pairs)
            except (SpaceError, TypeError) as error:
                raise SpaceError(f"line {node.start_mark.line + 1}: {error}") from None

    def mapping(loader: Any, node: Any) -> Any:
        return loader.construct_mapping(node)

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    for tag, pattern, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", "~nN\0"),
        ("int", r"[-+]?[0-9]+", "-+0123456789"),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ):
        whole = re.compile(f"(?:{pattern})$")
        starts = [*first.replace("\0", ""), *([""] if "\0" in first else [])]
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", whole, starts)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: _whole(node))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(_plain(node)))
    return Loader


def _whole(node: Any) -> int:
    try:
        return _integer(_plain(node))
    except SpaceError as error:
        where = f"line {node.start_mark.line + 1}: "
        raise SpaceError(f"{where}{str(error).removeprefix(where)}") from None


def _plain(node: Any) -> str:
    """The text of a number; one that begins with zeros may be a code, whose zeros would be lost, or
    octal, as YAML 1.1 has it. JSON and TOML have no such numbers."""
    text: str = node.value
    if re.match(r"[-+]?0[0-9]", text):
        number = re.sub(r"^([-+]?)0+(?=[0-9])", r"\1", text)
        raise SpaceError(
            f"line {node.start_mark.line + 1}: {text} begins with 0; write '{text}' where the text "
            f"is meant, {number} where the number is"
        )
    return text


# -- the schema --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The published JSON schema of space files."""
    text = resources.files("mercbo.lab").joinpath("space.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def check(data: object) -> None:
    """Refuse data that do not have the schema's shape, in words."""
    try:
        import jsonschema
    except ImportError as error:
        raise ImportError(
            "checking a space file needs jsonschema: pip install 'mercbo[cli]'"
        ) from error
    _names_are_text(data)
    found = jsonschema.Draft202012Validator(schema()).iter_errors(data)
    first = min(
        found, key=lambda error: (len(error.absolute_path), str(error.message)), default=None
    )
    if first is not None:
        where = " > ".join(
            str(step) if isinstance(step, str) else f"number {step + 1}"
            for step in first.absolute_path
        )
        raise SpaceError(f"{where}: {_in_words(first)}" if where else _in_words(first))


def _names_are_text(data: object) -> None:
    """YAML lets a name be a number; say what to do, where JSON's schema has no word for it."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            if not isinstance(name, str):
                raise SpaceError(f"the name {name!r} must stand in quotes: '{name}'")
            _names_are_text(value)
    elif isinstance(data, list):
        for value in data:
            _names_are_text(value)


WORDS = {
    "object": "names with values", "array": "a list", "string": "a text", "number": "a number",
    "integer": "a whole number", "boolean": "true or false", "null": "nothing",
}  # fmt: skip


# What a variable may be in a file, for messages.
VARIABLE = "a list of values, or names with values such as {kind: binary}"
# Kinds that other programs have, where this one chooses among listed values.
CONTINUOUS = {
    "float", "real", "continuous", "number", "numeric", "double", "uniform", "decimal", "range",
}  # fmt: skip
LEVELS = (
    "a variable has a list of values to choose from: list the levels you would try, as in "
    "[20, 40, 60], or give low, high and step"
)


def _in_words(error: Any) -> str:
    rule, wanted, came = error.validator, error.validator_value, error.instance
    path = list(error.absolute_path)
    if path[:1] == ["variables"]:
        if len(path) == 2 and rule == "type":
            return f"expected {VARIABLE}, got {quoted(came)}"
        if len(path) == 2 and rule == "required" and isinstance(came, dict) and "kind" not in came:
            return f"expected {VARIABLE}, got {quoted(came)}; {LEVELS}"
        if len(path) == 3 and path[2] == "kind" and str(came).lower() in CONTINUOUS:
            return f"{quoted(came)} is not one of {wanted}; {LEVELS}"
    if rule == "type":
        kinds = [WORDS[kind] for kind in ([wanted] if isinstance(wanted, str) else wanted)]
        return f"{quoted(came)} came, {' or '.join(kinds)} was wanted"
    if rule == "required":
        missing = [name for name in wanted if name not in came]
        return f"{missing} {'is' if len(missing) == 1 else 'are'} missing"
    if rule == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for name in came:
            if name not in known:
                return f"{name!r} is not one of {known}{hint(name, known)}"
    if rule == "enum":
        return f"{quoted(came)} is not one of {wanted}{hint(came, wanted)}"
    if rule == "minItems":
        return f"at least {wanted} must be listed"
    if rule == "minProperties":
        return (
            f"at least {wanted} of {list(error.schema.get('properties', {})) or 'the names'} wanted"
        )
    if rule == "maxProperties":
        return f"{list(came)} cannot stand together, {wanted} of them can"
    return str(error.message)


# -- plain data -> space -----------------------------------------------------------------------


def _variable(name: str, data: Any) -> Variable:
    try:
        if isinstance(data, list):
            numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in data)
            return Ordinal(data) if numbers else Categorical(data)
        if "step" in data:
            return Ordinal(levels(data["low"], data["high"], data["step"]))
        return variable_from_dict({key: value for key, value in data.items() if key != "note"})
    except SpaceError as error:
        raise SpaceError(f"variables > {name}: {error}") from None


def levels(low: float, high: float, step: float) -> list[int | float]:
    """The numbers low, low + step, ... up to high, as a person would write them.

    >>> levels(0.1, 0.5, 0.1), levels(20, 80, 30)
    ([0.1, 0.2, 0.3, 0.4, 0.5], [20, 50, 80])
    """
    stated = f"low={quoted(low)}, high={quoted(high)}, step={quoted(step)}"
    if not all(abs(number) <= LARGEST for number in (low, high, step)):
        raise SpaceError(f"{stated}: three finite numbers were expected")
    first, last, gap = (Decimal(repr(number)) for number in (low, high, step))
    if gap <= 0:
        raise SpaceError(f"{stated}: the step must be above 0")
    if last < first:
        raise SpaceError(f"{stated}: low is above high")
    if last - first >= MAX_VALUES * gap:
        raise SpaceError(f"{stated} are more than {MAX_VALUES} levels; use a larger step")
    count, rest = divmod(last - first, gap)
    if rest:
        reached = first + count * gap
        raise SpaceError(
            f"{stated}: no number of steps leads to high; set high to {reached} or {reached + gap}"
        )
    whole = all(isinstance(number, int) for number in (low, high, step))
    return [(int if whole else float)(first + i * gap) for i in range(int(count) + 1)]


def _constraint(kind: str, body: Any, variables: Mapping[str, Variable]) -> Constraint:
    if kind == "forbid":
        return Forbid(body)
    if kind == "implies":
        return Implies(body["if"], body["then"])
    if kind == "linear":
        return _linear(body, variables)
    if kind in ("all_different", "tied"):
        return {"all_different": AllDifferent, "tied": Tied}[kind](body)
    counting: dict[str, Callable[[int, list[Test]], Constraint]]
    counting = {"exactly": Exactly, "at_most": AtMost, "at_least": AtLeast}
    return counting[kind](body["k"], [_test(each) for each in body["of"]])


def _test(given: Any) -> Test:
    if isinstance(given, str):
        return given
    ((name, value),) = given.items()
    return name, value


def _linear(body: Any, variables: Mapping[str, Variable]) -> Linear:
    weights: dict[Test, float] = {}
    for name, weight in body["weights"].items():
        if not isinstance(weight, dict):
            weights[name] = weight
            continue
        if name not in variables:
            raise SpaceError(f"unknown variable {name!r}{hint(name, variables)}")
        # the names in a file are texts, whatever the values of the variable are
        weights |= {(name, value_of(variables[name], text)): w for text, w in weight.items()}
    senses = {"at_most": "<=", "at_least": ">=", "equals": "=="}
    (sense,) = [key for key in body if key in senses]
    return Linear(weights, senses[sense], body[sense])
