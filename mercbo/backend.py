"""Backends: how a name becomes a dimod sampler, and how any dimod sampler is called.

A backend *is* a dimod sampler: an object with ``sample(bqm, **kwargs) -> SampleSet``. Named ones
are found by the entry-point group ``mercbo.backends``, so that other packages can ship theirs.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo.arrays import Bits, Floats, Index
from mercbo.errors import BackendError, MercboError, hint

if TYPE_CHECKING:
    import dimod

GROUP = "mercbo.backends"
# The backend of an optimizer that is given none.
DEFAULT = "graph-cut"
# dwave-samplers refuses seeds of 2**31 and more.
SEED_LIMIT = 2**31


def names() -> list[str]:
    """The installed backends.

    >>> names()
    ['annealing', 'cp-sat', 'exhaustive', 'graph-cut']
    """
    return sorted({found.name for found in entry_points(group=GROUP)})


def entry_points(*, group: str) -> Iterable[Any]:
    """The standard library's, imported when it is used: it is slow to load."""
    from importlib import metadata

    return metadata.entry_points(group=group)


def resolve(backend: object) -> Any:
    """The sampler of a name, or the given sampler itself."""
    methods = [getattr(backend, name, None) for name in ("sample", "sample_cqm")]
    if any(map(callable, methods)) and not isinstance(backend, type):
        return backend
    if isinstance(backend, type):
        raise BackendError(f"backend={backend.__name__} is a class; pass an instance of it")
    if not isinstance(backend, str):
        raise BackendError(
            f"backend={backend!r} is neither a name ({names()}) nor a dimod sampler: "
            "it has no sample method to call"
        )
    for found in entry_points(group=GROUP):
        if found.name == backend:
            try:
                return found.load()()
            except ImportError as error:
                raise BackendError(f"backend {backend!r} cannot be used: {error}") from error
    raise BackendError(f"backend={backend!r} is not one of {names()}{hint(backend, names())}")


def wants_constraints(sampler: Any, *, constrained: bool) -> bool:
    """Whether a sampler is to be given the constrained model: where there are constraints and it
    takes them, where it is exact, or where it takes nothing else."""
    takes = callable(getattr(sampler, "sample_cqm", None))
    only = not callable(getattr(sampler, "sample", None))
    return takes and (constrained or only or is_exact(sampler))


def is_exact(sampler: Any) -> bool:
    """Whether a sampler says (``properties["exact"]``) that it finds the minimum for certain: it
    is then also told which points must not come back."""
    properties = getattr(sampler, "properties", None)
    return isinstance(properties, Mapping) and bool(properties.get("exact"))


def solve(sampler: Any, model: Any, *, rng: np.random.Generator) -> dimod.SampleSet:
    """A sampler's answer to a BQM or a CQM, seeded where the sampler takes a seed.

    A BQM is handed over with its variables numbered, because some samplers (OpenJij's) take few
    kinds of label; the answer has the model's own labels again.
    """
    import dimod

    constrained = isinstance(model, dimod.ConstrainedQuadraticModel)
    call = sampler.sample_cqm if constrained else sampler.sample
    seed = int(rng.integers(SEED_LIMIT))
    keywords = {"seed": seed} if takes_seed(sampler, call) else {}
    if constrained:
        return _checked(_called(sampler, call, model, keywords), model, call)
    numbered, labels = model.relabel_variables_as_integers(inplace=False)
    found = _checked(_called(sampler, call, numbered, keywords), numbered, call)
    return found.relabel_variables(labels, inplace=False)


def takes_forms(sampler: Any) -> bool:
    """Whether a sampler also takes arrays (``sample_form``), as ours do: the models of dimod, which
    list their couplings one by one, would take a good part of the time of an ask.

    That is a short cut, and no protocol: where a subclass has a ``sample`` of its own, that one is
    meant."""
    if not callable(getattr(sampler, "sample_form", None)):
        return False
    form = _defined(sampler, "sample_form")
    return all(form <= _defined(sampler, name) for name in ("sample", "sample_cqm"))


def _defined(sampler: Any, name: str) -> int:
    """How far up its class's ancestors a method is defined; before all of them on the object."""
    if name in getattr(sampler, "__dict__", {}):
        return -1
    classes = type(sampler).__mro__
    return next((i for i, each in enumerate(classes) if name in vars(each)), len(classes))


def solve_form(
    sampler: Any,
    linear: Floats,
    coupling: Floats,
    groups: Sequence[Index],
    *,
    rng: np.random.Generator,
) -> Bits:
    """A sampler's states of a quadratic form over bits, by the seed that `solve` would give."""
    seed = int(rng.integers(SEED_LIMIT))
    found = _called(sampler, partial(sampler.sample_form, linear, coupling), groups, {"seed": seed})
    return np.asarray(found, dtype=np.int8)


def _called(sampler: Any, call: Any, model: Any, keywords: dict[str, Any]) -> Any:
    """The answer to a call. A sampler knows none of our errors: it refuses a model, too large a
    one for example, by a ValueError, as dimod's do."""
    try:
        return call(model, **keywords)
    except MercboError:
        raise
    except ValueError as error:
        raise BackendError(f"{type(sampler).__name__} refused the model: {error}") from error


def _checked(found: Any, model: Any, call: Any) -> dimod.SampleSet:
    """The answer, if it is a sample set that answers the question."""
    import dimod

    who = getattr(call, "__qualname__", repr(call))
    if not isinstance(found, dimod.SampleSet):
        raise BackendError(
            f"{who} answered with a {type(found).__name__}, a dimod.SampleSet was wanted"
        )
    if len(found) == 0:
        # a constrained model may have no solution, or none that was found
        if isinstance(model, dimod.ConstrainedQuadraticModel):
            return found
        raise BackendError(f"{who} answered with no sample at all")
    missing = [variable for variable in model.variables if variable not in found.variables]
    if missing:
        raise BackendError(f"{who} answered without a value for variable {missing[0]!r}")
    return found


def takes_seed(sampler: Any, call: Any) -> bool:
    """Whether `seed` is a named parameter: listed by the sampler or in its signature."""
    listed = getattr(sampler, "parameters", None) or {}
    return "seed" in listed or "seed" in inspect.signature(call).parameters
