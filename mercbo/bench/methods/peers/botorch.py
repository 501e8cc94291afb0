"""Worker: BoTorch's Gaussian process for mixed spaces, log expected improvement, local search.

`MixedSingleTaskGP` has a Hamming kernel for what has no order (with two values there is none to
speak of) and BoTorch's default kernel for what has one; a space that is ordered throughout gets a
`SingleTaskGP`. `qLogExpectedImprovement` is maximised by `optimize_acqf_discrete_local_search` with
its defaults, points already told left out; in a space of no more points than that looks at to begin
with, over all of them. Until two different points are told, it asks at random.
"""

from __future__ import annotations

import math
import random
import warnings
from itertools import product
from typing import Any

# Points told before there is a model: one gives no spread to standardise by.
FEWEST = 2
# Spaces up to this size are enumerated: the local search wants 20 starts, of 4096 random points.
ENUMERATED = 4096


class BoTorch:
    """Results so far; a model of them is fitted for every ask."""

    def __init__(self, start: Any) -> None:
        import botorch  # noqa: F401 (said to be missing now, not at the first ask)
        import torch

        # bad fits are retried by BoTorch itself, which warns of each
        warnings.filterwarnings("ignore")
        torch.manual_seed(start.seed)
        self.torch = torch
        self.rng = random.Random(start.seed)
        self.sizes = [v.size for v in start.variables]
        self.hamming = [i for i, v in enumerate(start.variables) if v.size < 3 or not v.ordered]
        # what has an order goes to [0, 1], as the priors of the kernel expect
        self.units = [1 if i in self.hamming else v.size - 1 for i, v in enumerate(start.variables)]
        self.rows: list[list[int]] = []
        self.values: list[float] = []

    def ask(self) -> list[int]:
        told = {tuple(row) for row in self.rows}
        if len(told) >= math.prod(self.sizes):
            raise ValueError("every point of the space has been told")
        if len(told) < FEWEST:
            return self._random(told)
        return self._row(self._optimised(self._fitted()))

    def tell(self, row: list[int], value: float) -> None:
        self.rows.append(list(row))
        self.values.append(value)

    def _random(self, told: set[tuple[int, ...]]) -> list[int]:
        while True:
            row = [self.rng.randrange(size) for size in self.sizes]
            if tuple(row) not in told:
                return row

    def _tensor(self, rows: list[Any]) -> Any:
        return self.torch.tensor(rows, dtype=self.torch.double)

    def _inputs(self) -> Any:
        return self._tensor(self.rows) / self._tensor(self.units)

    def _row(self, inputs: Any) -> list[int]:
        return [round(value) for value in (inputs * self._tensor(self.units)).tolist()]

    def _fitted(self) -> Any:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MixedSingleTaskGP, SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        x, y = self._inputs(), -self._tensor(self.values).unsqueeze(-1)  # BoTorch maximises
        mixed = MixedSingleTaskGP(x, y, cat_dims=self.hamming) if self.hamming else None
        model = mixed or SingleTaskGP(x, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def _optimised(self, model: Any) -> Any:
        from botorch.acquisition import qLogExpectedImprovement
        from botorch.optim import optimize_acqf_discrete, optimize_acqf_discrete_local_search

        choices = [
            self._tensor([value / unit for value in range(size)])
            for size, unit in zip(self.sizes, self.units, strict=True)
        ]
        score, told = qLogExpectedImprovement(model, best_f=-min(self.values)), self._inputs()
        if math.prod(self.sizes) <= ENUMERATED:
            points = self._tensor(list(product(*(choice.tolist() for choice in choices))))
            found, _ = optimize_acqf_discrete(score, q=1, choices=points, X_avoid=told)
        else:
            found, _ = optimize_acqf_discrete_local_search(score, choices, q=1, X_avoid=told)
        return found[0]


if __name__ == "__main__":
    from peerlib import serve

    serve("botorch", ["botorch", "gpytorch", "torch"], BoTorch)
