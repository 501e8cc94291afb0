"""`mercbo init`, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from support.studies import filled, past

from mercbo.lab.study import Study


def test_past_failures_are_counted(run) -> None:
    rows = ["DMSO,20,1,0,5", "THF,40,2,1,failed", "water,20,1,1,3"]
    said = run("init", "s.db", "--minimize", "--from", past(*rows), "--target", "yield").stdout
    assert "3 past results loaded (1 failure among them)" in said


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
    begin = ["--from", "past.csv", "--target", "yield", "--maximize"]
    assert "exists already" in run("init", ".", *begin, code=1).stderr
    assert "one of --space and --from" in run("init", "u.db", code=1).stderr


def test_tables_of_a_study_give_its_variables_back(made) -> None:
    """A table of `ask` and an export have columns that are no variables."""
    for number in range(3):
        made("ask", "s.db", "--plate", 6, "--controls", 1, "--out", f"p{number}.csv")
        filled(f"p{number}.csv", f"r{number}.csv", lambda rows: rows[0].__setitem__(-1, 3))
        made("tell", "s.db", f"r{number}.csv")
    made("export", "s.db", "all.csv")
    names = Study.open("s.db").space.names
    for table in ("all.csv", "r2.csv"):
        name = Path(table).with_suffix(".db")
        made("init", name, "--from", table, "--target", "yield", "--maximize")
        assert set(Study.open(name).space.names) <= set(names)
    assert Study.open("all.db").space.names == names
    assert len(Study.open("all.db").optimizer.observations) == 15
    assert len(Study.open("all.db").notes.controls()) == 3


def test_columns_with_names_of_mercbo_may_be_variables(run) -> None:
    rows = ["1,Aldrich,a,5", "2,Fluka,b,6", "2,Aldrich,b,7", "1,Fluka,a,7"]
    table = past(*rows, header="time,source,state,yield")
    run("init", "s.db", "--from", table, "--target", "yield", "--maximize", "--ignore", "state")
    assert Study.open("s.db").space.names == ("time", "source")


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


def test_results_outside_the_bounds_are_refused(run) -> None:
    begin = ["init", "s.db", "--space", "space.yaml", "--maximize", "--target", "yield"]
    run(*begin, "--between", "0,100")
    rows = ["DMSO,20,1,0,5", "THF,40,2,1,820", "THF,20,2,1,-3"]
    refused = run("import", "s.db", past(*rows), code=1).stderr
    assert (
        "column \"yield\" (E3): '820' is not between 0 and 100, the bounds of the study" in refused
    )
    assert "'-3' is not between 0 and 100" in refused
    assert run("status", "s.db", "--json").json["results"] == 0
    run("import", "s.db", past(*rows), "--partial", code=3)
    by_hand = ["amend", "s.db", "--point", "solvent=DMSO,heat=20,hours=1,stir=0", "--value"]
    assert "101" in run(*by_hand, 101, code=1).stderr
    refused = run("amend", "s.db", past("DMSO,20,1,0,101"), code=1).stderr
    assert "'101' is not between 0 and 100" in refused
    (row,) = run("export", "s.db", "--json").json["rows"]
    assert row["yield"] == 5


def test_past_results_outside_the_bounds_make_no_study(run) -> None:
    begin = ["--from", past("DMSO,20,1,0,5", "THF,40,2,1,820"), "--target", "yield", "--maximize"]
    refused = run("init", "s.db", *begin, "--between", "0,100", code=1).stderr
    assert "'820' is not between 0 and 100" in refused
    assert "past.csv: nothing was made" in refused
    assert sorted(path.name for path in Path().iterdir()) == ["past.csv", "space.yaml"]


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("0,100", (0, 100)),
        ("0", (0, math.inf)),
        (",100", (-math.inf, 100)),
        ("-1.5, 2e3", (-1.5, 2000)),
    ],
)
def test_bounds_are_two_numbers_or_one(run, text: str, bounds: tuple[object, object]) -> None:
    run("init", "s.db", "--space", "space.yaml", "--maximize", "--between", text)
    assert Study.open("s.db").optimizer.target_bounds == bounds


@pytest.mark.parametrize("text", ["a,b", "0-100", "0,100,200", ",", "100,0", "0,0", "nan,1"])
def test_bounds_that_are_none_are_refused(run, text: str) -> None:
    begin = ["init", "s.db", "--space", "space.yaml", "--maximize", "--between", text]
    assert run(*begin, code=1).stderr.startswith("error: ")
    assert not Path("s.db").exists()


def test_an_interrupt_while_past_results_are_stored_leaves_nothing(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    begin = ["init", "s.db", "--from", past("DMSO,20,1,0,5", "THF,40,2,1,7"), "--target", "yield"]
    with monkeypatch.context() as patch:
        patch.setattr("mercbo.optimizer.Optimizer.tell", interrupted)
        said = run(*begin, "--maximize", code=130).stderr
    assert "stopped; no study was made" in said
    assert sorted(path.name for path in Path().iterdir()) == ["past.csv", "space.yaml"]
