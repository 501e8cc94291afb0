"""Every example runs to its end without a warning and finds what it says."""

from __future__ import annotations

import itertools
import os
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
        env={name: value for name, value in os.environ.items() if name != "MERCBO_DATA"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_quickstart_finds_good_conditions(tmp_path: Path) -> None:
    """The last bit of a processor's arithmetic may lead to another run: of seven, six find 97 %."""
    found = re.search(r"yield (\d+) % \(the best of all is 97 %\)", run("quickstart.py", tmp_path))
    assert found is not None
    assert int(found[1]) >= 85


@pytest.mark.slow
def test_dna_sequence_finds_the_motif(tmp_path: Path) -> None:
    assert "with 1.500; the best possible is 1.500" in run("dna_sequence.py", tmp_path)


@pytest.mark.slow
def test_a_campaign_breaks_no_rule_and_ends_near_the_best(tmp_path: Path) -> None:
    printed = run("constraints.py", tmp_path)
    assert "0 broke a rule" in printed
    found = re.search(r"yield (\d+) \(the best of all allowed conditions gives 82\)", printed)
    assert found is not None
    assert int(found[1]) >= 80


@pytest.mark.slow
def test_demo_prints_a_table_and_writes_a_picture(tmp_path: Path) -> None:
    printed = run("demo.py", tmp_path, "--experiments", "26")
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
def test_five_sensors_are_nearly_as_good_as_all(tmp_path: Path) -> None:
    printed = run("sensors.py", tmp_path)
    validated = [float(v) for v in re.findall(r"validated ([0-9.]+)", printed)]
    assert validated[0] >= validated[2] - 0.005
    assert last(printed).startswith("found {")


@pytest.mark.slow
def test_flags_are_tried_by_compiling(tmp_path: Path) -> None:
    said = last(run("compiler_flags.py", tmp_path, "--evaluations", "12"))
    assert said.startswith("found flags that take" if shutil.which("gcc") else "found nothing")


@pytest.mark.slow
def test_own_levels_explain_motifs_better_than_bits(tmp_path: Path) -> None:
    printed = run("encodings.py", tmp_path, "--problems", "dna", "--runs", "103", "--results", "60")
    assert last(printed).startswith("own levels have more evidence in 1 of 1 cases")


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
def test_a_cluster_finds_good_settings(tmp_path: Path) -> None:
    """Which worker is done first is chance, so which of the eight good ones is open."""
    printed = last(run("cluster.py", tmp_path))
    found = re.match(r"found ([0-9.]+) s in 30 of 216 settings; the best of all is 4 s", printed)
    assert found is not None
    assert float(found[1]) <= 5.0


@pytest.mark.slow
def test_dna_tables_are_read(tmp_path: Path) -> None:
    words = ["".join(w) for w in itertools.product("ACGT", repeat=4)][:200]
    lines = ["sequence,value", *(f"{word},{word.count('G')}" for word in words)]
    (tmp_path / "table.csv").write_text("\n".join(lines))
    assert "the best possible is 4.000" in run("dna_sequence.py", tmp_path, "--table", "table.csv")


@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param("relaxation", "| labs-10 (1) | 20 |", marks=pytest.mark.slow),
        pytest.param("orders", "| mercbo-truncated:warp=none:order=2 |", marks=pytest.mark.slow),
        pytest.param("power", "### power-mass-bits (1 run, optimum ", marks=pytest.mark.slow),
        pytest.param("dna_batches", "expected improvement, 4: ", marks=pytest.mark.slow),
        pytest.param("ising_labs", "### labs-10 (1 run, optimum -7.6923", marks=pytest.mark.slow),
    ],
)
def test_the_figures_of_the_paper_are_drawn(tmp_path: Path, script: str, line: str) -> None:
    printed = run(f"paper/{script}.py", tmp_path, "--quick")
    assert line in printed
    written = tmp_path / "paper" / f"{script}-quick" / f"{script}.png"
    assert written.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_figure_is_drawn_again_without_playing_again(tmp_path: Path) -> None:
    first, second = (run("paper/factors.py", tmp_path, "--quick") for _ in range(2))
    assert first.startswith("0/2\n1/2 mercbo-thompson:batch=10 dna-bits 0\n2/2 ")
    assert second.startswith("2/2\n### dna-bits")
    assert second.split("###")[1:] == first.split("###")[1:]


def test_the_paper_s_pictures_are_small_and_their_text_names_each() -> None:
    text = (EXAMPLES / "paper" / "README.md").read_text(encoding="utf-8")
    scripts = {path.stem for path in (EXAMPLES / "paper").glob("*.py")} - {"common"}
    pictures = list((EXAMPLES / "paper").glob("*.png"))
    assert {path.stem for path in pictures} == scripts
    for path in pictures:
        assert path.stat().st_size < 100_000
        assert f"({path.name})" in text
        assert f"examples/paper/{path.stem}.py" in text


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


@pytest.mark.slow
def test_symmetries_are_worth_stating(tmp_path: Path) -> None:
    without, stated = run("symmetries.py", tmp_path, "--runs", "0-3").strip().splitlines()[1:]
    assert float(stated.split()[-1]) < float(without.split()[-1])
