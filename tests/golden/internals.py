"""The one place where golden moments touch the internals of mercbo.

A redesign changes this file and nothing else here. All arguments and answers are plain: index rows,
standardized results, a dictionary of hyper-parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercbo import Model, Space
from mercbo.encoding import Encoding
from mercbo.fitting.kinds import kinds_of
from mercbo.fitting.structured import chart_of
from mercbo.inference import PLAIN, Data, Hyper
from mercbo.kernels.averaging import kernel_of
from mercbo.kernels.motifs import Motifs
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.windows import Windows
from mercbo.posterior import Posterior
from mercbo.quadratic import Draw


class Posteriors:
    """The posterior of a model at fixed hyper-parameters."""

    def __init__(
        self, space: Space, rows: np.ndarray, y: np.ndarray, hyper: dict[str, Any], model: str
    ) -> None:
        self.space = space
        self.encoding = Encoding(space)
        self.kernel = kernel_of(self.encoding, space.group)
        errors = hyper.get("errors")
        self.data = Data(self.kernel, rows, y, None if errors is None else np.array(errors))
        self.hyper = Hyper(
            self.kernel.beta(np.array(hyper["contrast"])),
            hyper["amplitude"],
            hyper["noise"],
            hyper["mean"],
            windows=Windows(*hyper["local"]) if "local" in hyper else None,
            pooling=Pooling(*hyper["counts"]) if "counts" in hyper else None,
            motifs=Motifs(*hyper["kmers"]) if "kmers" in hyper else None,
        )
        plain = replace(Model(), inference="map")
        models = {"gp": plain, "paper": Model.paper(),
                  "paper, identity": replace(Model.paper(), weights="identity")}  # fmt: skip
        self.posterior = Posterior(models[model], self.data, self.hyper)

    def predict(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.posterior.predict(rows)

    def log_density(self) -> tuple[float, np.ndarray]:
        """The log posterior density of the hyper-parameters and its gradient."""
        kinds = kinds_of(self.hyper)
        chart = chart_of(kinds) if kinds else PLAIN
        value, gradient, _ = chart.density(self.data, chart.pack(self.kernel, self.hyper))
        return value, gradient

    def sample(self, rng: Any) -> Any:
        return self.posterior.draw(rng=rng)

    def order_two(self, rng: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.sample(rng).value(rows))

    def full_order(self, rng: Any, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.sample(rng).path(rows))

    def energies(self, rng: Any, rows: np.ndarray) -> np.ndarray:
        """The energies of the BQM of a draw at some feasible rows."""
        none = rows[:0]
        draw = Draw(self.space, self.encoding, self.encoding, self.sample(rng), none)
        return np.array([draw.bqm.energy(draw.encode(p)) for p in self.space.points(rows)])
