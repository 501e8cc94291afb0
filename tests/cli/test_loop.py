"""Whole loops on a study, through typer's runner; the real program is in test_program.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.studies import SPACE, filled, past, yields


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


def test_a_space_is_changed_by_way_of_a_table(made) -> None:
    made("import", "s.db", past("DMSO,20,1,0,5", "THF,40,2,1,failed"))
    made("ask", "s.db", "-k", 2)
    Path("edited.yaml").write_text(SPACE.replace("THF]", "THF, DMF]"))
    made("init", "new.db", "--space", "edited.yaml", "--maximize", "--target", "yield")
    made("export", "s.db", "all.csv")
    said = made("import", "new.db", "all.csv").stdout
    assert "2 results stored (1 failure among them); 2 rows without a result yet" in said


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
