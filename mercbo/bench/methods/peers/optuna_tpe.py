"""Worker: Optuna's tree-structured Parzen estimator, with its defaults."""

from __future__ import annotations

from typing import Any


class Study:
    """A study that is asked and told by rows; shared by Optuna's samplers."""

    def __init__(self, start: Any, sampler: Any) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna = optuna
        self.study = optuna.create_study(sampler=sampler)
        self.names = [v.name for v in start.variables]
        ordered = optuna.distributions.IntDistribution
        choice = optuna.distributions.CategoricalDistribution
        self.distributions = {
            v.name: ordered(0, v.size - 1) if v.ordered else choice(tuple(range(v.size)))
            for v in start.variables
        }
        # trials asked for and not told, by row
        self.pending: dict[tuple[int, ...], list[Any]] = {}

    def ask(self) -> list[int]:
        trial = self.study.ask(self.distributions)
        row = [int(trial.params[name]) for name in self.names]
        self.pending.setdefault(tuple(row), []).append(trial)
        return row

    def tell(self, row: list[int], value: float) -> None:
        trials = self.pending.get(tuple(row))
        if trials:
            self.study.tell(trials.pop(), value)
            return
        params = dict(zip(self.names, row, strict=True))
        self.study.add_trial(
            self.optuna.trial.create_trial(
                value=value, params=params, distributions=self.distributions
            )
        )


def begin(start: Any) -> Study:
    import optuna

    return Study(start, optuna.samplers.TPESampler(seed=start.seed))


if __name__ == "__main__":
    from peerlib import serve

    serve("optuna-tpe", ["optuna"], begin)
