"""The README's Python runs, from top to bottom, and gives what it says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from mercbo import Categorical, Integer, Space
from mercbo.bench.methods import METHODS, make, maker
from mercbo.problems.catalogue import FACTORS, FORMS, PROBLEMS, _numbered, find

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_code_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 8
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


def benchmark_section() -> str:
    found = re.search(r"\n## Benchmark\n(.*?)\n## ", README, flags=re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_benchmark_names_every_method_and_problem() -> None:
    # what is in quotes, but for options, files and variables
    named = set(re.findall(r"`(?!--)([a-zA-Z0-9:-]+)`", benchmark_section()))
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
    command = re.search(r"mercbo bench run --problems (\S+) --methods (\S+)", benchmark_section())
    assert command is not None
    for name in command[1].split(","):
        find(name)
    for name in command[2].split(","):
        maker(name)


def test_the_protocol_is_that_of_the_workers(tmp_path: Path) -> None:
    """A worker that answers as the README says, to messages as the README says."""
    (block,) = re.findall(r"```text\n(.*?)```", benchmark_section(), flags=re.DOTALL)
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


def test_local_links_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"@@|TODO|XXX", README)
