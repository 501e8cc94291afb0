"""Never twice: spaces are enumerated completely by asking, each point once, then exhausted."""

import itertools

import numpy as np
import pytest
from support.kinds import linear_score
from support.optimizer import as_tuples, make, plain

from mercbo import (
    AllDifferent,
    Binary,
    Categorical,
    Exactly,
    Forbid,
    Integer,
    Linear,
    Model,
    Optimizer,
    Ordinal,
    Space,
    SpaceExhausted,
    Tied,
    Where,
)
from mercbo.domain.feasible import LISTED, listing

pytestmark = pytest.mark.usefixtures("poor_fits")


def bits(n: int) -> dict:
    return {f"x{i}": Binary() for i in range(n)}


def permutations(n: int) -> tuple[Space, set[tuple]]:
    names = [f"p{i}" for i in range(n)]
    space = Space({name: Categorical(range(n)) for name in names}, [AllDifferent(names)])
    return space, set(itertools.permutations(range(n)))


def chosen(k: int, n: int) -> tuple[Space, set[tuple]]:
    wanted = {
        tuple(int(i in ones) for i in range(n)) for ones in itertools.combinations(range(n), k)
    }
    return Space(bits(n), [Exactly(k, list(bits(n)))]), wanted


def cube(n: int) -> tuple[Space, set[tuple]]:
    return Space(bits(n)), set(itertools.product((0, 1), repeat=n))


def budget(n: int) -> tuple[Space, set[tuple]]:
    """A budget and forbidden combinations, over bits, a categorical and an integer."""
    weights = {**{f"x{i}": i + 1.5 for i in range(n)}, "n": 2.0}
    space = Space(
        {**bits(n), "s": Categorical(list("abcd")), "n": Integer(0, 4)},
        [
            Forbid([{"s": "a", "x0": 1}, {"s": ["b", "c"], "n": [3, 4]}]),
            Linear(weights, "<=", 2.25 * n),
        ],
    )
    every = itertools.product(*[(0, 1)] * n, "abcd", range(5))
    wanted = {
        p
        for p in every
        if not (p[n] == "a" and p[0])
        and not (p[n] in "bc" and p[-1] >= 3)
        and sum((i + 1.5) * p[i] for i in range(n)) + 2.0 * p[-1] <= 2.25 * n
    }
    return space, wanted


def thirds(n: int) -> tuple[Space, set[tuple]]:
    """A predicate that no solver sees."""
    space = Space(
        {**bits(n), "n": Integer(0, 4)},
        [Where(lambda p: sum(p.values()) % 3 == 0, name="thirds")],
    )
    every = itertools.product(*[(0, 1)] * n, range(5))
    return space, {p for p in every if sum(p) % 3 == 0}


def coded() -> tuple[Space, set[tuple]]:
    """Binary codes with unused codewords, tied."""
    space = Space(
        {
            "a": Categorical(list("pqrst"), encoding="binary"),
            "b": Categorical(list("tsr"), encoding="binary"),
            "c": Ordinal([1, 5, None]),
        },
        [Tied(["a", "b"])],
    )
    return space, {(a, a, c) for a in "rst" for c in (1, 5, None)}


def catalogue(rows: int) -> tuple[Space, set[tuple]]:
    rng = np.random.default_rng(0)
    cells = rng.permutation(list(itertools.product(range(12), range(10), range(8), range(6))))
    listed = [
        {"metal": f"m{a}", "mol": float(b), "ligand": f"l{c}", "heat": 20 + 10 * int(d)}
        for a, b, c, d in cells[:rows]
    ]
    return Space.table(listed), set(as_tuples(listed))


def exhaust(opt: Optimizer, wanted: set[tuple], *, told: int, batch: int) -> None:
    """Ask for everything: `told` points one by one with their results, the rest in batches."""
    asked = []
    for _ in range(told):
        point = opt.ask()
        opt.tell(point, linear_score(opt.space, point))
        asked += as_tuples([point])
    left = len(wanted) - told
    refused(opt, left + 1, left)
    while left:
        asked += as_tuples(opt.ask(min(batch, left)))
        left = len(wanted) - len(asked)
    assert len(asked) == len(wanted)
    assert set(asked) == wanted
    refused(opt, 1, 0)


def refused(opt: Optimizer, k: int, left: int) -> None:
    """Too many asked for: it says how many are left and marks nothing."""
    before = opt.to_dict()
    with pytest.raises(SpaceExhausted, match=f"{k} asked for, {left} left") as caught:
        opt.ask(k)
    assert caught.value.left == left
    assert opt.to_dict() == before


SMALL = {
    "cube": cube(4),
    "permutations": permutations(4),
    "chosen": chosen(2, 6),
    "budget": budget(2),
    "predicate": thirds(3),
    "coded": coded(),
    "catalogue": catalogue(20),
}
LARGE = {
    "cube": lambda: cube(9),
    "permutations of 5": lambda: permutations(5),
    "2 of 30": lambda: chosen(2, 30),
    "budget": lambda: budget(4),
    "predicate": lambda: thirds(8),
    "catalogue": lambda: catalogue(600),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_a_small_space_told_throughout_is_enumerated(kind):
    space, wanted = SMALL[kind]
    exhaust(make(space), wanted, told=len(wanted), batch=1)


@pytest.mark.parametrize(
    "backend", ["cp-sat", "exhaustive", pytest.param("annealing", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["chosen", "coded"])
def test_every_backend_enumerates(kind, backend):
    space, wanted = SMALL[kind]
    exhaust(make(space, backend=backend), wanted, told=5, batch=3)


@pytest.mark.parametrize(
    "model",
    [plain(order=3), plain(refine=False), pytest.param(Model.paper(), marks=pytest.mark.slow)],
    ids=["order 3", "no refinement", "paper"],
)
@pytest.mark.parametrize("kind", ["permutations", "predicate"])
def test_every_model_enumerates(kind, model):
    space, wanted = SMALL[kind]
    exhaust(make(space, model=model), wanted, told=6, batch=4)


@pytest.mark.parametrize("kind", ["chosen", "predicate", "catalogue"])
def test_a_space_whose_points_fail_is_enumerated_as_well(kind):
    space, wanted = SMALL[kind]
    opt, asked = make(space), []
    for number in range(len(wanted)):
        point = opt.ask()
        opt.tell(point, None if number % 2 else linear_score(space, point))
        asked += as_tuples([point])
    assert len(asked) == len(set(asked))
    assert set(asked) == wanted
    refused(opt, 1, 0)


@pytest.mark.slow
def test_a_space_of_few_points_too_large_to_list_is_exhausted_by_proof():
    """A subset sum: too many beginnings to list for a handful of points."""
    n, rng = 20, np.random.default_rng(0)
    weights = rng.integers(1, 30_000, n)
    target = int(weights[::2].sum())
    rows = (np.arange(2**n)[:, np.newaxis] >> np.arange(n)) & 1
    wanted = {tuple(row) for row in rows[rows @ weights == target].tolist()}
    names = list(bits(n))
    rule = Linear(dict(zip(names, weights.tolist(), strict=True)), "==", target)
    space = Space(bits(n), [rule])
    assert listing(space.region, LISTED) is None
    assert 5 < len(wanted) < 50
    exhaust(make(space, n_initial=2), wanted, told=4, batch=5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_a_large_space_is_enumerated(kind):
    space, wanted = LARGE[kind]()
    exhaust(make(space, n_initial=10), wanted, told=20, batch=100)
