"""Cholesky factors that do not give up and that grow by rows; threads only where they help.

SciPy is imported by the functions that use it: `import mercbo` is to be quick, and an `ask` of the
initial design needs no factor.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.errors import NumericalError
from mercbo.locking import Synchronized

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

log = logging.getLogger(__name__)

# Jitter is tried in this order, relative to the mean diagonal; the last is far above rounding.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)

# Up to this many rows, handing work to a second BLAS thread costs more than it saves, and several
# times as much where another process keeps the cores busy (measured: a factor of 4).
SMALL = 1000

# Rows of a growing factor that are added together: the last panel is worked out again with every
# result, and its covariances take longer than all else of it. `SMALL` is a multiple of it, so that
# each of these panels is worked out with as many threads whenever it is.
PANEL = 50
# Columns of a panel that are solved for together: many, as products are quicker than solving.
BLOCK = 250
# Factors that are remembered: so many in any case, and while they have no more entries than this
# (64 MB), those of all states that an ask averages over.
MOST_KNOWN, KNOWN_ENTRIES = 4, 1 << 23


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


class _Held(Synchronized):
    """BLAS held to one thread until the last that wanted it leaves: the number is that of the
    whole process, and several of its threads may be in here at a time."""

    def __init__(self) -> None:
        self._inside = 0
        self._limit: Any = None

    def _after_fork(self) -> None:
        super()._after_fork()
        self._inside = 0

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside = max(self._inside - 1, 0)  # 0 after a fork within
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
    jitter: float = 0.0  # added to the diagonal of the matrix, relative to its mean

    @property
    def _packed(self) -> tuple[Floats, bool]:
        """The factor as LAPACK takes it without a copy, and whether it is then a lower one."""
        if self.lower.flags.f_contiguous:
            return self.lower, True
        return self.lower.T, False

    def solve(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._packed, right, check_finite=False))

    def half_solve(self, right: Floats) -> Floats:
        """L^-1 right: its columns' squared norms are right' A^-1 right."""
        from scipy.linalg import solve_triangular

        half, lower = self._packed
        return np.asarray(
            solve_triangular(
                half, right, lower=lower, trans="N" if lower else "T", check_finite=False
            )
        )

    def inverse_forms(self, rows: Floats, *, overwrite: bool = False) -> Floats:
        """(R,): x' A^-1 x for each of some rows x (R, N), whose memory may be written over.

        Through the inverse of the factor, which is made once: its products are three times as fast
        as solving with the factor, and as near (their error is that of one solution more).
        """
        if rows.size == 0:
            return np.zeros(len(rows))
        from scipy.linalg import blas

        half, lower = self._inverted
        white = blas.dtrmm(1.0, half, rows.T, lower=lower, trans_a=not lower, overwrite_b=overwrite)
        return np.asarray(np.einsum("nr,nr->r", white, white))

    @cached_property
    def _inverted(self) -> tuple[Floats, bool]:
        from scipy.linalg import lapack

        half, lower = self._packed
        return lapack.dtrtri(half, lower=lower)[0], lower

    def inverse(self) -> Floats:
        if len(self.lower) == 0:
            return self.lower
        from scipy.linalg import lapack

        half, lower = self._packed
        packed, _ = lapack.dpotri(half, lower=lower)  # one half; the other stays zero
        full = packed + packed.T
        np.einsum("ii->i", full)[:] *= 0.5
        return np.asarray(full)

    @property
    def log_det(self) -> float:
        return float(2.0 * np.log(np.diag(self.lower)).sum())


def cholesky(matrix: Floats) -> Factor:
    """Factor `matrix`, with as little jitter on its diagonal as it takes; raise a `NumericalError`
    if the largest jitter is not enough."""
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
            return Factor(lower, jitter)
    raise NumericalError(
        f"the covariance matrix of {len(matrix)} points is not positive definite (mean diagonal "
        f"{scale:g}, largest jitter tried {JITTERS[-1]:g} of it); tell the standard deviation of "
        "the results (std=...), or use Model(inference='map')"
    )


# -- factors that grow -------------------------------------------------------------------------


@dataclass(frozen=True)
class Grown:
    """A factor and what it is of."""

    rows: Rows  # (N, n)
    noise: Floats  # (N,)
    lower: Floats  # (N, N), by rows

    def shared(self, rows: Rows, noise: Floats) -> Floats:
        """The part of this factor that is also that of another matrix: all, or whole panels."""
        size = min(len(self.rows), len(rows))
        same = (self.rows[:size] == rows[:size]).all(axis=1) & (self.noise[:size] == noise[:size])
        count = size if same.all() else int(same.argmin())
        if count < max(len(self.rows), len(rows)):
            count -= count % PANEL
        return self.lower[:count, :count]


class Factors:
    """Cholesky factors of covariances at some rows, remembered by what the covariance is.

    A row of a factor depends only on the rows before it. So where rows came at the end, the panels
    of the old factor stand, and only those behind are worked out: N^2 operations for each row, in
    place of N^3 / 3 for all. As the panels are the same whether or not there is an old factor, so
    is the result, to the last bit.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Grown] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_known": {}}  # quickly made again, and too large to send around

    def factor(
        self, name: Hashable, rows: Rows, noise: Floats, covariance: Callable[[slice], Floats]
    ) -> Factor:
        """The factor of a covariance and noise. `covariance(part)` is that of the rows of a slice
        with all rows up to its end; `name` tells it from others."""
        known = self._known.pop(name, None)
        old = None if known is None else known.shared(rows, noise)
        lower = grow(old, noise, covariance)
        if lower is None:
            whole = covariance(slice(0, len(rows)))
            return cholesky(whole + np.diag(noise))
        self._known[name] = Grown(rows, noise, lower)
        self._forget()
        return Factor(lower)

    def _forget(self) -> None:
        """Those used longest ago, where there are too many."""
        held = sum(known.lower.size for known in self._known.values())
        while len(self._known) > MOST_KNOWN and held > KNOWN_ENTRIES:
            held -= self._known.pop(next(iter(self._known))).lower.size


def grow(old: Floats | None, noise: Floats, covariance: Callable[[slice], Floats]) -> Floats | None:
    """A lower factor, panel by panel behind an old one; None where it would take jitter."""
    from scipy.linalg import lapack, solve_triangular

    size, done = len(noise), 0 if old is None else len(old)
    if old is not None and done == size:
        return old
    lower = np.zeros((size, size))
    if old is not None:
        lower[:done, :done] = old
    for start in range(done, size, PANEL):
        stop = min(start + PANEL, size)
        with threads_for(stop):
            panel = covariance(slice(start, stop))  # (r, stop), solved for from left to right
            for left in range(0, start, BLOCK):
                right = min(left + BLOCK, start)
                block = panel[:, left:right] - panel[:, :left] @ lower[left:right, :left].T
                corner = lower[left:right, left:right]
                panel[:, left:right] = solve_triangular(
                    corner, block.T, lower=True, check_finite=False
                ).T
            rest = panel[:, start:] - panel[:, :start] @ panel[:, :start].T
            rest += np.diag(noise[start:stop])
            last, info = lapack.dpotrf(rest, lower=1, clean=1)
        if info != 0:
            return None
        lower[start:stop, :start] = panel[:, :start]
        lower[start:stop, start:stop] = last
    return lower
