"""Every example runs to its end without a warning and finds what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_quickstart_finds_the_best_conditions(tmp_path: Path) -> None:
    assert "yield 97 % (the best of all is 97 %)" in run("quickstart.py", tmp_path)


def test_dna_sequence_finds_the_motif(tmp_path: Path) -> None:
    assert "with 1.500; the best possible is 1.500" in run("dna_sequence.py", tmp_path)


def test_a_campaign_breaks_no_rule_and_finds_the_best(tmp_path: Path) -> None:
    printed = run("constraints.py", tmp_path)
    assert "0 broke a rule" in printed
    assert "yield 82 (the best of all allowed conditions gives 82)" in printed


@pytest.mark.slow
def test_demo_prints_a_table_and_writes_a_picture(tmp_path: Path) -> None:
    printed = run("demo.py", tmp_path)
    assert "the five best measured designs" in printed
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
