"""The documentation's Python and commands run, page by page, and the files it names exist."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercbo import Categorical, Integer, Space
from mercbo.bench.methods import METHODS, make, maker
from mercbo.cli import app
from mercbo.lab.tables import read_table, write_table
from mercbo.problems.catalogue import FACTORS, FORMS, PROBLEMS, _numbered, find

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def read(page: str) -> str:
    return (DOCS / page).read_text()


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", read(page), flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        exec(compile(block, page, "exec", dont_inherit=True), names)


def test_every_picture_is_there_and_made_by_the_script() -> None:
    script = (DOCS / "pictures.py").read_text()
    shown = set()
    for page in PAGES:
        shown |= set(re.findall(r"pictures/(\w+)\.png", read(page)))
    assert shown == {path.stem for path in (DOCS / "pictures").glob("*.png")}
    assert all(f'"{name}")' in script for name in shown)


def test_every_file_that_a_page_names_is_there() -> None:
    path = re.compile(r"(?:examples|docs|tests|mercbo)/[\w/.-]*\w")
    for page in PAGES:
        for name in path.findall(read(page)):
            # examples/paper/NAME.py is any of them
            assert name.endswith("NAME.py") or (DOCS.parent / name).exists(), (page, name)


def test_nothing_is_left_to_fill_in() -> None:
    for page in PAGES:
        assert not re.search(r"@@|TODO|XXX", read(page)), page


@pytest.mark.slow
def test_a_newcomer_can_follow_the_laboratorys_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space and the commands as they stand there, with the plate filled in where it says so."""
    monkeypatch.chdir(tmp_path)
    (space,) = blocks("howto/lab.md", "yaml")
    (tmp_path / "space.yaml").write_text(space)
    (tmp_path / "edited.yaml").write_text(space)
    _, loop, past, change = blocks("howto/lab.md", "sh")
    lines = [line for line in (loop + past + change).splitlines() if line.startswith("mercbo ")]
    assert len(lines) == 11
    for line in lines:
        if " tell " in line:
            table = read_table("plate.csv")
            rows = [list(cells.cells.values()) for cells in table.lines]
            for number, row in enumerate(rows):
                row[-1] = None if row[2] == "control" else 50.0 + number % 7
            write_table("plate.csv", table.header, rows)
            write_table("past.csv", table.header, rows)
        if " --from " in line:
            (tmp_path / "study.db").unlink()
        done = CliRunner().invoke(app, line.split()[1:])
        assert done.exit_code == 0, (line, done.output)
    assert (tmp_path / "study.html").exists()
    assert (tmp_path / "study.space.yaml").exists()


def test_the_benchmark_names_every_method_and_problem() -> None:
    # what is in quotes, but for options, files and variables
    named = set(re.findall(r"`(?!--)([a-zA-Z0-9:-]+)`", read("howto/bench.md")))
    assert set(METHODS) <= named
    assert {*FORMS, *FACTORS} <= named
    ends = ("-0", "-1e-2", "-bits")
    for name in PROBLEMS:
        whole = {name, *(name.removesuffix(end) for end in ends if name.endswith(end))}
        assert whole & named or _numbered(name), name
    # and nothing that is neither
    for name in named - set(METHODS) - {*FORMS, *FACTORS, *ends, "run", "worker:COMMAND"}:
        assert name in PROBLEMS, name


def test_the_command_of_the_benchmark_is_understood() -> None:
    command = re.search(
        r"mercbo bench run --problems (\S+) --methods (\S+)", read("howto/bench.md")
    )
    assert command is not None
    for name in command[1].split(","):
        find(name)
    for name in command[2].split(","):
        maker(name)


def test_the_protocol_is_that_of_the_workers(tmp_path: Path) -> None:
    """A worker that answers as the page says, to messages as the page says."""
    (block,) = blocks("howto/bench.md", "text")
    pairs = [line.replace("{...}", "{}").split("->") for line in block.splitlines()]
    answers = {}
    for question, answer in pairs:
        if question.startswith("{"):
            (word,) = json.loads(question)
            answers[word] = json.loads(answer) if answer.strip().startswith("{") else None
    script = tmp_path / "said.py"
    script.write_text(
        "import json, sys\n"
        f"answers = {answers!r}\n"
        "for line in sys.stdin:\n"
        "    (word,) = json.loads(line)\n"
        "    if answers[word] is None: break\n"
        "    print(json.dumps(answers[word]), flush=True)\n"
    )
    space = Space({"base": Categorical(["A", "G"]), "n": Integer(2, 6)})
    worker = make(f"worker:{sys.executable} {script}", space, 0, 5)
    told = json.loads(pairs[1][0])["tell"]
    worker.tell(space.rows([told["point"]])[0], told["value"])
    assert space.points(worker.ask()[None]) == [answers["ask"]["point"]]
    worker.close()
    assert worker._process.returncode == 0
    assert set(answers) == {"start", "tell", "ask", "stop"}
