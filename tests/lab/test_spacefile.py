"""Spaces in files: the three formats say the same, and what is wrong is said in words."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from mercbo import (
    AllDifferent,
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Implies,
    Integer,
    Linear,
    Ordinal,
    Space,
    SpaceError,
    Tied,
)
from mercbo.lab.spacefile import parse, read_space, read_titled, schema, space_of

YAML = """
title: a reaction          # comments are fine
variables:
  solvent: [water, THF, DMSO, NO]      # NO is a text, not "false"
  ratio: ["1:10", 1:20]                # and this no number of seconds
  heat: [20, 40, 80.5]
  hours: {kind: integer, low: 1, high: 12, note: "at most a night"}
  stir: {kind: binary}
  wash: {kind: binary}
  first: {kind: categorical, values: [a, b, null], encoding: binary}
  second: {kind: categorical, values: [a, b, null]}
  small: [1e-3, 0.01]
constraints:
  - forbid: {solvent: water, heat: [40, 80.5]}
  - implies: {if: {stir: 1}, then: {hours: [1, 2, 3]}}
  - exactly: {k: 1, of: [stir, {solvent: DMSO}]}
  - at_most: {k: 1, of: [stir, wash]}
  - at_least: {k: 0, of: [stir]}
  - linear: {weights: {hours: 20, heat: {"80.5": 7}, solvent: {DMSO: 80}}, at_most: 240}
  - all_different: [first, second]
  - tied: [stir, wash]
"""
SPACE = Space(
    {
        "solvent": Categorical(["water", "THF", "DMSO", "NO"]),
        "ratio": Categorical(["1:10", "1:20"]),
        "heat": Ordinal([20, 40, 80.5]),
        "hours": Integer(1, 12),
        "stir": Binary(),
        "wash": Binary(),
        "first": Categorical(["a", "b", None], encoding="binary"),
        "second": Categorical(["a", "b", None]),
        "small": Ordinal([0.001, 0.01]),
    },
    [
        Forbid({"solvent": "water", "heat": [40, 80.5]}),
        Implies({"stir": 1}, {"hours": [1, 2, 3]}),
        Exactly(1, ["stir", ("solvent", "DMSO")]),
        AtMost(1, ["stir", "wash"]),
        AtLeast(0, ["stir"]),
        Linear({"hours": 20, ("heat", 80.5): 7, ("solvent", "DMSO"): 80}, "<=", 240),
        AllDifferent(["first", "second"]),
        Tied(["stir", "wash"]),
    ],
)


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "my späce.yaml"
    file.write_text(YAML, encoding="utf-8")
    assert read_space(file) == SPACE
    assert read_titled(file) == (SPACE, "a reaction")
    other = tmp_path / "space.json"
    other.write_text(json.dumps(parse(YAML, ".yaml")), encoding="utf-8-sig")
    assert read_space(other) == SPACE


def test_toml_is_read(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(
        '[variables]\nsolvent = ["water", "THF"]\nheat = [20, 40]\nstir = {kind = "binary"}\n'
        '[[constraints]]\nforbid = {solvent = "water", heat = 40}\n'
    )
    assert read_space(file) == Space(
        {"solvent": Categorical(["water", "THF"]), "heat": Ordinal([20, 40]), "stir": Binary()},
        [Forbid({"solvent": "water", "heat": 40})],
    )


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{low: 20, high: 80, step: 20}", [20, 40, 60, 80]),
        (
            "{low: 0.1, high: 0.7, step: 0.1, note: equivalents}",
            [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
        ),
        ("{kind: ordinal, low: -1, high: 1, step: 0.5}", [-1.0, -0.5, 0.0, 0.5, 1.0]),
        ("{kind: integer, low: 0, high: 100, step: 25}", [0, 25, 50, 75, 100]),
        ("{low: 1e-3, high: 3e-3, step: 1e-3}", [0.001, 0.002, 0.003]),
        ("{low: 5, high: 5, step: 1}", [5]),
    ],
)
def test_levels_are_given_by_low_high_and_step(text: str, values: list[float]) -> None:
    (found,) = space_of(parse(f"variables:\n  a: {text}\n", ".yaml")).variables.values()
    assert found == Ordinal(values)
    assert [type(value) for value in found.values] == [type(value) for value in values]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


def variable(given: object) -> dict[str, object]:
    return {"variables": {"a": given}}


def rule(given: object) -> dict[str, object]:
    return {"variables": {"a": [1, 2]}, "constraints": [given]}


def linear(weights: object, **bound: float) -> dict[str, object]:
    return rule({"linear": {"weights": weights, **bound}})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], r"\[\] came, names with values was wanted"),
        ({}, r"\['variables'\] is missing"),
        ({"variables": {}}, "variables: at least 1"),
        ({**variable([1]), "constraint": []}, "'constraint' is not .* did you mean 'constraints'"),
        (variable(3), "variables > a: expected a list of values, or names with .*, got 3$"),
        (variable("20-80"), "variables > a: expected a list of values, or .*, got '20-80'"),
        (variable({}), "variables > a: expected a list of values, or names .*, got {}"),
        (variable({"kind": "float", "low": 0, "high": 1}), "'float' .*list the levels you would"),
        (variable({"kind": "Real"}), "a > kind: 'Real' is not one of .*; a variable has a list of"),
        (variable({"low": 0, "high": 1}), r"list the levels you would try, as in \[20, 40, 60\]"),
        (variable({"low": 0, "high": 1, "step": 0}), "low=0, high=1, step=0: the step must be"),
        (variable({"low": 2, "high": 1, "step": 1}), "low=2, high=1, step=1: low is above high"),
        (variable({"low": 0, "high": 1, "step": 1e-9}), "step=1e-09 are more than 2048 levels"),
        (variable({"low": 0, "high": 1, "step": 0.3}), "set high to 0.9 or 1.2"),
        (variable({"low": 0, "high": float("inf"), "step": 1}), "high=inf, .*finite numbers"),
        (variable({"low": 0, "high": 1, "step": float("nan")}), "step=nan: three finite numbers"),
        (variable({"low": 0, "high": 10**400, "step": 1}), r"\(401 digits\), step=1: three finite"),
        (variable({"low": 0, "high": 1, "step": "x"}), "a > step: 'x' came, a number was wanted"),
        (variable({"low": 0, "high": 1, "step": 1, "at": 2}), "'at' is not one of"),
        (variable({"kind": "integer", "low": 0, "high": 1, "step": 0.5}), "a whole number was"),
        (variable([]), "variables > a: at least 1 must be listed"),
        (variable({"kind": "intger"}), "a > kind: 'intger' is not .* did you mean 'integer'"),
        (variable({"kind": "integer", "low": 1}), r"variables > a: \['high'\] is missing"),
        (variable({"kind": "integer", "low": 1, "high": 2.5}), "a whole number was wanted"),
        (variable({"kind": "binary", "values": [1]}), "'values' is not one of"),
        (variable([1, [2]]), r"variables > a > number 2: \[2\] came"),
        (variable([1, 1]), "variables > a: duplicate values"),
        ({"variables": {1: [1, 2]}}, "the name 1 must stand in quotes"),
        (rule({"forbidden": {"a": 1}}), "did you mean 'forbid'"),
        (rule({"forbid": {"a": 3}}), "3 is not one of"),
        (rule({"forbid": {"b": 3}}), "unknown variable 'b'"),
        (linear({"a": 1}), "at least 2"),
        (linear({"b": {"x": 1}}, equals=1), r"constraint 1 \(linear\): unknown variable 'b'"),
        (linear({"a": {"3": 1}}, equals=1), r"\(linear\): '3' is not .*; the nearest is 2"),
        (linear({"a": 1}, at_least=9), "no point satisfies all constraints"),
    ],
)
def test_what_is_wrong_is_said_in_words(data: object, complaint: str) -> None:
    with pytest.raises(SpaceError, match=complaint):
        space_of(data)


BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


NINES = "9" * 5000
SHOWN = r"9{12}\.\.\.9{12} \(5,000 digits\)"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("s.yaml", BOMB, "line 1: anchors and aliases"),
        ("s.yaml", "variables: !!python/object/apply:os.system ['true']", "line 1: the tag"),
        ("s.yaml", "variables: !!binary aGk=", "line 1: the tag"),
        ("s.yaml", "[" * 50 + "]" * 50, "line 1: nested too deeply"),
        ("s.yaml", "variables:\n  a: [1]\n  a: [2]\n", "line 2: 'a' is there twice"),
        ("s.yaml", "variables:\n\ta: [1]\n", "line 2: not YAML"),
        ("s.yaml", "a: 1\n---\nb: 2\n", "not YAML"),
        ("s.json", '{"variables": {"a": [1], "a": [2]}}', "'a' is there twice"),
        ("s.json", '{"variables": {"a": [NaN]}}', "NaN is not a number"),
        ("s.json", '{"variables": ', "line 1: not JSON"),
        ("s.json", "[" * 100_000, "nested too deeply"),
        ("s.toml", "variables = ", "not TOML"),
        ("s.yaml", f"variables:\n  a: [1, {NINES}]\n", rf"line 2: {SHOWN} is too large"),
        ("s.json", f'{{"variables": {{"a": [1, {NINES}]}}}}', rf"{SHOWN} is too large"),
        ("s.toml", f"[variables]\na = [1, {NINES}]\n", rf"{SHOWN} is too large"),
        ("s.toml", f"[variables]\na = [1, {NINES[:4999]}_9]\n", rf"{SHOWN} is too large"),
        ("s.json", f'{{"variables": {{"a": [1, {NINES[:400]}]}}}}', r"\(400 digits\) is too large"),
        (
            "s.json",
            f'{{"variables": {{"a": [{{"b": {NINES[:400]}}}]}}}}',
            r"\(401|characters\) came",
        ),
        (
            "s.yaml",
            "variables: {a: [0, 1]}\n"
            f"constraints: [at_most: {{k: {NINES[:400]}, of: [{{a: 1}}]}}]",
            r"constraint 1 \(at_most\): AtMost: k is 9{12}\.{3}9{12} \(400 digits\)",
        ),
        ("s.txt", "x", r"written in \.yaml, \.toml or \.json"),
        ("s.yaml", "#" * 2_000_000, "2 MB are more than the 1 MB"),
    ],
)
def test_hostile_files_are_refused(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(SpaceError, match=complaint):
        read_space(file)


@pytest.mark.parametrize(
    ("written", "number"),
    [("007", "7"), ("-08", "-8"), ("00", "0"), ("00.5", "0.5"), ("+01", "+1")],
)
def test_a_number_that_begins_with_zeros_is_refused(written: str, number: str) -> None:
    with pytest.raises(SpaceError, match="line 2: ") as caught:
        parse(f"variables:\n  code: [{written}, 12]\n", ".yaml")
    assert f"write '{written}' where the text is meant, {number} where" in str(caught.value)


def test_zeros_in_quotes_are_kept_and_those_of_numbers_are_numbers() -> None:
    read = parse("a: ['007', 0, 0.5, -0.25, 1e-05, 10]", ".yaml")
    assert read == {"a": ["007", 0, 0.5, -0.25, 1e-05, 10]}


def test_files_that_are_not_there_or_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match="No such file"):
        read_space(tmp_path / "none.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(SpaceError, match="not a text in UTF-8"):
        read_space(tmp_path / "b.yaml")
