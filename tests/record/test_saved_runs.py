"""Runs that earlier versions wrote (tests/data) read as what they were."""

import pytest
from support.saved_runs import FILES, STORES, address, expected, listed, needed, opened, summary

from mercbo import Optimizer

RUNS = [*listed(FILES), *listed(STORES)]
NAMES = [f"{folder.parent.name}/{folder.name}/{name}" for folder, name in RUNS]
# Suggestions are the same on any processor; predictions differ by rounding.
ROUNDING = 1e-6


@pytest.mark.parametrize(("folder", "name"), RUNS, ids=NAMES)
def test_run_of_an_earlier_version_is_read_as_it_was(folder, name, tmp_path):
    wanted = expected(folder)[name]
    found = summary(opened(folder, name, tmp_path))
    for entry in {"mean", "std"} & set(wanted):
        assert found.pop(entry) == pytest.approx(wanted.pop(entry), rel=ROUNDING)
    if wanted["best"]:  # with repeats, the value of the best point is a prediction
        value = wanted["best"].pop("value")
        assert found["best"].pop("value") == pytest.approx(value, rel=ROUNDING)
    assert found == wanted


@pytest.mark.filterwarnings("ignore:.*does not hold the predicate:UserWarning")
@pytest.mark.parametrize(("folder", "name"), RUNS, ids=NAMES)
def test_run_of_an_earlier_version_goes_on(folder, name, tmp_path):
    opt = opened(folder, name, tmp_path)
    points = opt.ask(2)
    opt.tell(points, [0.25, None], notes=[{"well": "A1"}, None])
    opt.save(tmp_path / "run.json")
    loaded = Optimizer.load(tmp_path / "run.json", **needed(name))
    assert loaded.to_dict() == opt.to_dict()
    assert loaded.ask() == opt.ask()
    if folder.parent == STORES:
        assert Optimizer.open(address(name, tmp_path), **needed(name)).to_dict() == opt.to_dict()
    noted = [record for record in loaded.records() if record.notes == {"well": "A1"}]
    assert [(record.point, record.value) for record in noted] == [(points[0], 0.25)]


def test_every_version_has_saved_runs():
    there = {name.rpartition("/")[0].split("/")[1] for name in NAMES if name.startswith("saved")}
    assert there == {"v1", "v2", "v3", "v4"}
