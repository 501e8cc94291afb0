"""Choose 5 of 30 measurements that diagnose best, on real data, by scikit-learn's interface.

    python examples/sensors.py

The Wisconsin breast cancer data has 30 measurements of cell nuclei. Taking each costs time; which
five, together with which classifier setting, serve best? `Subset(..., size=5)` is the rule that
every candidate keeps. The result is compared with the usual greedy choice (forward selection), and
judged on data that neither has seen.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercbo.sklearn import MercboSearchCV, SelectColumns, Subset

SIZE = 5


def main() -> None:
    data = load_breast_cancer()
    train, test, train_y, test_y = train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
    )
    model = make_pipeline(StandardScaler(), SelectColumns(), LogisticRegression())
    grid = {
        "selectcolumns__columns": Subset(range(30), size=SIZE),
        "logisticregression__C": [0.1, 1.0, 10.0],
    }
    search = MercboSearchCV(
        model, grid, n_iter=36, batch=4, cv=5, scoring="roc_auc", random_state=0
    ).fit(train, train_y)
    chosen = search.best_params_["selectcolumns__columns"]

    greedy = SequentialFeatureSelector(
        make_pipeline(StandardScaler(), LogisticRegression()),
        n_features_to_select=SIZE, cv=5, scoring="roc_auc",
    ).fit(train, train_y)  # fmt: skip
    rival = make_pipeline(
        StandardScaler(), SelectColumns(greedy.get_support(indices=True)), LogisticRegression()
    ).fit(train, train_y)
    everything = make_pipeline(StandardScaler(), LogisticRegression()).fit(train, train_y)

    def report(name: str, estimator, validated: float, fits: int) -> str:
        score = estimator.decision_function(test)
        pairs = score[test_y == 1][:, np.newaxis] - score[test_y == 0]
        area = (pairs > 0).mean() + 0.5 * (pairs == 0).mean()
        print(f"{name:28} validated {validated:.4f}  unseen data {area:.4f}  {fits:4d} candidates")
        return f"{area:.3f}"

    validated = [
        search.best_score_,
        cross_val_score(rival, train, train_y, cv=5, scoring="roc_auc").mean(),
        cross_val_score(everything, train, train_y, cv=5, scoring="roc_auc").mean(),
    ]
    ours = report("mercbo, 5 measurements", search, validated[0], 36)
    theirs = report("forward selection, 5", rival, validated[1], sum(range(30, 30 - SIZE, -1)))
    whole = report("all 30 measurements", everything, validated[2], 1)
    names = ", ".join(data.feature_names[list(chosen)])
    print(
        f"found {{{names}}}: area under the curve {ours} on unseen data, "
        f"forward selection {theirs}, all 30 measurements {whole}"
    )


if __name__ == "__main__":
    main()
