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
    "BackendError", "Binary", "Categorical", "Draw", "ExecutorError", "Integer", "MercboError",
    "Model", "NoResults", "NoneFound", "NumericalError", "Observation", "Optimizer", "Ordinal",
    "Point", "PointError", "Prediction", "Record",
    "Evaluation", "Failure", "Result", "maximize", "minimize",
    "CyclicShift", "Flip", "Permutation", "Reversal", "ReverseComplement", "Symmetry",
    "ResultError", "SettingError", "Space", "SpaceError", "SpaceExhausted", "StateError",
    "Suggestion",
}  # fmt: skip

# Each module may import only those before it.
LAYERS = [
    "errors", "arrays", "locking",
    "domain.limits", "moves", "backend", "domain.variables", "encoding", "domain.constraints",
    "domain.symmetry", "domain.group", "domain.region", "domain.export", "domain.feasible", "space",
    "kernel", "kernels.averaging", "kernels.interactions", "features", "kernels.windows",
    "kernels.pooling", "kernels.reading", "kernels.motifs", "kernels.stacking",
    "linalg", "fitting.warp", "inference", "fitting.kinds", "fitting.structured", "fitting.slicing",
    "model",
    "record.schema", "record.fits",
    "record.streams", "record.history", "record.observations", "record.results",
    "record.frames", "record.suggestions", "record.events", "record.transaction",
    "record.refusals", "record.snapshot", "record.backup",
    "record.processes", "record.store",
    "drawing.higher", "drawing.reduction", "drawing.samples", "drawing.prediction", "posterior",
    "quadratic",
    "explaining.orders", "explaining.ridges", "explaining.stacks", "explaining.further",
    "explaining.explanatory", "drawing.surrogate",
    "asking.improvement", "asking.failures", "asking.entropy", "asking.bound", "asking.scores",
    "asking.design", "asking.steps", "asking.trust", "acquisition",
    "loop.executors", "asking.seeking", "asking.choice",
    "explaining.mixture", "explaining.pooled", "explaining.anova", "explaining.crossval",
    "explaining.explain",
    "optimizer", "interchange",
    "loop.progress", "loop.campaign", "loop.driver",
    "plots", "testing",
]  # fmt: skip
# Doors to other libraries: they use what any user could.
DOORS = ["optuna", "sklearn"]
FOLDERS = {module.split(".")[0] for module in LAYERS if "." in module}
# What is built upon all of it.
APART = {"problems", "bench", "cli", "lab"}


def test_public_names_are_these() -> None:
    assert set(mercbo.__all__) == PUBLIC
    assert all(hasattr(mercbo, name) for name in PUBLIC)
    assert set(mercbo_backends.__all__) == {
        "Annealing", "CpSat", "Exhaustive", "GraphCut", "LeapBqm", "LeapCqm",
    }  # fmt: skip


def path_of(module: str) -> Path:
    return ROOT / "mercbo" / f"{module.replace('.', '/')}.py"


def imports_of(path: Path) -> set[str]:
    """The modules of mercbo that a file imports, at any depth of the file; of those in a folder
    the folder as well: "domain.limits"."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mercbo":
            if (ROOT / node.module.replace(".", "/")).is_dir():
                found |= {f"{node.module}.{name.name}" for name in node.names}
            else:
                found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("mercbo.")}
    return {name.removeprefix("mercbo.") for name in found}


def test_every_module_has_a_layer() -> None:
    package = ROOT / "mercbo"
    found = {
        path for path in package.rglob("*.py") if path.relative_to(package).parts[0] not in APART
    }
    starts = {package / folder / "__init__.py" for folder in FOLDERS}
    layered = {path_of(module) for module in [*LAYERS, *DOORS, "__init__", "__main__"]}
    assert found == layered | starts
    # a folder hands on nothing: whoever imports one of its modules gets no other
    assert all(len(ast.parse(path.read_text()).body) == 1 for path in starts)


def test_problems_and_bench_are_used_by_the_command_line_only() -> None:
    for module in LAYERS:
        used = {name.split(".")[0] for name in imports_of(path_of(module))}
        assert not used & {"problems", "bench", "cli"}


@pytest.mark.parametrize("module", LAYERS)
def test_a_module_imports_only_those_above_it(module: str) -> None:
    assert imports_of(path_of(module)) <= set(LAYERS[: LAYERS.index(module)])


@pytest.mark.parametrize("module", DOORS)
def test_a_door_uses_public_names_and_errors_only(module: str) -> None:
    assert imports_of(path_of(module)) <= {*PUBLIC, "errors"}
    for other in LAYERS:
        assert module not in imports_of(path_of(other))


def test_solvers_are_imported_by_their_backend_only() -> None:
    for module in [*LAYERS, *DOORS, "__init__", "__main__"]:
        text = path_of(module).read_text()
        assert not any(f"import {solver}" in text for solver in ("maxflow", "ortools", "dwave"))
        assert "mercbo_backends" not in text
    for path in (ROOT / "backends" / "mercbo_backends").glob("*.py"):
        assert imports_of(path) <= {"moves", "domain.limits", "arrays"}


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
    assert len(errors) == 12
    assert all(issubclass(e, mercbo.MercboError) for e in errors)
