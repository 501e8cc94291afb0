"""The README's Python runs, from top to bottom, and gives what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_code_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "'solvent': 'ethanol', 'heat': 80, 'hours': 4" in printed
    assert "value=14.0" in printed
    assert (tmp_path / "run.json").exists()


def test_the_first_block_is_short() -> None:
    first = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert first is not None
    assert len([line for line in first.group(1).splitlines() if line.strip()]) <= 15


def test_it_is_no_manual() -> None:
    assert len(README.splitlines()) <= 200  # what is longer belongs to docs/


def test_local_links_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_every_page_on_a_task_or_an_idea_is_linked() -> None:
    folder = Path(__file__).parent.parent
    for page in [*folder.glob("docs/howto/*.md"), *folder.glob("docs/explanation/*.md")]:
        assert f"]({page.relative_to(folder).as_posix()})" in README, page


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"@@|TODO|XXX", README)
