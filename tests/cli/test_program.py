"""The real program in a process of its own: names with spaces, exit codes, pipes, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mercbo import __version__
from mercbo.lab.spacefile import parse, space_of
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table, write_table

SPACE = "variables:\n" + "".join(f"  v{i}: [a, b, c, d]\n" for i in range(12))


def mercbo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mercbo", *arguments], cwd=folder, capture_output=True,
        encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"}, timeout=120,
    )  # fmt: skip


def test_the_version_is_printed(tmp_path: Path) -> None:
    done = mercbo(tmp_path, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"mercbo {__version__}\n", "")


@pytest.mark.slow
def test_a_loop_in_a_folder_with_an_awkward_name(tmp_path: Path) -> None:
    folder = tmp_path / "Größe & 100% ?"
    folder.mkdir()
    (folder / "sp äce.yaml").write_text(SPACE, encoding="utf-8")
    done = mercbo(folder, "init", "st üdy#1?.db", "--space", "sp äce.yaml", "--minimize")
    assert (done.returncode, done.stderr) == (0, "")
    done = mercbo(folder, "ask", "st üdy#1?.db", "-k", "3", "--out", "pläte 1.csv")
    assert done.returncode == 0, done.stderr
    table = read_table(folder / "pläte 1.csv")
    rows = [[*list(line.cells.values())[:-1], i] for i, line in enumerate(table.lines)]
    write_table(folder / "r.csv", table.header, rows)
    done = mercbo(folder, "tell", "st üdy#1?.db", "r.csv", "--json")
    assert (done.returncode, json.loads(done.stdout)["told"]) == (0, 3)
    with (folder / "huge.csv").open("wb") as out:
        out.truncate(300 * 2**20)
    done = mercbo(folder, "tell", "st üdy#1?.db", "huge.csv")
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert "300 MB are more than the 256 MB that are read" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_ctrl_c_leaves_a_study_that_goes_on(tmp_path: Path) -> None:
    Study.create(tmp_path / "s.db", space_of(parse(SPACE, ".yaml")), seed=0)
    # the program says, by a line, that it is about to choose, and is then stopped
    code = (
        "import sys, mercbo.optimizer as o, mercbo.cli as c\n"
        "choose = o.Optimizer._choose\n"
        "def slow(*a, **k):\n"
        "    print('choosing', flush=True)\n"
        "    while True: pass\n"
        "o.Optimizer._choose = slow\n"
        "c.app(['ask', 's.db', '-k', '3', '--out', 'p.csv'])\n"
    )
    asked = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert asked.stdout is not None
    assert asked.stdout.readline() == "choosing\n"
    asked.send_signal(signal.SIGINT)
    _, errors = asked.communicate(timeout=60)
    assert asked.returncode == 130, errors
    assert "stopped; nothing was asked for, the study is as it was" in errors
    assert not (tmp_path / "p.csv").exists()
    assert len(Study.open(tmp_path / "s.db").optimizer.ask(2)) == 2


UMLAUTS = 'variables:\n  Lösemittel: [Äther, "→x", 日本]\n  heat: [20, 40]\n'


@pytest.fixture
def umlauts(tmp_path: Path) -> Path:
    Study.create(tmp_path / "s.db", space_of(parse(UMLAUTS, ".yaml")), seed=0)
    return tmp_path


def pending(folder: Path) -> int:
    return len(Study.open(folder / "s.db").optimizer.pending)


def test_designs_are_shown_whatever_the_terminal_can_write(umlauts: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mercbo", "ask", "s.db", "-k", "6"], cwd=umlauts, timeout=120,
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u2192x" in done.stdout
    assert pending(umlauts) == 6


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_designs_that_cannot_be_shown_are_not_pending(umlauts: Path, options: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mercbo", "ask", "s.db", "-k", "6", *options], cwd=umlauts,
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 1
    assert "the designs cannot be shown (No space left on device); nothing was asked" in done.stderr
    assert "Traceback" not in done.stderr
    assert pending(umlauts) == 0


@pytest.mark.skipif(os.name == "nt", reason="pipes are those of POSIX")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_designs_whose_reader_is_gone_are_not_pending(umlauts: Path, options: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "mercbo", "ask", "s.db", "-k", "6", *options], cwd=umlauts,
        stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == (
        "error: the designs cannot be shown (its reader is gone); nothing was asked for, the study "
        "is as it was\n"
    )
    assert pending(umlauts) == 0
