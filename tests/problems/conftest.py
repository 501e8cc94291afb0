"""What the tests of problems share: the folder of published instances, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def data() -> Path:
    """The folder of published instances; tests that need it are skipped without it."""
    folder = os.environ.get("MERCBO_DATA")
    if not folder:
        pytest.skip("MERCBO_DATA does not name the folder of published instances")
    return Path(folder)
