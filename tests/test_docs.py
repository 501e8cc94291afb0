"""The documentation's Python and commands run, page by page, and the files it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mercbo.cli import app
from mercbo.lab.tables import read_table, write_table

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def blocks(page: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


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
        shown |= set(re.findall(r"pictures/(\w+)\.png", (DOCS / page).read_text()))
    assert shown == {path.stem for path in (DOCS / "pictures").glob("*.png")}
    assert all(f'"{name}")' in script for name in shown)


def test_every_file_that_a_page_names_is_there() -> None:
    path = re.compile(r"(?:examples|docs|tests|mercbo)/[\w/.-]*\w")
    for page in PAGES:
        for name in path.findall((DOCS / page).read_text()):
            # examples/paper/NAME.py is any of them
            assert name.endswith("NAME.py") or (DOCS.parent / name).exists(), (page, name)


def test_nothing_is_left_to_fill_in() -> None:
    for page in PAGES:
        assert not re.search(r"@@|TODO|XXX", (DOCS / page).read_text()), page


def test_a_newcomer_can_follow_the_laboratorys_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space and the commands as they stand there, with the plate filled in where it says so."""
    monkeypatch.chdir(tmp_path)
    (space,) = blocks("howto/lab.md", "yaml")
    (tmp_path / "space.yaml").write_text(space)
    _, loop, past = blocks("howto/lab.md", "sh")
    lines = [line for line in (loop + past).splitlines() if line.startswith("mercbo ")]
    assert len(lines) == 8
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
