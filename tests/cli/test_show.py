"""The commands that only look, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.studies import filled, past

from mercbo.lab.tables import read_table, write_table


def test_all_commands_name_the_same_best_design(made) -> None:
    rows = ["DMSO,20,1,0,10", "DMSO,20,1,0,11", "THF,20,1,0,14", "THF,20,1,0,2", "THF,20,1,0,2"]
    said = made("import", "s.db", past(*rows)).stdout
    assert "best so far 10.5 (the mean of 2 results)" in said
    status = made("status", "s.db").stdout
    assert "best 10.5 at solvent=DMSO, heat=20, hours=1, stir=0 (the mean of 2 results)" in status
    best = made("best", "s.db", "-n", 1, "--json").json["best"][0]
    assert made("status", "s.db", "--json").json["best"] == {
        "point": best["point"], "value": best["value"],
    }  # fmt: skip


def test_other_columns_and_formulas_come_back_harmless(made) -> None:
    made("ask", "s.db", "-k", 2, "--out", "p.csv")
    table = read_table("p.csv")
    rows = [[*line.cells.values(), "=cmd|' /C calc'!A0"] for line in table.lines]
    for row in rows:
        row[-2] = 1.5
    write_table("r.csv", [*table.header, "@remark"], rows)
    made("tell", "s.db", "r.csv")
    made("export", "s.db", "all.csv")
    text = Path("all.csv").read_text("utf-8-sig")
    assert ",'=cmd" in text
    assert ",=cmd" not in text
    (first, _) = read_table("all.csv").lines
    assert first.cells["@remark"] == "=cmd|' /C calc'!A0"
    assert first.cells["state"] == "evaluated"
    assert "exists already" in made("export", "s.db", "all.csv", code=1).stderr
    assert len(made("export", "s.db", "--json").json["rows"]) == 2


def test_an_export_has_errors_and_the_columns_of_each_result(made) -> None:
    header = "solvent,heat,hours,stir,yield,sd,who,std,state"
    rows = ["DMSO,20,1,0,5,0.25,Ann,a,solid", "DMSO,20,1,0,6,,Bob,,", "THF,40,2,1,failed,,Cid,,"]
    made("import", "s.db", past(*rows, header=header), "--std", "sd")
    made("ask", "s.db")
    made("export", "s.db", "all.csv")
    table = read_table("all.csv")
    assert list(table.header)[4:] == [
        "yield", "std", "state", "batch", "time", "who", "std (own)", "state (own)",
    ]  # fmt: skip
    cells = [list(line.cells.values())[4:] for line in table.lines]
    times = [row.pop(4) for row in cells]
    assert times == sorted(times)
    assert all(time.endswith("+00:00") for time in times)
    assert cells == [
        ["5.0", "0.25", "evaluated", "", "Ann", "a", "solid"],
        ["6.0", "", "evaluated", "", "Bob", "", ""],
        ["failed", "", "failed", "", "Cid", "", ""],
        ["", "", "pending", "1", "", "", ""],
    ]
    made("export", "s.db", "p.csv", "--pending")
    assert read_table("p.csv").header == ("solvent", "heat", "hours", "stir", "yield")
    # what is exported can be imported, errors and all
    made("init", "t.db", "--minimize", "--space", "space.yaml", "--target", "yield")
    assert "3 results stored" in made("import", "t.db", "all.csv").stdout
    first, *_ = made("export", "t.db", "--json").json["rows"]
    assert (first["std"], first["who"], first["state (own)"]) == (0.25, "Ann", "solid")
    assert not {"time (own)", "batch (own)", "std (own) (own)"} & set(first)


def test_an_export_of_an_empty_study_has_a_header(made) -> None:
    made("export", "s.db", "all.csv")
    assert read_table("all.csv").header[-5:] == ("yield", "std", "state", "batch", "time")


def test_an_export_has_plates_wells_batches_and_controls(made) -> None:
    for number in (1, 2):
        ask = ["ask", "s.db", "--plate", 6, "--controls", "A1,B3", "--out", f"p{number}.csv"]
        made(*ask)
        filled(f"p{number}.csv", f"r{number}.csv", lambda rows: rows[0].__setitem__(-1, 7.5))
        told = made("tell", "s.db", f"r{number}.csv").stdout
        assert "4 results stored; 1 control result stored; 1 row of controls without" in told
    made("ask", "s.db", "--plate", 6, "-k", 1)
    rows = made("export", "s.db", "--json").json["rows"]
    found = [(r["state"], r["batch"], r["plate"], r["well"]) for r in rows]
    wells = ["A2", "A3", "B1", "B2"]
    assert found == [
        *(("evaluated", 1, 1, well) for well in wells),
        *(("evaluated", 2, 2, well) for well in wells),
        ("pending", 3, 3, "A1"),
        ("control", None, 1, "A1"),
        ("control", None, 2, "A1"),
    ]
    assert [row["yield"] for row in rows[-2:]] == [7.5, 7.5]
    assert all(row["time"] for row in rows)
    # what is exported can be imported, controls and all, and twice
    made("export", "s.db", "all.csv")
    made("init", "t.db", "--maximize", "--space", "space.yaml", "--target", "yield")
    assert made("import", "t.db", "all.csv", "--json").json["controls_told"] == 2
    assert made("import", "t.db", "all.csv", "--json").json["told_before"] == 10
    again = made("export", "t.db", "--json").json["rows"]
    assert [(r["yield"], r["plate"], r["well"]) for r in again] == [
        (r["yield"], r["plate"], r["well"]) for r in rows if r["state"] != "pending"
    ]


def test_a_variable_may_be_named_as_a_column_of_an_export(run) -> None:
    Path("t.yaml").write_text("variables: {time: [1, 2], batch: [a, b]}\n")
    run("init", "t.db", "--minimize", "--space", "t.yaml")
    run("import", "t.db", past("1,a,5", header="time,batch,result"))
    (row,) = run("export", "t.db", "--json").json["rows"]
    assert (row["time"], row["batch"], row["batch (study)"]) == (1, "a", None)
    assert row["time (study)"].endswith("+00:00")


def test_an_export_told_again_has_the_same_columns(run) -> None:
    """Columns of the study are no notes, and a note whose name is taken keeps its name."""
    Path("t.yaml").write_text("variables: {batch: [a, b], n: [1, 2]}\n")
    run("init", "t.db", "--minimize", "--space", "t.yaml")
    run("import", "t.db", past("a,1,5,9:30,x", "b,2,6,9:45,y", header="batch,n,result,time,who"))
    header = "batch,n,result,std,state,batch (study),time,time (own),who"
    for command, before, after in (
        (["amend"], ",5.0,", ",7.0,"),
        (["tell", "--replicates"], ",7.0,", ",8.0,"),
    ):
        run("export", "t.db", "all.csv", "--force")
        first, *rows = Path("all.csv").read_text(encoding="utf-8-sig").splitlines()
        assert first == header
        changed = past(rows[0].replace(before, after), *rows[1:], header=header)
        run(command[0], "t.db", changed, *command[1:])
    rows = run("export", "t.db", "--json").json["rows"]
    assert ",".join(rows[0]) == header
    assert [(row["result"], row["time (own)"]) for row in rows] == [
        (7, "9:30"), (6, "9:45"), (8, "9:30"),
    ]  # fmt: skip


def test_pending_designs_are_exported_with_their_wells(made) -> None:
    made("ask", "s.db", "--plate", 6, "--controls", "A1", "--out", "p.csv")
    made("export", "s.db", "again.csv", "--pending")
    asked, again = (
        [{n: c for n, c in line.cells.items() if n != "source"} for line in read_table(file).lines]
        for file in ("p.csv", "again.csv")
    )
    assert again == asked
    # one result and the control come back; the rest is still to be filled in
    table = read_table("p.csv")
    rows = [list(line.cells.values()) for line in table.lines]
    rows[0][-1] = rows[1][-1] = 3.5
    write_table("r.csv", table.header, rows[:2])
    made("tell", "s.db", "r.csv")
    made("export", "s.db", "rest.csv", "--pending")
    rest = read_table("rest.csv")
    assert [line.cells["well"] for line in rest.lines] == ["A3", "B1", "B2", "B3"]
    made("ask", "s.db")  # on no plate
    made("export", "s.db", "more.csv", "--pending")
    assert [line.cells["well"] or "" for line in read_table("more.csv").lines][-1] == ""


def test_an_export_of_an_older_study_has_its_columns(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,40,2,1,6"))
    with closing(sqlite3.connect("s.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE mercbo_cells (number INTEGER PRIMARY KEY, design TEXT NOT NULL,"
            " value TEXT NOT NULL, cells TEXT NOT NULL)"
        )
        connection.execute(
            "INSERT INTO mercbo_cells (design, value, cells) VALUES (?, ?, ?)",
            ("1,0,0,0", "5.0", '{"who": "Ann"}'),
        )
    made("import", "s.db", past("DMSO,20,2,0,7,Bob", header="solvent,heat,hours,stir,yield,who"))
    rows = made("export", "s.db", "--json").json["rows"]
    assert [(row["yield"], row["who"]) for row in rows] == [(5, "Ann"), (6, None), (7, "Bob")]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("none.db", None, "no such file; `mercbo init` makes a study"),
        ("text.db", b"hello", "not a study"),
        ("empty.db", b"", "not a study"),
        ("cut.db", b"SQLite format 3\0" + b"\xff" * 200, "cut.db"),
    ],
)
def test_a_file_that_is_no_study_is_refused(
    run, name: str, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        Path(name).write_bytes(content)
    for command in (["status"], ["ask"], ["best"], ["report"]):
        result = run(*command, name, code=1)
        assert complaint in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
    assert complaint in run("status", name, "--json", code=1).json["error"]


@pytest.mark.slow
def test_pictures_and_the_schema(made) -> None:
    made("ask", "s.db", "-k", 5, "--out", "p.csv")
    filled("p.csv", "r.csv")
    made("tell", "s.db", "r.csv")
    assert "wrote s-convergence.png" in made("plot", "s.db").stdout
    assert Path("s-convergence.png").read_bytes().startswith(b"\x89PNG")
    made("plot", "s.db", "--kind", "interactions", "--variables", "heat,stir", "--out", "i.svg")
    assert "did you mean 'effects'" in made("plot", "s.db", "--kind", "effect", code=1).stderr
    assert json.loads(made("schema").stdout)["title"] == "mercbo space"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--out", "x.foo"], "x.foo: the ending .foo is none of a picture; possible are "),
        (["--out", "picture"], "picture: has no ending; possible are "),
        (["--variables", "heat"], "--variables=heat is of no use with --kind convergence; "),
        (["--kind", "best", "--variables", "heat"], "effects and interactions take it"),
        (["--kind", "effects", "--variables", "het"], "'het' is not one of ['solvent', 'heat', "),
        (["--kind", "interactions", "--variables", "het,stir"], "did you mean 'heat'"),
        (["--kind", "interactions", "--variables", "heat"], "two names by a comma are wanted"),
        (["--kind", "interactions", "--variables", "heat,heat"], "two names by a comma"),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused_in_one_line(
    made, options: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,40,2,1,7"))
    # what is wrong is said before the model is fitted
    monkeypatch.setattr("mercbo.optimizer.Optimizer.explain", lambda *_: pytest.fail("fitted"))
    result = made("plot", "s.db", *options, code=1)
    assert complaint in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not [*Path().glob("*.foo"), *Path().glob("picture*"), *Path().glob("*.png")]


def test_a_picture_that_cannot_be_written_is_an_error_with_its_name(made) -> None:
    pytest.importorskip("matplotlib")
    made("import", "s.db", past("DMSO,20,1,0,5"))
    Path("p.png").mkdir()
    result = made("plot", "s.db", "--out", "p.png", "--force", code=1)
    assert "p.png: cannot be written (Is a directory)" in result.stderr
