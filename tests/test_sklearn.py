"""`MercboSearchCV`: scikit-learn's own checks, and what the search promises on top of them."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, poisson, randint, rv_discrete, uniform
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from mercbo import Categorical, Exactly, Forbid, Integer, Optimizer, Ordinal, SpaceError
from mercbo.sklearn import Grid, MercboSearchCV, SelectColumns, Subset

X, Y = load_wine(return_X_y=True)
GRID = {"n_neighbors": [1, 3, 9, 27], "weights": ["uniform", "distance"], "p": [1, 2]}


def search(grid: dict[str, Any] | None = None, **settings: Any) -> MercboSearchCV:
    given = {"n_iter": 6, "cv": 3, "random_state": 0, **settings}
    return MercboSearchCV(KNeighborsClassifier(), GRID if grid is None else grid, **given)


def statuses(estimator: Any) -> dict[str, set[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the checks do to an estimator warns
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    found: dict[str, set[str]] = {}
    for result in results:
        found.setdefault(result["status"], set()).add(result["check_name"])
    return found


@pytest.mark.slow
def test_scikit_learns_checks_of_a_classifier_pass() -> None:
    found = statuses(
        MercboSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, n_iter=2, random_state=0)
    )
    assert "failed" not in found
    # these need libraries that are not installed
    assert all("array_api" in name for name in found.get("skipped", ()))


@pytest.mark.slow
def test_scikit_learns_checks_of_a_regressor_fail_where_they_do_for_its_own_search() -> None:
    settings = {"cv": 2, "n_iter": 2, "random_state": 0}
    ours, theirs = (
        statuses(kind(Ridge(), {"alpha": [0.1, 1.0]}, **settings))
        for kind in (MercboSearchCV, RandomizedSearchCV)
    )
    assert ours == theirs


def test_scikit_learns_checks_of_the_selector_pass() -> None:
    assert "failed" not in statuses(SelectColumns())


# -- the search --------------------------------------------------------------------------------


def test_it_searches_without_repeats_and_ends_where_the_grid_does() -> None:
    found = search(n_iter=40).fit(X, Y)
    params = [tuple(sorted(p.items())) for p in found.cv_results_["params"]]
    assert len(params) == len(set(params)) == 16
    assert found.best_score_ == max(found.cv_results_["mean_test_score"])
    assert found.predict(X).shape == Y.shape
    assert isinstance(found.optimizer_, Optimizer)
    assert found.optimizer_.best.value == pytest.approx(found.best_score_)


@pytest.mark.slow
def test_it_finds_the_best_of_a_grid_early() -> None:
    grid = {"n_neighbors": list(range(1, 41)), "weights": ["uniform", "distance"], "p": [1, 2]}
    best = search(grid, n_iter=16).fit(X, Y).best_score_
    everything = GridSearchCV(KNeighborsClassifier(), grid, cv=3).fit(X, Y)
    scores = np.sort(everything.cv_results_["mean_test_score"])[::-1]
    assert best >= scores[3]


def test_the_same_state_gives_the_same_search_and_clones_and_pickles_work() -> None:
    first = search().fit(X, Y)
    again = clone(first).fit(X, Y)
    copied = pickle.loads(pickle.dumps(first))
    assert first.cv_results_["params"] == again.cv_results_["params"]
    assert copied.best_params_ == first.best_params_
    assert copied.optimizer_.ask() == first.optimizer_.ask()
    first.set_params(n_iter=3, estimator__leaf_size=11)
    assert len(first.fit(X, Y).cv_results_["params"]) == 3
    assert first.best_estimator_.leaf_size == 11


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "sizes"), [
    ({"batch": 4}, [4, 2]),
    ({"n_jobs": 2, "cv": 3}, [1] * 6),
    ({"n_jobs": 2, "cv": [(np.arange(100), np.arange(100, 178))]}, [2] * 3),
])  # fmt: skip
def test_the_candidates_of_a_round_keep_the_jobs_busy(
    settings: dict[str, Any], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = []
    real = Optimizer.tell

    def tell(self: Optimizer, points: Any, values: Any) -> None:
        rounds.append(len(points))
        real(self, points, values)

    monkeypatch.setattr(Optimizer, "tell", tell)
    search(**settings).fit(X, Y)
    assert rounds == sizes


def test_failures_are_learned_from_and_not_repeated() -> None:
    grid = {"n_neighbors": [-2, -1, 1, 5, 9], "p": [1, 2]}
    for batch in (1, 10):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=FitFailedWarning)
            warnings.filterwarnings("ignore", "One or more of the test scores are non-finite")
            found = search(grid, n_iter=10, batch=batch).fit(X, Y)
        assert {p["n_neighbors"] for p in found.optimizer_.failed} == {-2, -1}
        assert len(found.optimizer_.failed) == 4
        assert len(found.optimizer_.observations) == 6
        # a round that failed altogether has no scores to show
        assert len(found.cv_results_["params"]) == (6 if batch == 1 else 10)


def test_a_search_of_which_everything_fails_raises_what_scikit_learn_says() -> None:
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="All the 3 fits failed"):
        search({"n_neighbors": [-2, -1]}).fit(X, Y)
    with pytest.raises(ValueError, match="'n_neighbors' parameter"):
        search({"n_neighbors": [-1]}, error_score="raise").fit(X, Y)


def test_one_of_several_metrics_is_optimised() -> None:
    metrics = ["accuracy", "neg_log_loss"]
    found = search(scoring=metrics, refit="neg_log_loss").fit(X, Y)
    assert found.optimizer_.best.value == max(found.cv_results_["mean_test_neg_log_loss"])
    with pytest.raises(ValueError, match="refit must name the one to be optimised; got False"):
        search(scoring=metrics, refit=False).fit(X, Y)


# -- the grid ----------------------------------------------------------------------------------


def test_lists_become_variables_by_what_is_in_them() -> None:
    odd = [(1, 2), (3,), None]
    grid = Grid(
        {"a": [3, 1, 2], "b": ["x", "y"], "c": np.array([0.5, 0.1]), "d": odd, "e": Integer(1, 3),
         "f": Categorical([5, 1]), "g": [True, False], "h": [1, True]},
        (),
    )  # fmt: skip
    assert dict(grid.space.variables) == {
        "a": Ordinal([1, 2, 3]), "b": Categorical(["x", "y"]), "c": Ordinal([0.1, 0.5]),
        "d": Categorical([0, 1, 2]), "e": Integer(1, 3), "f": Categorical([5, 1]),
        "g": Categorical([True, False]), "h": Categorical([0, 1]),
    }  # fmt: skip
    point = {"a": 2, "b": "y", "c": 0.1, "d": 1, "e": 3, "f": 5, "g": False, "h": 1}
    assert grid.params(point) == {**point, "d": (3,), "h": True}


class Drawn:
    """A distribution of somebody's own."""

    def rvs(self, random_state: Any = None) -> float:
        del random_state
        return 0.5


@pytest.mark.parametrize(("grid", "complaint"), [
    ({}, "param_distributions is empty"),
    ({"C": uniform()}, "'C': a continuous distribution came, a list of values was wanted;"),
    ({"C": randint(1, 5)}, r"'C': a discrete distribution came, .* as list\(range\(1, 5\)\);"),
    ({"C": binom(3, 0.5, loc=2)}, r"a discrete .* wanted, such as list\(range\(2, 6\)\);"),
    ({"C": randint(1, 5, loc=0.5)}, "a discrete distribution came, a list of values was wanted;"),
    ({"C": poisson(3)}, "a discrete distribution came, a list of values was wanted;"),
    ({"C": randint}, "a discrete distribution came, a list of values was wanted;"),
    ({"C": rv_discrete(values=([1, 9], [0.5, 0.5]))()}, "a discrete .* values was wanted;"),
    ({"C": Drawn()}, "'C': a distribution came, a list of values was wanted;"),
    ({"C": []}, "'C': the list of values is empty"),
    ({"C": "abc"}, "'C': 'abc' is not a list of values"),
    ({"C": 3}, "'C': 3 is not a list of values"),
])  # fmt: skip
def test_what_is_no_grid_is_refused(grid: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        search(grid).fit(X, Y)


def test_a_list_of_grids_is_refused() -> None:
    with pytest.raises(ValueError, match="'param_distributions' parameter"):
        search([GRID]).fit(X, Y)  # type: ignore[arg-type]


def test_rules_are_kept() -> None:
    rule = Forbid({"weights": "uniform", "p": 1})
    found = search(n_iter=20, constraints=[rule]).fit(X, Y)
    tried = [(p["weights"], p["p"]) for p in found.cv_results_["params"]]
    assert len(tried) == 12
    assert ("uniform", 1) not in tried


def test_subsets_have_the_size_asked_for() -> None:
    for subset, sizes in [
        (Subset("abcd", size=2), {2}),
        (Subset("abcd", at_most=2), {1, 2}),
        (Subset("abcd", at_least=0), {0, 1, 2, 3, 4}),
    ]:
        grid = Grid({"which": subset}, ())
        values = [grid.params(p)["which"] for p in grid.space.points(grid.space.enumerate_rows())]
        assert {len(value) for value in values} == sizes
        assert len(set(values)) == len(values)
    with pytest.raises(SpaceError, match="no subset of 4 items has from 5 to 5"):
        Subset("abcd", size=5)


@pytest.mark.parametrize(
    ("items", "bounds", "message"),
    [
        (13, {"size": 4}, r"items=13 is not a list of items, such as range\(13\)"),
        (range(5), {"size": (1, 3)}, r"size=\(1, 3\) is not a whole number; at_least and at_most"),
        (range(4), {"size": 2.0}, r"size=2\.0 is not a whole number"),
        (range(4), {"at_least": "1"}, "at_least='1' is not a whole number$"),
        (range(4), {"at_most": 2.5}, r"at_most=2\.5 is not a whole number$"),
    ],
)
def test_what_is_no_list_or_no_number_of_items_is_refused(items, bounds, message):
    with pytest.raises(SpaceError, match=message):
        Subset(items, **bounds)


def test_numbers_of_numpy_are_numbers_of_items():
    assert Subset(range(4), size=np.int64(2)) == Subset(range(4), size=2)


def test_features_are_selected_together_with_other_parameters() -> None:
    data, target = load_breast_cancer(return_X_y=True)
    model = make_pipeline(SelectColumns(), KNeighborsClassifier())
    grid = {
        "selectcolumns__columns": Subset(range(30), size=3),
        "kneighborsclassifier__n_neighbors": [1, 5, 15],
    }
    found = MercboSearchCV(model, grid, n_iter=10, cv=2, random_state=0).fit(data, target)
    chosen = found.best_params_["selectcolumns__columns"]
    assert len(chosen) == 3
    assert found.best_estimator_[0].get_support(indices=True).tolist() == list(chosen)
    # other rules may speak of the bits of a subset
    extra = Exactly(1, ["which['a']", "which['b']"])
    assert Grid({"which": Subset("abc", size=2)}, [extra]).space.feasible.left((), 9) == 2


def test_columns_are_chosen_by_name_or_number() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": [5, 6]})
    assert SelectColumns(["c", "a"]).fit(frame).get_feature_names_out().tolist() == ["a", "c"]
    assert SelectColumns([-1]).fit_transform(frame.to_numpy()).tolist() == [[5], [6]]
    assert SelectColumns().fit_transform(frame.to_numpy()).shape == (2, 3)
    with pytest.raises(ValueError, match="'d' is not one of the columns"):
        SelectColumns(["d"]).fit(frame)
    with pytest.raises(ValueError, match="column 3 is not one of 3"):
        SelectColumns([3]).fit(frame.to_numpy())


def test_wrong_settings_are_named() -> None:
    for wrong in ({"batch": 0}, {"n_iter": 0}, {"model": "map"}, {"backend": 3}):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter"):
            search(**wrong).fit(X, Y)  # type: ignore[arg-type]


def test_a_constant_score_is_no_trouble() -> None:
    dummy = MercboSearchCV(
        DummyClassifier(), {"strategy": ["prior", "most_frequent"]}, n_iter=5, cv=2
    )
    assert len(dummy.fit(X, Y).cv_results_["params"]) == 2


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import mercbo.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'mercbo[sklearn]'" in done.stderr
