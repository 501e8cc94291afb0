"""Thin out a network: drop links and keep the behaviour of what is left.

    python examples/sparsify.py

A made-up network of 9 nodes has 20 links of different strengths. Exactly 9 may stay. How far the
behaviour of the thinned network is from that of the whole one (how a disturbance at each node
spreads to all others within a few steps) needs a simulation, and links help each other: dropping
one makes its neighbours matter more. All 167,960 choices are simulated at the end, to say how good
the one that was found is.
"""

import numpy as np

from mercbo import Exactly, Optimizer, Space

NODES, LINKS, KEPT, STEPS = 9, 20, 9, 4


def network(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of nodes (LINKS, 2), of which the first ones connect all, and their strengths."""
    ring = [(i, (i + 1) % NODES) for i in range(NODES)]
    others = [(i, j) for i in range(NODES) for j in range(i + 2, NODES) if (i, j) != (0, NODES - 1)]
    picked = rng.choice(len(others), size=LINKS - NODES, replace=False)
    return np.array(ring + [others[i] for i in picked]), rng.uniform(0.2, 1.0, LINKS)


def spread(pairs: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """(..., NODES, NODES): what a disturbance at each node has become after some steps."""
    flow = np.zeros((*strengths.shape[:-1], NODES, NODES))
    flow[..., pairs[:, 0], pairs[:, 1]] = strengths
    flow += np.swapaxes(flow, -1, -2)
    leaving = flow.sum(axis=-1, keepdims=True)
    step = np.eye(NODES) * 0.5 + 0.5 * flow / np.maximum(leaving, 1e-9)
    step += np.eye(NODES) * 0.5 * (leaving < 1e-9)
    return np.linalg.matrix_power(step, STEPS)


def main() -> None:
    rng = np.random.default_rng(1)
    pairs, strengths = network(rng)
    whole = spread(pairs, strengths)

    def error(kept: np.ndarray) -> np.ndarray:
        return np.linalg.norm(spread(pairs, strengths * kept) - whole, axis=(-1, -2))

    names = [f"{a}-{b}" for a, b in pairs]
    space = Space(dict(zip(names, Space.binary(LINKS).variables.values(), strict=True)),
                  [Exactly(KEPT, names)])  # fmt: skip
    opt = Optimizer(space, seed=0)
    for round_number in range(1, 16):
        batch = opt.ask(4)
        opt.tell(batch, [float(error(np.array(list(p.values())))) for p in batch])
        if round_number % 5 == 0:
            print(f"after {4 * round_number:2d} simulations: {opt.best.value:.4f}")
    every = space.enumerate_rows()
    errors = np.concatenate([error(part) for part in np.array_split(every, 50)])
    greedy = np.isin(np.arange(LINKS), np.argsort(-strengths)[:KEPT])
    kept = [name for name, stays in opt.best.point.items() if stays]
    better = int((errors < opt.best.value - 1e-12).sum())
    print("links kept:", ", ".join(kept))
    strongest, random = float(error(greedy)), errors.mean()
    print(f"the {KEPT} strongest links: {strongest:.4f}; a random choice: {random:.4f}")
    print(
        f"found an error of {opt.best.value:.4f} with 60 simulations; the best of all "
        f"{len(errors):,} choices has {errors.min():.4f}, and {better} are better than this one"
    )


if __name__ == "__main__":
    main()
