"""What tests of the optimizer share that is no space and no run."""

from collections.abc import Iterator
from unittest import mock

import pytest
from support.sequences import quick

from mercbo.fitting import slicing


@pytest.fixture
def poor_fits() -> Iterator[None]:
    """Fits of few steps, where any fit will do: a test of what is asked for, told, refused or kept,
    and of what is the same twice."""
    with quick(), mock.patch.object(slicing, "BURN_IN", 10):
        yield
