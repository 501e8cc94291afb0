"""Feature selection: which of the 30 features of the breast cancer data a linear model should use.

The data (Wolberg, Street and Mangasarian 1995; 569 tumours) come with scikit-learn, an optional
dependency. The objective is the share of errors of a ridge classifier in 10-fold cross-validation
plus a price for each feature; folds are drawn by the run.

| symbol  | meaning                                                   | shape   |
|---------|-----------------------------------------------------------|---------|
| gram    | X'X of a fold's standardised training features            | (p, p)  |
| moment  | X'y of the training labels, which are -1 and 1            | (p,)    |
| offset  | mean of the training labels                               |         |
| held    | features of the held-out part, by the training's scale    | (m, p)  |
| labels  | of the held-out part                                      | (m,)    |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Binary
from mercbo.problems.base import Problem, random_initial
from mercbo.space import Space

FOLDS = 10
RIDGE = 1.0  # scikit-learn's default
# A feature must save more than one tumour in 569 to be worth its price.
PRICE = 0.002


@dataclass(frozen=True)
class Fold:
    """What one fold needs to be known for any choice of features."""

    gram: Floats
    moment: Floats
    offset: float
    held: Floats
    labels: Floats

    @classmethod
    def of(cls, features: Floats, labels: Floats, held: Rows) -> Fold:
        kept = np.setdiff1d(np.arange(len(labels)), held)
        centre, scale = features[kept].mean(axis=0), features[kept].std(axis=0)
        scaled = (features - centre) / scale
        offset = float(labels[kept].mean())
        moment = scaled[kept].T @ (labels[kept] - offset)
        return cls(scaled[kept].T @ scaled[kept], moment, offset, scaled[held], labels[held])

    def errors(self, chosen: Rows) -> int:
        """Wrong labels in the held-out part with the chosen features (positions)."""
        scores = np.full(len(self.labels), self.offset)
        if len(chosen):
            gram = self.gram[np.ix_(chosen, chosen)] + RIDGE * np.eye(len(chosen))
            scores += self.held[:, chosen] @ cho_solve(cho_factor(gram), self.moment[chosen])
        return int(((scores > 0) != (self.labels > 0)).sum())


@cache
def breast_cancer() -> tuple[Floats, Floats, tuple[str, ...]]:
    """Features (569, 30), labels (569,) in {-1, 1}, and the features' names."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        raise ImportError(
            "feature selection needs scikit-learn: pip install 'mercbo[bench]'"
        ) from error
    stored = load_breast_cancer()
    return stored.data, 2.0 * stored.target - 1.0, tuple(map(str, stored.feature_names))


def folds_of(features: Floats, labels: Floats, rng: np.random.Generator) -> Iterator[Fold]:
    for held in np.array_split(rng.permutation(len(labels)), FOLDS):
        yield Fold.of(features, labels, np.sort(held))


def priced_error(rows: Rows, folds: tuple[Fold, ...]) -> Floats:
    count = sum(len(fold.labels) for fold in folds)
    wrong = [sum(fold.errors(np.flatnonzero(row)) for fold in folds) for row in rows]
    return np.asarray(np.array(wrong) / count + PRICE * rows.sum(axis=1))


def feature_selection(run: int, data: Path | None = None) -> Problem:  # noqa: ARG001
    features, labels, names = breast_cancer()
    rng = np.random.default_rng([run, 14])
    space = Space({name: Binary() for name in names})
    objective = partial(priced_error, folds=tuple(folds_of(features, labels, rng)))
    return Problem(
        "features", space, objective, random_initial(space, rng),
        "Wolberg, Street and Mangasarian 1995",
    )  # fmt: skip
