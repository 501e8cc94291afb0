"""`MercboSearchCV`: hyper-parameter search of scikit-learn over discrete grids.

>>> from sklearn.datasets import load_wine
>>> from sklearn.neighbors import KNeighborsClassifier
>>> from mercbo.sklearn import MercboSearchCV
>>> grid = {"n_neighbors": list(range(1, 31)), "weights": ["uniform", "distance"], "p": [1, 2]}
>>> search = MercboSearchCV(KNeighborsClassifier(), grid, n_iter=12, cv=3, random_state=0)
>>> search.fit(*load_wine(return_X_y=True)).best_params_["p"]
1

It has the interface of `RandomizedSearchCV`. The cross-validation, `n_jobs` through joblib,
refitting and `cv_results_` are scikit-learn's own (`BaseSearchCV`); what is ours is which
candidates come next (`_run_search`). A `Subset` in the grid is a parameter whose value is a subset
of given items, for feature selection together with `SelectColumns`. This file uses public names
of mercbo only.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercbo import (
    AtLeast,
    AtMost,
    Binary,
    Categorical,
    Model,
    Optimizer,
    Ordinal,
    Point,
    Space,
    SpaceError,
    SpaceExhausted,
)

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("mercbo.sklearn needs scikit-learn: pip install 'mercbo[sklearn]'") from error

from joblib import effective_n_jobs
from scipy.stats import rv_continuous, rv_discrete
from sklearn.base import BaseEstimator
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted, validate_data


@dataclass(frozen=True)
class Subset:
    """A parameter whose values are the subsets of `items` with `size` members, or with at least
    `at_least` and at most `at_most`; the estimator is given a tuple of the chosen items.

    >>> Subset(range(30), size=5)
    Subset(items=(0, 1, 2, ... 30), at_least=5, at_most=5)
    """

    items: tuple[Any, ...]
    at_least: int
    at_most: int

    def __init__(
        self,
        items: Iterable[Any],
        *,
        size: int | None = None,
        at_least: int = 1,
        at_most: int | None = None,
    ) -> None:
        if not isinstance(items, Iterable):
            raise SpaceError(f"items={items!r} is not a list of items, such as range(13)")
        listed = tuple(items)
        if size is not None:
            low = high = _count("size", size)
        else:
            low = _count("at_least", at_least)
            high = len(listed) if at_most is None else _count("at_most", at_most)
        if not 0 <= low <= high <= len(listed):
            raise SpaceError(f"no subset of {len(listed)} items has from {low} to {high} of them")
        object.__setattr__(self, "items", listed)
        object.__setattr__(self, "at_least", low)
        object.__setattr__(self, "at_most", high)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.items[:3]))
        more = f", ... {len(self.items)}" if len(self.items) > 3 else ""
        return f"Subset(items=({shown}{more}), at_least={self.at_least}, at_most={self.at_most})"


def _count(option: str, came: object) -> int:
    if isinstance(came, bool) or not isinstance(came, numbers.Integral):
        bounds = "; at_least and at_most are bounds" if option == "size" else ""
        raise SpaceError(f"{option}={came!r} is not a whole number{bounds}")
    return int(came)


class MercboSearchCV(BaseSearchCV):
    """Search of a discrete grid by cross-validation, guided by a model of the scores.

    Parameters are those of `RandomizedSearchCV`, and these:

    param_distributions
        A dict of parameter names to lists of values, `Subset`s, or variables of mercbo. A list
        of numbers has an order (neighbours are alike), any other list has none; use
        `mercbo.Categorical` or `mercbo.Ordinal` to say otherwise. A candidate that was tried does
        not come again, so that a search ends early where the grid is used up.
    batch
        Candidates per round: the model learns between rounds, joblib runs those of a round in
        parallel. By default as many as keep `n_jobs` busy: ``n_jobs`` over the number of splits,
        rounded up.
    constraints
        Rules that candidates must keep, such as ``Forbid({"penalty": "l1", "solver": "lbfgs"})``.
        Values other than str, int, float, bool and None are known to them by their position.
    backend, model
        As of `mercbo.Optimizer`.

    A candidate whose score is NaN (``error_score=np.nan``) has failed: a model of where that
    happens keeps away from more. A round of which every fit raised is reported by a
    `FitFailedWarning` and is in ``optimizer_.failed``, but not in `cv_results_`. With several
    metrics, `refit` names the one that is optimised. After `fit`, `optimizer_` is the `Optimizer`
    with all that it was told.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSearchCV._parameter_constraints,
        "param_distributions": [dict],
        "n_iter": [Interval(numbers.Integral, 1, None, closed="left")],
        "batch": [Interval(numbers.Integral, 1, None, closed="left"), None],
        "constraints": ["array-like"],
        "backend": [str, HasMethods(["sample"]), HasMethods(["sample_cqm"]), None],
        "model": [Model, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Mapping[str, Any],
        *,
        n_iter: int = 10,
        batch: int | None = None,
        constraints: Sequence[Any] = (),
        backend: Any = None,
        model: Model | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.batch = batch
        self.constraints = constraints
        self.backend = backend
        self.model = model
        self.random_state = random_state
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        grid = Grid(self.param_distributions, self.constraints)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.optimizer_ = Optimizer(
            grid.space, direction="maximize", backend=self.backend, model=self.model, seed=seed
        )
        tried, failure = 0, None
        for batch in self._batches():
            try:
                results = evaluate_candidates([grid.params(point) for point in batch])
            except ValueError as error:
                # scikit-learn gives up where all fits of one call failed; a search need not
                if self.error_score == "raise" or "fits failed" not in str(error):
                    raise
                self.optimizer_.tell(batch, [None] * len(batch))
                failure = error
                warnings.warn(str(error), FitFailedWarning, stacklevel=3)
                continue
            scores = results[f"mean_test_{self._metric(results)}"][tried:]
            tried += len(batch)
            # an estimator may score minus infinity where it is of no use
            self.optimizer_.tell(batch, [s if math.isfinite(s) else None for s in scores])
        if tried == 0 and failure is not None:
            raise failure

    def _batches(self) -> Iterator[list[Point]]:
        """What to try, round by round, until `n_iter` are tried or none is left."""
        jobs = int(effective_n_jobs(self.n_jobs))
        size = self.batch or max(1, math.ceil(jobs / self.n_splits_))
        left = self.n_iter
        while left > 0:
            try:
                batch = self.optimizer_.ask(min(size, left))
            except SpaceExhausted as error:
                left = min(left, error.left)
                if left == 0:
                    return
                batch = self.optimizer_.ask(min(size, left))
            left -= len(batch)
            yield batch

    def _metric(self, results: Mapping[str, Any]) -> str:
        """The name of the metric to optimise."""
        if "mean_test_score" in results:
            return "score"
        if isinstance(self.refit, str):
            return self.refit
        raise ValueError(
            f"with several metrics, refit must name the one to be optimised; got {self.refit!r}"
        )


class Grid:
    """The space of a dict of parameters, and its points as candidates."""

    def __init__(self, parameters: Mapping[str, Any], constraints: Sequence[Any]) -> None:
        if not parameters:
            raise ValueError("param_distributions is empty: there is nothing to search")
        variables: dict[str, Any] = {}
        rules = list(constraints)
        # per parameter: how its value follows from a point
        self._read: dict[str, Callable[[Point], Any]] = {}
        for name, values in parameters.items():
            if isinstance(values, Subset):
                bits = [f"{name}[{item!r}]" for item in values.items]
                variables |= {bit: Binary() for bit in bits}
                rules += _size_rules(values, bits)
                self._read[name] = _chosen(values.items, bits)
            else:
                variables[name], self._read[name] = _variable(name, values)
        self.space = Space(variables, rules)

    def params(self, point: Point) -> dict[str, Any]:
        return {name: read(point) for name, read in self._read.items()}


def _size_rules(subset: Subset, bits: list[str]) -> list[Any]:
    rules: list[Any] = []
    if subset.at_least > 0:
        rules.append(AtLeast(subset.at_least, bits))
    if subset.at_most < len(bits):
        rules.append(AtMost(subset.at_most, bits))
    return rules


def _chosen(items: Sequence[Any], bits: Sequence[str]) -> Callable[[Point], Any]:
    pairs = list(zip(items, bits, strict=True))
    return lambda point: tuple(item for item, bit in pairs if point[bit])


def _variable(name: str, values: Any) -> tuple[Any, Callable[[Point], Any]]:
    """The variable of a parameter, and how its value follows from a point."""
    if isinstance(values, (Binary, Categorical, Ordinal)) or hasattr(values, "graph"):
        return values, lambda point: point[name]
    if hasattr(values, "rvs"):
        raise ValueError(
            f"{name!r}: a {_kind(values)}distribution came, a list of values was "
            f"wanted{_as_list(values)}; RandomizedSearchCV searches distributions"
        )
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
        raise ValueError(f"{name!r}: {values!r} is not a list of values")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise ValueError(f"{name!r}: the list of values is empty")
    if all(isinstance(v, numbers.Real) and not isinstance(v, (bool, np.bool_)) for v in listed):
        return Ordinal(sorted(listed)), lambda point: point[name]
    try:
        return Categorical(listed), lambda point: point[name]
    except SpaceError:
        # estimators, tuples, or values that Python takes for equal: by position
        return Categorical(range(len(listed))), lambda point: listed[point[name]]


def _kind(distribution: Any) -> str:
    base = getattr(distribution, "dist", distribution)
    for kind, family in (("discrete", rv_discrete), ("continuous", rv_continuous)):
        if isinstance(base, family):
            return f"{kind} "
    return ""


def _as_list(distribution: Any) -> str:
    """Where a distribution is one of all whole numbers between two ends, what to write for it."""
    base = getattr(distribution, "dist", None)  # the ends are known of a frozen one only
    if not isinstance(base, rv_discrete) or hasattr(base, "xk"):  # of a table, with gaps
        return ""
    low, high = map(float, distribution.support())
    if not (low.is_integer() and high.is_integer()):  # nor is infinity
        return ""
    return f", such as list(range({int(low)}, {int(high) + 1}))"


class SelectColumns(SelectorMixin, BaseEstimator):
    """Keeps some columns, by position or, for a DataFrame, by name; all where `columns` is None.

    >>> SelectColumns([2, 0]).fit_transform([[1, 2, 3], [4, 5, 6]])
    array([[1, 3],
           [4, 6]])
    """

    def __init__(self, columns: Sequence[Any] | None = None) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> SelectColumns:
        del y
        validate_data(self, X, dtype=None, ensure_all_finite=False)
        self.support_ = np.ones(self.n_features_in_, dtype=bool)
        if self.columns is not None:
            self.support_ = np.zeros(self.n_features_in_, dtype=bool)
            self.support_[[self._position(column) for column in self.columns]] = True
        return self

    def _position(self, column: Any) -> int:
        if isinstance(column, str):
            names = list(getattr(self, "feature_names_in_", []))
            if column not in names:
                raise ValueError(f"{column!r} is not one of the columns {names}")
            return names.index(column)
        position = int(column)
        if not -self.n_features_in_ <= position < self.n_features_in_:
            raise ValueError(f"column {position} is not one of {self.n_features_in_}")
        return position

    def _get_support_mask(self) -> Any:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags
