"""Further terms of the model of an explanation: those of the optimizer's fit, a W + p S + q S^2.

Only amplitudes are sampled (`explanatory.py` says why), so that each term is a matrix that stays
as it is for a whole chain, times the exponential of a coordinate.

| symbol | meaning                                                                  | shape  |
|--------|--------------------------------------------------------------------------|--------|
| W      | the mean of the kernels of all windows, their contrasts c_ij held        | (N, N) |
| S      | similarity of totals (`kernels/pooling.py`)                              | (N, N) |
| T      | the coordinates log a, log p and log q, as far as there are such terms   |        |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, sum_of
from mercbo.explaining.orders import Axes
from mercbo.explaining.stacks import Held, Stack
from mercbo.fitting.kinds import KINDS, POOLING, WINDOWS, Kinds, kinds_of
from mercbo.inference import Data, Hyper
from mercbo.kernel import Kernel
from mercbo.kernels.pooling import Pool, Pooling, is_poolable
from mercbo.kernels.windows import Summand, contrasts

# Which coordinates of a kind of further term are sampled: of windows only log a. Motifs are left
# out: what a letter does there depends on all that stand around it.
SAMPLED = {WINDOWS.name: slice(0, 1), POOLING.name: slice(0, 2)}


@dataclass(frozen=True)
class Further:
    """The further terms of a fit, and what of them is held."""

    kinds: Kinds
    contrasts: Floats | None  # (C, n): c_ij of the windows

    @classmethod
    def of(cls, kernel: Kernel, hyper: Hyper, learned: Kinds = KINDS) -> Further:
        """`learned` are the kinds of terms that may be there."""
        own = None
        if hyper.windows is not None:
            own = contrasts(kernel, kernel.contrast(hyper.beta), hyper.windows)
        there = kinds_of(hyper)
        if hyper.motifs is not None and POOLING in learned and is_poolable(kernel):
            there = (*there, POOLING)  # which a fit leaves to motifs
        kinds = tuple(kind for kind in KINDS if kind in there and kind.name in SAMPLED)
        return cls(kinds, own)

    def start(self, hyper: Hyper) -> Floats:
        """(T,): where the coordinates stand in a fit."""
        own = [
            (kind.pack(getattr(hyper, kind.name)) if kind.is_in(hyper) else kind.start)[
                SAMPLED[kind.name]
            ]
            for kind in self.kinds
        ]
        return np.concatenate([np.zeros(0), *own])

    @property
    def centres(self) -> Floats:
        """(T,): of their priors."""
        own = [kind.centres[SAMPLED[kind.name]] for kind in self.kinds]
        return np.concatenate([np.zeros(0), *own])

    @property
    def bounds(self) -> Floats:
        """(T, 2): their range."""
        own = [kind.bounds[SAMPLED[kind.name]] for kind in self.kinds]
        return np.concatenate([np.zeros((0, 2)), *own])

    def matrices(self, data: Data) -> Floats:
        """(T, N, N): W, S and S^2."""
        found = []
        if self.contrasts is not None:
            own = self._summands(data.kernel)
            found.append(sum_of(each.gram(data.rows, data.hot) for each in own))
        if POOLING in self.kinds:
            totals = Pool(data.kernel, Pooling(1.0, 1.0)).totals(data.hot)
            similarity = totals @ totals.T
            found += [similarity, similarity**2]
        return np.array(found).reshape(-1, len(data), len(data))

    def stack(self, data: Data) -> Stack | None:
        """The windows taken apart, of amplitude 1."""
        if self.contrasts is None:
            return None
        return Stack(data, self._summands(data.kernel), Axes(data.kernel))

    def held(self, stack: Stack | None, own: Floats) -> Held | None:
        """The windows under some coordinates (T,)."""
        return None if stack is None else Held(stack, float(np.exp(own[0])))

    def pooling(self, own: Floats) -> Pooling | None:
        """The hyper-parameters of what is pooled under some coordinates (T,)."""
        return Pooling(*np.exp(own[-2:]).tolist()) if POOLING in self.kinds else None

    def _summands(self, kernel: Kernel) -> list[Summand]:
        assert self.contrasts is not None
        share = 1.0 / len(self.contrasts)
        return [Summand(kernel, kernel.beta(contrast), share) for contrast in self.contrasts]
