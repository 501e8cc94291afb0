"""The commands on studies, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.studies import SPACE, filled, past, yields

from mercbo.lab.study import Study
from mercbo.lab.tables import read_table, write_table


@pytest.mark.slow
def test_the_loop_from_space_to_best(made) -> None:
    said = made("ask", "s.db", "-k", 5, "--out", "p 1.csv").stdout
    assert "p 1.csv: 5 designs; fill in the column 'yield'" in said
    assert "mercbo tell s.db 'p 1.csv'" in said
    filled("p 1.csv", "r.csv")
    assert "5 results stored; best so far" in made("tell", "s.db", "r.csv").stdout
    status = made("status", "s.db", "--json").json
    assert (status["results"], status["pending"], status["failed"]) == (5, 0, 0)
    best = made("best", "s.db", "-n", 2, "--json").json["best"]
    assert best[0]["value"] == status["best"]["value"] >= best[1]["value"]
    assert best[0]["value"] == yields(*best[0]["point"].values())
    assert str(best[0]["point"]["solvent"]) in made("best", "s.db").stdout
    assert "Importance" in made("explain", "s.db").stdout
    why = made("explain", "s.db", "--point", "solvent=dmso,heat=40,hours=2,stir=yes", "--json").json
    assert {"effects", "interactions", "why"} <= set(why)


def test_no_bar_moves_where_nobody_looks(made) -> None:
    assert made("ask", "s.db", "-k", 2, "--out", "p.csv").stderr == ""


def test_a_long_batch_says_where_the_rest_of_it_is(made) -> None:
    assert "whole table" not in made("ask", "s.db", "-k", 2).stdout
    said = made("ask", "s.db", "-k", 31).stdout
    assert said.endswith("... 31 in all\nthe whole table: mercbo export s.db plate.csv --pending\n")
    made("export", "s.db", "plate.csv", "--pending")
    assert len(read_table("plate.csv").lines) == 33


def test_plates_have_wells_and_controls(made) -> None:
    made("ask", "s.db", "--plate", 6, "--controls", "A1,B3", "--out", "p.csv")
    lines = read_table("p.csv").lines
    assert [line.cells["well"] for line in lines] == ["A1", "A2", "A3", "B1", "B2", "B3"]
    assert [line.cells["design"] for line in lines] == ["control", "1", "2", "3", "4", "control"]
    filled("p.csv", "r.csv")
    assert "4 results stored; 2 rows of controls" in made("tell", "s.db", "r.csv").stdout
    assert "--controls needs --plate" in made("ask", "s.db", "--controls", 2, code=1).stderr


def test_a_design_of_nothing_but_null_is_told(run) -> None:
    Path("z.yaml").write_text("variables:\n  acid: [null, HCl]\n  base: [null, NaOH]\n")
    run("init", "z.db", "--minimize", "--space", "z.yaml", "--seed", 0)
    run("ask", "z.db", "-k", 4, "--out", "z.csv")
    table = read_table("z.csv")
    rows = [[*list(line.cells.values())[:-1], i] for i, line in enumerate(table.lines)]
    write_table("z.csv", table.header, rows)
    said = run("tell", "z.db", "z.csv").stdout
    assert "4 results stored; best so far 0; 0 pending" in said
    # an export has no numbers of designs
    run("export", "z.db", "all.csv")
    run("init", "y.db", "--minimize", "--space", "z.yaml")
    assert "4 results stored" in run("import", "y.db", "all.csv").stdout


def test_a_mistake_stores_nothing_and_is_named(made) -> None:
    made("ask", "s.db", "-k", 4, "--out", "p.csv")

    def mistake(rows: list[list[object]]) -> None:
        rows[1][1] = "DMS0"
        rows[2][-1] = "lots"

    filled("p.csv", "r.csv", mistake)
    result = made("tell", "s.db", "r.csv", code=1)
    assert "r.csv, line 3, column \"solvent\" (B3): 'DMS0'" in result.stderr
    assert "the nearest is 'DMSO'" in result.stderr
    assert "line 4, column \"yield\" (F4): 'lots' is not a number" in result.stderr
    assert "nothing was stored, since 2 rows cannot be used" in result.stderr
    assert made("status", "s.db", "--json").json["results"] == 0
    told = made("tell", "s.db", "r.csv", "--partial", "--json", code=3).json
    assert (told["told"], [p["line"] for p in told["problems"]]) == (2, [3, 4])
    assert made("status", "s.db", "--json").json["pending"] == 2


def test_the_same_file_may_be_told_again_with_more_in_it(made) -> None:
    made("ask", "s.db", "-k", 4, "--out", "p.csv")
    filled("p.csv", "r.csv", lambda rows: rows[0].__setitem__(-1, ""))
    assert "3 results stored; 1 row without a result yet" in made("tell", "s.db", "r.csv").stdout
    filled("p.csv", "r.csv")
    assert "1 result stored; 3 rows told before" in made("tell", "s.db", "r.csv").stdout


def test_a_table_may_be_imported_again_with_more_in_it(made) -> None:
    rows = ["DMSO,20,1,0,5", "DMSO,20,1,0,5", "DMSO,20,1,0,6", "THF,40,2,1,failed"]
    assert "4 results stored" in made("import", "s.db", past(*rows)).stdout
    said = made("import", "s.db", past(*rows)).stdout
    best = "best so far 5.33333 (the mean of 3 results)"
    assert f"0 results stored; 4 rows told before; {best}; 0 pending" in said
    assert "passed over; `mercbo import --replicates` stores them once more" in said
    # one more of equal results is one more
    more = made("import", "s.db", past(*rows, "DMSO,20,1,0,5", "THF,20,1,0,3"), "--json").json
    assert (more["told"], more["told_before"]) == (2, 4)
    assert made("status", "s.db", "--json").json["results"] == 5
    again = made("import", "s.db", past(*rows[:2]), "--replicates", "--json").json
    assert (again["told"], again["told_before"]) == (2, 0)
    assert made("status", "s.db", "--json").json["results"] == 7


def test_failures_are_counted_as_the_study_has_them(made) -> None:
    rows = [
        "THF,40,2,1,failed", "THF,40,2,1,failed",  # one failure
        "DMSO,20,1,0,5", "DMSO,20,1,0,failed",  # none, whichever comes first
        "DMSO,40,1,0,failed", "DMSO,40,1,0,6",
    ]  # fmt: skip
    said = made("import", "s.db", past(*rows)).stdout
    assert "3 results stored (1 failure among them); 1 row told before; 2 rows that failed" in said
    status = made("status", "s.db", "--json").json
    assert (status["results"], status["failed"]) == (2, 1)
    for options in ([], ["--replicates"]):  # of failures there are no replicates
        failures = past(rows[0], rows[3], rows[4])
        again = made("import", "s.db", failures, *options, "--json").json
        assert (again["told"], again["failed"]) == (0, 0)
        assert (again["told_before"], again["failed_but_has_result"]) == (1, 2)
    assert made("status", "s.db", "--json").json == status
    # what has failed and then works has failed no more
    assert made("import", "s.db", past("THF,40,2,1,7"), "--json").json["told"] == 1
    assert made("status", "s.db", "--json").json["failed"] == 0


def test_past_failures_are_counted(run) -> None:
    rows = ["DMSO,20,1,0,5", "THF,40,2,1,failed", "water,20,1,1,3"]
    said = run("init", "s.db", "--minimize", "--from", past(*rows), "--target", "yield").stdout
    assert "3 past results loaded (1 failure among them)" in said


def test_of_replicates_only_those_that_are_more_than_told_are_stored(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,20,1,0,7"))
    more = past("DMSO,20,1,0,5", "DMSO,20,1,0,5", "DMSO,20,1,0,6", "THF,20,1,0,7")
    said = made("tell", "s.db", more, "--replicates").stdout
    assert "2 results stored; 2 rows told before" in said
    assert "`mercbo import --replicates` stores them once more" in said
    assert made("tell", "s.db", more, "--replicates", "--json").json["told"] == 0
    assert made("status", "s.db", "--json").json["results"] == 4


@pytest.mark.parametrize("options", [[], ["--replicates"]])
def test_what_failed_and_then_worked_is_told_with_the_same_table(made, options: list[str]) -> None:
    made("tell", "s.db", past("DMSO,20,1,0,failed", "THF,20,1,0,5"), "--new")
    said = made("tell", "s.db", past("DMSO,20,1,0,9", "THF,20,1,0,5"), *options).stdout
    assert "1 result stored; 1 row told before; best so far 9" in said
    status = made("status", "s.db", "--json").json
    assert (status["results"], status["failed"]) == (2, 0)


CODES = """
variables:
  code: {kind: categorical, values: ["1e5", "007", "1.1", "1.10"]}
  heat: [20, 40]
"""


def test_texts_that_a_spreadsheet_made_numbers_of_are_taken_and_named(run) -> None:
    Path("codes.yaml").write_text(CODES)
    run("init", "c.db", "--minimize", "--space", "codes.yaml", "--seed", 0)
    rows = ["100000,20,1", "7,20,2", "7,40,3"]
    table = past(*rows, header="code,heat,result")
    told = run("tell", "c.db", table, "--new")
    assert "3 results stored" in told.stdout
    assert "past.csv, line 2, column \"code\" (A2): 100000 is taken for '1e5'" in told.stderr
    assert "(A3): 7 is taken for '007', the only value of that number, in 2 rows" in told.stderr
    points = [row["code"] for row in run("export", "c.db", "--json").json["rows"]]
    assert points == ["1e5", "007", "007"]
    assert len(run("tell", "c.db", table, "--json").json["remarks"]) == 2
    run("ask", "c.db", "--fix", "code=1e5,heat=40")
    cancelled = run("cancel", "c.db", past("1.00E+05,40", header="code,heat"))
    assert "1.00E+05 is taken for '1e5'" in cancelled.stderr
    missing = run("cancel", "c.db", past("1e5", header="code"), code=1).stderr
    assert "no column is named 'heat'" in missing


def test_a_number_that_stands_for_two_texts_is_refused(run) -> None:
    pytest.importorskip("openpyxl")
    Path("codes.yaml").write_text(CODES)
    run("init", "c.db", "--minimize", "--space", "codes.yaml", "--seed", 0)
    write_table("r.xlsx", ["code", "heat", "result"], [[1.1, 20, 5.0]])
    refused = run("tell", "c.db", "r.xlsx", "--new", code=1).stderr
    assert "(A2): 1.1 may be '1.1' or '1.10', which a spreadsheet takes for the same" in refused
    assert run("status", "c.db", "--json").json["results"] == 0


def test_truth_in_a_workbook_is_a_value_or_is_refused(run) -> None:
    pytest.importorskip("openpyxl")
    Path("t.yaml").write_text('variables:\n  dry: [true, false, ""]\n  hours: [1, 2]\n')
    run("init", "t.db", "--minimize", "--space", "t.yaml", "--seed", 0)
    run("ask", "t.db", "-k", 6, "--out", "t.xlsx")
    table = read_table("t.xlsx")
    rows = [[*list(line.cells.values())[:-1], i] for i, line in enumerate(table.lines)]
    write_table("t.xlsx", table.header, rows)
    assert "6 results stored" in run("tell", "t.db", "t.xlsx").stdout
    write_table("u.xlsx", ["dry", "hours", "result"], [[True, True, 5.0]])
    refused = run("tell", "t.db", "u.xlsx", code=1).stderr
    assert 'u.xlsx, line 2, column "hours" (B2): True is not one of [1, 2]' in refused


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


def test_from_past_results(run, tmp_path: Path) -> None:
    (tmp_path / "past.csv").write_text(
        "run;Lösemittel;heat;mol;yield\n"
        + "".join(
            f"r{i};{'=x' if i % 2 else 'THF'};{20 * (i % 3)};{i % 2};{i},5\n" for i in range(8)
        )
    )
    said = run("init", "s.db", "--from", "past.csv", "--target", "yield", "--maximize").stdout
    assert "run: left out, it has 8 different texts, like a label" in said
    assert "8 past results loaded" in said
    study = Study.open("s.db")
    assert study.target == "yield"
    assert study.optimizer.best.value == 7.5
    # the file to edit makes the same study, and takes the same results by import
    run("init", "t.db", "--space", "s.space.yaml", "--target", "yield", "--maximize")
    assert "8 results stored" in run("import", "t.db", "past.csv").stdout
    assert Study.open("t.db").space == study.space
    assert "one of --space and --from" in run("init", "u.db", code=1).stderr


def test_a_direction_must_be_given(run) -> None:
    begin = ["init", "s.db", "--space", "space.yaml", "--target", "yield"]
    refused = run(*begin, code=1).stderr
    assert "add --maximize if a larger 'yield' is better, --minimize if a smaller one is" in refused
    assert not Path("s.db").exists()
    for direction in ("maximize", "minimize"):
        run("init", f"{direction}.db", *begin[2:], f"--{direction}")
        assert run("status", f"{direction}.db", "--json").json["direction"] == direction


def test_the_batch_that_is_proposed_can_be_had(run) -> None:
    assert (
        "-k 24 --out plate.csv" in run("init", "l.db", "--minimize", "--space", "space.yaml").stdout
    )
    Path("few.yaml").write_text("variables: {a: [x, y, z], b: [1, 2, 3]}\n")
    assert (
        "next: mercbo ask s.db -k 9 --out"
        in run("init", "s.db", "--minimize", "--space", "few.yaml").stdout
    )
    run("ask", "s.db", "-k", 9, "--out", "plate.csv")
    rows = ["x,1,5", "y,2,failed", "x,2,6"]
    begin = ["--from", past(*rows, header="a,b,yield"), "--target", "yield"]
    assert "next: mercbo ask t.db -k 1 --out" in run("init", "t.db", "--minimize", *begin).stdout
    past(*rows, "y,1,7", header="a,b,yield")
    assert "next" not in run("init", "u.db", "--minimize", *begin).stdout


def test_from_past_results_it_is_said_what_became_a_variable(run) -> None:
    rows = [f"{20260101 + 7 * i},{'Ann' if i % 3 else 'Bob'},{20 * (i % 3)},{i}" for i in range(8)]
    table = past(*rows, header="date,operator,heat,yield")
    begin = ["--from", table, "--target", "yield"]
    said = run("init", "s.db", "--minimize", *begin).stdout
    assert "date: a variable of 8 values, another in every row: is it a variable?\n" in said
    assert "operator: a variable of 2 values\n" in said
    assert "heat: a variable of 3 values\n" in said
    assert "--ignore COLUMN,COLUMN" in said
    said = run("init", "t.db", "--minimize", *begin, "--ignore", "date,operator").stdout
    assert "date" not in said.replace("a date or", "")
    assert Study.open("t.db").space.names == ("heat",)


def test_a_space_is_changed_by_way_of_a_table(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,40,2,1,failed"))
    made("ask", "s.db", "-k", 2)
    Path("edited.yaml").write_text(SPACE.replace("THF]", "THF, DMF]"))
    made("init", "new.db", "--space", "edited.yaml", "--maximize", "--target", "yield")
    made("export", "s.db", "all.csv")
    said = made("import", "new.db", "all.csv").stdout
    assert "2 results stored (1 failure among them); 2 rows without a result yet" in said


def test_from_past_results_nothing_is_written_over(run) -> None:
    table = past("DMSO,20,1,0,5", "THF,40,2,1,7")
    begin = ["init", "p.db", "--minimize", "--from", table, "--target", "yield"]
    Path("p.space.yaml").write_text("edited by hand")
    refused = run(*begin, code=1).stderr
    assert "p.space.yaml: exists already; --write-space names another file" in refused
    assert "--force" not in refused
    refused = run(*begin, "--write-space", "p.db", code=1).stderr
    assert "--write-space p.db: that is the study" in refused
    assert not Path("p.db").exists()
    run(*begin, "--write-space", "q.yaml")
    assert Path("p.space.yaml").read_text() == "edited by hand"
    # the study comes first: another file for the space would not help
    refused = run(*begin, code=1).stderr
    assert "p.db: exists already; choose another name, or go on with it" in refused
    assert len(refused.splitlines()) == 1


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
    assert first.cells["state"] == "told"
    assert "exists already" in made("export", "s.db", "all.csv", code=1).stderr
    assert len(made("export", "s.db", "--json").json["rows"]) == 2


def test_an_export_has_errors_and_the_columns_of_each_result(made) -> None:
    header = "solvent,heat,hours,stir,yield,sd,who,std,state"
    rows = ["DMSO,20,1,0,5,0.25,Ann,a,solid", "DMSO,20,1,0,6,,Bob,,", "THF,40,2,1,failed,,Cid,,"]
    made("import", "s.db", past(*rows, header=header), "--std", "sd")
    made("ask", "s.db")
    made("export", "s.db", "all.csv")
    table = read_table("all.csv")
    assert list(table.header)[4:] == ["yield", "std", "state", "who", "std (own)", "state (own)"]
    assert [list(line.cells.values())[4:] for line in table.lines] == [
        ["5.0", "0.25", "told", "Ann", "a", "solid"],
        ["6.0", "", "told", "Bob", "", ""],
        ["failed", "", "failed", "Cid", "", ""],
        ["", "", "pending", "", "", ""],
    ]
    made("export", "s.db", "p.csv", "--pending")
    assert read_table("p.csv").header == ("solvent", "heat", "hours", "stir", "yield")
    # what is exported can be imported, errors and all
    made("init", "t.db", "--minimize", "--space", "space.yaml", "--target", "yield")
    assert "3 results stored" in made("import", "t.db", "all.csv").stdout
    first, *_ = made("export", "t.db", "--json").json["rows"]
    assert (first["std"], first["who"], first["state (own)"]) == (0.25, "Ann", "told")


def test_an_export_of_an_empty_study_has_a_header(made) -> None:
    made("export", "s.db", "all.csv")
    assert read_table("all.csv").header[-3:] == ("yield", "std", "state")


def test_a_table_that_could_not_be_read_back_is_not_written(made) -> None:
    refused = made("ask", "s.db", "--out", "p.xls", code=1).stderr
    assert "p.xls: .xls files are not written; name it .xlsx or .csv" in refused
    assert made("status", "s.db", "--json").json["pending"] == 0
    assert ".xls files are not written" in made("export", "s.db", "e.XLS", code=1).stderr.lower()
    assert not [*Path().glob("*.xls"), *Path().glob("*.XLS")]


def test_files_are_not_written_over(made) -> None:
    Path("p.csv").write_text("a week's results")
    assert "exists already" in made("ask", "s.db", "--out", "p.csv", code=1).stderr
    assert "no folder" in made("ask", "s.db", "--out", "x/p.csv", code=1).stderr
    assert made("status", "s.db", "--json").json["pending"] == 0
    made("ask", "s.db", "--out", "p.csv", "--force")
    made("export", "s.db", "q.csv", "--pending")
    assert read_table("q.csv").header[-1] == "yield"
    assert (
        "exists already"
        in made("init", "s.db", "--minimize", "--space", "space.yaml", code=1).stderr
    )


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


def test_asks_that_cannot_be_met_are_refused(made) -> None:
    assert "asked for" in made("ask", "s.db", "-k", 500, code=1).stderr
    assert "did you mean 'heat'" in made("ask", "s.db", "--fix", "het=20", code=1).stderr
    assert "the nearest is 40" in made("ask", "s.db", "--fix", "heat=45", code=1).stderr
    assert "not of the form NAME=VALUE" in made("ask", "s.db", "--fix", "heat", code=1).stderr
    points = made("ask", "s.db", "-k", 3, "--fix", "heat=80,solvent=thf", "--json").json["points"]
    assert all((p["heat"], p["solvent"]) == (80, "THF") for p in points)
    assert "a plate of 7 wells" in made("ask", "s.db", "--plate", 7, code=1).stderr


def test_a_value_with_a_comma_can_be_fixed_in_quotes_or_alone(run) -> None:
    Path("c.yaml").write_text('variables:\n  solvent: ["DMSO, dry", THF]\n  heat: [20, 40]\n')
    run("init", "c.db", "--minimize", "--space", "c.yaml", "--seed", 0)
    quoted = run("ask", "c.db", "--fix", 'solvent="DMSO, dry",heat=20', "--json").json
    assert quoted["points"] == [{"solvent": "DMSO, dry", "heat": 20}]
    alone = run("ask", "c.db", "--fix", "solvent=DMSO, dry", "--fix", "heat=40", "--json").json
    assert alone["points"] == [{"solvent": "DMSO, dry", "heat": 40}]


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


def test_an_interrupted_ask_says_where_it_leaves_the_study(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mercbo.optimizer.Optimizer.ask", interrupted)
    result = made("ask", "s.db", "-k", 3, code=130)
    assert "stopped; nothing was asked for, the study is as it was" in result.stderr
    monkeypatch.undo()


@pytest.mark.slow
def test_the_demo_plays_a_study(run) -> None:
    said = run("demo", "d", "--batches", 2, "-k", 4).stdout
    assert "batch 2: 4 designs, best so far" in said
    assert {"space.yaml", "study.db", "plate-1.csv", "plate-2.csv", "report.html"} == {
        # SQLite has files of its own beside an open database
        path.name
        for path in Path("d").iterdir()
        if not path.name.startswith("study.db-")
    }
    assert run("status", "d/study.db", "--json").json["pending"] == 0
    assert "exists already" in run("demo", "d", code=1).stderr
