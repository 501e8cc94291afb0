"""`mercbo bench proofs`: how long CP-SAT takes to prove a draw's minimum, by formulation.

Draws of dense binary problems of growing size, and of one-hot problems, are solved to proof by
CP-SAT's row formulation, by the textbook products, and by enumeration, in one run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.backend import resolve
from mercbo.bench.backends import draws_of, header
from mercbo.bench.runs import make_folder
from mercbo.domain.variables import Categorical
from mercbo.problems import Problem
from mercbo.problems.base import random_initial
from mercbo.problems.random_quadratic import random_quadratic
from mercbo.quadratic import Draw
from mercbo.space import Space

BITS = (10, 15, 20, 25, 30)
GROUPS = ((6, 4), (8, 4), (8, 6))


@dataclass(frozen=True)
class Proof:
    """One solver on one draw."""

    problem: str
    draw: int
    solver: str
    status: str
    energy: float | None
    seconds: float


def random_categorical(run: int, data: Path | None = None, *, n: int, k: int) -> Problem:  # noqa: ARG001
    """A random function of main effects and pairs over n variables of k values."""
    rng = np.random.default_rng([run, 8, n, k])
    space = Space({f"v{i}": Categorical(range(k)) for i in range(n)})
    main, pairs = rng.standard_normal((n, k)), rng.standard_normal((n, n, k, k)) / np.sqrt(n)

    def objective(rows: Any) -> Any:
        total = main[np.arange(n), rows].sum(axis=1)
        for i in range(n):
            for j in range(i):
                total = total + pairs[i, j][rows[:, i], rows[:, j]]
        return total

    return Problem(f"{n} x {k}", space, objective, random_initial(space, rng), "drawn here")


def cases() -> dict[str, Callable[..., Problem]]:
    dense = {f"{n} bits": partial(random_quadratic, n=n) for n in BITS}
    return {**dense, **{f"{n} x {k}": partial(random_categorical, n=n, k=k) for n, k in GROUPS}}


def run(
    out: Path, *, draws: int, time_limit: float, progress: Callable[[str], None] = lambda _: None
) -> list[Proof]:
    """Prove each case's draws by each solver; one JSON line per proof."""
    cp_sat = type(resolve("cp-sat"))
    settings = {"time_limit": time_limit, "workers": 2}
    solvers = {
        "rows": cp_sat(**settings, formulation="rows"),
        "products": cp_sat(**settings, formulation="products"),
        "exhaustive": resolve("exhaustive"),
    }
    make_folder(out)
    rows = []
    with (out / "proofs.jsonl").open("w", encoding="utf-8") as file:
        file.write(json.dumps(header()) + "\n")
        for name, number, draw in _draws(draws):
            for solver, sampler in solvers.items():
                progress(f"{name}, draw {number + 1} of {draws}, {solver}")
                rows.append(_prove(name, number, draw, solver, sampler))
                file.write(json.dumps(asdict(rows[-1])) + "\n")
                file.flush()
    return rows


def _draws(count: int) -> Iterator[tuple[str, int, Draw]]:
    for name, make in cases().items():
        for number, draw in enumerate(draws_of(make, count, 1, None)):
            yield name, number, draw


def _prove(name: str, number: int, draw: Draw, solver: str, sampler: Any) -> Proof:
    started = time.perf_counter()
    try:
        if draw.is_constrained:
            found = sampler.sample_cqm(draw.constrained, seed=number)
        else:
            found = sampler.sample(draw.bqm, seed=number)
    except ValueError:  # too large for enumeration
        return Proof(name, number, solver, "refused", None, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    energy = float(found.first.energy) if len(found) else None
    return Proof(name, number, solver, found.info["status"], energy, seconds)


def markdown(rows: list[Proof]) -> str:
    """Median seconds to proof, or how many were proved where not all were."""
    solvers = list(dict.fromkeys(row.solver for row in rows))
    lines = [f"| | {' | '.join(solvers)} |", "|---" * (len(solvers) + 1) + "|"]
    for problem in dict.fromkeys(row.problem for row in rows):
        cells = []
        for solver in solvers:
            found = [r for r in rows if (r.problem, r.solver) == (problem, solver)]
            proved = [r.seconds for r in found if r.status == "optimal"]
            if len(proved) == len(found):
                cells.append(f"{np.median(proved):.2g} s")
            elif all(r.status == "refused" for r in found):
                cells.append("refused")
            else:
                cells.append(f"{len(proved)} of {len(found)} proved")
        lines.append(f"| {problem} | {' | '.join(cells)} |")
    return "\n".join(lines)


def agree(rows: list[Proof]) -> bool:
    """Whether all proofs of a draw give the same minimum."""
    proved: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row.status == "optimal" and row.energy is not None:
            proved.setdefault((row.problem, row.draw), []).append(row.energy)
    return all(max(found) - min(found) < 1e-6 for found in proved.values())
