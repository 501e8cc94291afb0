"""Every Python block of the documentation runs, page by page, and every picture has its maker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


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
