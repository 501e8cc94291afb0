"""The report's numbers against a hand computation on a tiny file."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.pyplot as plt
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


def run_lines(method: str, run: int, values: list[float], problem="toy", **more) -> list[dict]:
    best = np.minimum.accumulate(values).tolist()
    return [
        {"method": method, "problem": problem, "run": run, "index": i, "value": v,
         "best": b, "ask": None if i < 2 else 0.1 * (i + run), "tell": 0.0, **more}
        for i, (v, b) in enumerate(zip(values, best, strict=True))
    ]  # fmt: skip


def write(folder: Path, *runs: list[dict]) -> Path:
    lines = [{"versions": {}}, *(line for run in runs for line in run)]
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs = [
        run_lines(method, run, values)
        for method, by_run in VALUES.items()
        for run, values in by_run.items()
    ]
    failed = [{"method": "ours", "problem": "toy", "run": 3, "error": "ValueError: broke"}]
    # only one method has finished run 4, so it is not compared
    return write(tmp_path, *runs, failed, run_lines("ours", 4, [-9.0]))


def test_curves_hold_the_runs_that_all_methods_finished(folder) -> None:
    (curves,), failures = report.load(folder)
    assert curves.runs == (0, 1, 2)
    assert curves.initial == 2
    assert curves.best["ours"].tolist() == [[5, 4, 1, 1], [6, 6, 2, 2], [7, 6, 6, 5]]
    assert failures == ["ours on toy, run 3: ValueError: broke"]
    # asks of runs 0, 1 and 2 at indices 2 and 3: 0.2 0.3 0.3 0.4 0.4 0.5
    assert curves.ask["ours"] == pytest.approx((0.35, 0.35))
    # the file is an old one, without optima
    assert np.isnan(curves.optimum).all()
    assert curves.lacking == {"theirs": (4,)}


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


def test_regret_is_relative_to_the_optimum_of_the_run(tmp_path: Path) -> None:
    optima = {0: 0.0, 1: -2.0}  # that of run 2 is not known
    runs = [
        run_lines(method, run, values, **({"optimum": optima.get(run)} if method == "ours" else {}))
        for method, by_run in VALUES.items()
        for run, values in by_run.items()
    ]
    (curves,), _ = report.load(write(tmp_path, *runs))
    assert curves.optimum == pytest.approx([0.0, -2.0, np.nan], nan_ok=True)
    # run 0: from 4 to 0; run 1: from 6 to -2; run 2: from 6 to the lowest found, 4
    assert report.regrets(curves)["ours"] == pytest.approx([1 / 4, 4 / 8, 1 / 2])
    assert report.regrets(curves)["theirs"] == pytest.approx([2 / 4, 4 / 8, 0])
    assert "### toy (3 runs, optimum known of 2)" in report.markdown([curves])


@pytest.mark.parametrize(
    ("optima", "head"),
    [
        ([-1.0, -1.0], "(2 runs, optimum -1)"),
        ([-1.0, -2.0], "(2 runs, mean optimum -1.5)"),
        ([None, None], "(2 runs)"),
    ],
)
def test_the_optimum_is_shown(tmp_path: Path, optima: list, head: str) -> None:
    runs = [run_lines("ours", i, [2.0, 1.0, 0.5], optimum=o) for i, o in enumerate(optima)]
    (curves,), _ = report.load(write(tmp_path, *runs))
    assert f"### toy {head}" in report.markdown([curves])
    (axes,) = report._convergence(curves).axes
    assert [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == ":"] == (
        [] if None in optima else [np.mean(optima)]
    )
    plt.close("all")


def test_an_optimum_that_was_rounded_up_gives_no_negative_regret(tmp_path: Path) -> None:
    (curves,), _ = report.load(write(tmp_path, run_lines("ours", 0, [3.0, 2.0, 0.9], optimum=1.0)))
    assert report.regrets(curves)["ours"] == pytest.approx([0.0])


def test_runs_shorter_than_the_initial_points_are_compared(tmp_path: Path) -> None:
    runs = [run_lines("ours", 0, [3.0]), run_lines("theirs", 0, [3.0, 2.0, 1.0])]
    (curves,), _ = report.load(write(tmp_path, *runs))
    assert report.regrets(curves)["theirs"] == pytest.approx([0.0])


def test_where_no_point_was_asked_for_the_seconds_are_left_empty(tmp_path: Path) -> None:
    runs = [run_lines("ours", 0, [3.0, 2.0]), run_lines("theirs", 0, [3.0, 2.0, 1.0])]
    curves, _ = report.load(write(tmp_path, *runs))
    ours, theirs = report.problem_table(curves[0]).splitlines()[4:6]
    assert [cell.strip() for cell in ours.split("|")][-2:] == ["", ""]
    assert [cell.strip() for cell in theirs.split("|")][-2:] == ["0.2, 0.2", ""]
    assert "nan" not in report.markdown(curves)


def test_a_run_on_which_everything_failed_has_no_regret(tmp_path: Path) -> None:
    lines = [{**line, "best": None, "value": None} for line in run_lines("ours", 0, [1.0] * 3)]
    (curves,), _ = report.load(write(tmp_path, lines))
    assert np.isnan(report.regrets(curves)["ours"]).all()


# -- who is compared on what -------------------------------------------------------------------


def played(method: str, runs: list[int], problem: str = "toy") -> list[dict]:
    """Runs that end at the run's number."""
    return [line for run in runs for line in run_lines(method, run, [50.0, 40.0, run], problem)]


def test_methods_with_less_than_half_of_the_runs_are_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        played("new", [3]),
        played("ours", [0, 1, 2, 3, 4, 5]),
        played("half", [1, 2, 3]),
        played("most", [0, 1, 3, 4, 5]),
        [{"method": "broken", "problem": "toy", "run": 0, "error": "BackendError: no licence"}],
    )
    (curves,), failures = report.load(tmp_path)
    assert curves.runs == (1, 3)
    assert curves.methods == ["ours", "half", "most"]
    assert curves.left_out == ["new", "broken"]
    assert curves.last("half").tolist() == [1, 3]
    text = report.markdown([curves], failures)
    assert "### toy (2 runs)" in text
    assert (
        "Compared on 2 of 6 runs, those that all methods in the table have finished (1,3):\n\n"
        "- new is left out: it lacks 5 runs (0-2,4-5)\n"
        "- half lacks 3 runs (0,4-5)\n"
        "- most lacks 1 run (2)\n"
        "- broken is left out: it lacks every run\n"
    ) in text
    assert "and so not here: broken, new." in text
    assert "broken on toy, run 0: BackendError: no licence" in text


def test_where_all_have_all_nothing_is_said(tmp_path: Path) -> None:
    curves, _ = report.load(write(tmp_path, played("ours", [0, 1]), played("theirs", [1, 0])))
    assert curves[0].lacking == {}
    text = report.markdown(curves)
    assert "Compared on" not in text
    assert "not here" not in text


def test_methods_without_a_run_in_common_do_not_wipe_each_other_out(tmp_path: Path) -> None:
    write(tmp_path, played("ours", [0, 1]), played("theirs", [2, 3]), played("third", [1, 2]))
    (curves,), _ = report.load(tmp_path)
    assert (curves.methods, curves.runs, curves.left_out) == (["ours", "third"], (1,), ["theirs"])


def test_a_method_not_played_on_a_problem_is_left_out_there(tmp_path: Path) -> None:
    write(
        tmp_path,
        *(played(method, [0, 1], problem) for method in ("ours", "theirs") for problem in "ab"),
        played("third", [0, 1], "a"),
    )
    curves, _ = report.load(tmp_path)
    assert [c.methods for c in curves] == [["ours", "theirs", "third"], ["ours", "theirs"]]
    text = report.markdown(curves)
    assert "- third is left out: it lacks every run" in text
    assert "### All 2 problems (4 runs)" in text
    assert "Not compared on every problem, and so not here: third." in text


def test_problems_without_a_method_in_common_have_no_ranks(tmp_path: Path) -> None:
    write(tmp_path, played("ours", [0], "a"), played("theirs", [0], "b"))
    curves, _ = report.load(tmp_path)
    assert (
        "### All 2 problems\n\nNot compared on every problem, and so not here: ours, theirs."
        in (report.markdown(curves))
    )
    assert "ranks.png" not in {path.name for path in report.plot(curves, tmp_path)}


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
    assert table.tolist() == [[1.5, 1.5]]  # the mean of (1, 2), (1.5, 1.5) and (2, 1)


def test_the_critical_difference_is_nemenyis() -> None:
    # Demsar 2006, table 5: q of 4 methods at 5 % is 2.569; 4 methods on 14 data sets
    expected = 2.569 * np.sqrt(4 * 5 / (6 * 14))
    assert report.critical_difference(4, 14) == pytest.approx(expected, abs=2e-3)


def test_the_text_has_every_number(folder) -> None:
    curves, failures = report.load(folder)
    text = report.markdown(curves, failures)
    assert "### toy (3 runs)" in text
    assert "| ours | 2.6667 ± 2.4 | 0.167 |  | 0.35, 0.35 |" in text
    assert "| theirs | 2.6667 ± 1.3 | 0.111 | 1-1-1 (1) | 0.35, 0.35 |" in text
    assert "are not told apart (Nemenyi, 5 %, on 1 problems)" in text
    assert "| ours | 1.50 | 0.167 |" in text
    assert "ours on toy, run 3: ValueError: broke" in text


def test_the_others_are_compared_with_whom_one_likes(folder) -> None:
    curves, _ = report.load(folder)
    assert "| ours wins-ties-losses (p) |" in report.markdown(curves)
    text = report.markdown(curves, against="theirs")
    assert "| theirs wins-ties-losses (p) |" in text
    with pytest.raises(SettingError, match=r"against='their' is none of .*did you mean 'theirs'"):
        report.markdown(curves, against="their")


def test_a_rank_counts_a_problem_once_however_many_runs_it_has(tmp_path: Path) -> None:
    runs = [
        run_lines(method, run, [9.0, 9.0, value, value], problem)
        for problem, count in (("short", 1), ("long", 9))
        for run in range(count)
        for method, value in (("a", 1.0 if problem == "long" else 3.0), ("b", 2.0))
    ]
    curves, _ = report.load(write(tmp_path, *runs))
    assert report.ranks(curves)[1].mean(axis=0).tolist() == [1.5, 1.5]


def test_what_packing_rounds_off_is_no_difference() -> None:
    value = -195.652728438
    found = report.duel(np.array([value]), np.array([float(f"{value:.9g}")]))
    assert (found.wins, found.ties, found.losses) == (0, 1, 0)


def test_runs_on_other_instances_are_not_compared(tmp_path: Path) -> None:
    drawn, published = [5.0, 4.0, 3.0], [5.5, 4.0, 3.0]
    write(tmp_path, run_lines("a", 0, drawn), run_lines("b", 0, published))
    with pytest.raises(SettingError, match=r"run 0 of toy is not the same instance for a .* for b"):
        report.load(tmp_path)


def test_longer_runs_are_named_where_they_are_cut(tmp_path: Path) -> None:
    long, short = [5.0, 4.0, 3.0, 1.0], [5.0, 4.0, 3.5]
    curves, _ = report.load(write(tmp_path, run_lines("a", 0, long), run_lines("b", 0, short)))
    assert "Longer runs, looked at up to 3 evaluations: a." in report.markdown(curves)


def test_the_mean_of_seconds_shows_an_ask_that_worked_for_others(tmp_path: Path) -> None:
    lines = run_lines("a", 0, [5.0, 4.0, 3.0, 2.0, 1.0])
    for line, ask in zip(lines[2:], (0.9, 0.0, 0.0), strict=True):
        line["ask"] = ask
    curves, _ = report.load(write(tmp_path, lines))
    assert "| 0, 0.3 |" in report.markdown(curves)


def test_plots_are_written(folder) -> None:
    curves, _ = report.load(folder)
    names = {path.name for path in report.plot(curves, folder)}
    assert names == {"convergence-toy.png", "convergence-toy.svg", "ranks.png", "ranks.svg"}
    assert (folder / "ranks.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_benchmark_is_named(tmp_path) -> None:
    with pytest.raises(SettingError, match="run the benchmark first"):
        report.load(tmp_path)
