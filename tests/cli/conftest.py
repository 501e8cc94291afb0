"""A folder with a space, the commands, and a study."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.studies import SPACE
from typer.testing import CliRunner, Result

from mercbo.cli import app


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`run("ask", "-k", 3)` in a folder with a space; the exit code is checked against `code`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)

    def invoke(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == code, result.output
        if "--json" in arguments:
            result.json = json.loads(result.stdout)
        return result

    return invoke


@pytest.fixture
def made(run: Callable[..., Result]) -> Callable[..., Result]:
    run("init", "s.db", "--space", "space.yaml", "--maximize", "--target", "yield", "--seed", 1)
    return run
