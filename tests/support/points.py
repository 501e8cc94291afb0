"""A space of every kind of variable, a point of it, and the point's row."""

from __future__ import annotations

from mercbo import Binary, Categorical, Integer, Ordinal, Space

MIXED = Space(
    {
        "base": Categorical(["A", "C", "G", "T"], encoding="binary"),
        "solvent": Categorical(["DMSO", "THF", None]),
        "heat": Ordinal([20, 40.5, 80]),
        "n": Integer(-1, 2),
        "wash": Binary(),
    }
)
POINT = {"base": "G", "solvent": None, "heat": 40.5, "n": -1, "wash": 1}
ROW = [2, 2, 1, 0, 1]
