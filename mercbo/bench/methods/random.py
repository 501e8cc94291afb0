"""`random`: unseen feasible points, as uniform as the space can draw them."""

from __future__ import annotations

from mercbo.arrays import Rows
from mercbo.bench.methods.common import InHouse


class Random(InHouse):
    """Learns nothing."""

    def suggest(self) -> Rows:
        return self.random()
