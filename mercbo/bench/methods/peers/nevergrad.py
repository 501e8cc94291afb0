"""Worker: Nevergrad's portfolio of discrete (1 + 1) evolution strategies.

Points that it did not ask for are told as such, which this optimizer takes.
"""

from __future__ import annotations

from typing import Any

OPTIMIZER = "PortfolioDiscreteOnePlusOne"


class Nevergrad:
    """An optimizer that is asked and told by rows."""

    def __init__(self, start: Any) -> None:
        import nevergrad as ng

        # Choice draws its value by a softmax, also where the optimizer chose one; over 8 seeds on
        # a sum over 12 variables of 4 values it ended at -7.0, TransitionChoice at -9.1
        space = ng.p.Tuple(*(ng.p.TransitionChoice(list(range(v.size))) for v in start.variables))
        space.random_state.seed(start.seed)
        self.optimizer = ng.optimizers.registry[OPTIMIZER](space, budget=start.evaluations)
        self.pending: dict[tuple[int, ...], list[Any]] = {}

    def ask(self) -> list[int]:
        candidate = self.optimizer.ask()
        row = [int(value) for value in candidate.value]
        self.pending.setdefault(tuple(row), []).append(candidate)
        return row

    def tell(self, row: list[int], value: float) -> None:
        candidates = self.pending.get(tuple(row))
        if candidates:
            candidate = candidates.pop()
        else:
            candidate = self.optimizer.parametrization.spawn_child(new_value=tuple(row))
        self.optimizer.tell(candidate, value)


if __name__ == "__main__":
    from peerlib import serve

    serve("nevergrad", ["nevergrad"], Nevergrad)
