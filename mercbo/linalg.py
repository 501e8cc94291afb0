"""Cholesky factors that do not give up, and threads only where they help.

SciPy is imported by the functions that use it: `import mercbo` is to be quick, and an `ask` of the
initial design needs no factor.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo.arrays import Floats

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

log = logging.getLogger(__name__)

# Jitter is tried in this order, relative to the mean diagonal; the last is far above rounding.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)

# Up to this many rows, handing work to a second BLAS thread costs more than it saves, and several
# times as much where another process keeps the cores busy (measured: a factor of 4).
SMALL = 1000


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """One BLAS thread while matrices are small; as set by the user beyond that."""
    if size > SMALL:
        yield
        return
    _HELD.enter()
    try:
        yield
    finally:
        _HELD.leave()


class _Held:
    """BLAS held to one thread until the last that wanted it leaves: the number is that of the
    whole process, and several of its threads may be in here at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_HELD = _Held()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # a controller knows the libraries that are loaded when it is made: SciPy's BLAS must be
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class Factor:
    """A lower Cholesky factor of a symmetric positive definite matrix."""

    lower: Floats

    def solve(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve((self.lower, True), right, check_finite=False))

    def half_solve(self, right: Floats) -> Floats:
        """L^-1 right: its columns' squared norms are right' A^-1 right."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.lower, right, lower=True, check_finite=False))

    def inverse(self) -> Floats:
        if len(self.lower) == 0:
            return self.lower
        from scipy.linalg import lapack

        packed, _ = lapack.dpotri(self.lower, lower=1)  # the lower half; the upper stays zero
        full = packed + packed.T
        np.einsum("ii->i", full)[:] *= 0.5
        return np.asarray(full)

    @property
    def log_det(self) -> float:
        return float(2.0 * np.log(np.diag(self.lower)).sum())


def cholesky(matrix: Floats) -> Factor:
    """Factor `matrix`, with as little jitter on its diagonal as it takes."""
    if len(matrix) == 0:
        return Factor(matrix)
    from scipy.linalg import lapack

    scale = float(np.mean(np.diag(matrix)))
    for jitter in JITTERS:
        nudged = matrix if jitter == 0.0 else matrix + jitter * scale * np.eye(len(matrix))
        lower, info = lapack.dpotrf(nudged, lower=1, clean=1)
        if info == 0:
            if jitter:
                log.debug("a %d x %d matrix took jitter %g", *matrix.shape, jitter)
            return Factor(lower)
    raise np.linalg.LinAlgError(
        f"a {len(matrix)} x {len(matrix)} covariance is not positive definite "
        f"(mean diagonal {scale:g})"
    )
