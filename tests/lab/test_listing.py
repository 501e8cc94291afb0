"""Every result in the report: all of them, and those to check by design and well."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import numpy as np
import pytest

from mercbo import Optimizer, Space
from mercbo.explaining.explain import Explanation
from mercbo.lab import listing
from mercbo.lab.plates import Plate
from mercbo.lab.report import render
from mercbo.lab.results import Options
from mercbo.lab.sheets import pending
from mercbo.lab.study import Study
from mercbo.lab.tables import read_table, write_table


def linear(point: dict[str, object]) -> float:
    return 50.0 + 8.0 * float(str(point["x0"])) - 6.0 * float(str(point["x1"]))


def played(folder: Path, *, direction: str = "maximize", wrong: float = 0.0) -> Study:
    """A plate of 24 designs, of which one is told with a mistake, one fails, and one is left."""
    study = Study.create(folder / "s.db", Space.binary(6), direction=direction, target="y", seed=0)
    rng = np.random.default_rng(3)
    study.lay_out(study.optimizer.ask(24), Plate(24))
    header, rows = pending(study)
    for number, row in enumerate(rows):
        point = dict(zip(header, row, strict=True))
        row[-1] = round(linear(point) + rng.normal() + wrong * (number == 7), 2)
    rows[2][-1], rows[3][-1] = "failed", None
    write_table(folder / "r.csv", header, rows)
    study.tell(read_table(folder / "r.csv"), Options("y"))
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("wrong", [-40.0, 40.0])
def test_a_surprising_result_is_flagged_by_design_and_well(
    direction: str, wrong: float, tmp_path: Path
) -> None:
    study = played(tmp_path, direction=direction, wrong=wrong)
    text = unescape(render(study))
    _, flagged = text.split("<li>Result ")
    (record,) = [each for each in study.optimizer.records() if each.notes.get("well") == "B2"]
    design = ", ".join(f"{name} = {value}" for name, value in record.point.items())
    assert f"plate 1, well B2: y {record.value:.4g} with {design}." in flagged
    assert f"standard deviations {'above' if wrong > 0 else 'below'}" in flagged
    assert "mercbo amend" in text
    # in the table of all results the same one is marked
    (row,) = [line for line in text.split("<tr>") if " sd</td>" in line]
    assert "<td>B2</td>" in row


def test_render_shows_the_results_that_it_explains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process forgets a result while the report is written."""
    study = played(tmp_path, wrong=40.0)
    explain = Optimizer.explain

    def explained(own: Optimizer) -> Explanation:
        found = explain(own)
        other = Study.open(study.path).optimizer
        other.forget([other.records()[0].point])
        return found

    monkeypatch.setattr(Optimizer, "explain", explained)
    text = unescape(render(study))
    (row,) = [line for line in text.split("<tr>") if " sd</td>" in line]
    assert "<td>B2</td>" in row
    assert "23 results and failures" in text
    assert len(study.optimizer.observations) == 21


def test_nothing_is_flagged_if_nothing_is_wrong(tmp_path: Path) -> None:
    text = render(played(tmp_path))
    assert "Results to check" not in text
    assert " sd</td>" not in text


def test_all_results_and_failures_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = played(tmp_path)
    table = render(study).split('<section id="results"')[1].split("</section>")[0]
    rows = table.split("<tbody>")[1].split("<tr>")[1:]
    assert len(rows) == 23
    assert "failed" in rows[-1]
    for record, row in zip(study.optimizer.records(), rows, strict=False):
        assert f"<td>{record.notes['well']}</td>" in row
        assert f"<td>{record.time[:16].replace('T', ' ')}</td>" in row
        assert record.value is None or f'data-v="{record.value!r}"' in row
    monkeypatch.setattr(listing, "LISTED", 5)
    assert "23 in all: <code>mercbo export</code> writes them" in render(study)


def test_controls_are_listed(tmp_path: Path) -> None:
    study = played(tmp_path)
    assert 'id="controls"' not in render(study)
    study.lay_out(study.optimizer.ask(1), Plate(6, ("A1",)))
    header, rows = pending(study)
    rows[1][-1] = 12.25
    assert rows[1][:3] == [2, "A1", "control"]
    write_table(tmp_path / "c.csv", header, rows)
    study.tell(read_table(tmp_path / "c.csv"), Options("y"))
    table = render(study).split('<section id="controls"')[1].split("</section>")[0]
    assert "1 results of controls" in table
    assert 'data-v="12.25"' in table
    assert "<td>A1</td>" in table
