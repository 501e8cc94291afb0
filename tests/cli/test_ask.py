"""`mercbo ask`, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.studies import filled

from mercbo import Categorical, Optimizer, Space, StateError
from mercbo.lab.tables import read_table


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
    assert (
        "4 results stored; 2 rows of controls without a result"
        in made("tell", "s.db", "r.csv").stdout
    )
    assert "--controls needs --plate" in made("ask", "s.db", "--controls", 2, code=1).stderr


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


def test_ask_that_is_killed_leaves_no_file_that_the_next_one_refuses(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watched(*_: object, **__: object) -> None:
        seen.append(Path("p.csv").exists())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "ask", watched)
        made("ask", "s.db", "--out", "p.csv", code=130)
    assert seen == [False]
    # as earlier versions left it
    Path("p.csv").touch()
    made("ask", "s.db", "--out", "p.csv")
    assert len(read_table("p.csv").lines) == 1


def test_ask_does_not_write_over_a_file_that_came_meanwhile(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Optimizer.ask

    def asked(own: Optimizer, *args: object, **options: object) -> object:
        Path("p.csv").write_text("a week's results")
        return ask(own, *args, **options)

    monkeypatch.setattr(Optimizer, "ask", asked)
    refused = made("ask", "s.db", "--plate", 6, "--out", "p.csv", code=1).stderr
    assert "p.csv: exists already" in refused
    assert "nothing was asked for, the study is as it was" in refused
    assert Path("p.csv").read_text() == "a week's results"
    assert made("status", "s.db", "--json").json["pending"] == 0


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


def test_an_interrupted_ask_says_where_it_leaves_the_study(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mercbo.optimizer.Optimizer.ask", interrupted)
    result = made("ask", "s.db", "-k", 3, code=130)
    assert "stopped; nothing was asked for, the study is as it was" in result.stderr
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("count", "left"),
    [(0, "nothing was asked for"), (1, "1 design is pending"), (2, "2 designs are pending")],
)
def test_an_interrupted_ask_counts_its_own_designs(
    made, count: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process asks for three designs, and cancels two that were pending before."""
    ask = Optimizer.ask
    before = made("ask", "s.db", "-k", 2, "--json").json["points"]

    def interrupted(own: Optimizer, *_: object, **__: object) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("mercbo.record.store.this_process", lambda: "elsewhere/1/1")
            other = Optimizer.open("sqlite:///s.db")
            ask(other, 3)
            other.cancel(before)
        if count:
            ask(own, count)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "ask", interrupted)
        assert f"stopped; {left}" in made("ask", "s.db", "-k", 2, code=130).stderr


AWKWARD = ["\\[/x]", "[/x]", "[bold]b[/bold]", "a\\", "[link=x]", "\\", "x]"]


def test_values_that_look_like_markup_are_shown_as_they_are(run) -> None:
    Path("m.json").write_text(json.dumps({"variables": {"[red]v": AWKWARD}}))
    run("init", "m.db", "--minimize", "--space", "m.json", "--seed", 0)
    said = run("ask", "m.db", "-k", len(AWKWARD)).stdout
    assert "[red]v" in said
    lines = [line.strip().removesuffix("initial design") for line in said.splitlines()[3:]]
    shown = [line.split(maxsplit=1)[1].strip() for line in lines if line]
    assert sorted(shown) == sorted(AWKWARD)


@pytest.mark.parametrize("value", ["a\x1b[2Jb", "\x07", "x\x0by", "half \ud83d"])
@pytest.mark.parametrize("ending", ["", ".csv", ".xlsx"])
def test_designs_of_an_older_study_are_shown_whatever_their_values(
    run, value: str, ending: str
) -> None:
    """A study made before such values were refused, or by Python."""
    space = Space({"v": Categorical([value, "b"])})
    Optimizer(space, storage="sqlite:///old.db", seed=0)
    if ending == ".xlsx":
        pytest.importorskip("openpyxl")
    said = run("ask", "old.db", "-k", 2, *(["--out", f"p{ending}"] if ending else []))
    assert not re.search("[\x00-\x09\x0b-\x1f\ud800-\udfff]", said.output)
    assert run("status", "old.db", "--json").json["pending"] == 2
    if ending:
        assert len(read_table(f"p{ending}").lines) == 2


@pytest.mark.parametrize("stray", ["\x1b[31m", "\x00", "\ud800", "\x9b", "\uffff"])
def test_a_space_that_tables_cannot_hold_is_refused_at_init(run, stray: str) -> None:
    begin = ["init", "c.db", "--minimize", "--space", "c.json"]
    for space in ({f"a{stray}": ["x", "y"]}, {"a": [f"x{stray}", "y"]}):
        Path("c.json").write_text(json.dumps({"variables": space}))
        refused = run(*begin, code=1).stderr
        assert "which tables cannot hold" in refused
        assert not re.search("[\x00-\x09\x0b-\x1f\x9b\ud800-\udfff]", refused)
        assert not Path("c.db").exists()


def fail(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_designs_that_cannot_be_written_are_not_pending(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ["ask", "s.db", "--plate", 6, "--controls", 1, "--out", "p.csv"]
    with monkeypatch.context() as patch:
        patch.setattr("mercbo.lab.tables.os.replace", fail)
        refused = made(*ask, code=1).stderr
    assert "p.csv: cannot be written (No space left on device)" in refused
    assert "nothing was asked for, the study is as it was" in refused
    assert not [*Path().glob("*.csv"), *Path().glob("mercbo-*")]
    assert made("status", "s.db", "--json").json["pending"] == 0
    made(*ask)
    assert read_table("p.csv").lines[0].cells["plate"] == "1"


def test_designs_that_can_neither_be_written_nor_taken_back_are_named(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise StateError("s.db: the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("mercbo.lab.tables.os.replace", fail)
        patch.setattr("mercbo.optimizer.Optimizer.cancel", refused)
        said = made("ask", "s.db", "-k", 2, "--out", "p.csv", code=1).stderr
    assert "the designs are pending: `mercbo export --pending` writes them" in said
    assert made("status", "s.db", "--json").json["pending"] == 2


def test_an_interrupt_while_writing_takes_the_designs_back(
    made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mercbo.cli.ask.write_table", interrupted)
        said = made("ask", "s.db", "-k", 2, "--out", "p.csv", code=130).stderr
    assert "stopped; nothing was asked for, the study is as it was" in said
    assert not Path("p.csv").exists()
    assert made("status", "s.db", "--json").json["pending"] == 0


def test_a_forced_file_is_as_it_was_if_writing_fails(made, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("p.csv").write_text("a week's results")
    monkeypatch.setattr("mercbo.lab.tables.os.replace", fail)
    made("ask", "s.db", "--out", "p.csv", "--force", code=1)
    assert Path("p.csv").read_text() == "a week's results"


def test_the_answer_for_machines_has_wells(made) -> None:
    answer = made("ask", "s.db", "--plate", 6, "--controls", "A1", "-k", 1, "--json").json
    (point,) = answer["points"]
    empty = dict.fromkeys(point)
    assert answer["rows"] == [
        {"plate": 1, "well": "A1", "design": "control", **empty, "source": None},
        {"plate": 1, "well": "A2", "design": 1, **point, "source": "initial design"},
    ]


WHY = ["source", "acquisition", "acquisition value", "predicted", "predicted std"]


def test_ask_says_why_each_design_is_suggested(made) -> None:
    points = made("ask", "s.db", "-k", 6, "--json").json["points"]
    header = [*points[0], "yield"]
    lines = [",".join(map(str, [*point.values(), 10 * i])) for i, point in enumerate(points)]
    Path("r.csv").write_text("\n".join([",".join(header), *lines]))
    made("tell", "s.db", "r.csv")
    (row,) = made("ask", "s.db", "-k", 1, "--out", "p.csv", "--json").json["rows"]
    assert [name for name in row if name in WHY] == WHY
    assert row["source"] in ("backend", "local search", "enumeration")
    assert row["acquisition"] == "ei"
    assert 0 <= row["predicted std"] < 100
    written = Path("p.csv").read_text(encoding="utf-8-sig").splitlines()
    assert written[0].split(",")[-6:] == [*WHY, "yield"]


def test_columns_of_suggestions_keep_clear_of_variables(run) -> None:
    variables = {"source": [1, 2], "source (model)": [1, 2]}
    Path("m.json").write_text(json.dumps({"variables": variables}))
    run("init", "m.db", "--minimize", "--space", "m.json", "--seed", 0)
    (row,) = run("ask", "m.db", "--json").json["rows"]
    assert {row["source"], row["source (model)"]} <= {1, 2}
    assert row["source (model) (model)"] == "initial design"
