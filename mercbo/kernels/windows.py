"""Windows: what variables do together that stand near each other in the space.

The letters of a sequence, the stages of a process, the sites along a line act on their neighbours.
A product kernel over all variables cannot say so: what it learns of a few of them fades with every
other variable that differs. So the kernel may be a sum,

    s2 prod_j T_j(c_j)  +  (a / C) sum_i prod_j T_j(c_ij),   c_ij = f n R_ij c_j:

the kernel of all variables, and one for each of C windows, which are spread evenly over the
variables in the order in which the space lists them. A window sees a variable the less, the farther
it is from the window's centre. Every term is a diffusion kernel, with the Mercer features of
`features.py`: those of order 2 still make a quadratic function of bits, in which neighbours have
more variance than others. Whether there are windows is a matter of evidence
(`fitting/structured.py`).

| symbol | meaning                                                                    | shape  |
|--------|----------------------------------------------------------------------------|--------|
| a      | amplitude of all windows together                                          |        |
| f      | sharpness: times how fast a window forgets what differs, beside all of it  |        |
| r      | reach, from 0 to 1: how much of its sight a window keeps per variable      |        |
| R      | sight: r^distance, each row divided by its sum                             | (C, n) |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.kernel import Kernel

# Every second variable has a window, more in short spaces and fewer in long ones. (On contamination
# control, 25 stages, 13 windows explain results as well as 25, and 7 do not.)
FEW, MANY = 12, 24
# Contrasts of a window stay where they make a difference: below this a variable is not seen,
# beyond it nothing is left where it differs.
CONTRASTS = (1e-8, 30.0)


@dataclass(frozen=True)
class Windows:
    """The hyper-parameters of the windows, beside those of the kernel of all variables."""

    amplitude: float
    sharpness: float
    reach: float


class Summand:
    """One diffusion kernel of the sum."""

    def __init__(self, kernel: Kernel, beta: Floats, amplitude: float) -> None:
        self.kernel = kernel
        self.amplitude = amplitude
        self.tables = kernel.log_tables(beta)
        self.w = kernel.weights(beta)  # (D,)
        self.scale = float(amplitude * np.exp(kernel.log_scale(self.w)))  # its W0

    def gram(self, rows: Rows, hot: Floats) -> Floats:
        """(A, B): of rows with one-hot rows."""
        return np.asarray(self.amplitude * self.kernel.gram(self.tables, rows, hot))

    def diagonal(self, rows: Rows) -> Floats:
        """(A,): of each row with itself."""
        return np.asarray(self.amplitude * self.kernel.diagonal(self.tables, rows))


def count(kernel: Kernel) -> int:
    variables = kernel.variables
    return min(variables, MANY, max(FEW, -(-variables // 2)))


def distances(kernel: Kernel) -> Floats:
    """(C, n): from the centre of each window to each factor, in variables."""
    place = np.zeros(kernel.n)
    for part in kernel.parts:
        place[part.factors] = part.variables[:, np.newaxis]
    centres = np.linspace(0.0, kernel.variables - 1.0, count(kernel))
    return np.asarray(np.abs(centres[:, np.newaxis] - place))


def sight(distance: Floats, reach: float) -> Floats:
    """R."""
    raw = reach**distance
    return np.asarray(raw / raw.sum(axis=1, keepdims=True))


def contrasts(kernel: Kernel, contrast: Floats, windows: Windows) -> Floats:
    """(C, n): c_ij, from the contrasts of the kernel of all variables."""
    seen = sight(distances(kernel), windows.reach)
    return np.asarray(np.clip(windows.sharpness * kernel.n * seen * contrast, *CONTRASTS))


def summands(
    kernel: Kernel, beta: Floats, amplitude: float, windows: Windows | None
) -> list[Summand]:
    """The kernel of all variables, then those of the windows."""
    whole = Summand(kernel, beta, amplitude)
    if windows is None:
        return [whole]
    each = contrasts(kernel, kernel.contrast(beta), windows)
    share = windows.amplitude / len(each)
    return [whole, *(Summand(kernel, kernel.beta(contrast), share) for contrast in each)]
