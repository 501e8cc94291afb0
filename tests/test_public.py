"""The public names, and the shape of the code: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import mercbo_backends
import pytest

import mercbo

ROOT = Path(__file__).parent.parent

PUBLIC = {
    "AllDifferent", "AtLeast", "AtMost", "Exactly", "Forbid", "Implies", "Linear", "Tied", "Where",
    "BackendError", "Binary", "Categorical", "Draw", "Integer", "MercboError", "Model",
    "NoResults", "Observation", "Optimizer", "Ordinal", "Point", "PointError", "Prediction",
    "Evaluation", "Failure", "Result", "maximize", "minimize",
    "CyclicShift", "Flip", "Permutation", "Reversal", "ReverseComplement", "Symmetry",
    "ResultError", "SettingError", "Space", "SpaceError", "SpaceExhausted", "StateError",
}  # fmt: skip

# Each module may import only those before it.
LAYERS = [
    "errors", "arrays", "streams", "locking",
    "limits", "moves", "backend", "variables", "encoding", "constraints",
    "symmetry", "group", "region", "export", "feasible", "space", "frames", "results", "kernel",
    "averaging", "interactions", "features", "higher", "reduction", "linalg",
    "warp", "windows", "pooling", "inference", "structured",
    "slicing", "model", "samples", "prediction", "posterior", "improvement", "failures",
    "entropy", "bound", "scores",
    "quadratic", "design", "trust", "acquisition", "history", "observations",
    "ridges", "mixture", "explanatory",
    "surrogate", "anova", "crossval", "explain",
    "events", "refusals", "snapshot", "processes", "store", "executors", "seeking", "asking",
    "optimizer",
    "interchange", "progress",
    "campaign", "driver", "plots", "testing",
]  # fmt: skip
# Doors to other libraries: they use what any user could.
DOORS = ["optuna", "sklearn"]


def test_public_names_are_these() -> None:
    assert set(mercbo.__all__) == PUBLIC
    assert all(hasattr(mercbo, name) for name in PUBLIC)
    assert set(mercbo_backends.__all__) == {
        "Annealing", "CpSat", "Exhaustive", "GraphCut", "LeapBqm", "LeapCqm",
    }  # fmt: skip


def imports_of(path: Path, package: str) -> set[str]:
    """Names of the modules of `package` that a file imports, at any depth of the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {n.name.split(".")[1] for n in node.names if n.name.startswith(f"{package}.")}
    return found


def test_every_module_has_a_layer() -> None:
    assert {path.stem for path in (ROOT / "mercbo").glob("*.py")} == {
        *LAYERS, *DOORS, "__init__", "__main__"
    }  # fmt: skip


def test_problems_and_bench_are_used_by_the_command_line_only() -> None:
    for module in LAYERS:
        used = imports_of(ROOT / "mercbo" / f"{module}.py", "mercbo")
        assert not used & {"problems", "bench", "cli"}


@pytest.mark.parametrize("module", LAYERS)
def test_a_module_imports_only_those_above_it(module: str) -> None:
    used = imports_of(ROOT / "mercbo" / f"{module}.py", "mercbo")
    assert used <= set(LAYERS[: LAYERS.index(module)])


@pytest.mark.parametrize("module", DOORS)
def test_a_door_uses_public_names_and_errors_only(module: str) -> None:
    assert imports_of(ROOT / "mercbo" / f"{module}.py", "mercbo") <= {*PUBLIC, "errors"}
    for other in LAYERS:
        assert module not in imports_of(ROOT / "mercbo" / f"{other}.py", "mercbo")


def test_solvers_are_imported_by_their_backend_only() -> None:
    for path in (ROOT / "mercbo").glob("*.py"):
        text = path.read_text()
        assert not any(f"import {solver}" in text for solver in ("maxflow", "ortools", "dwave"))
        assert "mercbo_backends" not in text
    for path in (ROOT / "backends" / "mercbo_backends").glob("*.py"):
        assert imports_of(path, "mercbo") <= {"moves", "limits", "arrays"}


# What is slow to load or of one use only: `import mercbo` is to take a fraction of a second.
LATE = [
    "dimod", "dwave.samplers", "importlib.metadata", "joblib", "matplotlib", "maxflow",
    "mercbo_backends", "networkx", "optuna", "ortools", "pandas", "scipy", "sklearn",
    "sqlalchemy", "threadpoolctl", "typer",
]  # fmt: skip


def test_importing_is_silent_and_loads_nothing_that_can_wait() -> None:
    code = f"import sys, mercbo; print([m for m in {LATE} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_every_error_is_a_mercbo_error() -> None:
    errors = [getattr(mercbo, name) for name in PUBLIC]
    errors = [e for e in errors if isinstance(e, type) and issubclass(e, Exception)]
    assert len(errors) == 9
    assert all(issubclass(e, mercbo.MercboError) for e in errors)
