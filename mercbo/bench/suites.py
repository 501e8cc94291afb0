"""Suites: whole tables of the benchmark by a name, so that each is made again by one command.

| suite     | what                                                                              |
|-----------|-----------------------------------------------------------------------------------|
| published | the published instances and initial points with their budgets: the README's table |
| heldout   | sequences, and relocated problems, most of which no default was chosen on         |

Both are played by ``mercbo bench suite NAME --data DIR``, which goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mercbo.bench.runner import Task, runs_of, tasks_of
from mercbo.errors import SettingError, hint

OURS = ("mercbo", "mercbo-thompson", "mercbo-paper-quick")
PUBLISHED = (
    "contamination", "ising", "labs-50", "maxsat-28", "maxsat-43", "maxsat-60", "pest",
)  # fmt: skip
FACTORS = (
    "ARX", "CRX", "EGR2", "HOXD13", "KLF1", "NR1H4", "PAX4", "POU3F4", "SIX6", "SNAI2", "VSX1",
    "WT1",
)  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Methods on problems that have runs and a budget in common."""

    problems: tuple[str, ...]
    runs: str
    budget: int | None = None  # None: as published
    drawn: bool = False  # whether instances are drawn here, also where published ones are there
    relocated: bool = False


@dataclass(frozen=True)
class Suite:
    """All of a table: each method plays each part."""

    methods: tuple[str, ...]
    parts: tuple[Part, ...]
    # runs of one method beyond those that all are compared on
    more: tuple[tuple[str, str], ...] = ()

    @property
    def problems(self) -> list[str]:
        return [name for part in self.parts for name in part.problems]


SUITES = {
    "published": Suite(
        methods=(*OURS, "combo", "bocs", "smac", "optuna-tpe", "random"),
        parts=(Part(PUBLISHED, runs="0-9"),),
        more=(("mercbo", "10-14"),),
    ),
    "heldout": Suite(
        methods=(
            "mercbo", "combo", "bocs", "smac", "optuna-tpe", "nevergrad", "catcma", "local", "sa",
            "genetic", "random",
        ),
        # letters mean the same all along a sequence: to rename them at each place would be another
        # problem
        parts=(
            Part(tuple(f"dna:{factor}" for factor in FACTORS), runs="0-1", budget=120),
            Part(("ehrlich-20",), runs="60-65", budget=200, drawn=True),
            Part(("labs-50",), runs="50-53", drawn=True, relocated=True),
            Part(("pest",), runs="50-53", budget=150, drawn=True, relocated=True),
        ),
    ),
}  # fmt: skip


def suite_tasks(
    name: str,
    data: Path | None,
    *,
    methods: Sequence[str] | None = None,
    problems: Sequence[str] | None = None,
) -> list[Task]:
    """The runs of a suite, or those of some of its methods and problems.

    >>> len(suite_tasks("heldout", Path("data"), methods=["random"]))
    38
    """
    if name not in SUITES:
        raise SettingError(f"suite={name!r} is not one of {list(SUITES)}{hint(name, SUITES)}")
    suite = SUITES[name]
    if data is None:
        raise SettingError(f"the suite {name!r} needs the published data: --data DIR")
    methods = _some("methods", methods, suite.methods)
    problems = _some("problems", problems, suite.problems)
    tasks = []
    for part in suite.parts:
        wanted = [problem for problem in part.problems if problem in problems]
        played = [(methods, part.runs)]
        played += [([method], runs) for method, runs in suite.more if method in methods]
        for who, runs in played:
            tasks += tasks_of(
                wanted, who, runs_of(runs),
                budget=part.budget, relocated=part.relocated,
                data=None if part.drawn else data,
            )  # fmt: skip
    return tasks


def _some(what: str, wanted: Sequence[str] | None, there: Sequence[str]) -> Sequence[str]:
    for name in wanted or ():
        if name not in there:
            raise SettingError(f"{what}: the suite has no {name!r}, but {list(there)}")
    return wanted or there
