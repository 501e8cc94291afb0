"""Suites: the tables of the documentation, each by one command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercbo import SettingError
from mercbo.bench.methods import METHODS
from mercbo.bench.runs import FILE
from mercbo.bench.suites import SUITES, suite_tasks
from mercbo.cli import app
from mercbo.problems.catalogue import find

DATA = Path("data")


@pytest.mark.parametrize("name", SUITES)
def test_names_are_those_of_problems_and_methods(name: str) -> None:
    for problem in SUITES[name].problems:
        find(problem)
    assert set(SUITES[name].methods) <= set(METHODS)


def test_published_has_ten_runs_of_every_method_on_every_problem() -> None:
    tasks = suite_tasks("published", DATA)
    counts = Counter((task.method, task.problem) for task in tasks)
    assert len(counts) == 8 * 7
    assert {count for (method, _), count in counts.items() if method != "mercbo"} == {10}
    assert {count for (method, _), count in counts.items() if method == "mercbo"} == {15}
    assert not any(task.relocated for task in tasks)
    assert {task.budget for task in tasks} == {None}


def test_heldout_has_the_same_runs_for_all_and_all_but_sequences_are_relocated() -> None:
    tasks = suite_tasks("heldout", DATA)
    by_method = {
        method: [(task.problem, task.run, task.budget) for task in tasks if task.method == method]
        for method in SUITES["heldout"].methods
    }
    assert len(set(map(tuple, by_method.values()))) == 1
    assert {task.problem for task in tasks if task.relocated} == {"labs-50", "pest"}
    assert len({task.key for task in tasks}) == len(tasks)


def test_what_is_drawn_can_be_drawn() -> None:
    """Published instances have 25 runs, of which these are not."""
    drawn = [task for task in suite_tasks("heldout", DATA, methods=["random"]) if not task.data]
    assert {task.problem for task in drawn} == {"ehrlich-20", "labs-50", "pest"}
    assert all(len(task.instance().initial) > 0 for task in drawn)


def test_some_methods_and_problems_of_a_suite() -> None:
    tasks = suite_tasks("published", DATA, methods=["mercbo", "random"], problems=["pest"])
    assert {task.problem for task in tasks} == {"pest"}
    assert Counter(task.method for task in tasks) == {"mercbo": 15, "random": 10}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ({"name": "publishd"}, "'publishd' is not one of .* did you mean 'published'"),
        ({"data": None}, "'published' needs the published data: --data DIR"),
        ({"methods": ["mercbo", "tpe"]}, "methods: the suite has no 'tpe', but .*'optuna-tpe'"),
        ({"problems": ["labs-40"]}, "problems: the suite has no 'labs-40', but .*'labs-50'"),
    ],
)
def test_what_a_suite_does_not_have_is_named(call: dict, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        suite_tasks(**{"name": "published", "data": DATA, **call})


@pytest.mark.slow
def test_the_command_plays_and_reports_and_goes_on(tmp_path: Path) -> None:
    command = [
        "bench", "suite", "heldout", "--data", str(tmp_path), "--methods", "random",
        "--problems", "ehrlich-20", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "6 of 6 runs" in first.output
    report = (tmp_path / "out" / "report.md").read_text()
    assert "ehrlich-20" in report
    assert "relocated" not in report
    played = (tmp_path / "out" / FILE).read_text().splitlines()
    assert len([line for line in played if "index" in json.loads(line)]) == 6 * 200
    CliRunner().invoke(app, command)
    assert len((tmp_path / "out" / FILE).read_text().splitlines()) == len(played)
