"""Which encoding of categorical variables explains results better, by evidence.

    python examples/encodings.py [--runs 100-103] [--results 110]

For some drawn problems, relocated, results along local searches are explained by the model with
each value a level of its own (the default) and with each variable as ceil(log2 k) bits, the paper's
encoding of DNA. Printed are the log evidences, in nats, each with the warp that has most of it, and
the log density of each result given all the others (leave-one-out). A difference of 3 nats is odds
of 20 to 1, so a mixture of both by evidence would be one of them.
"""

from __future__ import annotations

import argparse

import numpy as np

from mercbo import Categorical, Model, Space
from mercbo.bench.runner import Task, play, runs_of
from mercbo.domain.variables import Variable
from mercbo.encoding import Encoding
from mercbo.inference import Data, log_density, pack
from mercbo.kernel import Kernel
from mercbo.linalg import cholesky
from mercbo.problems import make

PROBLEMS = ("dna", "pest-fixed", "ehrlich-20-4", "ehrlich-15-8")
MODEL = Model(inference="map", windows="none", pooling="none")


def as_bits(variable: Variable) -> Variable:
    if variable.size == 2:
        return variable
    return Categorical(list(variable.values), encoding="binary")


def explained(space: Space, rows: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Log evidence and leave-one-out log density of standardised results."""
    kernel = Kernel(Encoding(space))
    fit = MODEL.fit(Data(kernel, rows, y), None, rng=np.random.default_rng(0))
    data, hyper = Data(kernel, rows, y).warped(fit.warp), fit.hypers[0]
    evidence, _, _ = log_density(data, pack(kernel, hyper))
    gram = hyper.amplitude * kernel.gram(kernel.log_tables(hyper.beta), rows, data.hot)
    inverse = cholesky(gram + np.diag(data.noise(hyper.noise))).inverse()
    variance = 1.0 / np.diagonal(inverse)
    away = (inverse @ (data.y - hyper.mean)) * variance
    apart = -0.5 * (np.log(2.0 * np.pi * variance) + away**2 / variance).sum()
    slope = data.warp.cost(len(data))
    return float(evidence - slope), float(apart - slope)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=runs_of, default=runs_of("100-103"), help="such as 100-103")
    parser.add_argument("--results", type=int, default=110, help="of each local search")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="names by commas")
    given = parser.parse_args()
    print("| problem, run | results | evidence: own levels, bits | leave-one-out: the same |")
    print("|---|---|---|---|")
    gains = []
    for name in given.problems.split(","):
        for run in given.runs:
            space = make(name, run).space
            played = play(Task("local", name, run, given.results)).evaluations
            told = [each for each in played if each["value"] is not None]
            values = np.array([each["value"] for each in told])
            y = (values - values.mean()) / values.std()
            rows = space.rows([each["point"] for each in told])
            bits = Space({n: as_bits(v) for n, v in space.variables.items()})
            (native, apart), (coded, coded_apart) = (explained(s, rows, y) for s in (space, bits))
            gains.append(native - coded)
            print(
                f"| {name}, {run} | {len(y)} | {native:.1f}, {coded:.1f} "
                f"| {apart:.1f}, {coded_apart:.1f} |",
                flush=True,
            )
    better = sum(gain > 0 for gain in gains)
    print(
        f"\nown levels have more evidence in {better} of {len(gains)} cases, "
        f"by {min(gains):.1f} to {max(gains):.1f} nats"
    )


if __name__ == "__main__":
    main()
