"""Design an 8-letter DNA sequence in batches of 8, with a motif objective defined here.

    python examples/dna_sequence.py

The score of a sequence is that of its best-matching strand against a position weight matrix
with one pair interaction, so that the optimum and its reverse complement are equally good:
the symmetry that real binding tables have.
"""

import numpy as np

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


def main() -> None:
    names = [f"base{i}" for i in range(8)]
    space = Space({name: Categorical(list(LETTERS)) for name in names})
    opt = Optimizer(space, direction="maximize", seed=0)
    for round_number in range(1, 16):
        batch = opt.ask(8)
        sequences = ["".join(str(point[name]) for name in names) for point in batch]
        opt.tell(batch, [binding(sequence) for sequence in sequences])
        if round_number % 3 == 0:
            print(f"after {8 * round_number:3d} of {space.size} sequences: {opt.best.value:.3f}")
    found = "".join(str(letter) for letter in opt.best.point.values())
    everything = np.array(np.meshgrid(*[list(LETTERS)] * 8)).reshape(8, -1).T
    best = max(binding("".join(letters)) for letters in everything)
    print(f"found {found} with {opt.best.value:.3f}; the best possible is {best:.3f}")


if __name__ == "__main__":
    main()
