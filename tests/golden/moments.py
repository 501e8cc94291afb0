"""Predictions, densities and draws at fixed hyper-parameters, recorded for about twenty cases.

They follow from the mathematics alone, so that they hold whatever the code looks like. Record them
anew only if the mathematics changes: ``python tests/golden/moments.py``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from golden import cases
from golden.internals import Posteriors
from support.moments import Given, exact_moments

from mercbo import AtMost, Categorical, Integer, Ordinal, Reversal, Space

RECORDED = Path(__file__).parent / "moments.json"
RESULTS, POINTS = 9, 6


@dataclass(frozen=True)
class Case:
    """A space, a model, and what its hyper-parameters have beside the usual ones."""

    space: Callable[[], Space]
    model: str = "gp"
    more: dict[str, Any] = field(default_factory=dict)
    has_density: bool = True

    def measure(self) -> dict[str, Any]:
        space, rng = self.space(), np.random.default_rng(5)
        rows = space.sample_rows(RESULTS + POINTS, rng=rng)
        factors = sum(
            int(np.ceil(np.log2(v.size))) if v.encoding == "binary" and v.size > 2 else v.size > 1
            for v in space.variables.values()
        )
        contrast = rng.uniform(0.05, 0.8, factors)
        if "tied" in self.more:
            contrast[:] = 0.3
        hyper = {"contrast": contrast, "amplitude": 1.3, "noise": 0.02, "mean": 0.2, **self.more}
        y = rng.standard_normal(RESULTS)
        found = Posteriors(space, rows[:RESULTS], y, hyper, self.model)
        new = rows[RESULTS:]
        mean, variance = found.predict(new)
        measured = {"mean": mean, "variance": variance}
        if self.has_density:
            measured["density"], measured["gradient"] = found.log_density()
        for name, values in (("order two", found.order_two), ("full order", found.full_order)):
            centre, covariance = exact_moments(lambda r, values=values: values(r, new))
            measured[f"{name}, mean"], measured[f"{name}, covariance"] = centre, covariance
        measured["energies"] = found.energies(Given(rng.standard_normal(5000)), new)
        return {name: np.asarray(each).tolist() for name, each in measured.items()}


PAPER: dict[str, Any] = {"has_density": False}
CASES = {
    "binary": Case(lambda: cases.bits(5)),
    "categorical": Case(lambda: cases.letters(3)),
    "binary encoding": Case(
        lambda: Space({n: Categorical(list("abcde"), encoding="binary") for n in "xy"})
    ),
    "ordinal and integer": Case(lambda: Space({"a": Ordinal([1, 3, 9, 27]), "b": Integer(0, 5)})),
    "mixed": Case(cases.mixed),
    "linear constraint": Case(
        lambda: cases.bits(6, constraints=[AtMost(3, [f"x{i}" for i in range(6)])])
    ),
    "symmetry": Case(lambda: cases.bits(5, symmetries=[Reversal()]), more={"tied": True}),
    "known errors": Case(lambda: cases.bits(5), more={"errors": [0.1, np.nan, 0.5] * 3}),
    "local": Case(lambda: cases.bits(6), more={"local": (0.4, 1.7, 0.45)}),
    "local on letters": Case(lambda: cases.letters(4), more={"local": (0.8, 0.9, 0.6)}),
    "counts": Case(lambda: cases.letters(4), more={"counts": (0.3, 0.2)}),
    "counts on bits": Case(lambda: cases.bits(6), more={"counts": (0.5, 0.1)}),
    "k-mers": Case(lambda: cases.letters(6), more={"kmers": (0.7, 0.6)}),
    "k-mers on both strands": Case(lambda: cases.letters(6), more={"kmers": (0.7, 0.6, 2)}),
    "local and counts": Case(
        lambda: cases.letters(4), more={"local": (0.4, 1.7, 0.45), "counts": (0.3, 0.2)}
    ),
    "k-mers and counts": Case(
        lambda: cases.letters(6), more={"kmers": (0.7, 0.6), "counts": (0.3, 0.2)}
    ),
    "paper, binary": Case(lambda: cases.bits(5), "paper", **PAPER),
    "paper, letters": Case(lambda: cases.letters(3), "paper", **PAPER),
    "paper, mixed": Case(cases.mixed, "paper", **PAPER),
    "paper, identity": Case(lambda: cases.bits(5), "paper, identity", **PAPER),
}  # fmt: skip


def recorded() -> dict[str, Any]:
    return dict(json.loads(RECORDED.read_text(encoding="utf-8")))


if __name__ == "__main__":
    measured = {name: case.measure() for name, case in CASES.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in measured.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
