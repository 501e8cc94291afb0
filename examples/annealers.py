"""Send one draw to every sampler that is installed, and compare what they find.

    python examples/annealers.py

A draw from the posterior of a small run is an ordinary dimod model. It goes here, as it is, to
mercbo's own backends, to dimod's, dwave-samplers' and OpenJij's, where they are installed, and is
written to a file for all others. Samplers that know no constraints get the penalised BQM.
"""

import importlib
import tempfile
import time
from pathlib import Path

from mercbo import AtMost, Categorical, Optimizer, Space
from mercbo.interchange import FORMATS, dumps, read, write

SAMPLERS = [
    ("mercbo_backends", "GraphCut", {}),
    ("mercbo_backends", "CpSat", {}),
    ("mercbo_backends", "Annealing", {}),
    ("mercbo_backends", "Exhaustive", {}),
    ("dimod", "RandomSampler", {"num_reads": 1000}),
    ("dwave.samplers", "SimulatedAnnealingSampler", {"num_reads": 20, "num_sweeps": 200}),
    ("dwave.samplers", "SteepestDescentSampler", {"num_reads": 100}),
    ("dwave.samplers", "TabuSampler", {"timeout": 100}),
    ("openjij", "SASampler", {"num_reads": 20}),
    ("openjij", "SQASampler", {"num_reads": 20}),
]


def draw_of_a_run():
    """The draw after 40 made-up results on eight letters, of which at most three are G."""
    names = [f"base{i}" for i in range(8)]
    space = Space(
        {name: Categorical(list("ACGT")) for name in names},
        [AtMost(3, [(name, "G") for name in names])],
    )
    opt = Optimizer(space, n_initial=40, seed=0)
    for _ in range(40):
        point = opt.ask()
        word = "".join(point.values())
        opt.tell(
            point, -sum(a == b for a, b in zip(word, "TAGGATCC", strict=True)) - word.count("TA")
        )
    return opt.draw()


def answer(sampler, settings: dict, draw) -> tuple[float | None, str]:
    """The lowest value of a feasible point found, and how many of the samples were feasible."""
    if hasattr(sampler, "sample_cqm"):
        found = sampler.sample_cqm(draw.cqm)
    else:  # numbers for labels: some samplers take no others
        numbered, labels = draw.bqm.relabel_variables_as_integers(inplace=False)
        found = sampler.sample(numbered, **settings).relabel_variables(labels, inplace=False)
    points = [draw.decode(sample) for sample in found.samples(sorted_by=None)]
    feasible = [point for point in points if point is not None]
    counts = f"{len(feasible)} of {len(points)} feasible"
    return min(map(draw.value, feasible), default=None), counts


def main() -> None:
    draw = draw_of_a_run()
    print(f"{len(draw.bqm.variables)} bits, {draw.bqm.num_interactions} products of two")
    best: dict[str, float] = {}
    missing = []
    for module, name, settings in SAMPLERS:
        try:
            sampler = getattr(importlib.import_module(module), name)()
        except ImportError:
            missing.append(module)
            continue
        started = time.perf_counter()
        value, counts = answer(sampler, settings, draw)
        seconds = time.perf_counter() - started
        shown = "none" if value is None else f"{value:.4f}"
        print(f"{module:16} {name:26} {shown:>9}  {counts:>22}  {seconds:6.3f} s")
        if value is not None:
            best[name] = value
    with tempfile.TemporaryDirectory() as folder:
        sizes = {}
        for form in FORMATS:
            path = Path(folder) / f"draw.{form}"
            write(draw, path)
            sizes[form] = f"{form} {len(dumps(draw, form)) / 1024:.0f} kB"
            assert len(read(path).variables) > 0
    print(f"for others, as a file: {', '.join(sizes.values())}; not installed: {missing or 'none'}")
    lowest = min(best.values())
    equal = [name for name, value in best.items() if value <= lowest + 1e-9]
    proved = "Exhaustive" in equal
    print(
        f"found {lowest:.4f} by {len(equal)} of {len(best)} samplers ({', '.join(equal)}); "
        f"that is {'the minimum, by enumeration' if proved else 'not proved to be the minimum'}"
    )


if __name__ == "__main__":
    main()
