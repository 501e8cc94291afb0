"""Processes that work on a stored run and are killed, in the middle of whatever they are at.

    python killing.py moments FOLDER NUMBER          one process, killed NUMBER times
    python killing.py crowd URL FOLDER PROCESSES EVALUATIONS KILLS [INITIAL]

A program of its own, so that it can fork: a process is ready at once that way, and a test takes
seconds. It prints what happened, and fails loudly where a law is broken.
"""

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

import numpy as np

from mercbo import Model, Optimizer, Space, SpaceExhausted
from mercbo.record import events

events.utc_now = lambda: ""  # so that equal runs have equal records

STEPS = 12
SMALL = Space.binary(5)
LARGE = Space.binary(12)
# what is fitted matters little here, and how long it takes much
QUICK = Model(warp="none")


def cost(point: dict) -> float:
    bits = np.array(list(point.values()), dtype=float)
    return float(np.cos(1 + np.arange(len(bits))) @ bits + bits[0] * bits[-1])


def fork(work, *arguments) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*arguments)
        code = 0
    finally:
        os._exit(code)


# -- one process, killed at many moments -------------------------------------------------------


def step(opt: Optimizer, number: int) -> None:
    """One call, which follows from the run and the number."""
    oldest = opt.pending[:1]
    if number % 6 == 0 or not oldest:
        opt.ask()
    elif number % 6 == 2:
        opt.ask(2)
    elif number % 12 == 5:
        opt.cancel(oldest)
    else:
        opt.tell(oldest, [None if number % 7 == 3 else cost(oldest[0])])


def undisturbed() -> tuple[list[dict], list[list]]:
    """What a run says before each of its steps if nobody disturbs it, and would suggest next."""
    opt = Optimizer(SMALL, seed=0, n_initial=2, model=QUICK)
    states, suggestions = [opt.to_dict()], [opt._choose(1, None).rows.tolist()]
    for number in range(STEPS):
        step(opt, number)
        states.append(opt.to_dict())
        suggestions.append(opt._choose(1, None).rows.tolist())
    return states, suggestions


def play(url: str, start: int, pipe: int) -> None:
    opt = Optimizer.open(url)
    for number in range(start, STEPS):
        step(opt, number)
        os.write(pipe, b".")


def killed_after(calls: int, share: float, url: str, start: int) -> tuple[bool, int]:
    """Kill a process some calls from the start, and a share of a call's time later. Whether it was
    still at work then, and the calls it had completed."""
    reading, writing = os.pipe()
    child = fork(play, url, start, writing)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        began = time.monotonic()
        done = len(b"".join(pipe.read(1) or b"" for _ in range(calls)))
        time.sleep(share * (time.monotonic() - began) / (calls + 0.5))
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        done += len(pipe.readall())
    assert code in (0, -signal.SIGKILL), code
    return code != 0, done


def moments(folder: Path, number: int) -> dict:
    rng = random.Random(number)
    kills = runs = 0
    wanted, suggestions = undisturbed()
    while kills < number:
        runs += 1
        url = f"sqlite:///{folder / f'{runs}.db'}"
        Optimizer(SMALL, seed=0, n_initial=2, model=QUICK, storage=url)
        at = 0
        while at < STEPS and kills < number:
            killed, done = killed_after(rng.randrange(1, 3), rng.uniform(0.0, 2.0), url, at)
            opt = Optimizer.open(url)
            state = opt.to_dict()
            # all completed calls are there; the one that was cut off is there wholly or not at all
            found = [n for n in (at + done, at + done + 1) if wanted[n : n + 1] == [state]]
            assert found, f"run {runs}: killed after {done} calls from {at}"
            kills, at = kills + killed, found[0]
            if kills % 5 == 0:  # a fit each time; that the state says it all is tested elsewhere
                assert opt._choose(1, None).rows.tolist() == suggestions[at]
    return {"kills": kills, "runs": runs}


# -- many processes at one run -----------------------------------------------------------------


def work(url: str, evaluations: int, trace: Path, over: Path) -> None:
    """Ask, evaluate and tell until there are so many results and no more kills to come."""
    file = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(kind: str, point: dict) -> None:
        os.write(file, (json.dumps([kind, list(point.values())]) + "\n").encode())

    opt = Optimizer.open(url)
    while len(opt.observations) < evaluations or not over.exists():
        try:
            point = opt.ask()
        except SpaceExhausted:
            return
        note("asked", point)
        time.sleep(0.03)  # an evaluation takes a while
        opt.tell(point, cost(point))
        note("told", point)


def crowd(
    url: str, folder: Path, processes: int, evaluations: int, kills: int, initial: int = 20
) -> dict:
    rng = random.Random(kills)
    Optimizer(LARGE, seed=0, n_initial=initial, acquisition="thompson", model=QUICK, storage=url)
    onlooker = Optimizer.open(url)
    traces = (folder / f"trace-{number}" for number in range(10**6))
    over = folder / "over"
    working = {fork(work, url, evaluations, next(traces), over) for _ in range(processes)}
    began, killed, ended = time.monotonic(), 0, 0
    due = sorted(rng.randrange(evaluations) for _ in range(kills))
    while working:
        while due and len(onlooker.observations) >= due[0]:
            due.pop(0)
            victim = rng.choice(sorted(working))
            os.kill(victim, signal.SIGKILL)
            working.remove(victim)
            killed += os.waitstatus_to_exitcode(os.waitpid(victim, 0)[1]) == -signal.SIGKILL
            working.add(fork(work, url, evaluations, next(traces), over))
        if not due:
            over.touch()
        select.select([], [], [], 0.02)
        for child in sorted(working):
            process, status = os.waitpid(child, os.WNOHANG)
            if process:
                assert os.waitstatus_to_exitcode(status) == 0
                working.remove(child)
                ended += 1
    return {"seconds": time.monotonic() - began, "killed": killed, "ended": ended,
            **checked(url, folder, evaluations)}  # fmt: skip


def checked(url: str, folder: Path, evaluations: int) -> dict:
    """No result lost, no point suggested twice; what was left pending by the killed is counted."""
    opt = Optimizer.open(url)
    lines = [line for path in folder.glob("trace-*") for line in path.read_text().splitlines()]
    noted = [json.loads(line) for line in lines]
    asked = [tuple(row) for entry in opt._log.entries(1) if entry.kind == "ask"
             for row in entry.body["rows"]]  # fmt: skip
    assert len(asked) == len(set(asked)), "a point was suggested twice"
    results = [(tuple(o.point.values()), o.value) for o in opt.observations]
    assert len(results) == len(dict(results)) >= evaluations
    assert {tuple(p) for kind, p in noted if kind == "asked"} <= set(asked)
    assert {tuple(p) for kind, p in noted if kind == "told"} <= set(dict(results)), "a result lost"
    assert all(value == cost(dict(enumerate(bits))) for bits, value in results)
    assert {tuple(p.values()) for p in opt.pending} == set(asked) - set(dict(results))
    return {"asked": len(asked), "results": len(results), "left pending": len(opt.pending)}


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    if kind == "moments":
        print(json.dumps(moments(Path(arguments[0]), int(arguments[1]))))  # noqa: T201
    else:
        url, folder, *numbers = arguments
        print(json.dumps(crowd(url, Path(folder), *map(int, numbers))))  # noqa: T201
