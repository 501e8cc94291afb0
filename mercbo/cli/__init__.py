"""The command line, `mercbo ...`: each module holds a group of its commands.

`init.py`, `ask.py` and `tell.py` add to a study, `corrections.py` corrects results and cancels
designs, `show.py` displays a study, `demo.py` plays a made-up reaction, and `bench.py` runs
benchmarks. `common.py` has the shared parts.
"""

from __future__ import annotations

from typing import Annotated

try:
    import rich  # noqa: F401
    import typer
except ImportError as error:
    raise ImportError(
        "the mercbo command needs typer and rich: pip install 'mercbo[cli]'"
    ) from error

from mercbo import __version__
from mercbo.cli import ask, corrections, demo, init, show, tell
from mercbo.cli.bench import bench

app = typer.Typer(no_args_is_help=True, add_completion=True)
for group in (init, ask, tell, corrections, show, demo):
    app.registered_commands += group.app.registered_commands
app.add_typer(bench, name="bench")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mercbo {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # answered by its callback, before any command
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="The version, and exit."),
    ] = False,
) -> None:
    """Bayesian optimisation over combinatorial spaces."""
