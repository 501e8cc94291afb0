"""`mercbo tell` and `import`, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.studies import filled, past

from mercbo.lab.tables import read_table, write_table


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
    assert "line 4, column \"yield\" (G4): 'lots' is not a number" in result.stderr
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
