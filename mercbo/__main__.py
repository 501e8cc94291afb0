"""`python -m mercbo`: the command, where it is not on the path."""

from mercbo.cli import app

app(prog_name="mercbo")
