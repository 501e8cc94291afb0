"""Design an 8-letter DNA sequence in batches of 8.

    python examples/dna_sequence.py                    # a made-up motif, defined here
    python examples/dna_sequence.py --table binding.csv

A table is a CSV file with a header and two columns, sequence and value (as protein-binding
microarrays give them: all 65,536 words of eight letters, or those that were measured); larger is
better, and only its sequences are suggested where some are missing. The made-up score is that of
the best-matching strand against a motif with one interaction, so that the optimum and its reverse
complement are equally good: the symmetry that real binding tables have.
"""

import argparse
import csv
import itertools
from pathlib import Path

from mercbo import Categorical, Optimizer, Space

LETTERS = "ACGT"
COMPLEMENT = str.maketrans("ACGT", "TGCA")
MOTIF = "TAATTAGC"


def strand_score(sequence: str) -> float:
    matches = sum(a == b for a, b in zip(sequence, MOTIF, strict=True))
    core = sequence[1:5] == MOTIF[1:5]
    return matches / 8 + 0.5 * core


def binding(sequence: str) -> float:
    reverse = sequence.translate(COMPLEMENT)[::-1]
    return max(strand_score(sequence), strand_score(reverse))


def made_up() -> dict[str, float]:
    words = ("".join(letters) for letters in itertools.product(LETTERS, repeat=8))
    return {word: binding(word) for word in words}


def read_table(path: Path) -> dict[str, float]:
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    return {sequence.upper(): float(value) for sequence, value in rows}


def space_of(scores: dict[str, float]) -> Space:
    length = len(next(iter(scores)))
    names = [f"base{i}" for i in range(length)]
    if len(scores) == 4**length:
        return Space({name: Categorical(list(LETTERS)) for name in names})
    return Space.table([dict(zip(names, word, strict=True)) for word in scores])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    scores = read_table(given.table) if given.table else made_up()
    opt = Optimizer(space_of(scores), direction="maximize", seed=0)
    for round_number in range(1, 16):
        batch = opt.ask(8)
        opt.tell(batch, [scores["".join(point.values())] for point in batch])
        if round_number % 3 == 0:
            print(f"after {8 * round_number:3d} of {len(scores)} sequences: {opt.best.value:.3f}")
    found = "".join(opt.best.point.values())
    better = sum(value > opt.best.value for value in scores.values())
    print(
        f"found {found} with {opt.best.value:.3f}; the best possible is {max(scores.values()):.3f} "
        f"({better} sequences are better)"
    )


if __name__ == "__main__":
    main()
