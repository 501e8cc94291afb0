"""What cells mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from mercbo import Binary, Categorical, Integer, Ordinal
from mercbo.lab.cells import CellError, number_of, result_of, value_of, was_changed


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("3", 3.0), ("-3.5", -3.5), ("+.5", 0.5), ("1e-3", 1e-3), ("2,5E3", 2500.0),
        ("71,5", 71.5), ("0,125", 0.125), ("1.234,5", 1234.5), ("1,234.5", 1234.5),
        ("1 234 567", 1234567.0), ("1.234.567", 1234567.0), ("−4", -4.0), (7, 7.0), (True, None),
        ("", None), (None, None), ("DMSO", None), ("1-2", None), ("inf", None), ("1e999", None),
        (float("nan"), None), ("5 %", None),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(cell: object, number: float | None) -> None:
    assert number_of(cell) == number


def test_a_comma_that_may_be_either_is_refused_where_the_file_does_not_say() -> None:
    with pytest.raises(CellError, match=r"'1,234' may be 1234 or 1\.234"):
        number_of("1,234")
    assert number_of("1,234", decimal_comma=True) == 1.234


@pytest.mark.parametrize("cell", ["failed", "FAILED", "NA", "n/a", "nan", "#DIV/0!", "-"])
def test_failures_are_understood(cell: str) -> None:
    assert result_of(cell) is None


def test_a_result_that_is_none_is_refused() -> None:
    with pytest.raises(CellError, match=r"'85 %' is not a number \(is 85 meant\?\)"):
        result_of("85 %")
    with pytest.raises(CellError, match="'soon' is not a number; write 'failed'"):
        result_of("soon")


@pytest.mark.parametrize("cell", ["<1", "> 99", "≤0,5", ">=99"])
def test_a_bound_is_told_what_to_write(cell: str) -> None:
    with pytest.raises(CellError, match="is a bound, not a number; write the number") as caught:
        result_of(cell)
    assert "0 if nothing was detected" in str(caught.value)
    assert "leave the cell empty if it was not measured" in str(caught.value)
    assert "meant?" not in str(caught.value)


@pytest.mark.parametrize("cell", ["trace", "Traces", "n.d.", "ND", "not detected", "<LOD", "?"])
def test_a_word_for_no_number_is_told_what_to_write(cell: str) -> None:
    with pytest.raises(CellError) as caught:
        result_of(cell)
    assert "0 if nothing was detected" in str(caught.value)
    assert "leave the cell empty if it was not measured" in str(caught.value)


@pytest.mark.parametrize("cell", ["=71.5", "=A1*2", "=SUM(B2:B4)/3", '="71.5"', "@SUM(A1)"])
def test_no_number_is_taken_from_a_formula(cell: str) -> None:
    with pytest.raises(CellError, match="is a formula, and the file does not hold its") as caught:
        result_of(cell)
    assert "meant?" not in str(caught.value)
    with pytest.raises(CellError, match="is a formula"):
        value_of(HEAT, cell)


@pytest.mark.parametrize("cell", ["12/05/2024", "71.5±0.3", "2+3", "1-2", "3 x 20", "10^3", "v2"])
def test_no_number_is_proposed_where_there_may_be_another(cell: str) -> None:
    with pytest.raises(CellError, match=r"is not a number; write 'failed' for a failure"):
        result_of(cell)


HEAT, SOLVENT = Ordinal([20, 40, 80.5]), Categorical(["water", "DMSO", "THF"])


@pytest.mark.parametrize(
    ("variable", "cell", "value"),
    [
        (HEAT, "40", 40), (HEAT, "40.0", 40), (HEAT, "80,5", 80.5), (HEAT, 40.0, 40),
        (SOLVENT, "DMSO", "DMSO"), (SOLVENT, "dmso", "DMSO"),
        (Binary(), "yes", 1), (Binary(), "0", 0), (Binary(), "FALSE", 0), (Binary(), True, 1),
        (Integer(1, 6), "3", 3), (Categorical(["a", None]), "", None),
        (Categorical(["a", None]), "none", None), (Categorical(["1", "2"]), "1", "1"),
        (Categorical([True, False]), "no", False), (Categorical(["yes", "no"]), "yes", "yes"),
        (Categorical(["1:10", "1:20"]), "1:10", "1:10"),
        # as a workbook has them
        (Categorical([True, False, None]), True, True), (Categorical(["a", False]), False, False),
        (Categorical(["", "b"]), None, ""), (Categorical(["", "b"]), "", ""),
    ],
)  # fmt: skip
def test_values_are_recognised(variable: object, cell: object, value: object) -> None:
    found = value_of(variable, cell)
    assert (found, type(found)) == (value, type(value))


def test_a_number_of_fifteen_digits_is_that_of_more() -> None:
    thirds = Ordinal([0.1, 1 / 3, 2 / 3])
    assert value_of(thirds, "0.333333333333333") == 1 / 3
    assert value_of(thirds, 0.666666666666667) == 2 / 3
    with pytest.raises(CellError, match=r"'0\.33333' is not one of"):
        value_of(thirds, "0.33333")


CODE = Categorical(["1e5", "007", "1.0", "x", "1,234", "2,5"])


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("100000", "1e5"), (100000, "1e5"), ("1.00E+05", "1e5"), ("7", "007"), (7, "007"),
        ("1", "1.0"), (1, "1.0"), ("007", "007"), (2.5, "2,5"), ("1,234", "1,234"),
    ],
)  # fmt: skip
def test_a_text_that_a_spreadsheet_made_a_number_of_is_recognised(
    cell: str | float, value: str
) -> None:
    assert value_of(CODE, cell) == value
    assert was_changed(cell, value) == (cell not in ("007", "1,234"))


def test_a_number_that_may_be_one_of_several_texts_is_refused() -> None:
    versions = Categorical(["1.1", "1.10", "2", "02"])
    with pytest.raises(
        CellError, match=r"1\.1 may be '1\.1' or '1\.10', which a spreadsheet takes"
    ):
        value_of(versions, 1.1)
    with pytest.raises(CellError, match=r"'2\.0' may be '2' or '02'"):
        value_of(versions, "2.0")
    with pytest.raises(CellError, match=r"'7' is not one of \['1\.1'"):
        value_of(versions, "7")
    assert [value_of(versions, text) for text in versions.values] == list(versions.values)


@pytest.mark.parametrize(
    ("variable", "cell", "complaint"),
    [
        (
            SOLVENT,
            "DMS0",
            r"'DMS0' is not one of \['water', 'DMSO', 'THF'\]; the nearest is 'DMSO'",
        ),
        (SOLVENT, "toluene", r"'toluene' is not one of \['water', 'DMSO', 'THF'\]$"),
        (HEAT, "45", r"'45' is not one of \[20, 40, 80\.5\]; the nearest is 40"),
        (HEAT, "", r"is empty; one of \[20, 40, 80\.5\] was wanted"),
        (Integer(1, 6), "7", "'7' is not a whole number from 1 to 6; the nearest is 6"),
        (Integer(1, 6), "2.5", "the nearest is 2"),
        (Categorical(["a", "A"]), "Á", "not one of"),
        (Binary(), "2", r"'2' is not one of \[0, 1\]; the nearest is 1"),
        (Integer(1, 6), True, "True is not a whole number from 1 to 6"),
    ],
)
def test_a_wrong_value_is_told_the_nearest(variable: object, cell: str, complaint: str) -> None:
    with pytest.raises(CellError, match=complaint):
        value_of(variable, cell)
