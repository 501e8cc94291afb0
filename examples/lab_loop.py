"""A laboratory's loop on the command line: three plates of 24, with five mistakes on the way.

    python examples/lab_loop.py                # the real command, a transcript on the screen
    python examples/lab_loop.py --out loop.md  # and in a file

The reaction is made up (`mercbo.lab.reaction`); everything else is what `docs/howto/lab.md` says
to do: a space with rules in a file, plates to fill in, results told back as spreadsheets of several
kinds. A person would type the commands and fill in the plates by hand; here
a program does both, and makes the mistakes that people make.
"""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mercbo.lab import reaction
from mercbo.lab.spacefile import parse, space_of
from mercbo.lab.tables import read_table, write_table

Rows = list[dict[str, object]]


class Transcript:
    """Commands with what they say, as Markdown."""

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines += [text, ""]
        print(text, end="\n\n", flush=True)

    def run(self, command: str) -> int:
        """One `mercbo` command; in this process where it must be quick."""
        words = shlex.split(command)[1:]
        code, said = _here(words) if self.quick else _there(words)
        ended = f"\n(exit code {code})" if code else ""
        self.say(f"```console\n$ {command}\n{_trimmed(said)}{ended}\n```")
        return code


def _trimmed(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line)


def _there(words: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mercbo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    return done.returncode, done.stdout


def _here(words: list[str]) -> tuple[int, str]:
    from typer.testing import CliRunner

    from mercbo.cli import app

    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


class Laboratory:
    """Measures what a plate lists, and writes the results down, not always correctly."""

    def __init__(self, seed: int) -> None:
        self.space = space_of(parse(reaction.SPACE, ".yaml"))
        self.rng = np.random.default_rng(seed)

    def measured(self, plate: str) -> Rows:
        """The rows of a plate with the column of results filled in."""
        rows: Rows = []
        for line in read_table(plate).lines:
            row: dict[str, object] = dict(line.cells)
            if row["design"] == "control":
                row["yield"] = 0.4
            else:
                values = [self.variable(name, row[name]) for name in self.space.names]
                result = reaction.measured(
                    dict(zip(self.space.names, values, strict=True)), rng=self.rng
                )
                row["yield"] = "failed" if result is None else result
            rows.append(row)
        return rows

    def variable(self, name: str, text: object) -> object:
        return next(v for v in self.space.variables[name].values if str(v) == str(text))


def saved(rows: Rows, path: str, change: Callable[[Rows], None] | None = None) -> None:
    """Write rows as they are, or with somebody's change; semicolons and commas for `.csv;`."""
    copied = [dict(row) for row in rows]
    if change is not None:
        change(copied)
    header = list(copied[0])
    if path.endswith("_de.csv"):  # as a German Excel writes it
        with Path(path).open("w", encoding="utf-8-sig", newline="") as out:
            writer = csv.writer(out, delimiter=";")
            writer.writerow(header)
            for row in copied:
                writer.writerow(str(row.get(name) or "").replace(".", ",") for name in header)
    else:
        write_table(path, header, [[row.get(name) for name in header] for row in copied])


def first_design(rows: Rows, skip: int = 0) -> dict[str, object]:
    return [row for row in rows if row["design"] != "control"][skip]


def loop(out: Transcript, seed: int) -> None:
    lab = Laboratory(seed)
    Path("space.yaml").write_text(reaction.SPACE, encoding="utf-8")
    out.say("# A laboratory's loop, from the space to the report")
    out.say(
        "Written by `python examples/lab_loop.py --out examples/results/lab_loop.md`: every "
        "command is the real one, and the reaction is made up. The space, with its rules:"
    )
    out.say(f"```yaml\n{reaction.SPACE}```")
    out.run(
        "mercbo init study.db --space space.yaml --maximize --target yield --between 0,100 "
        f"--seed {seed}"
    )

    out.say("## The first plate, and two mistakes")
    out.run("mercbo ask study.db -k 24 --plate 48 --controls A1,F8 --out plate1.csv")
    rows = lab.measured("plate1.csv")

    def typed(copied: Rows) -> None:
        first_design(copied)["solvent"] = "dioxan"
        first_design(copied, 5)["yield"] = "about 40"

    saved(rows, "results1.csv", typed)
    out.say("A solvent is misspelt (mistake 1), and a result is no number (mistake 2):")
    out.run("mercbo tell study.db results1.csv")
    saved(rows, "results1.csv")
    out.say("Nothing was stored. Mended, the file is taken as a whole:")
    out.run("mercbo tell study.db results1.csv")

    out.say("## The second plate, from a German Excel, sorted by result, with a column of its own")
    out.run("mercbo ask study.db -k 24 --plate 24 --out plate2.csv")
    second = sorted(lab.measured("plate2.csv"), key=lambda row: str(row["yield"]), reverse=True)
    second = [{"operator": "Ann" if i % 2 else "Bob", **row} for i, row in enumerate(second)]

    def off_the_list(copied: Rows) -> None:
        allowed = {"temperature": "90", "hours": "1,5"}
        copied[2] |= allowed
        copied.append(dict(copied[0]))

    saved(second, "results2_de.csv", off_the_list)
    out.say(
        "A temperature and a time that nobody offered (mistake 3), and a row pasted twice "
        "(mistake 4). Semicolons, decimal commas and the order of rows are no mistakes:"
    )
    out.run("mercbo tell study.db results2_de.csv")
    out.say("`--partial` keeps the good rows, lists the others and says so by its exit code:")
    out.run("mercbo tell study.db results2_de.csv --partial")
    saved(second, "results2_de.csv")
    out.say("The mended file may be told as a whole; what is there already is passed over:")
    out.run("mercbo tell study.db results2_de.csv")

    out.say("## The third plate, and a result that changed")
    out.run("mercbo ask study.db -k 24 --plate 24 --out plate3.csv")
    third = lab.measured("plate3.csv")
    old = dict(first_design(rows, 3))
    old["yield"] = round(float(str(old["yield"])) + 3.1, 1)

    saved(third, "results3.csv", lambda copied: copied.append({**old, "well": "D7"}))
    out.say("Somebody has slipped in an old design with another result (mistake 5):")
    out.run("mercbo tell study.db results3.csv")
    saved(third, "results3.csv")
    out.run("mercbo tell study.db results3.csv")
    saved([old], "correction.csv")
    out.say("If the new number is the right one, it is a correction:")
    out.run("mercbo amend study.db correction.csv")

    out.say("## What came of it")
    out.run("mercbo status study.db")
    out.run("mercbo best study.db -n 5")
    out.run("mercbo explain study.db")
    out.run("mercbo report study.db study.html")
    out.run("mercbo export study.db everything.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a Markdown file for the transcript")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the files; by default they go")
    parser.add_argument("--quick", action="store_true", help="all commands in one process")
    options = parser.parse_args()
    out = Transcript(quick=options.quick)
    target = options.out.resolve() if options.out else None
    before = Path.cwd()
    with TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        try:
            loop(out, options.seed)
        finally:
            os.chdir(before)
    if target is not None:
        target.write_text("\n".join(out.lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
