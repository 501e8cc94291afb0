"""Commands at once, as real processes: what the study holds afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.studies import SPACE, filled
from typer.testing import CliRunner

from mercbo import StateError
from mercbo.cli import app, common
from mercbo.lab import study as studies
from mercbo.lab.plates import Plate
from mercbo.lab.sheets import pending
from mercbo.lab.spacefile import parse, space_of
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table, write_table

# Waits until all have loaded the program, so that their commands overlap.
PROGRAM = """
import sys
from mercbo.cli import app
print("ready", flush=True)
sys.stdin.readline()
app(sys.argv[1:], prog_name="mercbo")
"""


def at_once(folder: Path, *commands: list[str]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of commands that run at the same time."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command], cwd=folder, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for command in commands
    ]  # fmt: skip
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    done = [process.communicate(timeout=120) for process in running]
    return [
        (process.returncode, out, err) for process, (out, err) in zip(running, done, strict=True)
    ]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    space = space_of(parse(SPACE, ".yaml"))
    return Study.create("s.db", space, direction="maximize", target="yield", seed=0)


@pytest.mark.parametrize("command", [["tell"], ["tell", "--replicates"], ["import"]])
def test_a_table_that_is_told_twice_at_once_is_stored_once(
    study: Study, command: list[str], tmp_path: Path
) -> None:
    study.lay_out(study.optimizer.ask(4), Plate(6, ("A1",)))
    write_table("p.csv", *pending(study))
    filled("p.csv", "r.csv", lambda rows: rows[0].__setitem__(-1, 1.5))
    name, *options = command
    call = [name, "s.db", "r.csv", *options, "--json"]
    answers = [json.loads(out) for code, out, _ in at_once(tmp_path, call, call, call) if code == 0]
    assert sorted(answer["told"] for answer in answers) == [0, 0, 4]
    assert sorted(answer["controls_told"] for answer in answers) == [0, 0, 1]
    assert len(study.optimizer.observations) == 4
    assert [each.value for each in study.notes.controls()] == [1.5]
    assert study.optimizer.pending == []


def test_of_asks_for_one_file_at_once_one_is_met(study: Study, tmp_path: Path) -> None:
    call = ["ask", "s.db", "-k", "3", "--plate", "6", "--out", "p.csv"]
    codes, _, errors = zip(*at_once(tmp_path, call, call, call), strict=True)
    assert sorted(codes) == [0, 1, 1]
    refused = [text for code, text in zip(codes, errors, strict=True) if code == 1]
    assert all("p.csv: exists already" in text for text in refused)
    listed = [
        {name: line.cells[name] for name in study.space.names} for line in read_table("p.csv").lines
    ]
    pending = [{n: str(v) for n, v in point.items()} for point in study.optimizer.pending]
    assert listed == pending
    assert len(study.notes.wells()) == 3


def test_asks_at_once_have_designs_and_plates_of_their_own(study: Study, tmp_path: Path) -> None:
    calls = [["ask", "s.db", "--plate", "6", "--out", f"p{i}.csv"] for i in range(3)]
    assert [code for code, _, _ in at_once(tmp_path, *calls)] == [0, 0, 0]
    tables = [read_table(f"p{i}.csv").lines for i in range(3)]
    assert sorted({line.cells["plate"] for lines in tables for line in lines}) == ["1", "2", "3"]
    assert [{line.cells["plate"] for line in lines} for lines in tables].count({"1"}) == 1
    designs = {tuple(line.cells[n] for n in study.space.names) for t in tables for line in t}
    assert len(designs) == len(study.optimizer.pending) == 18


def test_corrections_at_once_replace_one_result(study: Study, tmp_path: Path) -> None:
    (point,) = study.optimizer.ask(1)
    study.optimizer.tell(point, 5.0)
    row = ",".join(map(str, point.values()))
    for value in (6, 7):
        Path(f"c{value}.csv").write_text(f"{','.join(point)},yield\n{row},{value}\n")
    done = at_once(tmp_path, ["amend", "s.db", "c6.csv"], ["amend", "s.db", "c7.csv"])
    assert [code for code, _, _ in done] == [0, 0]
    (seen,) = study.optimizer.observations
    assert seen.value in (6.0, 7.0)


def test_of_studies_made_at_once_one_is_made(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE)
    call = ["init", "s.db", "--space", "space.yaml", "--maximize"]
    done = at_once(tmp_path, call, call, call)
    assert sorted(code for code, _, _ in done) == [0, 1, 1]
    assert all("s.db: exists already" in err for code, _, err in done if code == 1)
    assert Study.open(tmp_path / "s.db").optimizer.direction == "maximize"


def too_late(check: Callable[..., None], file: Path) -> Callable[..., None]:
    """A check that another process overtakes: right after its first call the file is there."""
    calls: list[object] = []

    def checked(*arguments: object, **options: object) -> None:
        check(*arguments, **options)
        calls.append(arguments)
        if len(calls) == 1:
            file.write_text("of another process")

    return checked


def test_a_file_that_comes_after_the_check_is_not_overwritten(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path("p.csv").absolute()
    monkeypatch.setattr("mercbo.cli.ask.check_free", too_late(common.check_free, file))
    done = CliRunner().invoke(app, ["ask", "s.db", "--out", str(file)])
    assert (done.exit_code, "exists already" in done.output) == (1, True)
    assert file.read_text() == "of another process"
    assert study.optimizer.pending == []


def test_a_study_that_comes_after_the_check_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "s.db"
    monkeypatch.setattr(studies, "check_new", too_late(studies.check_new, file))
    with pytest.raises(StateError, match="exists already"):
        Study.create(file, space_of(parse(SPACE, ".yaml")))
    assert file.read_text() == "of another process"
