"""`mercbo bench run`: methods on problems, every evaluation in one JSON-lines file.

The file opens with a header (versions, machine); then comes one line for each evaluation. A run's
lines are written together when it is finished, so that a run is in the file whole or not at all:
started again with the same folder, the benchmark keeps finished runs, packed ones (`runs.py`)
included, and plays the others. A method that fails leaves a line that says so, is reported at the
end, and is tried again the next time.

| key          | of an evaluation                                                           |
|--------------|----------------------------------------------------------------------------|
| method, problem, run | which run; a relocated problem's name says so                      |
| index        | 0 for the first initial point                                              |
| point, value | as the user would see them, to be minimised; null where it failed          |
| best         | the lowest value so far; null while there is none                          |
| ask, tell    | seconds; the initial points are not asked for                              |
| memory       | peak of the run's process plus that of its largest child so far, MB        |
| optimum      | the lowest value of this run's instance; null where it is not known        |
| versions     | of a peer's packages, which may live in another environment; index 0 only  |

A run is a pure function of (method, problem, run), apart from the times and the memory.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

from mercbo.bench.backends import header
from mercbo.bench.methods import make as make_method
from mercbo.bench.methods import maker as method_maker
from mercbo.bench.methods.base import Method
from mercbo.bench.runs import FILE, PACKED, Key, alike, make_folder, read
from mercbo.bench.runs import packed as read_packed
from mercbo.errors import SettingError, whole
from mercbo.problems import Problem
from mercbo.problems import make as make_problem
from mercbo.record.processes import is_gone, this_process

# Which process plays in a folder, while it does.
RUNNING = "running"


@dataclass(frozen=True)
class Task:
    """One run of one method on one problem."""

    method: str
    problem: str
    run: int
    budget: int | None = None  # evaluations, initial ones included; None: as published
    relocated: bool = True
    data: Path | None = None

    def __post_init__(self) -> None:
        if self.budget is not None:
            whole("budget", self.budget)

    @property
    def key(self) -> Key:
        return self.method, self.label, self.run

    @property
    def label(self) -> str:
        return f"{self.problem} (relocated)" if self.relocated else self.problem

    def instance(self) -> Problem:
        return make_problem(self.problem, self.run, self.data, relocated=self.relocated)

    def length(self, problem: Problem) -> int:
        """The number of evaluations: no more than the space has points."""
        budget = problem.budget if self.budget is None else self.budget
        return min(budget, problem.space.size)


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its evaluations, or why there are none."""

    task: Task
    evaluations: list[dict[str, Any]]
    error: str | None = None


def play(task: Task) -> Outcome:
    """Play one run; an exception becomes part of the outcome."""
    try:
        return Outcome(task, list(evaluations(task)))
    except Exception as error:
        return Outcome(task, [], f"{type(error).__name__}: {error}")


def evaluations(task: Task) -> Iterator[dict[str, Any]]:
    problem = task.instance()
    left = task.length(problem) - len(problem.initial)
    method = make_method(task.method, problem.space, task.run, max(left, 0))
    try:
        yield from _evaluations(task, problem, method)
    finally:
        getattr(method, "close", lambda: None)()


def _evaluations(task: Task, problem: Problem, method: Method) -> Iterator[dict[str, Any]]:
    length = task.length(problem)
    initial = problem.initial[:length]
    best = np.nan
    for index in range(length):
        started = time.perf_counter()
        row = initial[index] if index < len(initial) else method.ask()
        asked = time.perf_counter()
        value = float(problem.evaluate(row[np.newaxis], index)[0])
        evaluated = time.perf_counter()
        method.tell(row, value)
        told = time.perf_counter()
        best = float(np.fmin(best, value))
        evaluation = {
            "method": task.method,
            "problem": task.label,
            "run": task.run,
            "index": index,
            "point": problem.space.points(row[np.newaxis])[0],
            "value": number(value),
            "best": number(best),
            "ask": asked - started if index >= len(initial) else None,
            "tell": told - evaluated,
            "memory": memory(method),
            "optimum": problem.optimum,
        }
        if index == 0 and getattr(method, "versions", None):
            evaluation["versions"] = method.versions  # type: ignore[attr-defined]
        yield evaluation


def number(value: float) -> float | None:
    """A value that JSON can hold."""
    return None if np.isnan(value) else value


def memory(method: Method) -> float:
    """Peak megabytes of this process so far, plus that of its largest child, running or ended."""
    own, ended = (
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    running = getattr(method, "memory", lambda: 0.0)()
    return round(own + max(ended, running), 1)


# -- the file ----------------------------------------------------------------------------------


def finished(path: Path) -> dict[Key, int]:
    """The runs in a file, and the number of their evaluations."""
    counts: dict[Key, int] = {}
    if path.exists():
        for line in read(path):
            if "index" in line:
                key = (line["method"], line["problem"], line["run"])
                counts[key] = counts.get(key, 0) + 1
    return counts


def packed_in(out: Path) -> dict[Key, int]:
    """The packed runs of a folder, and the number of their evaluations."""
    if not (out / PACKED).exists():
        return {}
    return {run.key: len(run.values) for run in read_packed(out / PACKED)[1] if run.error is None}


def first_results(out: Path) -> dict[tuple[str, int], float | None]:
    """The first initial result of each problem and run in a folder."""
    found: dict[tuple[str, int], float | None] = {}
    if (out / PACKED).exists():
        for run in read_packed(out / PACKED)[1]:
            if run.error is None:
                found[run.problem, run.run] = run.values[0]
    if (out / FILE).exists():
        for line in read(out / FILE):
            if line.get("index") == 0:
                found[line["problem"], line["run"]] = line["value"]
    return found


def open_file(path: Path, lengths: Mapping[Key, int]) -> None:
    """Make `path` a file of the header and of whole runs.

    The last run of a file that ends within a line was cut off, and is dropped. Any other run of
    another length than wanted is an error, and nothing is changed.
    """
    counts = finished(path)
    torn = path.exists() and not path.read_bytes().endswith(b"\n")
    cut_off = next(reversed(counts), None) if torn else None
    for key, count in counts.items():
        wanted = lengths.get(key, count)
        if count != wanted and key != cut_off:
            method, problem, run = key
            raise SettingError(
                f"{path} has run {run} of {method} on {problem} with {count} evaluations, and "
                f"{wanted} are wanted; take another folder, or --budget {count}"
            )
    now = header()
    lines = [now]
    if path.exists():
        for line in read(path):
            if "method" not in line:  # what played the runs that are there
                earlier = [one for one in (*line.pop("earlier", []), line) if one != now]
                lines[0] = {**now, "earlier": earlier} if earlier else now
            if "index" in line:
                key = (line["method"], line["problem"], line["run"])
                if lengths.get(key, counts[key]) == counts[key]:
                    lines.append(line)
    temporary = path.with_suffix(".part")
    temporary.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.replace(temporary, path)


def append(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Add a run's lines in one write, and see them to the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


# -- all runs ----------------------------------------------------------------------------------


def tasks_of(
    problems: Sequence[str],
    methods: Sequence[str],
    runs: Sequence[int],
    *,
    budget: int | None,
    relocated: bool,
    data: Path | None,
) -> list[Task]:
    """Every combination, run by run, so that an interrupted benchmark is balanced."""
    return [
        Task(method, problem, run, budget, relocated, data)
        for run in runs
        for problem in problems
        for method in methods
    ]


def run_all(
    tasks: Sequence[Task],
    out: Path,
    *,
    jobs: int = 1,
    progress: Callable[[Outcome | None, int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Play the tasks that the folder does not hold yet; the outcomes that failed.

    A name that is not known, of a method or a problem, is an error before anything is played.
    """
    for name in dict.fromkeys(task.method for task in tasks):
        method_maker(name)
    lengths = {task.key: task.length(task.instance()) for task in tasks}
    make_folder(out)
    with alone_in(out):
        return _play_missing(tasks, lengths, out, jobs, progress)


@contextlib.contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Refuse a folder in which another runner is at work: each would drop what the other adds."""
    mark = out / RUNNING
    if mark.exists() and not is_gone(mark.read_text(encoding="utf-8")):
        raise SettingError(
            f"another benchmark is being played in {out}; take another folder, or wait for it "
            f"(if nothing is, remove {mark})"
        )
    mark.write_text(this_process(), encoding="utf-8")
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def _play_missing(
    tasks: Sequence[Task],
    lengths: Mapping[Key, int],
    out: Path,
    jobs: int,
    progress: Callable[[Outcome | None, int, int], None],
) -> list[Outcome]:
    check_instances(tasks, out)
    path = out / FILE
    # runs of other benchmarks in the same folder are kept as they are
    open_file(path, lengths)
    held, packed = finished(path), packed_in(out)
    left = [t for t in tasks if lengths[t.key] not in (held.get(t.key), packed.get(t.key))]
    failures = []
    progress(None, len(tasks) - len(left), len(tasks))
    done = len(tasks) - len(left)
    for outcome in play_all(left, jobs):
        done += 1
        append(path, outcome.evaluations if outcome.error is None else [failure(outcome)])
        if outcome.error is not None:
            failures.append(outcome)
        progress(outcome, done, len(tasks))
    return failures


def check_instances(tasks: Sequence[Task], out: Path) -> None:
    """Refuse a folder that has the same runs on other instances, drawn ones in place of published
    ones: they would be compared."""
    known = first_results(out)
    for which, task in {(task.label, task.run): task for task in tasks}.items():
        if which not in known:
            continue
        problem, there = task.instance(), known[which]
        here = number(float(problem.evaluate(problem.initial[:1], 0)[0]))
        if not alike(there, here):
            raise SettingError(
                f"{out} has run {task.run} of {task.label} on another instance: its first result "
                f"is {there}, that of this one {here}. Were these drawn, and those published "
                "(--data), or the other way round? Take another folder"
            )


def failure(outcome: Outcome) -> dict[str, Any]:
    method, problem, run = outcome.task.key
    return {"method": method, "problem": problem, "run": run, "error": outcome.error}


def play_all(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    """Outcomes as they come, each from a process of its own: for its peak of memory, and so that a
    run that is killed (for want of memory, say) fails alone."""
    if jobs < 1:
        raise SettingError(f"jobs={jobs} is not a whole number of at least 1")
    left, out = deque(tasks), set[Played]()
    try:
        while left or out:
            while left and len(out) < jobs:
                out.add(Played.begin(left.popleft()))
            ready = wait([played.end for played in out])
            for played in [played for played in out if played.end in ready]:
                out.remove(played)
                yield played.outcome()
    finally:
        for played in out:
            played.process.terminate()


@dataclass(frozen=True, eq=False)
class Played:
    """A task in its process."""

    task: Task
    process: SpawnProcess
    end: Connection[Any, Any]

    @classmethod
    def begin(cls, task: Task) -> Played:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_play_there, args=(task, theirs), daemon=True)
        process.start()
        theirs.close()  # so that its death is the end of the pipe
        return cls(task, process, ours)

    def outcome(self) -> Outcome:
        try:
            outcome: Outcome = self.end.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            return Outcome(self.task, [], f"its process ended with code {code}")
        self.process.join()
        return outcome


def _play_there(task: Task, end: Connection[Any, Any]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    end.send(play(task))


def _end_with_parent() -> None:
    """A runner that is killed would otherwise leave its runs playing for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def runs_of(text: str) -> list[int]:
    """``"0-4,7"`` -> 0, 1, 2, 3, 4, 7.

    >>> runs_of("0-2,7")
    [0, 1, 2, 7]
    """
    runs: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise SettingError(f"runs={text!r} is not of the form 0-24 or 0,3,5-7")
        if dash and int(last) < int(first):
            raise SettingError(
                f"runs={text!r}: {part.strip()!r} runs backwards; {last}-{first} was wanted"
            )
        runs += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(runs))
