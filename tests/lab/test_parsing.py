"""Tables of any content: each is read, or refused with a message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercbo import Binary, Categorical, Integer, MercboError, Ordinal, Space
from mercbo.lab.parsing import parse
from mercbo.lab.results import Known, Options, Reading, compare
from mercbo.lab.rows import TableError
from mercbo.lab.tables import read_table

SPACE = Space(
    {
        "solvent": Categorical(["water", "DMSO", None, "=x", "007"]),
        "heat": Ordinal([20, 40.5]),
        "hours": Integer(1, 4),
        "stir": Binary(),
    }
)
COLUMNS = ["solvent", "heat", "hours", "stir", "yield", "std", "plate", "well", "design", "state"]
CELLS = st.one_of(
    st.sampled_from(["", "DMSO", "40,5", "1", "yes", "failed", "control", "<1", "=A1", "1e400",
                     "9" * 5000, "nan", "1.234,5", "1,234", "7", "evaluated", "²", "'=x"]),
    st.text(max_size=6),
)  # fmt: skip
OPTIONS = st.builds(
    Options, st.just("yield"), new=st.booleans(), replicates=st.booleans(), again=st.booleans(),
    empty=st.sampled_from(["skip", "failed"]), correct=st.booleans(),
)  # fmt: skip


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    columns=st.lists(st.sampled_from(COLUMNS), min_size=5, unique=True),
    rows=st.lists(st.lists(CELLS, max_size=11), max_size=5),
    delimiter=st.sampled_from(",;\t"),
    options=OPTIONS,
)
def test_any_table_is_read_or_refused(
    columns: list[str], rows: list[list[str]], delimiter: str, options: Options, tmp_path: Path
) -> None:
    file = tmp_path / "r.csv"
    lines = [delimiter.join(columns), *(delimiter.join(row) for row in rows)]
    file.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    try:
        reading = compare(parse(read_table(file), SPACE, options), Known(), options)
    except MercboError:
        return
    assert isinstance(reading, Reading)
    assert all(np.isfinite(each.value) for each in reading.good if each.value is not None)
    # a row is stored, or left out for one reason
    parts = [reading.empty, reading.control_lines, reading.again, reading.outdone]
    numbers = [*(each.line for each in reading.good), *(n for part in parts for n in part)]
    controls = set(reading.control_lines)
    assert len(numbers) - len(controls & set(reading.again)) == len(set(numbers))


@pytest.mark.slow
def test_a_million_lines_are_refused_or_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    header, row = "solvent,heat,hours,stir,yield\n", "DMSO,20,1,0,5\n"
    file.write_text(header + row * 1_000_000)
    with pytest.raises(TableError, match="more than 200,000 rows are not read; split the file"):
        read_table(file)
    file.write_text(header + ",,,,\n" * 1_000_000 + row)
    (line,) = read_table(file).lines
    assert line.number == 1_000_002


@pytest.mark.slow
def test_two_hundred_thousand_rows_are_read(tmp_path: Path) -> None:
    """Each distinct cell of a column is looked up once, and rows are checked together."""
    file = tmp_path / "long.csv"
    rows = [f"DMSO,{(20, 40.5)[i % 2]},{i % 4 + 1},{i % 2},{i}\n" for i in range(200_000)]
    file.write_text("solvent,heat,hours,stir,yield\n" + "".join(rows))
    options = Options("yield", new=True, replicates=True)
    reading = compare(parse(read_table(file), SPACE, options), Known(), options)
    assert (len(reading.good), reading.problems) == (200_000, ())
