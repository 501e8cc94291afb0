"""The report's numbers against a hand computation on a tiny file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.bench import report
from mercbo.bench.runner import FILE

# method -> run -> values of four evaluations, two of them initial
VALUES = {
    "ours": {0: [5.0, 4.0, 1.0, 3.0], 1: [6.0, 8.0, 2.0, 2.0], 2: [7.0, 6.0, 9.0, 5.0]},
    "theirs": {0: [5.0, 4.0, 6.0, 2.0], 1: [6.0, 8.0, 7.0, 2.0], 2: [7.0, 6.0, 4.0, 8.0]},
}


@pytest.fixture
def folder(tmp_path):
    lines = [{"versions": {}}]
    for method, runs in VALUES.items():
        for run, values in runs.items():
            best = np.minimum.accumulate(values)
            lines += [
                {"method": method, "problem": "toy", "run": run, "index": i, "value": v,
                 "best": b, "ask": None if i < 2 else 0.1 * (i + run), "tell": 0.0}
                for i, (v, b) in enumerate(zip(values, best.tolist(), strict=True))
            ]  # fmt: skip
    lines.append({"method": "ours", "problem": "toy", "run": 3, "error": "ValueError: broke"})
    # only one method has finished run 4, so it is not compared
    lines.append({"method": "ours", "problem": "toy", "run": 4, "index": 0, "value": -9.0,
                  "best": -9.0, "ask": None, "tell": 0.0})  # fmt: skip
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_curves_hold_the_runs_that_all_methods_finished(folder) -> None:
    (curves,), failures = report.load(folder)
    assert curves.runs == (0, 1, 2)
    assert curves.initial == 2
    assert curves.best["ours"].tolist() == [[5, 4, 1, 1], [6, 6, 2, 2], [7, 6, 6, 5]]
    assert failures == ["ours on toy, run 3: ValueError: broke"]
    # asks of runs 0, 1 and 2 at indices 2 and 3: 0.2 0.3 0.3 0.4 0.4 0.5
    assert curves.ask["ours"] == pytest.approx(0.35)


def test_means_and_errors(folder) -> None:
    (curves,), _ = report.load(folder)
    mean, error = report.mean_and_error(curves.last("ours"))
    # 1, 2 and 5: mean 8/3, variance (25 + 4 + 49) / 9 / 2
    assert mean == pytest.approx(8 / 3)
    assert error == pytest.approx(2 * np.sqrt(78 / 18 / 3))


def test_regret_is_relative_to_the_best_of_the_run(folder) -> None:
    (curves,), _ = report.load(folder)
    found = report.regrets(curves)
    # run 0: lowest 1, start 4; run 1: lowest 2, start 6; run 2: lowest 4, start 6
    assert found["ours"] == pytest.approx([0, 0, 0.5])
    assert found["theirs"] == pytest.approx([1 / 3, 0, 0])


def test_regret_is_relative_to_a_known_optimum(folder) -> None:
    (curves,), _ = report.load(folder, {"toy": 0.0})
    assert report.regrets(curves)["ours"] == pytest.approx([1 / 4, 2 / 6, 5 / 6])


def test_wins_ties_and_losses(folder) -> None:
    (curves,), _ = report.load(folder)
    found = report.duel(curves.last("ours"), curves.last("theirs"))
    assert (found.wins, found.ties, found.losses, found.p) == (1, 1, 1, 1.0)


def test_the_sign_test_is_binomial() -> None:
    found = report.duel(np.zeros(6), np.ones(6))
    assert (found.wins, found.losses) == (6, 0)
    assert found.p == pytest.approx(2 / 2**6)


def test_a_run_without_a_value_loses() -> None:
    found = report.duel(np.array([np.nan, 1.0]), np.array([1.0, np.nan]))
    assert (found.wins, found.ties, found.losses) == (1, 0, 1)


def test_ranks_share_ties(folder) -> None:
    curves, _ = report.load(folder)
    methods, table = report.ranks(curves)
    assert methods == ["ours", "theirs"]
    assert table.tolist() == [[1, 2], [1.5, 1.5], [2, 1]]


def test_the_critical_difference_is_nemenyis() -> None:
    # Demsar 2006, table 5: q of 4 methods at 5 % is 2.569; 4 methods on 14 data sets
    expected = 2.569 * np.sqrt(4 * 5 / (6 * 14))
    assert report.critical_difference(4, 14) == pytest.approx(expected, abs=2e-3)


def test_the_text_has_every_number(folder) -> None:
    curves, failures = report.load(folder)
    text = report.markdown(curves, failures)
    assert "### toy (3 runs)" in text
    assert "| ours | 2.6667 ± 2.4 | 0.167 |  | 0.35 |" in text
    assert "| theirs | 2.6667 ± 1.3 | 0.111 | 1-1-1 (1) | 0.35 |" in text
    assert "| ours | 1.50 | 0.167 |" in text
    assert "ours on toy, run 3: ValueError: broke" in text


def test_plots_are_written(folder) -> None:
    curves, _ = report.load(folder)
    names = {path.name for path in report.plot(curves, folder)}
    assert names == {"convergence-toy.png", "convergence-toy.svg", "ranks.png", "ranks.svg"}
    assert (folder / "ranks.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_benchmark_is_named(tmp_path) -> None:
    with pytest.raises(SettingError, match="run the benchmark first"):
        report.load(tmp_path)
