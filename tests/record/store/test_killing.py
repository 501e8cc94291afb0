"""Runs that outlive their processes: SIGKILL at any moment, and many processes at one run."""

import os

import pytest
from support.played import played

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")


@pytest.mark.slow
def test_a_run_killed_at_200_moments_stands_where_its_last_call_left_it(tmp_path):
    said = played("moments", tmp_path, 200)
    assert said["kills"] == 200
    assert said["runs"] > 5


@pytest.mark.slow
def test_many_processes_share_a_run_and_die_without_losing_or_doubling_anything(tmp_path):
    """The laws are checked where it is played, in `support/killing.py`."""
    said = played("crowd", f"sqlite:///{tmp_path / 'run.db'}", tmp_path, 4, 60, 10)
    assert said["killed"] == 10
    assert said["results"] >= 60
    assert said["asked"] == said["results"] + said["left pending"]
