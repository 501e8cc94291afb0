"""TPE and MercboSampler on three discrete objectives, through the same Optuna code.

    python examples/optuna_compare.py                    # quick: 1 run of 40 trials
    python examples/optuna_compare.py --runs 5 --trials 120 --out table.md
    python examples/optuna_compare.py --processes 4 --trials 200   # one study on SQLite

The objectives are problems of the benchmark, drawn anew and relocated for each run, so that no
sampler gains from an optimum at a special point. Both samplers start with the same 20 enqueued
trials.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import optuna

from mercbo.domain.variables import Variable
from mercbo.optuna import MercboSampler
from mercbo.problems import Problem, make

PROBLEMS = {
    "contamination": "contamination control, 25 bool",
    "pest": "pest control, 25 ordered of 5 values",
    "nk-20-3": "NK landscape, 20 bool that interact by fours",
}
SAMPLERS = {
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    "mercbo": lambda seed: MercboSampler(seed=seed),
}


def suggest(trial: optuna.Trial, name: str, variable: Variable) -> object:
    if variable.graph == "path":
        return variable.values[trial.suggest_int(name, 0, variable.size - 1)]
    return trial.suggest_categorical(name, list(variable.values))


def objective(problem: Problem, trial: optuna.Trial) -> float:
    point = {name: suggest(trial, name, v) for name, v in problem.space.variables.items()}
    return float(problem.evaluate(problem.space.rows([point]), first=trial.number)[0])


def play(problem: Problem, sampler: optuna.samplers.BaseSampler, trials: int) -> tuple:
    """The best value of a study, and the seconds per trial beyond the initial ones."""
    study = optuna.create_study(sampler=sampler)
    for point in problem.space.points(problem.initial):
        study.enqueue_trial(point)
    study.optimize(lambda trial: objective(problem, trial), n_trials=len(problem.initial))
    started = time.perf_counter()
    rest = trials - len(problem.initial)
    study.optimize(lambda trial: objective(problem, trial), n_trials=rest)
    return study.best_value, (time.perf_counter() - started) / rest


def compare(runs: int, trials: int) -> list[str]:
    lines = [
        f"| best of {trials} trials, mean of {runs} runs | " + " | ".join(SAMPLERS) + " |",
        "|---|" + "---|" * len(SAMPLERS),
    ]
    for name, text in PROBLEMS.items():
        cells = []
        for make_sampler in SAMPLERS.values():
            played = [play(make(name, run), make_sampler(run), trials) for run in range(runs)]
            values, seconds = np.array(played).T
            spread = f" ± {2 * values.std(ddof=1) / runs**0.5:.3g}" if runs > 1 else ""
            cells.append(f"{values.mean():.4g}{spread} ({seconds.mean():.3f} s)")
        lines.append(f"| {text} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def work(storage: str, trials: int) -> None:
    """One of several processes on one study."""
    problem = make("contamination", 0)
    space = {
        name: optuna.distributions.CategoricalDistribution(v.values)
        for name, v in problem.space.variables.items()
    }
    study = optuna.load_study(
        study_name="shared", storage=storage, sampler=MercboSampler(search_space=space)
    )
    stop = optuna.study.MaxTrialsCallback(trials, states=None)
    study.optimize(lambda trial: objective(problem, trial), callbacks=[stop])


def share(processes: int, trials: int, folder: Path) -> str:
    storage = f"sqlite:///{folder / 'study.db'}"
    study = optuna.create_study(study_name="shared", storage=storage)
    command = [sys.executable, __file__, "--work", storage, "--trials", str(trials)]
    started = time.perf_counter()
    workers = [subprocess.Popen(command) for _ in range(processes)]
    if any(worker.wait() for worker in workers):
        raise SystemExit("a process failed")
    points = [tuple(sorted(trial.params.items())) for trial in study.trials]
    return (
        f"{len(points)} trials by {processes} processes on SQLite in "
        f"{time.perf_counter() - started:.0f} s: {len(points) - len(set(points))} repeated, "
        f"best value {study.best_value:.4g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--processes", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if given.work:
        work(given.work, given.trials)
        return
    if given.processes:
        with tempfile.TemporaryDirectory() as folder:
            print(share(given.processes, given.trials, given.out or Path(folder)))
        return
    lines = compare(given.runs, given.trials)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")
    print("lower is better; in brackets the time that a trial takes, objective included")


if __name__ == "__main__":
    main()
