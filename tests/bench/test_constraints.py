"""`mercbo bench constraints`: small runs of its three tables."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from mercbo.bench import constraints
from mercbo.cli import app


@pytest.mark.slow
def test_the_command_writes_its_tables(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraints, "large_cases", constraints.small_cases)
    monkeypatch.setattr(constraints, "RESULTS", 12)
    monkeypatch.setattr(constraints, "ASKS", 1)
    monkeypatch.setattr(constraints, "MOST_ASKS", 5)
    monkeypatch.setattr(constraints, "TO_FIND", 8)
    monkeypatch.setattr(constraints, "TO_WASTE", 20)
    done = CliRunner().invoke(app, ["bench", "constraints", "--out", str(tmp_path), "--runs", "1"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "constraints.md").read_text()
    assert "| optimum found | constrained | unconstrained | table |" in text
    assert "| failed, of 20 evaluations | learn | ignore |" in text
    lines = [json.loads(line) for line in (tmp_path / "constraints.jsonl").read_text().splitlines()]
    kinds = [line["kind"] for line in lines[1:]]
    assert {kind: kinds.count(kind) for kind in ("cost", "found", "wasted")} == {
        "cost": 4, "found": 12, "wasted": 8,
    }  # fmt: skip
    assert all(not line["infeasible"] for line in lines if line.get("way") == "constrained")


def test_rules_fail_on_a_fair_share_of_the_space() -> None:
    for name, case, fails in constraints.rules(3):
        points = case.space.points(case.space.enumerate_rows()[::7])
        assert 0.25 < sum(map(fails, points)) / len(points) < 0.55, name


@pytest.mark.parametrize("number", [0, 1])
def test_small_cases_are_feasible_and_constrained(number: int) -> None:
    for case in constraints.small_cases(number):
        rows = case.space.enumerate_rows()
        assert 0 < len(rows) < case.space.size
        point = case.space.points(rows[:1])[0]
        assert case.value(point) == pytest.approx(case.values(rows[:1])[0])
