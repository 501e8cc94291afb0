"""What large batches and long histories cost: the part of `mercbo bench scale` about these.

Each figure is the least of some repetitions, as other programs may be at work on the machine. It
is given on the clock and in seconds of a core that the asking process used. All are of Thompson
sampling unless said. A batch is asked for after one more result, when the fit stands and only the
factors grow, and after a hundred more, when hyper-parameters are fitted anew: that is how batches
are asked for in a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercbo.optimizer import Optimizer
from mercbo.space import Space

# The run that batches are asked of, their sizes, and the results of the batch before.
RESULTS, VARIABLES, SIZES, BEFORE = 500, 50, (1, 100, 1000), 100
# The batch that is also asked for with workers, and how many of these.
SHARED, WORKERS = 256, 2
# Long histories, and their number of variables.
LONG, LONG_VARIABLES = (2000, 5000), 100
REPEATS = 3


@dataclass(frozen=True)
class Measured:
    """What was asked, in which situation, and the least that it took."""

    what: str
    when: str
    seconds: float  # on the clock
    used: float  # of a core, by the asking process


def prepared(results: int, variables: int, **options: Any) -> Optimizer:
    """A run with so many results of a quadratic function and a fit to them."""
    space = Space.binary(variables)
    rng = np.random.default_rng([results, variables])
    opt = Optimizer(space, seed=0, n_initial=1, **{"acquisition": "thompson", **options})
    tell_more(opt, results, rng)
    opt.cancel(opt.ask())
    return opt


def tell_more(opt: Optimizer, count: int, rng: np.random.Generator) -> None:
    rows = opt.space.sample_rows(count, rng=rng)
    weights = np.random.default_rng(0).standard_normal((rows.shape[1], rows.shape[1]))
    values = np.einsum("ri,ij,rj->r", rows, weights / rows.shape[1], rows)
    opt.tell(opt.space.points(rows), values)


def least(
    state: dict[str, Any], more: int, ask: Callable[[Optimizer], object], *, repeats: int = REPEATS
) -> tuple[float, float]:
    """The time of an ask after `more` results, each time from the same state, its factors known:
    seconds on the clock, and of a core."""
    clock, core = [], []
    for repeat in range(repeats):
        opt = Optimizer.from_dict(state)
        opt.cancel(opt.ask())
        tell_more(opt, more, np.random.default_rng(repeat))
        began, used = time.perf_counter(), time.process_time()
        ask(opt)
        clock.append(time.perf_counter() - began)
        core.append(time.process_time() - used)
    return min(clock), min(core)


def measured(
    *,
    results: int = RESULTS,
    variables: int = VARIABLES,
    sizes: Sequence[int] = SIZES,
    shared: int = SHARED,
    long: Sequence[int] = LONG,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Measured]:
    at = f"N = {results}, n = {variables}"
    out = []
    state = prepared(results, variables).to_dict()
    for size in sizes:
        progress(f"{at}, ask({size})")
        repeats = 1 if size == max(sizes) else REPEATS
        seconds = least(state, 1, lambda opt, k=size: opt.ask(k), repeats=repeats)  # type: ignore[misc]
        out.append(Measured(f"ask({size})", f"{at}, after a result", *seconds))
    before = prepared(results - BEFORE, variables).to_dict()
    for size in sizes[:2]:
        progress(f"{at}, ask({size}) with a fit")
        seconds = least(before, BEFORE, lambda opt, k=size: opt.ask(k))  # type: ignore[misc]
        out.append(Measured(f"ask({size})", f"{at}, after {BEFORE} results", *seconds))
    out += with_workers(state, shared, at, progress)
    for size in long:
        for name in ("thompson", "auto"):
            progress(f"{size} results, {name}")
            where = f"N = {size}, n = {LONG_VARIABLES}, after a result"
            state = prepared(size, LONG_VARIABLES, acquisition=name).to_dict()
            seconds = least(state, 1, lambda opt: opt.ask())
            out.append(Measured(f'ask(), acquisition="{name}"', where, *seconds))
    return out


def with_workers(
    state: dict[str, Any], size: int, at: str, progress: Callable[[str], None]
) -> list[Measured]:
    """The same batch alone and by a pool of processes, in turns."""
    alone, shared = [], []
    with ProcessPoolExecutor(WORKERS) as pool:
        least(state, 1, lambda opt: opt.ask(4 * WORKERS, executor=pool), repeats=1)
        for repeat in range(REPEATS):
            progress(f"{at}, ask({size}) alone and with {WORKERS} workers, {repeat}")
            alone.append(least(state, 1, lambda opt: opt.ask(size), repeats=1))
            shared.append(least(state, 1, lambda opt: opt.ask(size, executor=pool), repeats=1))
    when = f"{at}, after a result"
    return [
        Measured(f"ask({size})", when, *np.min(alone, axis=0).tolist()),
        Measured(
            f"ask({size}) with {WORKERS} worker processes", when, *np.min(shared, axis=0).tolist()
        ),
    ]


def markdown(found: Sequence[Measured]) -> str:
    """The figures, those of a core each beside the first of its situation."""
    lines = [
        "Large batches and long histories (the least of some repetitions):",
        "",
        "| asked | when | seconds on the clock | of a core, here | to the first of its kind |",
        "|---|---|---|---|---|",
    ]
    first: dict[str, float] = {}
    for one in found:
        ratio = one.used / first.setdefault(one.when, one.used)
        lines.append(
            f"| `{one.what}` | {one.when} | {one.seconds:.3g} | {one.used:.3g} | {ratio:.3g} |"
        )
    for one in found:
        if "worker" in one.what:
            alone = next(a for a in found if a.what == one.what.split(" with")[0])
            lines += [
                "",
                f"{one.what}: {alone.seconds / one.seconds:.2f} times as fast as alone on the "
                f"clock; {one.used / alone.used:.1%} of the work stays in the asking process.",
            ]
    return "\n".join(lines)
