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


@pytest.mark.slow
def test_a_laboratory_makes_five_mistakes_and_ends_with_a_report(tmp_path: Path) -> None:
    printed = run("lab_loop.py", tmp_path, "--quick", "--keep", "lab", "--out", "loop.md")
    for mistake in (
        "line 3, column \"solvent\" (G3): 'dioxan' is not one of",
        "'about 40' is not a number (is 40 meant?)",
        "'90' is not one of [25, 40, 60, 80, 100]; the nearest is 80",
        "line 26: is the design of line 2 again",
        "correct it by `mercbo amend`",
    ):
        assert mistake in printed
    assert printed.count("nothing was stored, since") == 3
    assert "1 result corrected" in printed
    assert (tmp_path / "lab" / "study.html").read_text(encoding="utf-8").startswith("<!DOCTYPE")
    assert (tmp_path / "loop.md").read_text(encoding="utf-8").count("$ mercbo") == 17
