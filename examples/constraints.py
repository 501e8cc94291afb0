"""A campaign with everything that happens in one: rules, failures, corrections, a restart.

    python examples/constraints.py

A made-up coupling reaction: some conditions are dangerous together, the budget for reagents is
limited, an evaluation can fail (a hidden rule: the ligand falls apart when hot in water), and one
result turns out to have been written down wrongly.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from mercbo import (
    AtMost,
    Binary,
    Categorical,
    Forbid,
    Implies,
    Integer,
    Linear,
    Optimizer,
    Ordinal,
    Space,
)

SPACE = Space(
    {
        "solvent": Categorical(["water", "THF", "DMSO", "toluene"]),
        "base": Categorical(["K2CO3", "NaH", "Et3N", "LDA"]),
        "ligand": Categorical(["PPh3", "dppf", "XPhos", "none"]),
        "heat": Ordinal([20, 40, 60, 80, 100]),
        "hours": Integer(1, 12),
        "additive": Binary(),
        "water_bath": Binary(),
        "argon": Binary(),
    },
    constraints=[
        Forbid({"solvent": "water", "base": ["NaH", "LDA"]}),  # they burn in water
        Implies({"base": "LDA"}, {"argon": 1, "heat": [20, 40]}),
        AtMost(2, ["additive", "water_bath", "argon"]),
        Linear({"hours": 5.0, ("ligand", "XPhos"): 60.0, ("ligand", "dppf"): 35.0}, "<=", 100),
    ],
)


def fails(point: dict) -> bool:
    return point["solvent"] == "water" and point["heat"] >= 60 and point["ligand"] != "none"


def yield_of(point: dict) -> float:
    result = {"water": 8.0, "THF": 14.0, "DMSO": 18.0, "toluene": 5.0}[point["solvent"]]
    result += {"K2CO3": 10.0, "NaH": 14.0, "Et3N": 6.0, "LDA": 18.0}[point["base"]]
    result += {"PPh3": 8.0, "dppf": 14.0, "XPhos": 22.0, "none": 0.0}[point["ligand"]]
    result += 2.0 * min(point["hours"], 8) + point["heat"] / 10 + 4.0 * point["argon"]
    return result - 9.0 * (point["solvent"] == "DMSO" and point["base"] == "NaH")


def main() -> None:
    opt = Optimizer(SPACE, direction="maximize", seed=1)
    for _ in range(10):
        plate = opt.ask(4)
        opt.tell(plate, [None if fails(p) else yield_of(p) for p in plate])

    wrong = opt.observations[3].point
    opt.tell(wrong, 500.0)  # a slip of the pen ...
    opt.amend(wrong, yield_of(wrong))  # ... put right

    with TemporaryDirectory() as folder:  # the machine is restarted
        opt.save(Path(folder) / "run.json")
        opt = Optimizer.load(Path(folder) / "run.json")

    for point in opt.ask(4, fixed={"solvent": "THF"}):  # only THF is left in the cupboard
        opt.tell(point, yield_of(point), std=0.5)

    best = max(yield_of(p) for p in SPACE.points(SPACE.enumerate_rows()) if not fails(p))
    broken = sum(bool(SPACE.broken(o.point)) for o in opt.observations)
    print(f"{len(opt.observations)} results, {len(opt.failed)} failed, {broken} broke a rule")
    print(f"best: {opt.best.point}")
    print(f"yield {opt.best.value:g} (the best of all allowed conditions gives {best:g})")


if __name__ == "__main__":
    main()
