"""`Annealing`: simulated annealing by dwave-samplers, with settings that suit a posterior draw."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import dimod
import numpy as np

try:
    from dwave.samplers import SimulatedAnnealingSampler
except ImportError as error:
    raise ImportError("Annealing needs dwave-samplers: pip install 'mercbo[annealing]'") from error

# dwave-samplers refuses seeds of 2**31 and more.
SEED_LIMIT = 2**31


class Annealing(dimod.Sampler):
    """Samples low states of a binary quadratic model by simulated annealing."""

    def __init__(self, *, num_reads: int = 20, num_sweeps: int = 100) -> None:
        self._defaults = {"num_reads": num_reads, "num_sweeps": num_sweeps}

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"num_reads": [], "num_sweeps": [], "seed": []}

    @property
    def properties(self) -> Mapping[str, Any]:
        return dict(self._defaults)

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        *,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> dimod.SampleSet:
        """One state per read, lowest energy first; info: `status` ("feasible"), `timing`."""
        self.remove_unknown_kwargs(**kwargs)
        started = time.perf_counter()
        if seed is not None:
            seed = int(np.random.default_rng(seed).integers(SEED_LIMIT))
        found = SimulatedAnnealingSampler().sample(
            bqm,
            num_reads=self._defaults["num_reads"] if num_reads is None else num_reads,
            num_sweeps=self._defaults["num_sweeps"] if num_sweeps is None else num_sweeps,
            seed=seed,
            # where nothing sets a temperature, dwave-samplers would warn and take this one
            beta_range=None if has_bias(bqm) else (0.1, 1.0),
        )
        found = found.slice(len(found)) if len(found) else found
        found.info.clear()
        timing = {"total": time.perf_counter() - started}
        found.info.update({"status": "feasible", "timing": timing})
        return found


def has_bias(bqm: dimod.BinaryQuadraticModel) -> bool:
    spins = bqm.spin
    return any(spins.linear.values()) or any(spins.quadratic.values())
