"""Fifteen lines: optimise reaction conditions over a mixed discrete space.

python examples/quickstart.py
"""

from mercbo import Binary, Categorical, Integer, Optimizer, Ordinal, Space

SOLVENT = {"water": 0.0, "ethanol": 12.0, "DMSO": 20.0, "THF": 5.0}


def yield_of(point: dict) -> float:
    """A made-up reaction: the best conditions give 97 %, and heat ruins DMSO."""
    result = 40.0 + SOLVENT[point["solvent"]] - 3.0 * abs(point["hours"] - 4)
    result += 15.0 * (point["base"] == "K2CO3") + 10.0 * point["stirring"]
    result += {20: 0.0, 40: 12.0, 80: 20.0}[point["heat"]]
    return result - 30.0 * (point["solvent"] == "DMSO" and point["heat"] == 80)


def main() -> None:
    space = Space(
        {
            "solvent": Categorical(list(SOLVENT)),
            "base": Categorical(["NaH", "K2CO3", "Et3N"]),
            "heat": Ordinal([20, 40, 80]),
            "hours": Integer(1, 8),
            "stirring": Binary(),
        }
    )
    opt = Optimizer(space, direction="maximize", seed=0)
    for _ in range(30):
        point = opt.ask()
        opt.tell(point, yield_of(point))
    best = max(map(yield_of, space.points(space.enumerate_rows())))
    print(f"best of 30 of {space.size} conditions: {opt.best.point}")
    print(f"yield {opt.best.value:g} % (the best of all is {best:g} %)")


if __name__ == "__main__":
    main()
