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
        "solvent": Categorical(["# x", "DMSO", "NO", "THF: 'dry'"]),
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
        "date": "has 6 different texts, like a label; if it is a choice, list the values to choose "
        "from in a space file (--space)",
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
    assert column.remark.startswith("has many different numbers")
    file.write_text("x,y\n1,2\n1,3\n")
    with pytest.raises(SpaceError, match="no column can be a variable: 'x' is 1 in every row"):
        inferred(read_table(file), "y")
    file.write_text("y\n1\n2\n")
    with pytest.raises(SpaceError, match="no column can be a variable: there is none but 'y'"):
        inferred(read_table(file), "y")


SEQUENCES = ["ACGTAC", "ACGTAA", "CCGTAC", "ACGTTT", "GGGTAC", "ACG-AC", "TCGTAC"]


def of_texts(tmp_path: Path, texts: list[str], *, other: bool) -> Table:
    file = tmp_path / "t.csv"
    rows = [f"{text},{i % 2 if other else 0},{i}" for i, text in enumerate(texts)]
    file.write_text("\n".join(["sequence,stir,y", *rows]))
    return read_table(file)


@pytest.mark.parametrize(
    ("texts", "advice"),
    [
        (SEQUENCES, "of the letters ACGT; write each letter in a column of its own, sequence1 to "
                    "sequence6, and each column is a variable"),
        ([*SEQUENCES, "ACG"], "of the letters ACGT, with 3 to 6 letters; only sequences of one "
                              "length can be variables"),
        ([text.lower() for text in SEQUENCES], "looks like a sequence of the letters acgt"),
        ([f"run {i}" for i in range(9)], "has 9 different texts, like a label; if it is a choice, "
                                         "list the values to choose from in a space file"),
        (["Ann", "Bob", "Cid", "Dan", "Eve", "Flo"], "like a label"),
    ],
)  # fmt: skip
def test_a_column_of_sequences_or_labels_is_called_so(
    texts: list[str], advice: str, tmp_path: Path
) -> None:
    with pytest.raises(SpaceError, match="no column can be a variable: 'sequence' ") as caught:
        inferred(of_texts(tmp_path, texts, other=False), "y")
    assert advice in str(caught.value)
    # with another variable it is left out, with the same advice
    found = inferred(of_texts(tmp_path, texts, other=True), "y")
    assert advice in as_yaml(found, "t.csv")
    assert space_from(found).names == ("stir",)


def test_many_sequences_that_come_again_are_remarked_on(tmp_path: Path) -> None:
    texts = [f"{a}{b}{c}AA" for a in "ACGT" for b in "ACGT" for c in "AC"] * 3
    (column, _) = inferred(of_texts(tmp_path, texts, other=True), "y")
    assert column.variable is not None
    assert "looks like a sequence of the letters ACGT" in column.remark


def test_columns_of_the_same_letters_list_them_alike(tmp_path: Path) -> None:
    file = tmp_path / "dna.csv"
    file.write_text("s1,s2,s3,y\nT,G,A,1\nA,C,G,2\nG,T,C,3\nC,A,T,4\nC,A,T,5\n")
    space = space_from(inferred(read_table(file), "y"))
    assert {variable.values for variable in space.variables.values()} == {("A", "C", "G", "T")}
