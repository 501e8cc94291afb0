"""The backend comparison: its numbers equal a hand computation, its command runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mercbo.bench import backends, proofs
from mercbo.bench.backends import Measurement, summarise
from mercbo.cli import app
from mercbo.cli.bench import parse_problems


def row(draw: int, solver: str, energy: float | None, **more: float) -> Measurement:
    values = {"lower_bound": None, "status": "", "feasible": 1.0, "seconds": 1.0, **more}
    return Measurement(problem="p", draw=draw, solver=solver, energy=energy, **values)


def test_the_summary_is_a_hand_computation() -> None:
    rows = [
        row(0, "a", -3.0, seconds=1.0, lower_bound=-5.0),
        row(0, "b", -2.0, seconds=3.0),
        row(1, "a", -4.0, seconds=2.0, lower_bound=-5.0),
        row(1, "b", -4.0, seconds=5.0, feasible=0.5),
        row(2, "a", -1.0, seconds=9.0, lower_bound=-1.0),
        row(2, "b", -1.0, seconds=7.0),
    ]
    a, b = summarise(rows)
    assert (a.gap, a.best, a.seconds) == (0.0, 1.0, 2.0)
    assert a.proven == pytest.approx((2 + 1 + 0) / 3)
    assert a.energy == pytest.approx(-8 / 3)
    assert b.gap == pytest.approx(1 / 3)
    assert b.best == pytest.approx(2 / 3)
    assert (b.proven, b.seconds) == (None, 5.0)
    assert b.feasible == pytest.approx(2.5 / 3)


def test_a_solver_without_a_feasible_sample_has_no_gap() -> None:
    table = summarise([row(0, "a", -1.0), row(0, "b", None, feasible=0.0)])
    assert np.isinf(table[1].gap)
    assert "none feasible" in backends.markdown(table)


@pytest.mark.slow
def test_the_command_writes_table_plot_and_raw_file(tmp_path) -> None:
    done = CliRunner().invoke(
        app,
        ["bench", "backends", "--out", str(tmp_path / "out"), "--cp-sat-seconds", "1",
         "--problems", "contamination:1x1,dna:1x1"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    assert (out / "backends.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "backends.md").read_text().startswith("| problem | solver |")
    lines = [json.loads(line) for line in (out / "backends.jsonl").read_text().splitlines()]
    assert "versions" in lines[0]
    measured = {(line["problem"], line["solver"]): line for line in lines[1:]}
    for problem in ("contamination", "dna"):
        exact = measured[problem, "exhaustive"]["energy"]
        assert measured[problem, "graph-cut"]["energy"] == pytest.approx(exact, abs=1e-6)
        assert measured[problem, "graph-cut"]["feasible"] == 1.0


@pytest.mark.slow
def test_proofs_of_small_cases_agree(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "BITS", (6, 8))
    monkeypatch.setattr(proofs, "GROUPS", ((3, 3),))
    done = CliRunner().invoke(app, ["bench", "proofs", "--out", str(tmp_path), "--draws", "2"])
    assert done.exit_code == 0, done.output
    assert "all proofs of a draw agree" in done.output
    assert "| 3 x 3 |" in (tmp_path / "proofs.md").read_text()


def test_disagreeing_proofs_are_seen() -> None:
    one = proofs.Proof("p", 0, "rows", "optimal", -1.0, 0.1)
    other = proofs.Proof("p", 0, "products", "optimal", -2.0, 0.1)
    assert not proofs.agree([one, other])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("isingg:1x1", "name='isingg' is not one of .*; did you mean 'ising'?"),
        ("ising,labs40", "name='labs40' is not one of .*; did you mean 'labs-40'?"),
        ("ising:1", "'ising:1' is not of the form NAME:INSTANCESxDRAWS"),
        ("ising:axb", "'ising:axb' is not of the form NAME:INSTANCESxDRAWS"),
        ("dna:ARX:2", "'dna:ARX:2' is not of the form NAME:INSTANCESxDRAWS"),
        ("2x5", "name='2x5' is not one of"),
        (" , ", "' , ' holds no name"),
    ],
)
def test_wrong_problems_are_named(text: str, message: str) -> None:
    with pytest.raises(typer.BadParameter, match=message):
        parse_problems(text)


def test_problems_are_parsed() -> None:
    assert parse_problems("ising:2x5, dna") == {"ising": (2, 5), "dna": (1, 1)}
    assert parse_problems("labs-41:1x2,nk-12-2,ehrlich-15-4:3x1") == {
        "labs-41": (1, 2), "nk-12-2": (1, 1), "ehrlich-15-4": (3, 1),
    }  # fmt: skip
    # a factor and counts may both stand behind a colon
    assert parse_problems("dna:2x3, dna:ARX, dna-bits:CRX:2x3") == {
        "dna": (2, 3), "dna:ARX": (1, 1), "dna-bits:CRX": (2, 3),
    }  # fmt: skip


def test_a_problem_that_cannot_be_made_is_named_before_anything_is_measured(tmp_path) -> None:
    out = tmp_path / "out"
    for problems, message in [("ising,labs-1", "n=1"), ("ising,dna:ARX", "factor='ARX'")]:
        done = CliRunner(env={"MERCBO_DATA": None}).invoke(
            app, ["bench", "backends", "--out", str(out), "--problems", problems]
        )
        assert done.exit_code == 2
        assert message in done.output
        assert not out.exists()


def test_sizes_of_ones_own_are_measured(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "HISTORY", 20)
    rows = backends.run({"labs-7": (1, 1)}, tmp_path, cp_sat_seconds=1.0)
    assert {row.problem for row in rows} == {"labs-7"}
