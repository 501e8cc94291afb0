"""Bayesian optimisation of expensive black boxes over combinatorial spaces.

>>> from mercbo import Binary, Categorical, Optimizer, Space
>>> space = Space({"base": Categorical(["A", "C", "G", "T"]), "wash": Binary()})
>>> opt = Optimizer(space, seed=0)
>>> point = opt.ask()
>>> opt.tell(point, 3.2)
"""

from mercbo.domain.constraints import (
    AllDifferent,
    AtLeast,
    AtMost,
    Exactly,
    Forbid,
    Implies,
    Linear,
    Tied,
    Where,
)
from mercbo.domain.symmetry import (
    CyclicShift,
    Flip,
    Permutation,
    Reversal,
    ReverseComplement,
    Symmetry,
)
from mercbo.domain.variables import Binary, Categorical, Integer, Ordinal, Point
from mercbo.errors import (
    BackendError,
    ExecutorError,
    MercboError,
    NoneFound,
    NoResults,
    NumericalError,
    PointError,
    ResultError,
    SettingError,
    SpaceError,
    SpaceExhausted,
    StateError,
)
from mercbo.loop.campaign import Evaluation, Failure, Result
from mercbo.loop.driver import maximize, minimize
from mercbo.model import Model
from mercbo.optimizer import Optimizer
from mercbo.quadratic import Draw
from mercbo.record.observations import Observation, Prediction, Record
from mercbo.record.suggestions import Suggestion
from mercbo.space import Space

__version__ = "0.1.0"

__all__ = [
    "AllDifferent",
    "AtLeast",
    "AtMost",
    "BackendError",
    "Binary",
    "Categorical",
    "CyclicShift",
    "Draw",
    "Evaluation",
    "Exactly",
    "ExecutorError",
    "Failure",
    "Flip",
    "Forbid",
    "Implies",
    "Integer",
    "Linear",
    "MercboError",
    "Model",
    "NoResults",
    "NoneFound",
    "NumericalError",
    "Observation",
    "Optimizer",
    "Ordinal",
    "Permutation",
    "Point",
    "PointError",
    "Prediction",
    "Record",
    "Result",
    "ResultError",
    "Reversal",
    "ReverseComplement",
    "SettingError",
    "Space",
    "SpaceError",
    "SpaceExhausted",
    "StateError",
    "Suggestion",
    "Symmetry",
    "Tied",
    "Where",
    "maximize",
    "minimize",
]
