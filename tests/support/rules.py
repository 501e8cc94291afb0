"""Hidden rules by which evaluations fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercbo import Binary, Categorical, Ordinal, Space

MANY = Space(
    {
        **{f"b{i}": Binary() for i in range(8)},
        **{f"c{i}": Categorical(list("ABCDE")) for i in range(4)},
        **{f"o{i}": Ordinal(range(5)) for i in range(4)},
    }
)

# The rule by which a row fails, and the share of other rows foretold after TOLD of them: less
# than the least of 20 seeds (1.0 and 0.92 for the rules on two variables, 0.79 on all).
Rule = Callable[[np.ndarray], np.ndarray]
RULES: dict[str, tuple[Space, Rule, float]] = {
    "two of 25 bits": (Space.binary(25), lambda r: (r[:, 3] == 1) & (r[:, 7] == 1), 0.97),
    "more than half": (Space.binary(12), lambda r: r.sum(axis=1) > 6, 0.75),
    "two of five values": (MANY, lambda r: np.isin(r[:, 9], [0, 2]), 0.97),
    "different": (Space.binary(15), lambda r: r[:, 1] != r[:, 2], 0.97),
    "high ordinal": (MANY, lambda r: r[:, 13] >= 3, 0.97),
    "bit with value": (MANY, lambda r: (r[:, 2] == 1) & (r[:, 10] != 4), 0.88),
}
TOLD = 60
