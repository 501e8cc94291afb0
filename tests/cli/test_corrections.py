"""`mercbo amend` and `cancel`, through typer's runner."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from support.studies import filled, past
from typer.testing import Result

from mercbo.lab.tables import write_table


def test_corrections_by_table_and_by_hand(made) -> None:
    made("ask", "s.db", "-k", 3, "--out", "p.csv")
    filled("p.csv", "r.csv")
    made("tell", "s.db", "r.csv")
    filled("p.csv", "c.csv", lambda rows: rows[1].__setitem__(-1, "99,5"))
    assert "mercbo amend" in made("tell", "s.db", "c.csv", code=1).stderr
    assert made("amend", "s.db", "c.csv", "--json").json == {
        "amended": 1, "replaced": 1, "failed": 0,
    }  # fmt: skip
    best = made("status", "s.db", "--json").json["best"]
    assert best["value"] == 99.5
    point = ",".join(f"{name}={value}" for name, value in best["point"].items())
    said = made("amend", "s.db", "--point", point, "--value", "failed").stdout
    assert said == "1 result corrected (1 failure now)\n"
    assert made("status", "s.db", "--json").json["failed"] == 1
    assert "is not a number" in made("amend", "s.db", "--point", point, code=1).stderr
    assert "either a table or --point" in made("amend", "s.db", code=1).stderr


@pytest.mark.parametrize("slip", ["x", "-", "NA", "none", ""])
def test_a_correction_by_hand_is_a_number_or_failed(made, slip: str) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5"))
    by_hand = ["amend", "s.db", "--point", "solvent=DMSO,heat=20,hours=1,stir=0", "--value"]
    refused = made(*by_hand, slip, code=1).stderr
    assert f"--value: {slip!r} is not a number; write 'failed' for a failure" in refused
    status = made("status", "s.db", "--json").json
    assert (status["results"], status["failed"]) == (1, 0)
    assert made(*by_hand, "-2,5").stdout == "1 result corrected\n"
    assert made(*by_hand, "Failed", "--json").json["failed"] == 1


def test_a_table_of_corrections_says_what_failed(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,20,1,0,6"))
    said = made("amend", "s.db", past("DMSO,20,1,0,x", "THF,20,1,0,7")).stdout
    assert said == "2 results corrected (1 failure now)\n"


def test_a_table_of_corrections_leaves_replicates_alone(made) -> None:
    made("ask", "s.db", "-k", 2, "--out", "p.csv")
    filled("p.csv", "r.csv")
    made("tell", "s.db", "r.csv")
    filled("p.csv", "again.csv", lambda rows: rows[0].__setitem__(-1, "55,5"))
    made("tell", "s.db", "again.csv", "--replicates")
    before = made("status", "s.db", "--json").json["results"]
    # nothing is wrong in it
    assert made("amend", "s.db", "r.csv", "--json").json["amended"] == 0
    assert made("status", "s.db", "--json").json["results"] == before
    filled("p.csv", "c.csv", lambda rows: rows[0].__setitem__(-1, "99,5"))
    assert "cannot say which of them to correct" in made("amend", "s.db", "c.csv", code=1).stderr
    assert made("status", "s.db", "--json").json["results"] == before


def errors(run: Callable[..., Result]) -> list[tuple[object, object]]:
    return [(row["yield"], row["std"]) for row in run("export", "s.db", "--json").json["rows"]]


def test_corrections_have_errors_or_keep_those_there_are(made) -> None:
    header = "solvent,heat,hours,stir,yield,std"
    made("import", "s.db", past("DMSO,20,1,0,10,0.5", "THF,20,1,0,6,0.25", header=header))
    assert made("amend", "s.db", past("DMSO,20,1,0,12,0.7", header=header)).stdout
    assert errors(made) == [(12, 0.7), (6, 0.25)]
    # the error alone; where none is given the old one stays
    said = made("amend", "s.db", past("DMSO,20,1,0,12,0.9", "THF,20,1,0,7,", header=header)).stdout
    assert said == "2 results corrected\n"
    assert errors(made) == [(12, 0.9), (7, 0.25)]
    assert "0 results" in made("amend", "s.db", past("DMSO,20,1,0,12,0.9", header=header)).stdout
    made("amend", "s.db", "--point", "solvent=THF,heat=20,hours=1,stir=0", "--value", 8)
    assert errors(made) == [(12, 0.9), (8, 0.25)]


def test_one_result_in_place_of_several_is_called_so(made) -> None:
    header = "solvent,heat,hours,stir,yield,std"
    rows = ["DMSO,20,1,0,10,0.5", "DMSO,20,1,0,11,0.5", "DMSO,20,1,0,12,0.5"]
    made("import", "s.db", past(*rows, header=header))
    other = past("DMSO,20,1,0,11,0.6", header=header)
    assert "which of them to correct" in made("amend", "s.db", other, code=1).stderr
    by_hand = ["amend", "s.db", "--point", "solvent=DMSO,heat=20,hours=1,stir=0", "--value", 3]
    assert made(*by_hand).stdout == "1 result in place of 3\n"
    assert errors(made) == [(3, None)]
    assert made(*by_hand, "--json").json == {"amended": 1, "replaced": 1, "failed": 0}


def test_cancelling(made) -> None:
    made("ask", "s.db", "-k", 6, "--out", "p.csv")
    assert "2 designs cancelled, 4 pending" in made("cancel", "s.db", "1", "3-3").stdout
    left = made("status", "s.db", "--pending", "--json").json["pending_points"]
    write_table("c.csv", list(left[0]), [list(left[1].values())])
    assert "1 design cancelled, 3 pending" in made("cancel", "s.db", "c.csv").stdout
    assert "this design is not pending" in made("cancel", "s.db", "c.csv", code=1).stderr
    assert "no pending design has the number 9" in made("cancel", "s.db", "9", code=1).stderr
    assert "say which" in made("cancel", "s.db", code=1).stderr
    for odd in ("²", "1-999999999999", "9" * 200):
        assert "No such file" in made("cancel", "s.db", odd, code=1).stderr
    assert "'3-1' runs backwards; 1-3 was wanted" in made("cancel", "s.db", "3-1", code=1).stderr
    assert made("status", "s.db", "--json").json["pending"] == 3
    left = made("status", "s.db", "--pending", "--json").json["pending_points"]
    cancelled = made("cancel", "s.db", "--all", "--json").json
    assert cancelled == {"cancelled": 3, "pending": 0, "points": left}


def test_what_was_cancelled_is_said(made) -> None:
    made("ask", "s.db", "--fix", "solvent=THF,heat=80,hours=4,stir=1")
    made("ask", "s.db", "--fix", "solvent=DMSO,heat=20,hours=3,stir=0", "--out", "p.csv")
    # the first of those pending, and not the first of the plate
    said = made("cancel", "s.db", "1").stdout
    assert "THF" in said
    assert "DMSO" not in said
    assert "DMSO" in made("cancel", "s.db", "p.csv").stdout


def test_a_correction_recommends_no_option_that_it_lacks(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,20,1,0,6", "THF,20,1,0,7"))
    rows = ["DMSO,20,1,0,8", "DMSO,20,1,0,9", "THF,20,1,0,9", "THF,40,1,0,1", "THF,20,9,0,1"]
    refused = made("amend", "s.db", past(*rows), code=1).stderr
    known = made("amend", "--help").stdout
    assert all(option in known for option in re.findall(r"--[a-z]+", refused))
    assert [int(number) for number in re.findall(r"line (\d+)[:,]", refused)] == [3, 4, 5, 6]
    assert refused.endswith("error: nothing was corrected\n")
    assert [value for value, _ in errors(made)] == [5, 6, 7]


def test_controls_are_corrected_by_their_place(made) -> None:
    made("ask", "s.db", "--plate", 6, "--controls", "A1", "--out", "p.csv")
    filled("p.csv", "r.csv", lambda rows: rows[0].__setitem__(-1, 7.5))
    made("tell", "s.db", "r.csv")
    filled("p.csv", "c.csv", lambda rows: rows[0].__setitem__(-1, 8.5))
    refused = made("tell", "s.db", "c.csv", code=1).stderr
    assert "the control in plate 1, well A1 has the result 7.5 already, here it is 8.5" in refused
    assert made("amend", "s.db", "c.csv").stdout == "1 result corrected\n"
    rows = made("export", "s.db", "--json").json["rows"]
    assert [row["yield"] for row in rows if row["state"] == "control"] == [8.5]


def test_a_corrected_result_keeps_its_columns(made) -> None:
    made("ask", "s.db", "--plate", 6, "--out", "p.csv")
    filled("p.csv", "r.csv")
    made("tell", "s.db", "r.csv")
    before = made("export", "s.db", "--json").json["rows"]
    filled("p.csv", "c.csv", lambda rows: rows[1].__setitem__(-1, 99))
    made("amend", "s.db", "c.csv")
    after = made("export", "s.db", "--json").json["rows"]
    assert [row["yield"] for row in after] == [
        99 if i == 1 else row["yield"] for i, row in enumerate(before)
    ]
    for name in ("plate", "well", "batch"):
        assert [row[name] for row in after] == [row[name] for row in before]


def test_amend_stores_the_other_columns_of_a_table(made) -> None:
    head = "solvent,heat,hours,stir,yield,who,lot"
    made("import", "s.db", past("DMSO,20,1,0,5,Ann,7", "THF,20,1,0,6,Bob,8", header=head))
    made("amend", "s.db", past("DMSO,20,1,0,9,Eve,x", header=head.replace("lot", "reason")))
    rows = made("export", "s.db", "--json").json["rows"]
    # a column that the table lacks stays
    assert [[row[name] for name in ("yield", "who", "lot", "reason")] for row in rows] == [
        [9, "Eve", "7", "x"], [6, "Bob", "8", None],
    ]  # fmt: skip
