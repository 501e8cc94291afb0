"""Feature selection against scikit-learn's own ridge classifier."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mercbo.problems.feature_selection import FOLDS, PRICE, breast_cancer, feature_selection


def test_errors_are_those_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import RidgeClassifier
    from sklearn.preprocessing import StandardScaler

    problem = feature_selection(0)
    features, labels, _ = breast_cancer()
    parts = np.array_split(np.random.default_rng([0, 14]).permutation(len(labels)), FOLDS)
    for row in problem.initial[:3]:
        wrong = 0
        for held in parts:
            kept = np.setdiff1d(np.arange(len(labels)), held)
            scale = StandardScaler().fit(features[kept])
            model = RidgeClassifier(alpha=1.0)
            chosen = row == 1
            model.fit(scale.transform(features[kept])[:, chosen], labels[kept])
            guessed = model.predict(scale.transform(features[held])[:, chosen])
            wrong += int((guessed != labels[held]).sum())
        expected = wrong / len(labels) + PRICE * row.sum()
        assert problem.objective(row[np.newaxis])[0] == pytest.approx(expected)


def test_no_feature_at_all_guesses_the_larger_class() -> None:
    pytest.importorskip("sklearn")
    problem = feature_selection(1)
    nothing = problem.objective(np.zeros((1, 30), dtype=np.int64))[0]
    assert nothing == pytest.approx(212 / 569)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    breast_cancer.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'mercbo\[bench\]'"):
        feature_selection(0)
