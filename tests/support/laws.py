"""Laws that a posterior keeps, whatever further terms its kernel has."""

from __future__ import annotations

import numpy as np
from support.moments import exact_moments

from mercbo import Model, Space
from mercbo.arrays import Rows
from mercbo.encoding import Encoding
from mercbo.features import quadratic
from mercbo.inference import Data, Hyper
from mercbo.posterior import Posterior


def check_paths(data: Data, hyper: Hyper, rows: Rows) -> None:
    """Paths have the mean of the process."""
    posterior = Posterior(Model(), data, hyper)
    mean, _ = exact_moments(lambda rng: posterior.draw(rng=rng).path(rows))
    np.testing.assert_allclose(mean, posterior.predict(rows)[0], atol=1e-9)


def check_quadratic_form(data: Data, hyper: Hyper, space: Space) -> None:
    """Law 2: the quadratic form is the drawn function, at every point and in every layout."""
    rows = space.enumerate_rows()
    sample = Posterior(Model(), data, hyper).draw(rng=np.random.default_rng(2))
    for encoding in (Encoding(space), Encoding(space, native=True)):
        form = quadratic(data.kernel, sample.w, sample.low, encoding)
        bits = encoding.to_bits(rows).astype(float)
        np.testing.assert_allclose(form.energy(bits), sample.value(rows), rtol=1e-9, atol=1e-9)
