"""Packed runs: what is kept of a benchmark, the same bytes from the same runs, clear errors."""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercbo import SettingError
from mercbo.bench import report, runs
from mercbo.bench.runner import Task, finished, run_all
from mercbo.bench.runs import FILE, PACKED, Run, gathered, pack, packed
from mercbo.cli import app

HEADER = {"versions": {"mercbo": "1"}, "python": "3"}
OURS = [
    Run("ours", "toy", 0, 2, (3.0, 2.0, None, 1 / 3), (0.12345, 2.0), 80.5, 0.25),
    Run("ours", "toy", 1, 2, (4.0, 2.0, 1.0, 1.5), (0.1, 0.2), 81.0, None, {"peer": "2.1"}),
]
THEIRS = [
    Run("theirs", "toy", 0, 2, (3.0, 2.0, 1.0, 0.5), (1.0, 1.0), 90.0, 0.25),
    Run("theirs", "toy", 2, error="ValueError: broke"),
]


def write(folder: Path, played: list[Run]) -> Path:
    """A folder as the runner leaves it."""
    lines: list[dict] = [HEADER]
    for run in played:
        key = {"method": run.method, "problem": run.problem, "run": run.run}
        if run.error is not None:
            lines.append({**key, "error": run.error})
        for index, value in enumerate(run.values):
            ask = None if index < run.initial else run.ask[index - run.initial]
            line = {**key, "index": index, "value": value, "ask": ask, "optimum": run.optimum}
            lines.append({**line, "point": {"x": 1}, "memory": run.memory})
            if index == 0 and run.versions:
                lines[-1]["versions"] = run.versions
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "bench", [*OURS, *THEIRS])


def test_a_folder_gives_its_runs(folder: Path) -> None:
    header, found = gathered(folder)
    assert header == HEADER
    assert found == [*OURS, *THEIRS]


def test_only_a_last_line_that_was_cut_short_is_left_out(folder: Path) -> None:
    path = folder / FILE
    path.write_bytes(path.read_bytes() + b'{"method": "ours", "prob')
    assert gathered(folder) == (HEADER, [*OURS, *THEIRS])


@pytest.mark.parametrize("bad", [b"<<<<<<< HEAD", b'{"cut', b"[1]", b"", b"\xff\xfe"])
@pytest.mark.parametrize("at", [0, 3, -1])
def test_any_other_line_that_cannot_be_read_is_named(folder: Path, bad: bytes, at: int) -> None:
    path = folder / FILE
    lines = path.read_bytes().splitlines()
    at = at % (len(lines) + 1)
    path.write_bytes(b"".join(line + b"\n" for line in [*lines[:at], bad, *lines[at:]]))
    with pytest.raises(SettingError, match=rf"{FILE}, line {at + 1}: .* a JSON object was wanted"):
        gathered(folder)


@pytest.mark.parametrize("kind", ["xz", "gz"])
def test_packed_runs_come_back_to_nine_digits(folder: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"runs.jsonl.{kind}"
    checksum = pack(path, *gathered(folder))
    assert checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    header, found = packed(path)
    assert header == {"format": runs.FORMAT, **HEADER}
    assert found[1:] == [OURS[1], *THEIRS]
    assert found[0].values == (3.0, 2.0, None, 0.333333333)
    assert found[0].ask == (0.12, 2.0)
    assert (found[0].memory, found[0].optimum, found[0].initial) == (80.5, 0.25, 2)


def test_the_same_runs_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    one, other = (tmp_path / f"{name}.jsonl.gz" for name in "ab")
    assert pack(one, HEADER, [*OURS, *THEIRS]) == pack(other, HEADER, [*THEIRS, *OURS[::-1]])
    assert one.read_bytes() == other.read_bytes()


def test_the_report_of_a_packed_file_is_that_of_its_folder(folder: Path, tmp_path: Path) -> None:
    pack(tmp_path / PACKED, *gathered(folder))
    assert report.markdown(*report.load(tmp_path / PACKED)) == report.markdown(*report.load(folder))


def test_the_first_place_goes_before_the_others(tmp_path: Path) -> None:
    mine = write(tmp_path / "mine", [OURS[0], Run("ours", "toy", 1, error="ValueError: not yet")])
    shipped = tmp_path / "shipped.jsonl.xz"
    other = Run("ours", "toy", 0, 2, (9.0, 9.0, 9.0, 9.0), (1.0, 1.0))
    pack(shipped, HEADER, [other, OURS[1], *THEIRS])
    _, found = gathered(mine, shipped)
    # a run that failed in one place and not in the other has not failed
    assert found == [OURS[0], OURS[1], *THEIRS]


@pytest.mark.slow
def test_packed_runs_of_a_folder_are_not_played_again(tmp_path: Path) -> None:
    tasks = [Task("random", "labs-8", run, budget=22) for run in (0, 1)]
    run_all(tasks[:1], tmp_path)
    before = gathered(tmp_path)[1]
    pack(tmp_path / PACKED, *gathered(tmp_path))
    (tmp_path / FILE).unlink()
    played: list[int] = []
    run_all(tasks, tmp_path, progress=lambda o, *_: played.append(o.task.run) if o else None)
    assert played == [1]
    assert {run.run: len(run.values) for run in gathered(tmp_path)[1]} == {0: 22, 1: 22}
    assert packed(tmp_path / PACKED)[1][0].values == pytest.approx(before[0].values)
    # with another budget it is another run
    run_all([Task("random", "labs-8", 0, budget=21)], tmp_path)
    assert finished(tmp_path / FILE)[tasks[0].key] == 21
    assert {run.run: len(run.values) for run in gathered(tmp_path)[1]} == {0: 21, 1: 22}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.xz", b"not compressed"),
        ("a.jsonl.xz", lzma.compress(b"")),
        ("a.jsonl.xz", lzma.compress(b"[]\n")),
        ("a.jsonl.xz", lzma.compress(b'{"format": "mercbo-runs 99"}\n')),
        ("a.jsonl.xz", lzma.compress(b'{"format": "mercbo-runs 1"}\n{"method": "x"}\n')),
        ("a.jsonl.gz", gzip.compress(b'{"format": "mercbo-runs 1"}\n{"cut')),
        ("a.jsonl.gz", gzip.compress(b"{}" * 99)[:-9]),
    ],
    ids=["plain", "empty", "list", "version", "fields", "cut line", "cut file"],
)
def test_what_is_no_packed_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingError, match=r"a\.jsonl\.[gx]z is not a file of packed runs"):
        packed(tmp_path / name)


def test_another_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"runs\.zip ends neither in \.xz nor in \.gz"):
        pack(tmp_path / "runs.zip", HEADER, OURS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_commands(folder: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "results" / PACKED
    done = CliRunner().invoke(app, ["bench", "pack", str(folder), str(shipped)])
    assert done.exit_code == 0, done.output
    checksum = hashlib.sha256(shipped.read_bytes()).hexdigest()
    assert done.output == f"3 runs, {shipped.stat().st_size} bytes, sha256 {checksum}\n"
    mine = write(tmp_path / "mine", [Run("mine", "toy", 0, 2, (3.0, 2.0, 0.4), (0.1,))])
    done = CliRunner().invoke(app, ["bench", "report", str(mine), "--with", str(shipped)])
    assert done.exit_code == 0, done.output
    text = (mine / "report.md").read_text()
    assert "| mine | 0.4 |" in text
    assert "| theirs | 1 |" in text  # its third value: the runs are cut to the shortest
    done = CliRunner().invoke(app, ["bench", "report", str(shipped)])
    assert done.exit_code == 0, done.output
    assert (shipped.parent / "convergence-toy.svg").exists()
    done = CliRunner().invoke(app, ["bench", "report", str(mine), "--with", "lost.jsonl.xz"])
    assert done.exit_code == 2
    assert "lost.jsonl.xz" in done.output


def test_a_report_to_where_a_file_is_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    options = [str(folder), "--out", str(tmp_path / "notes")]
    done = CliRunner().invoke(app, ["bench", "report", *options])
    assert done.exit_code == 2
    words = " ".join(word for word in done.output.split() if word != "\u2502")
    assert "is not a folder and cannot be made one" in words
    assert (tmp_path / "notes").read_text() == "mine"
