"""Suggestions for a fixed seed and history, held to those recorded.

A change that keeps the use of random numbers keeps them. If a change alters them on purpose, record
them anew: ``python tests/golden/cases.py``, in a commit that gives the reason.
"""

from __future__ import annotations

import pytest
from golden.cases import CASES, recorded


@pytest.mark.parametrize("name", list(CASES))
def test_ask_suggests_the_recorded_points(name: str) -> None:
    assert CASES[name].play() == recorded()[name]
