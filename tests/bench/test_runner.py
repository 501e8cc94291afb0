"""The runner: every evaluation on file, pure runs, exact resumption, failures that do not stop."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercbo import SettingError, Space
from mercbo.arrays import Rows
from mercbo.bench import runner
from mercbo.bench.methods import METHODS
from mercbo.bench.methods import make as make_method
from mercbo.bench.runner import FILE, Task, run_all, runs_of, tasks_of
from mercbo.bench.runs import PACKED, gathered, pack
from mercbo.cli import app
from mercbo.problems import make as make_problem
from mercbo.record.processes import this_process

TIMES = {"ask", "tell", "memory"}
KEYS = {"method", "problem", "run", "index", "point", "value", "best", "optimum"}


def unframed(text: str) -> str:
    """An error message without its frame and line ends."""
    return " ".join(word for word in text.split() if word != "\u2502")


def small_tasks(methods=("random", "mercbo"), runs=(0, 1)) -> list[Task]:
    return tasks_of(["labs-10"], methods, runs, budget=24, relocated=True, data=None)


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()]


def without_times(lines: list[dict]) -> list[dict]:
    kept = [{k: v for k, v in line.items() if k not in TIMES} for line in lines if "index" in line]
    return sorted(kept, key=lambda line: (line["method"], line["run"], line["index"]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert run_all(small_tasks(), folder, jobs=2) == []
    return folder


def test_every_evaluation_is_on_file(whole: Path) -> None:
    head, *lines = lines_of(whole)
    assert "versions" in head
    assert len(lines) == 2 * 2 * 24
    for line in lines:
        assert set(line) == KEYS | TIMES
        assert line["optimum"] == pytest.approx(-100 / 13)  # -n^2 / E, Packebusch and Mertens
        assert line["problem"] == "labs-10 (relocated)"
        assert (line["ask"] is None) == (line["index"] < 20)
    for method in ("random", "mercbo"):
        values = [ln["value"] for ln in lines if (ln["method"], ln["run"]) == (method, 1)]
        bests = [ln["best"] for ln in lines if (ln["method"], ln["run"]) == (method, 1)]
        assert bests == [min(values[: i + 1]) for i in range(24)]


def test_methods_share_initial_points(whole: Path) -> None:
    lines = [line for line in lines_of(whole)[1:] if line["index"] < 20 and line["run"] == 0]
    by_method = {
        method: [line["point"] for line in lines if line["method"] == method]
        for method in ("random", "mercbo")
    }
    assert by_method["random"] == by_method["mercbo"]


def test_a_run_is_a_pure_function_of_its_task(whole: Path) -> None:
    (task,) = [t for t in small_tasks() if (t.method, t.run) == ("mercbo", 1)]
    again = without_times(runner.play(task).evaluations)
    before = [
        ln for ln in without_times(lines_of(whole)) if (ln["method"], ln["run"]) == ("mercbo", 1)
    ]
    assert json.loads(json.dumps(again)) == before


@pytest.mark.slow
def test_what_was_killed_is_resumed_exactly(whole: Path, tmp_path: Path) -> None:
    """One run whole, one cut in the middle of a line: the first is kept, the rest played."""
    lines = (whole / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(lines[: 1 + 24 + 10]) + lines[1 + 24 + 10][:30])
    played: list[tuple] = []
    run_all(
        small_tasks(), tmp_path,
        progress=lambda outcome, *_: played.append(outcome.task.key) if outcome else None,
    )  # fmt: skip
    assert len(played) == 3
    assert without_times(lines_of(tmp_path)) == without_times(lines_of(whole))


def test_a_finished_benchmark_is_left_alone(whole: Path) -> None:
    before = (whole / FILE).read_text().splitlines()[1:]
    counts: list[tuple[int, int]] = []
    run_all(small_tasks(), whole, progress=lambda _, done, total: counts.append((done, total)))
    assert (whole / FILE).read_text().splitlines()[1:] == before
    assert counts == [(4, 4)]


def test_a_line_that_cannot_be_read_costs_no_finished_run(whole: Path, tmp_path: Path) -> None:
    lines = (whole / FILE).read_text().splitlines(keepends=True)
    text = "".join([*lines[:30], "<<<<<<< HEAD\n", *lines[30:]])
    (tmp_path / FILE).write_text(text)
    with pytest.raises(SettingError, match=rf"{FILE}, line 31: '<<<<<<< HEAD' came"):
        run_all(small_tasks(), tmp_path)
    assert (tmp_path / FILE).read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("budget", [22, 30])
def test_another_budget_does_not_take_the_place_of_a_finished_run(
    whole: Path, tmp_path: Path, budget: int
) -> None:
    text = (whole / FILE).read_text()
    (tmp_path / FILE).write_text(text)
    for method in ("random", "mercbo"):  # one of them is the last in the file
        tasks = tasks_of(["labs-10"], [method], [1], budget=budget, relocated=True, data=None)
        match = f"run 1 of {method} on labs-10 .relocated. with 24 evaluations, and {budget} are"
        with pytest.raises(SettingError, match=match):
            run_all(tasks, tmp_path)
    assert (tmp_path / FILE).read_text() == text


def test_the_header_names_the_code_and_keeps_what_played_before(
    whole: Path, tmp_path: Path
) -> None:
    now, *lines = lines_of(whole)
    assert len(now["code"]) == 12
    before = {"versions": {"mercbo": "0.0.1"}}
    text = [json.dumps(line) + "\n" for line in (before, *lines)]
    (tmp_path / FILE).write_text("".join(text))
    for _ in range(2):
        run_all(small_tasks(), tmp_path)
        (head, *_) = lines_of(tmp_path)
        assert head == {**now, "earlier": [before]}


def test_a_folder_in_which_another_runner_works_is_refused(whole: Path, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text((whole / FILE).read_text())
    (tmp_path / runner.RUNNING).write_text(this_process())
    with pytest.raises(SettingError, match="another benchmark is being played in"):
        run_all(small_tasks(), tmp_path)
    # one that was killed has left its mark
    host, _, _ = this_process().rsplit("/", 2)
    (tmp_path / runner.RUNNING).write_text(f"{host}/999999999/1")
    assert run_all(small_tasks(), tmp_path) == []
    assert not (tmp_path / runner.RUNNING).exists()


@pytest.mark.parametrize("packed", [False, True])
def test_drawn_and_published_instances_do_not_meet_in_one_folder(
    whole: Path, tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if packed:
        pack(tmp_path / PACKED, *gathered(whole))
    else:
        (tmp_path / FILE).write_text((whole / FILE).read_text())
    # the same names, other initial points: as those that come with --data
    monkeypatch.setattr(Task, "instance", lambda task: make_problem(task.problem, task.run + 50))
    with pytest.raises(SettingError, match=r"run 0 of labs-10 .relocated. on another instance"):
        run_all(small_tasks(["local"]), tmp_path)


class Stub:
    """Random search in a process of its own, by what it says."""

    closed = False

    def __init__(self, space: Space, seed: int, evaluations: int) -> None:
        self.method = make_method("random", space, seed, evaluations)
        self.told = 0

    def ask(self) -> Rows:
        return self.method.ask()

    def tell(self, row: Rows, value: float) -> None:
        self.told += 1
        if self.told > 22:
            raise ValueError("enough")
        self.method.tell(row, value)

    def memory(self) -> float:
        return 1e6 * self.told

    def close(self) -> None:
        Stub.closed = True


def test_a_method_tells_its_memory_and_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "stub", Stub)
    lines = runner.play(Task("stub", "labs-10", 0, budget=22)).evaluations
    own = [line["memory"] - 1e6 * (line["index"] + 1) for line in lines]
    assert len(own) == 22
    # what is left is this process, in MB
    assert all(10 < mb < 1e5 for mb in own)
    monkeypatch.setattr(Stub, "closed", False)
    assert runner.play(Task("stub", "labs-10", 0, budget=24)).error == "ValueError: enough"
    assert Stub.closed


def test_an_unknown_optimum_is_null() -> None:
    (line, *_) = runner.play(Task("random", "labs-90", 0, budget=1)).evaluations
    assert line["optimum"] is None


@pytest.mark.slow
def test_a_failing_method_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    failing = "worker:false"
    failures = run_all(small_tasks((failing, "random"), (0,)), tmp_path)
    assert [outcome.task.method for outcome in failures] == [failing]
    lines = lines_of(tmp_path)
    assert [line["method"] for line in lines if "error" in line] == [failing]
    assert sum("index" in line for line in lines) == 24
    # and it is tried again the next time
    assert len(run_all(small_tasks((failing, "random"), (0,)), tmp_path)) == 1


@pytest.mark.slow
def test_a_run_whose_process_is_killed_fails_alone(tmp_path: Path) -> None:
    killed = "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"
    methods = (f"worker:{sys.executable} -c '{killed}'", "random")
    failures = run_all(small_tasks(methods, runs=[0]), tmp_path, jobs=1)
    assert [outcome.error for outcome in failures] == ["its process ended with code -9"]
    assert {line["method"] for line in lines_of(tmp_path) if "index" in line} == {"random"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_runs_end_where_the_runner_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "process"
    worker = f"import os, time; open({str(note)!r}, 'w').write(str(os.getppid())); time.sleep(300)"
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from mercbo.bench.runner import run_all, tasks_of\n"
        "if __name__ == '__main__':\n"
        "    method = 'worker:' + sys.argv[2]\n"
        "    tasks = tasks_of(['labs-10'], [method], [0], budget=24, relocated=True, data=None)\n"
        "    run_all(tasks, Path(sys.argv[1]))\n"
    )
    command = shlex.join([sys.executable, "-c", worker])
    runner = subprocess.Popen([sys.executable, script, tmp_path / "out", command])
    try:
        assert met(lambda: note.exists() and note.read_text())
        runner.kill()
        runner.wait()
        run = Path("/proc") / note.read_text() / "stat"
        assert met(lambda: has_ended(run))
    finally:
        runner.kill()


def has_ended(stat: Path) -> bool:
    """Whether a process is gone, or as good as gone, by its file in /proc."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def met(condition: Callable[[], object], seconds: float = 120.0) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("text", ["", "a", "3-", "-3", "1-x", "0,,2", "²"])
def test_wrong_runs_are_quoted(text: str) -> None:
    with pytest.raises(SettingError, match="runs="):
        runs_of(text)


@pytest.mark.parametrize(("text", "part"), [("3-1", "3-1"), ("0,12-9", "12-9")])
def test_runs_that_go_backwards_are_refused(text: str, part: str) -> None:
    with pytest.raises(SettingError, match=rf"runs='{text}': '{part}' runs backwards; \d+-\d+ was"):
        runs_of(text)
    assert runs_of("3-3") == [3]


@pytest.mark.parametrize("budget", [0, -1, 2.5])
def test_a_budget_is_at_least_one_evaluation(budget: int) -> None:
    with pytest.raises(SettingError, match=f"budget={budget} is not a whole number of at least 1"):
        tasks_of(["labs-10"], ["random"], [0], budget=budget, relocated=True, data=None)


def test_no_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="jobs=0"):
        run_all(small_tasks(), tmp_path, jobs=0)


@pytest.mark.slow
def test_the_commands_play_and_report(tmp_path: Path) -> None:
    options = ["--problems", "nk-8-2", "--methods", "random,local", "--runs", "0-1"]
    done = CliRunner().invoke(
        app, ["bench", "run", *options, "--budget", "26", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "4 of 4 runs are in" in done.output
    done = CliRunner().invoke(app, ["bench", "report", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "### nk-8-2 (relocated) (2 runs, mean optimum -0." in done.output
    assert (tmp_path / "report.md").exists()
    assert (tmp_path / "convergence-nk-8-2--relocated.svg").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--problems", "nk-8-3x", "--methods", "random"], "nk-8-3x"),
        (["--problems", "nk-8-2,isin", "--methods", "random"], "did you mean 'ising'?"),
        (["--problems", "nk-8-2", "--methods", "random,mercboo"], "did you mean 'mercbo'?"),
        (["--problems", "nk-8-2", "--methods", "random,worker:a 'b"], "No closing quotation"),
        (["--problems", ",", "--methods", "random"], "holds no name"),
        (["--problems", "nk-8-2", "--methods", "random", "--budget", "many"], "many"),
        (["--problems", "nk-8-2", "--methods", "random", "--budget", "0"], "of at least 1 nor"),
        (["--problems", "nk-8-2", "--methods", "random", "--budget", "²"], "of at least 1 nor"),
        (["--problems", "nk-8-2", "--methods", "random", "--runs", "x"], "runs="),
        (["--problems", "nk-8-2", "--methods", "random", "--runs", "3-1"], "1-3 was wanted"),
    ],
)
def test_wrong_options_are_named(options: list[str], message: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["bench", "run", *options, "--out", str(out)])
    assert done.exit_code == 2
    assert message in unframed(done.output)
    assert not out.exists()


@pytest.mark.parametrize("below", ["", "sub"])
@pytest.mark.parametrize("command", [
    ["run", "--problems", "nk-8-2", "--methods", "random"],
    ["suite", "heldout", "--data", "data", "--problems", "labs-50", "--methods", "random"],
])  # fmt: skip
def test_a_file_in_the_place_of_the_folder_is_named(
    tmp_path: Path, command: list[str], below: str
) -> None:
    (tmp_path / "notes").write_text("mine")
    done = CliRunner().invoke(app, ["bench", *command, "--out", str(tmp_path / "notes" / below)])
    assert done.exit_code == 2
    assert "is not a folder and cannot be made one" in unframed(done.output)
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize("command", ["backends", "scale", "proofs", "constraints"])
def test_other_measurements_name_such_a_file_too(command: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    done = CliRunner().invoke(app, ["bench", command, "--out", str(tmp_path / "taken")])
    assert done.exit_code == 2
    assert "is not a folder and cannot be made one" in unframed(done.output)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_problem_whose_package_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "RNA", None)
    options = ["--problems", "rna-12", "--methods", "random", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["bench", "run", *options])
    assert done.exit_code == 2
    assert "pip install ViennaRNA" in unframed(done.output)


@pytest.mark.slow
def test_a_missing_peer_is_reported_at_the_end_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "python"  # one without any packages
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setenv("MERCBO_PEERS_PYTHON", str(bare))
    monkeypatch.delenv("MERCBO_PEER_NEVERGRAD_PYTHON", raising=False)
    options = ["--problems", "nk-8-2", "--methods", "nevergrad,random", "--runs", "0"]
    done = CliRunner().invoke(
        app, ["bench", "run", *options, "--budget", "21", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 1
    assert "failed: nevergrad nk-8-2 (relocated) 0: BackendError: " in done.output
    assert "pip install nevergrad" in done.output
    assert "1 of 2 runs are in" in done.output
    assert runner.finished(tmp_path / "out" / FILE) == {("random", "nk-8-2 (relocated)", 0): 21}
