"""Descriptions of plain values: what they return, and what they refuse with which message."""

import numpy as np
import pytest

from mercbo import StateError
from mercbo.record.schema import (
    anything,
    flag,
    flat,
    listed,
    made,
    mapping,
    null,
    number,
    numbers,
    optional,
    parsed,
    record,
    rows,
    text,
    whole,
    written,
)

SIZES = np.array([2, 3])
POINT = record({"x": whole(most=3)}, optional={"label": optional(text(["a", "b"]))})
DEEP: list = []
for _ in range(100):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("schema", "value", "read"),
    [
        (anything, {"a": [1]}, {"a": [1]}),
        (null, None, None),
        (flag, True, True),
        (number(), 2, 2.0),
        (number(least=0.5, most=0.5), 0.5, 0.5),
        (number(), 1.7976931348623157e308, 1.7976931348623157e308),
        (whole(), 0, 0),
        (whole(most=None), 10**400, 10**400),
        (text(), "", ""),
        (text(["a", "b"]), "b", "b"),
        (optional(flag), None, None),
        (optional(flag), False, False),
        (listed(whole()), [], []),
        (listed(whole(), fewest=1), (1, 2), [1, 2]),
        (POINT, {"x": 3}, {"x": 3}),
        (written(POINT), '{"x": 3}', {"x": 3}),
        (flat, {"a": 1.5, "b": None}, {"a": 1.5, "b": None}),
        (mapping, {"a": [1]}, {"a": [1]}),
        (POINT, {"x": 3, "label": None}, {"x": 3, "label": None}),
        (
            made(complex, record({"real": number(), "imag": number()})),
            {"real": 1, "imag": 2},
            1 + 2j,
        ),
    ],
)
def test_schema_returns_a_value_that_fits(schema, value, read):
    found = schema(value, "here")
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (null, 0, "here: expected null, got 0"),
        (flag, 1, "here: expected true or false, got 1"),
        (flag, None, "here: expected true or false, got None"),
        (number(), True, "here: expected a number, got True"),
        (number(), "1", "here: expected a number, got '1'"),
        (number(), float("nan"), "here: expected a number, got nan"),
        (number(), float("inf"), "here: expected a number, got inf"),
        (number(), 10**400, "here: expected a number, got 1000"),
        (number(least=0.0), -0.5, "here: expected a number of at least 0, got -0.5"),
        (number(least=0.0, most=1.0), 2, "here: expected a number from 0 to 1, got 2"),
        (whole(), 1.0, "here: expected a whole number of at least 0, got 1.0"),
        (whole(), False, "here: expected a whole number of at least 0, got False"),
        (whole(), 2**60, "here: expected a whole number of at least 0, got 1152921504606846976"),
        (whole(least=1, most=2), 3, "here: expected a whole number from 1 to 2, got 3"),
        (text(), 3, "here: expected a text, got 3"),
        (text(["a"]), "c", r"here: expected one of \['a'\], got 'c'"),
        (text(["a"]), ["a"], r"here: expected one of \['a'\], got \['a'\]"),
        (optional(text()), 3, "here: expected a text, got 3"),
        (listed(whole()), {}, "here: expected a list, got {}"),
        (listed(whole()), "12", "here: expected a list, got '12'"),
        (listed(whole()), [0, "a"], r"here\[1\]: expected a whole number of at least 0, got 'a'"),
        (listed(whole(), fewest=1), [], r"here: expected a list of at least 1, got \[\]"),
        (listed(whole()), [DEEP], r"here\[0\]: expected .*, got \[\[\[\[\.\.\.\]\]\]\]"),
        (listed(whole(), count=2), [1], r"here: expected a list of 2, got \[1\]"),
        (written(POINT), '{"x": 4}', r"here\.x: expected a whole number from 0 to 3, got 4"),
        (written(POINT), '{"x": 4', "here: not complete JSON"),
        (mapping, {7: 1}, "here: expected an object, got {7: 1}"),
        (flat, {"a": [1]}, r"here\.a: expected a single value, got \[1\]"),
        (POINT, [], r"here: expected an object, got \[\]"),
        (POINT, {}, r"here\.x: expected an entry, found none"),
        (POINT, {"x": 4}, r"here\.x: expected a whole number from 0 to 3, got 4"),
        (POINT, {"x": 1, "y": 1}, r"here: unknown entry 'y', expected one of \['x', 'label'\]"),
        (POINT, {"x": 1, 7: 1}, "here: unknown entry 7, expected"),
    ],
)
def test_schema_refuses_another_value_and_quotes_it(schema, value, message):
    with pytest.raises(StateError, match=f"^{message}"):
        schema(value, "here")


def test_entries_of_the_whole_are_named_without_a_place():
    with pytest.raises(StateError, match=r"^x: expected an entry"):
        POINT({}, "")
    with pytest.raises(StateError, match=r"^expected an object, got 3"):
        POINT(3, "")


def test_numbers_are_an_array_in_which_null_is_nan():
    found = numbers(3, missing=True)([1, None, 0.5], "here")
    assert found.dtype == np.float64
    assert found.tolist()[::2] == [1.0, 0.5]
    assert np.isnan(found[1])


@pytest.mark.parametrize(
    "value", [None, 1.0, [1.0], [1.0, 2.0, 3.0], [1.0, None], [1.0, "2"], [1.0, [2.0]], [1.0, -1.0],
              [1.0, float("nan")], [1.0, float("inf")], [1.0, 10**400], [1.0, True], DEEP, "12"],
)  # fmt: skip
def test_numbers_refuse_another_shape_type_or_range(value):
    with pytest.raises(StateError, match="here: expected a list of 2 numbers of at least 0, got"):
        numbers(2, least=0.0)(value, "here")


def test_rows_are_an_array_of_indices():
    found = rows(SIZES)([[0, 2], [1, 0]], "here")
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    "value", [None, [], [[]], [0, 0], [[0]], [[0, 0, 0]], [[0, 3]], [[-1, 0]], [[0.0, 0]],
              [["0", "0"]], [[0, 0], [0]], [[True, False]], [[[0, 0]]], [[0, 10**30]], DEEP, {},
              "00"],
)  # fmt: skip
def test_rows_refuse_another_shape_type_or_range(value):
    with pytest.raises(StateError, match=r"here: expected some rows of 2 indices .*, got"):
        rows(SIZES)(value, "here")


def test_rows_may_be_counted():
    with pytest.raises(StateError, match=r"here: expected 1 rows .* got \[\[0, 0\], \[1, 1\]\]"):
        rows(SIZES, count=1)([[0, 0], [1, 1]], "here")


@pytest.mark.parametrize(
    "written", ['{"a": [1, 2.5, null, "ä"]}', b'{"a": [1, 2.5, null, "\xc3\xa4"]}']
)
def test_json_is_parsed(written):
    assert parsed(written) == {"a": [1, 2.5, None, "ä"]}


@pytest.mark.parametrize(
    ("json", "message"),
    [
        ('{"a": 1', "not complete JSON, it may be cut short"),
        ("", "not complete JSON"),
        ("{'a': 1}", "not complete JSON"),
        ('{"a": NaN}', "NaN is not a number in JSON"),
        ('{"a": -Infinity}', "-Infinity is not a number in JSON"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "two entries are named 'c'"),
        ("[" * 100_000, "JSON that mercbo does not write"),
        ("9" * 5000, "JSON that mercbo does not write"),
        (b"\xff\xfe\xff", "JSON that mercbo does not write"),
        (None, "expected JSON text, got None"),
        (7, "expected JSON text, got 7"),
    ],
)
def test_what_is_not_json_of_mercbo_is_refused(json, message):
    with pytest.raises(StateError, match=message):
        parsed(json)


def test_an_integer_of_too_many_digits_is_not_printed():
    with pytest.raises(StateError, match="here: expected a text, got a int"):
        text()(10**5000, "here")
