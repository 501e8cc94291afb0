"""Spaces inferred from tables of past results."""

from __future__ import annotations

from pathlib import Path

import pytest

from mercbo import Binary, Categorical, Integer, Ordinal, Space, SpaceError
from mercbo.lab.infer import as_yaml, inferred, space_from
from mercbo.lab.spacefile import read_space
from mercbo.lab.tables import Table, read_table

PAST = """\
date;solvent;heat;hours;stir;mol;operator;batch;well;note;yield
d1;DMSO;20;1;0;0,5;Ann;7;A1;=1;12,5
d2;"THF: 'dry'";40;2;1;1;Ann;7;A2;;15
d3;DMSO;80;3;1;2,5;Ann;7;A3;;failed
d4;NO;20;4;0;0,5;Ann;7;A4;;
d5;DMSO;40;2;0;1;Ann;7;A5;;9
d6;# x;40;2;0;1;Ann;7;A6;;9
"""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    (tmp_path / "past.csv").write_text(PAST)
    return read_table(tmp_path / "past.csv")


WANTED = Space(
    {
        "solvent": Categorical(["DMSO", "THF: 'dry'", "NO", "# x"]),
        "heat": Ordinal([20, 40, 80]),
        "hours": Integer(1, 4),
        "stir": Binary(),
        "mol": Ordinal([0.5, 1, 2.5]),
    }
)


def test_columns_become_variables(table: Table) -> None:
    columns = inferred(table, "yield")
    assert space_from(columns) == WANTED
    left = {c.name: c.remark for c in columns if c.variable is None}
    assert left == {
        "date": "differs in nearly every row, like a label",
        "operator": "is 'Ann' in every row",
        "batch": "is 7 in every row",
        "note": "is '=1' in every row",
    }


def test_the_file_to_edit_gives_the_same_space(table: Table, tmp_path: Path) -> None:
    text = as_yaml(inferred(table, "yield"), "past\n.csv")
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    assert read_space(tmp_path / "s.yaml") == WANTED
    assert text.startswith("# Inferred from past .csv. Edit it")
    assert "# operator: left out, it is 'Ann' in every row" in text


def test_columns_can_be_ignored(table: Table) -> None:
    names = [c.name for c in inferred(table, "yield", ignore=("heat", "mol"))]
    assert "heat" not in names
    with pytest.raises(SpaceError, match="no column is named 'het'; did you mean 'heat'"):
        inferred(table, "yield", ignore=("het",))
    with pytest.raises(SpaceError, match="no column is named 'yeild'; did you mean 'yield'"):
        inferred(table, "yeild")


def test_many_numbers_are_remarked_on_and_a_table_without_variables_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("x,y\n" + "".join(f"{i / 7:.4f},{i}\n" for i in range(30)))
    (column,) = inferred(read_table(file), "y")
    assert column.remark.startswith("many different numbers")
    file.write_text("x,y\n1,2\n1,3\n")
    with pytest.raises(SpaceError, match="no column besides 'y' varies"):
        inferred(read_table(file), "y")
