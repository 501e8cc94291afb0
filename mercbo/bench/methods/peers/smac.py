"""Worker: SMAC3's random forest with expected improvement (its hyper-parameter facade).

Points told before the first ask stand in for its initial design, which is one point.
Otherwise as it comes: one forest serves 8 asks (`retrain_after`), with random points in between.
Its forest is used by one thread: a pool of threads for every prediction takes longer.
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

# SMAC ends by itself beyond its number of trials; the told initial points count as such.
SPARE_TRIALS = 1000


class Smac:
    """A facade that is asked and told by rows."""

    def __init__(self, start: Any) -> None:
        os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
        import ConfigSpace
        from smac import HyperparameterOptimizationFacade, Scenario

        logging.disable(logging.WARNING)
        self.names = [f"v{i}" for i in range(len(start.variables))]
        self.space = ConfigSpace.ConfigurationSpace(seed=start.seed)
        for name, v in zip(self.names, start.variables, strict=True):
            values = list(range(v.size))
            if v.size == 1:
                self.space.add(ConfigSpace.Constant(name, 0))
            elif v.ordered:
                self.space.add(ConfigSpace.Integer(name, (0, v.size - 1)))
            else:
                self.space.add(ConfigSpace.Categorical(name, values))
        self.folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            self.space,
            deterministic=True,
            n_trials=start.evaluations + SPARE_TRIALS,
            seed=start.seed,
            output_directory=Path(self.folder.name),
        )
        facade = HyperparameterOptimizationFacade
        self.smac = facade(
            scenario,
            _unused,
            initial_design=facade.get_initial_design(scenario, n_configs=1),
            logging_level=False,
        )

    def ask(self) -> list[int]:
        trial = self.smac.ask()
        return [int(trial.config[name]) for name in self.names]

    def tell(self, row: list[int], value: float) -> None:
        import ConfigSpace
        from smac.runhistory import TrialInfo, TrialValue

        config = ConfigSpace.Configuration(
            self.space, values=dict(zip(self.names, row, strict=True))
        )
        # a deterministic scenario runs every trial with seed 0
        self.smac.tell(TrialInfo(config, seed=0), TrialValue(cost=value), save=False)


def _unused(config: Any, seed: int = 0) -> float:
    """The target function that the facade wants and that asking and telling never calls."""
    raise RuntimeError(f"SMAC evaluated {config} (seed {seed}) by itself; it is only to be asked")


if __name__ == "__main__":
    from peerlib import serve

    serve("smac", ["smac", "ConfigSpace"], Smac)
