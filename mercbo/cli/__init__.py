"""The command line, `mercbo ...`: each module holds a group of its commands.

`bench.py` has the measurements. A module that is only imported here registers its commands on
`app` or brings a Typer application of its own, which is added below.
"""

from __future__ import annotations

try:
    import rich  # noqa: F401
    import typer
except ImportError as error:
    raise ImportError(
        "the mercbo command needs typer and rich: pip install 'mercbo[cli]'"
    ) from error

from mercbo.cli.bench import bench

app = typer.Typer(no_args_is_help=True, add_completion=True)
app.add_typer(bench, name="bench")


@app.callback()
def main() -> None:
    """Bayesian optimisation over combinatorial spaces."""
