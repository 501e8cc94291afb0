"""Every example runs to its end without a warning and finds what it says."""

from __future__ import annotations

import itertools
import re
import shutil
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


def last(printed: str) -> str:
    return printed.strip().splitlines()[-1]


@pytest.mark.slow
def test_annealers_agree_on_the_minimum(tmp_path: Path) -> None:
    said = last(run("annealers.py", tmp_path))
    assert "GraphCut" in said
    assert said.endswith("that is the minimum, by enumeration")


@pytest.mark.slow
def test_sensors_are_chosen_as_well_as_by_forward_selection(tmp_path: Path) -> None:
    printed = run("sensors.py", tmp_path)
    validated = [float(v) for v in re.findall(r"validated ([0-9.]+)", printed)]
    assert validated[0] >= validated[1] - 0.001
    assert last(printed).startswith("found {")


@pytest.mark.slow
def test_flags_are_tried_by_compiling(tmp_path: Path) -> None:
    said = last(run("compiler_flags.py", tmp_path, "--evaluations", "12"))
    assert said.startswith("found flags that take" if shutil.which("gcc") else "found nothing")


@pytest.mark.slow
def test_a_network_is_thinned_out_better_than_by_strength(tmp_path: Path) -> None:
    printed = run("sparsify.py", tmp_path)
    found = re.search(r"found an error of ([0-9.]+)", printed)
    strongest = re.search(r"strongest links: ([0-9.]+)", printed)
    assert found is not None
    assert strongest is not None
    assert float(found[1]) < float(strongest[1])


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    printed = run("resume.py", tmp_path)
    assert "ended with -9; 12 results are in the store" in printed
    assert "31 evaluations, 1 of them a second time" in printed
    assert last(printed) == "found 13 with 30 results; the best of 1024 is 13"


@pytest.mark.slow
def test_a_cluster_finds_the_best_settings(tmp_path: Path) -> None:
    assert last(run("cluster.py", tmp_path)).startswith("found 4 s in 30 of 216")


def test_dna_tables_are_read(tmp_path: Path) -> None:
    words = ["".join(w) for w in itertools.product("ACGT", repeat=4)][:200]
    lines = ["sequence,value", *(f"{word},{word.count('G')}" for word in words)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    assert "the best possible is 3.000" in run("dna_sequence.py", tmp_path, "--table", "table.csv")
