"""Problems for tests, which are skipped where an optional package is missing."""

from __future__ import annotations

import pytest

from mercbo.problems import PROBLEMS, Problem


def made(name: str, run: int) -> Problem:
    try:
        return PROBLEMS[name](run)
    except ImportError as error:
        pytest.skip(str(error))
