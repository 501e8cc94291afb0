"""Tables of results against what a study knows: every row is good or is explained."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from mercbo import Binary, Categorical, Forbid, Integer, Space
from mercbo.arrays import Rows, keys
from mercbo.lab.parsing import parse
from mercbo.lab.results import Control, Known, Measured, Options, Reading, compare
from mercbo.lab.rows import TableError
from mercbo.lab.tables import read_table

SPACE = Space(
    {"solvent": Categorical(["water", "DMSO", "THF"]), "hours": Integer(1, 6), "stir": Binary()},
    [Forbid({"solvent": "water", "hours": 6})],
)
PENDING = SPACE.rows([["DMSO", 1, 0], ["THF", 2, 1], ["water", 3, 0]])
TOLD = SPACE.rows([["DMSO", 5, 1]])
FAILED = SPACE.rows([["THF", 5, 1]])


def known_of(told: Rows, values: list[float], failed: Rows, pending: Rows) -> Known:
    known = Known(pending=dict(zip(keys(pending), pending, strict=True)))
    results = [*zip(keys(told), values, strict=True), *((found, None) for found in keys(failed))]
    for found, value in results:
        known.told.setdefault(found, []).append(Measured(value))
    return known


KNOWN = known_of(TOLD, [71.5], FAILED, PENDING)


def read_results(file: Path, space: Space, known: Known, options: Options) -> Reading:
    return compare(parse(read_table(file), space, options), known, options)


def read(tmp_path: Path, text: str, known: Known = KNOWN, **options: object) -> Reading:
    file = tmp_path / "r.csv"
    file.write_text(text, encoding="utf-8")
    return read_results(file, SPACE, known, Options("yield", **options))


def test_rows_and_columns_come_in_any_order(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        "operator;stir;yield;hours;solvent;std\n"
        "Ann;yes;12,5;2;thf;0,5\nBob;0;failed;1;DMSO;\n;0;;3;water;\n",
    )
    assert not reading.problems
    first, second = reading.good
    assert (first.row.tolist(), first.value, first.std) == ([2, 1, 1], 12.5, 0.5)
    assert (second.row.tolist(), second.value, second.std) == ([1, 0, 0], None, None)
    assert first.notes == {"operator": "Ann"}
    assert (first.line, reading.empty) == (2, (4,))


PLATE = "plate,well,design,solvent,hours,stir,yield\n"


def test_results_of_controls_are_kept_apart(tmp_path: Path) -> None:
    text = PLATE + "1,A1,control,,,,99\n1,A2,1,DMSO,1,0,5\n1,A3,,,,,\n1,A4,control,,,,failed\n"
    reading = read(tmp_path, text)
    assert (reading.control_lines, len(reading.good), reading.problems) == ((2, 4, 5), 1, ())
    assert reading.controls == (
        Control(99.0, notes={"plate": 1, "well": "A1"}),
        Control(None, notes={"plate": 1, "well": "A4"}),
    )
    assert reading.good[0].notes == {"plate": 1, "well": "A2"}


def test_controls_that_the_study_has_are_passed_over(tmp_path: Path) -> None:
    stored = Known(controls=(Control(99.0, notes={"plate": 1, "well": "A1"}),))
    reading = read(tmp_path, PLATE + "1,A1,control,,,,99\n2,A1,control,,,,99\n", stored)
    assert ([each.line for each in reading.controls], reading.again) == ([3], (2,))
    (problem,) = read(tmp_path, PLATE + "1,A1,control,,,,98\n", stored).problems
    assert str(problem) == (
        "r.csv, line 2: the control in plate 1, well A1 has the result 99 already, here it is 98; "
        "correct it by `mercbo amend`"
    )
    reading = read(tmp_path, PLATE + "1,A1,control,,,,98\n", stored, correct=True)
    assert ([each.value for each in reading.controls], reading.problems) == ([98.0], ())


@pytest.mark.parametrize("correct", [False, True])
@pytest.mark.parametrize("second", ["98", "97"])
@pytest.mark.parametrize("told", [(), (Control(99.0, notes={"plate": 1, "well": "A1"}),)])
def test_compare_rejects_a_control_twice_in_a_table(
    told: tuple[Control, ...], second: str, correct: bool, tmp_path: Path
) -> None:
    text = PLATE + f"1,A1,control,,,,98\n1,A1,control,,,,{second}\n"
    problems = read(tmp_path, text, Known(controls=told), correct=correct).problems
    assert str(problems[-1]) == (
        "r.csv, line 3: is the control of line 2 again; delete one of the two lines"
    )
    assert len(problems) == (2 if told and not correct else 1)


def test_compare_corrects_the_std_of_a_control(tmp_path: Path) -> None:
    stored = Known(controls=(Control(99.0, 0.5, {"plate": 1, "well": "A1", "who": "Ann"}),))
    header = PLATE.replace("yield", "yield,std")

    def corrected(cells: str) -> tuple[Control, ...]:
        return read(tmp_path, header + f"1,A1,control,,,,{cells}\n", stored, correct=True).controls

    notes = {"plate": 1, "well": "A1", "who": "Ann"}
    assert corrected("99,0.25") == (Control(99.0, 0.25, notes),)
    # a cell that is empty or absent keeps what was told
    assert corrected("98,") == (Control(98.0, 0.5, notes),)
    assert corrected("99,") == corrected("99,0.5") == ()
    assert corrected("failed,") == (Control(None, None, notes),)


def test_controls_without_a_place_are_counted(tmp_path: Path) -> None:
    stored = Known(controls=(Control(99.0), Control(99.0)))
    text = "design,solvent,hours,stir,yield\n" + "control,,,,99\n" * 3 + "control,,,,5\n"
    reading = read(tmp_path, text, stored)
    assert ([each.line for each in reading.controls], reading.again) == ([4, 5], (2, 3))


def test_a_wrong_result_of_a_control_is_a_problem(tmp_path: Path) -> None:
    reading = read(tmp_path, PLATE + "1,A1,control,,,,n.d.\n1,A2,control,,,,5\n")
    assert [problem.line for problem in reading.problems] == [2]
    assert [control.value for control in reading.controls] == [5.0]


NONE = Space({"acid": Categorical([None, "HCl"]), "base": Categorical([None, "NaOH"])})


@pytest.mark.parametrize(
    ("text", "controls", "lines"),
    [
        # the number tells a design without any value from a control
        ("design,acid,base,yield\n1,,,5\ncontrol,,,6\n,,,7\n", (3, 4), [2]),
        # as `mercbo export` writes it
        ("acid,base,yield\n,,5\nHCl,,6\n", (), [2, 3]),
    ],
)
def test_a_design_without_any_value_is_no_control(
    text: str, controls: tuple[int, ...], lines: list[int], tmp_path: Path
) -> None:
    file = tmp_path / "r.csv"
    file.write_text(text)
    reading = read_results(file, NONE, Known(), Options("yield", new=True))
    assert (reading.control_lines, [each.line for each in reading.good]) == (controls, lines)
    assert not reading.problems
    assert reading.good[0].row.tolist() == [0, 0]


def test_an_empty_row_is_a_control_where_that_design_is_forbidden(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("design,acid,base,yield\n1,,,5\n")
    space = Space(NONE.variables, [Forbid({"acid": None, "base": None})])
    reading = read_results(file, space, Known(), Options("yield", new=True))
    assert (reading.control_lines, reading.good, reading.problems) == ((2,), (), ())


HEADER = "solvent,hours,stir,yield\n"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("DMS0,1,0,5", r'r.csv, line 2, column "solvent" \(A2\): .*; the nearest is \'DMSO\''),
        ("DMSO,9,0,5", r'column "hours" \(B2\): \'9\' is not a whole number .* the nearest is 6'),
        ("DMSO,1,,5", r'column "stir" \(C2\): is empty'),
        ("DMSO,1,0,5 g", r'column "yield" \(D2\): \'5 g\' is not a number \(is 5 meant\?\)'),
        ("water,6,0,5", r"line 2: .* breaks Forbid"),
        ("THF,2,0,5", r"never asked for \(the nearest one that was has stir=1\); --new"),
        ("DMSO,5,1,72", r"has the result 71\.5 already, here it is 72; .*mercbo amend"),
        ("DMSO,5,1,failed", "has the result 71.5 already, here it is failed"),
    ],
)
def test_a_wrong_row_is_explained(row: str, complaint: str, tmp_path: Path) -> None:
    (problem,) = read(tmp_path, HEADER + row + "\n").problems
    assert problem.line == 2
    assert re.search(complaint, str(problem)), str(problem)


def test_all_that_is_wrong_with_a_row_is_said_at_once(tmp_path: Path) -> None:
    reading = read(tmp_path, HEADER + "DMS0,9,2,soon\nDMSO,1,0,5\n")
    assert [problem.line for problem in reading.problems] == [2] * 4
    assert [result.line for result in reading.good] == [3]


def test_a_repeated_row_is_explained_or_a_replicate(tmp_path: Path) -> None:
    text = HEADER + "DMSO,1,0,5\nDMSO,1,0,6\n"
    (problem,) = read(tmp_path, text).problems
    assert str(problem) == "r.csv, line 3: is the design of line 2 again; --replicates takes both"
    assert len(read(tmp_path, text, replicates=True).good) == 2


def test_what_was_told_before_is_passed_over(tmp_path: Path) -> None:
    reading = read(tmp_path, HEADER + "DMSO,5,1,71.5\nTHF,5,1,NA\nDMSO,1,0,5\n")
    assert (reading.again, len(reading.good), reading.problems) == ((2, 3), 1, ())


def test_a_result_of_what_failed_is_good(tmp_path: Path) -> None:
    reading = read(tmp_path, HEADER + "THF,5,1,3\n")
    assert ([each.value for each in reading.good], reading.problems) == ([3.0], ())
    # but not two of them
    (problem,) = read(tmp_path, HEADER + "THF,5,1,3\nTHF,5,1,4\n").problems
    assert "is the design of line 2 again" in str(problem)


def test_among_replicates_equal_results_are_counted(tmp_path: Path) -> None:
    known = known_of(np.repeat(TOLD, 2, axis=0), [71.5, 71.5], FAILED, PENDING)
    text = HEADER + "DMSO,5,1,71.5\n" * 3 + "DMSO,5,1,70\n" + "THF,5,1,failed\n" * 2
    reading = read(tmp_path, text, known, replicates=True)
    assert (reading.again, [each.line for each in reading.good]) == ((2, 3, 6, 7), [4, 5])
    # of a failure there are no replicates
    reading = read(tmp_path, text, known, replicates=True, again=True)
    assert (reading.again, [each.line for each in reading.good]) == ((6, 7), [2, 3, 4, 5])
    assert known.told[keys(TOLD)[0]] == [Measured(71.5), Measured(71.5)]


def test_options_change_what_is_welcome(tmp_path: Path) -> None:
    assert len(read(tmp_path, HEADER + "THF,2,0,5\n", new=True).good) == 1
    failed = read(tmp_path, HEADER + "DMSO,1,0,\n", empty="failed")
    assert failed.good[0].value is None
    (problem,) = read(tmp_path, "solvent,hours,stir,yield,std\nDMSO,1,0,5,-1\n").problems
    assert "not a standard deviation" in str(problem)


@pytest.mark.parametrize(
    ("bounds", "row", "complaint"),
    [
        ((0.0, 100.0), "DMSO,1,0,820", r'column "yield" \(D2\): \'820\' is not between 0 and 100'),
        ((0.0, math.inf), "DMSO,1,0,-1", "'-1' is not at least 0, the bounds of the study"),
        ((-math.inf, 100.0), 'DMSO,1,0,"100,5"', "'100,5' is not at most 100"),
    ],
)
def test_a_result_outside_the_bounds_is_a_problem(
    bounds: tuple[float, float], row: str, complaint: str, tmp_path: Path
) -> None:
    (problem,) = read(tmp_path, HEADER + row + "\n", bounds=bounds).problems
    assert re.search(complaint, str(problem)), str(problem)
    fine = read(tmp_path, HEADER + "DMSO,1,0,100\nTHF,2,1,0\nwater,3,0,failed\n", bounds=bounds)
    assert (len(fine.good), fine.problems) == (3, ())


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("DMSO,5,1,70\nDMSO,5,1,69\n", "line 3: is the design of line 2 again; delete one of the "),
        ("DMSO,1,0,70\n", "line 2: this design has no result to correct; `mercbo tell` stores"),
        ("water,4,0,70\n", "line 2: this design has no result to correct"),
    ],
)
def test_a_correction_is_offered_only_what_there_is(
    rows: str, complaint: str, tmp_path: Path
) -> None:
    (problem,) = read(tmp_path, HEADER + rows, correct=True).problems
    assert complaint in str(problem)
    assert "--" not in str(problem)


def test_a_correction_counts_if_the_result_or_its_error_differs(tmp_path: Path) -> None:
    known = Known({keys(TOLD)[0]: [Measured(71.5, 0.5)]})
    header = "solvent,hours,stir,yield,std\n"
    for row, good in [("71.5,", 0), ("71.5,0.5", 0), ("71.5,0.6", 1), ("72,", 1), ("failed,", 1)]:
        reading = read(tmp_path, f"{header}DMSO,5,1,{row}\n", known, correct=True)
        assert (len(reading.good), len(reading.again)) == (good, 1 - good)


def test_many_wrong_cells_are_named_without_looking_for_the_nearest(tmp_path: Path) -> None:
    rows = "".join(f"DMS{i},1,0,5\n" for i in range(300))
    reading = read(tmp_path, HEADER + rows)
    assert len(reading.problems) == 300
    advised = ["the nearest is" in problem.message for problem in reading.problems]
    assert advised == [True] * 200 + [False] * 100


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no column is named 'solvent'; did you mean 'Solvents'"):
        read(tmp_path, "Solvents,hours,stir,yield\n")
    with pytest.raises(TableError, match="no column of results is named 'yield'; did you mean"):
        read(tmp_path, "solvent,hours,stir,yeild\n")


@pytest.mark.slow
def test_thousands_of_rows_are_read(tmp_path: Path) -> None:
    space = Space.binary(14)
    rng = np.random.default_rng(0)
    rows = np.unique(space.sample_rows(8000, rng=rng), axis=0)
    file = tmp_path / "long.csv"
    cells = [",".join(map(str, row)) + ",1.5" for row in rows.tolist()]
    file.write_text("\n".join([",".join([*space.names, "y"]), *cells]))
    reading = read_results(file, space, Known(), Options("y", new=True))
    assert len(reading.good) == len(rows) > 5000
