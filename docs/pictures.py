"""Makes every picture of the documentation: python docs/pictures.py"""

from math import comb
from pathlib import Path

import dimod
import matplotlib.pyplot as plt
import numpy as np
from mercbo_backends import Exhaustive, GraphCut

FOLDER = Path(__file__).parent / "pictures"
SWITCHES = 25


def save(figure, name: str) -> None:
    FOLDER.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(FOLDER / f"{name}.png", dpi=110)
    plt.close(figure)


def complete(k: int) -> np.ndarray:
    return k * np.eye(k) - np.ones((k, k))


def path(k: int) -> np.ndarray:
    edges = np.eye(k, k=1) + np.eye(k, k=-1)
    return np.diag(edges.sum(axis=1)) - edges


def features() -> None:
    """Eigenvectors of the Laplacians, the constant one left out."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.4))
    graphs = {"Binary": complete(2), "Categorical": complete(4), "Ordinal": path(8)}
    for ax, (name, laplacian) in zip(axes, graphs.items(), strict=True):
        values, vectors = np.linalg.eigh(laplacian)
        for value, vector in list(zip(values, vectors.T, strict=True))[1:4]:
            ax.plot(vector * len(vector) ** 0.5, "o-", label=f"eigenvalue {value:.2f}")
        ax.set(title=name, xlabel="value", xticks=range(len(laplacian)))
        ax.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.28))
    save(figure, "features")


def orders() -> None:
    """With w = exp(-2 beta), order m of n switches has the share C(n, m) w^m / (1 + w)^n."""
    figure, ax = plt.subplots(figsize=(6, 3))
    for beta in (0.5, 1.0, 1.5, 2.0):
        w = np.exp(-2 * beta)
        shares = [comb(SWITCHES, m) * w**m / (1 + w) ** SWITCHES for m in range(13)]
        ax.plot(shares, "o-", label=f"beta = {beta:g}")
    ax.set(xlabel="order", ylabel="share of the prior variance")
    ax.legend()
    save(figure, "orders")


def distance() -> None:
    figure, ax = plt.subplots(figsize=(6, 3))
    ax.bar(range(SWITCHES + 1), [comb(SWITCHES, d) / 2**SWITCHES for d in range(SWITCHES + 1)])
    ax.set(xlabel="variables that differ from a given point", ylabel="share of all points")
    save(figure, "distance")


def relaxed(bqm: dimod.BinaryQuadraticModel, gamma: float) -> dimod.BinaryQuadraticModel:
    """Positive terms a x y replaced by a gamma (x + y - 1)."""
    out = dimod.BinaryQuadraticModel(dict(bqm.linear), {}, bqm.offset, "BINARY")
    for u, v, bias in bqm.iter_quadratic():
        if bias <= 0:
            out.add_quadratic(u, v, bias)
        else:
            out.add_linear(u, gamma * bias)
            out.add_linear(v, gamma * bias)
            out.offset -= gamma * bias
    return out


def relaxation() -> None:
    rng = np.random.default_rng(0)
    n = 12
    pairs = {(i, j): rng.normal() for i in range(n) for j in range(i)}
    bqm = dimod.BinaryQuadraticModel(dict(enumerate(rng.normal(size=n))), pairs, 0.0, "BINARY")
    gammas = np.linspace(0, 1, 21)
    bounds = [Exhaustive().sample(relaxed(bqm, gamma)).first.energy for gamma in gammas]
    figure, ax = plt.subplots(figsize=(6, 3))
    ax.plot(gammas, bounds, "o-", label="bound, one gamma for all terms")
    reported = GraphCut().sample(bqm, seed=0).info["lower_bound"]
    ax.axhline(reported, color="C1", label="lower bound of the backend")
    ax.axhline(Exhaustive().sample(bqm).first.energy, color="C2", label="minimum")
    ax.set(xlabel="gamma", ylabel="energy")
    ax.legend(fontsize=8)
    save(figure, "relaxation")


if __name__ == "__main__":
    for picture in (features, orders, distance, relaxation):
        picture()
