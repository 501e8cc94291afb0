"""Moments at fixed hyper-parameters, held to those recorded."""

from __future__ import annotations

import numpy as np
import pytest
from golden.moments import CASES, recorded


@pytest.mark.parametrize("name", list(CASES))
def test_posterior_has_the_recorded_moments(name: str) -> None:
    expected = recorded()[name]
    measured = CASES[name].measure()
    assert measured.keys() == expected.keys()
    for quantity, values in expected.items():
        scale = np.abs(values).max()
        np.testing.assert_allclose(
            measured[quantity], values, rtol=1e-7, atol=1e-9 * scale, err_msg=quantity
        )
