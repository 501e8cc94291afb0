"""The description of a fit in plain values, as `Fit.to_dict` gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mercbo.arrays import Floats
from mercbo.fitting.warp import NAMES
from mercbo.inference import Fit, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.averaging import Averaged
from mercbo.kernels.motifs import Motifs
from mercbo.kernels.pooling import Pooling
from mercbo.kernels.reading import Reading
from mercbo.kernels.windows import Windows
from mercbo.model import Model
from mercbo.record.schema import (
    Schema,
    listed,
    made,
    null,
    number,
    numbers,
    optional,
    record,
    text,
    unexpected,
    whole,
)

# Ranges of hyper-parameters for standardised y: all that a fit can reach (`inference.py`,
# `fitting/kinds.py`, `fitting/slicing.py`), and more. Within them a covariance can be factored.
RANGES = {
    "beta": (1e-7, 1e8),
    "amplitude": (1e-7, 1e5),
    "noise": (1e-7, 1e5),
    "mean": (-1e6, 1e6),
    # of windows
    "sharpness": (1e-3, 1e3),
    "reach": (1e-3, 0.999),
    # of motifs
    "contrast": (1e-3, 1e2),
    # of pooling
    "linear": (1e-7, 1e5),
    "curved": (1e-7, 1e5),
    # step size of a chain; a chain that is stuck makes ever shorter steps
    "step": (1e-300, 1e6),
}
NUMBERS = {name: number(least=low, most=high) for name, (low, high) in RANGES.items()}
# Relative rounding of betas that are the same by symmetries.
TIED = 1e-6


def fit_schema(kernel: Kernel, model: Model) -> Schema[Fit]:
    """The fits that a model can have on the space of a kernel."""
    state = record(
        {"beta": _betas(kernel), **_numbers("amplitude", "noise", "mean")},
        optional=_terms(kernel, model),
    )
    fit = record(
        {"hypers": listed(made(Hyper, state), fewest=1), "seen": whole(), "cold": whole()},
        optional={"warp": _warp, "chosen": optional(whole()), "step": optional(NUMBERS["step"])},
    )
    return made(_fit, fit)


def _fit(hypers: list[Hyper], **others: Any) -> Fit:
    return Fit(tuple(hypers), **others)


def _numbers(*names: str) -> Mapping[str, Schema[float]]:
    return {name: NUMBERS[name] for name in names}


def _betas(kernel: Kernel) -> Schema[Floats]:
    """(n,): one beta per factor, the same for factors that symmetries exchange."""
    least, most = RANGES["beta"]
    each = numbers(kernel.n, least=least, most=most)

    def read(value: object, at: str) -> Floats:
        beta = each(value, at)
        if not np.allclose(kernel.tied(beta), beta, rtol=TIED, atol=0.0):
            raise unexpected(at, "the same number for all that symmetries exchange", value)
        return beta

    return read


def _terms(kernel: Kernel, model: Model) -> Mapping[str, Schema[Any]]:
    """The further terms of the kernel; those that the model does not learn are null."""
    reading = Reading.of(kernel)
    strands = 0 if reading is None else 1 if reading.opposite is None else 2
    motifs = record(
        _numbers("amplitude", "contrast"), {"strands": whole(least=1, most=max(strands, 1))}
    )
    terms: dict[str, Schema[Any]] = {
        "windows": made(Windows, record(_numbers("amplitude", "sharpness", "reach"))),
        "pooling": made(Pooling, record(_numbers("linear", "curved"))),
        "motifs": made(Motifs, motifs),
    }
    learned = () if isinstance(kernel, Averaged) else {kind.name for kind in model.learned}
    possible = {name for name in learned if name != "motifs" or strands > 0}
    return {name: optional(terms[name]) if name in possible else null for name in terms}


def _warp(value: object, at: str) -> str | None:
    if isinstance(value, (int, float)):  # the shape of a logarithm, in files of version 0.1
        value = f"log:{number()(value, at):g}"
    return optional(text(NAMES))(value, at)
