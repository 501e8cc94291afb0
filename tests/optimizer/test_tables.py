"""Space.table: only rows are suggested, never twice, and always the lowest of a draw."""

import numpy as np
import pytest
from support.kinds import linear_score
from support.optimizer import as_tuples, make, reloaded

from mercbo import AtMost, PointError, Space

pytestmark = pytest.mark.usefixtures("poor_fits")

METALS, LIGANDS = [f"m{i}" for i in range(25)], [f"l{i}" for i in range(40)]


def listed(rows: int) -> list[dict]:
    """Distinct designs of two categorical and two ordinal columns."""
    rng = np.random.default_rng(0)
    cells = rng.choice(25 * 40 * 8 * 10, size=rows, replace=False)
    a, b, c, d = np.unravel_index(cells, (25, 40, 8, 10))
    columns = zip(a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True)
    return [
        {"metal": METALS[i], "ligand": LIGANDS[j], "mol": 2.5 * k, "heat": 20 + 5 * m}
        for i, j, k, m in columns
    ]


ROWS = listed(10_000)
CATALOGUE = Space.table(ROWS)
KNOWN = set(as_tuples(ROWS))


def told_some(**options):
    opt = make(CATALOGUE, **options)
    opt.tell(ROWS[:20], [linear_score(CATALOGUE, p) for p in ROWS[:20]])
    return opt


def test_suggestions_are_rows_and_never_come_twice():
    opt = told_some()
    asked = as_tuples(ROWS[:20])
    for number in range(4):
        batch = opt.ask(3)
        asked += as_tuples(batch)
        opt.tell(batch[0], None if number == 2 else linear_score(CATALOGUE, batch[0]))
    assert set(asked) <= KNOWN
    assert len(set(asked)) == len(asked) == 32


def test_the_design_is_of_rows():
    asked = as_tuples(make(CATALOGUE, n_initial=30).ask(30))
    assert set(asked) <= KNOWN
    assert len(set(asked)) == 30


def test_a_suggestion_is_the_lowest_of_the_draw_over_all_unseen_rows():
    opt = told_some(acquisition="thompson")
    opt.tell(ROWS[20:23], [None] * 3)
    for _ in range(3):
        draw = opt.draw()
        seen = {*as_tuples([o.point for o in opt.observations]), *as_tuples(opt.failed)}
        seen |= set(as_tuples(opt.pending))
        unseen = [p for p in ROWS if tuple(p.values()) not in seen]
        score = opt._asking().situation(rng=np.random.default_rng(9)).weighed(draw.sample)
        values = score.path(CATALOGUE.rows(unseen))
        assert opt.ask() == unseen[int(values.argmin())]


@pytest.mark.parametrize("before", [False, True], ids=["design", "model"])
def test_fixed_values_work_on_a_table(before):
    opt = told_some() if before else make(CATALOGUE)
    asked = opt.ask(3, fixed={"metal": "m3", "heat": 25})
    assert {(p["metal"], p["heat"]) for p in asked} == {("m3", 25)}
    assert set(as_tuples(asked)) <= KNOWN


def test_what_is_no_row_is_refused():
    absent = next(
        p for i in range(8) if tuple((p := {**ROWS[0], "mol": 2.5 * i}).values()) not in KNOWN
    )
    opt = make(CATALOGUE)
    before = opt.to_dict()
    with pytest.raises(PointError, match="is not a row of the table"):
        opt.tell(absent, 1.0)
    with pytest.raises(PointError, match="no row of the table has these values"):
        opt.ask(fixed=absent)
    assert opt.to_dict() == before


def test_constraints_hold_on_a_table():
    rule = AtMost(1, [("metal", "m0"), ("ligand", "l0"), ("mol", 0.0), ("heat", 20)])
    space = Space.table(ROWS[:200], constraints=[rule])
    fine = {
        tuple(p.values())
        for p in ROWS[:200]
        if (p["metal"] == "m0") + (p["ligand"] == "l0") + (p["mol"] == 0) + (p["heat"] == 20) <= 1
    }
    assert len(fine) < 200
    asked = as_tuples(make(space, n_initial=300).ask(len(fine)))
    assert set(asked) == fine


def test_a_table_survives_a_file(tmp_path):
    opt = told_some()
    back = reloaded(opt, tmp_path)
    assert back.space == CATALOGUE
    assert back.ask(2) == opt.ask(2)


def test_repeats_on_a_table_come_from_its_rows():
    few = Space.table(ROWS[:8])
    opt = make(few, repeats="allow", n_initial=2)
    for number in range(14):
        point = opt.ask()
        opt.tell(point, linear_score(few, point) + 0.1 * (number % 3))
    assert set(as_tuples([o.point for o in opt.observations])) <= set(as_tuples(ROWS[:8]))
