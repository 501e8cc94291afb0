"""Saved runs and stores with random changes: refused, or as good as any.

After each change `load` or `open` raises a `MercboError`, or every call works on what it returns.
"""

import json
import random
import shutil
import sqlite3
from contextlib import closing, contextmanager

import numpy as np
import pytest
from support.mutations import as_json, mangled, mutated
from support.saved_runs import FILES, STORES, address, listed, needed

from mercbo import MercboError, NoResults, Optimizer, SpaceExhausted
from mercbo.record.fits import RANGES

pytestmark = pytest.mark.filterwarnings("ignore:.*does not hold the predicate:UserWarning")

SAVED, STORED = listed(FILES), listed(STORES)
# Number of changes and seed; a store takes longer than a file.
SIZES = [pytest.param(200, 1, id="few"), pytest.param(4000, 2, id="many", marks=pytest.mark.slow)]


@contextmanager
def explained(*what: object):
    """Name the change in whatever goes wrong after it."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{', '.join(map(str, what))}: {error!r}") from error


def use(opt: Optimizer, folder) -> None:
    """Predict, ask, tell and save; small spaces may be exhausted, runs may have no results."""
    points = opt.space.points(opt.space.sample_rows(2, rng=np.random.default_rng(0)))
    try:
        opt.predict(points)
    except NoResults:
        assert not opt.observations
    try:
        opt.ask(2)
        opt.tell(opt.pending[:1], [0.5])
        opt.ask()
    except SpaceExhausted:
        assert opt.space.size < 1000
    opt.save(folder / "again.json")


# -- files -------------------------------------------------------------------------------------


def load(text: str, folder, name: str) -> bool:
    """Load a run from a text, use it and load it again; return whether the text was accepted."""
    (folder / "run.json").write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        opt = Optimizer.load(folder / "run.json", **needed(name))
    except MercboError:
        return False
    use(opt, folder)
    Optimizer.load(folder / "again.json", **needed(name))
    return True


def is_slow(state: dict) -> bool:
    """Whether a file asks for so many sweeps of slice sampling that an ask would not return."""
    sweeps = state["model"].get("sweeps") if isinstance(state.get("model"), dict) else None
    return isinstance(sweeps, (int, float)) and sweeps > 100


def texts(rng: random.Random, count: int):
    """The name and the text of some saved runs, by chance."""
    for folder, name in rng.choices(SAVED, k=count):
        yield name, (folder / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(("count", "seed"), SIZES)
def test_load_refuses_a_changed_file_or_returns_a_run_that_works(count, seed, tmp_path):
    rng, loaded = random.Random(seed), 0
    for name, text in texts(rng, count):
        mutation = mutated(json.loads(text), rng)
        if is_slow(mutation.tree):
            continue
        with explained(name, mutation):
            loaded += load(as_json(mutation.tree), tmp_path, name)
    assert 0.02 * count < loaded < 0.5 * count  # both happen


@pytest.mark.parametrize(("count", "seed"), SIZES)
def test_load_refuses_a_damaged_text_or_returns_a_run_that_works(count, seed, tmp_path):
    rng, loaded = random.Random(seed), 0
    for name, text in texts(rng, count):
        damaged = mangled(text, rng)
        with explained(name, damaged[:2000]):
            loaded += load(damaged, tmp_path, name)
    assert loaded < 0.2 * count


def at_the_ends(tree, rng: random.Random, share: float):
    """A fit with some hyper-parameters at the ends of their ranges, the betas all at one."""
    if isinstance(tree, list):
        return [at_the_ends(each, rng, share) for each in tree]
    if not isinstance(tree, dict):
        return tree
    changed = {}
    for name, value in tree.items():
        ends = RANGES.get(name)
        if ends is None or value is None or rng.random() > share:
            changed[name] = at_the_ends(value, rng, share)
        else:
            end = rng.choice(ends)
            changed[name] = [end] * len(value) if name == "beta" else end
    return changed


@pytest.mark.parametrize(
    ("count", "seed"),
    [pytest.param(60, 1, id="few"), pytest.param(400, 2, id="many", marks=pytest.mark.slow)],
)
def test_hyper_parameters_at_the_ends_of_their_ranges_work(count, seed, tmp_path):
    rng = random.Random(seed)
    for name, text in texts(rng, count):
        state = json.loads(text)
        state["fit"] = at_the_ends(state["fit"], rng, rng.choice([0.2, 1.0]))
        with explained(name, state["fit"]):
            assert load(as_json(state), tmp_path, name)


# -- stores ------------------------------------------------------------------------------------

COLUMNS = {
    "mercbo_runs": ["id", "name", "version", "head"],
    "mercbo_events": ["run", "number", "kind", "body", "written", "writer"],
}
CELLS = [
    None,
    -1,
    0,
    1,
    2,
    3,
    3.5,
    2**62,
    "",
    "text",
    "1/2/3",
    "[]",
    "{}",
    "[" * 10**5,
    b"\xff\x00",
]


def change_cell(connection: sqlite3.Connection, run: int, rng: random.Random) -> str:
    """Change one cell of a run, as far as the tables let it be changed."""
    table = rng.choice(list(COLUMNS))
    column, value = rng.choice(COLUMNS[table]), rng.choice(CELLS)
    own = {"mercbo_runs": f"id = {run}", "mercbo_events": f"run = {run}"}[table]
    rows = connection.execute(f"SELECT rowid FROM {table} WHERE {own}").fetchall()
    try:
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, *rng.choice(rows))
        )
    except sqlite3.IntegrityError:
        return "nothing"
    return f"{table}.{column} = {value!r:.60}"


def change_event(connection: sqlite3.Connection, run: int, rng: random.Random) -> str:
    """Change one entry of one event of a run."""
    query = "SELECT rowid, kind, body FROM mercbo_events WHERE run = ?"
    number, kind, body = rng.choice(connection.execute(query, (run,)).fetchall())
    mutation = mutated(json.loads(body), rng)
    connection.execute(
        "UPDATE mercbo_events SET body = ? WHERE rowid = ?", (as_json(mutation.tree), number)
    )
    return f"{kind}: {mutation}"


def open_changed(name: str, folder, change, rng: random.Random) -> bool:
    """Change a store, open it and use the run; return whether the store was accepted."""
    file, _, run = name.partition("/")
    with closing(sqlite3.connect(folder / f"{file}.db")) as connection:
        query = "SELECT id FROM mercbo_runs WHERE name = ?"
        (number,) = connection.execute(query, (run,)).fetchone()
        made = change(connection, number, rng)
        connection.commit()
    with explained(name, made):
        try:
            opt = Optimizer.open(address(name, folder), **needed(name))
        except MercboError:
            return False
        use(opt, folder)
        Optimizer.open(address(name, folder), **needed(name))
    return True


@pytest.mark.parametrize("change", [change_cell, change_event])
@pytest.mark.parametrize(
    ("count", "seed"),
    [pytest.param(60, 1, id="few"), pytest.param(1500, 2, id="many", marks=pytest.mark.slow)],
)
def test_open_refuses_a_changed_store_or_returns_a_run_that_works(count, seed, change, tmp_path):
    rng, worked = random.Random(seed), 0
    for number, (folder, name) in enumerate(rng.choices(STORED, k=count)):
        scratch = tmp_path / str(number)
        scratch.mkdir()
        shutil.copy(folder / f"{name.partition('/')[0]}.db", scratch)
        worked += open_changed(name, scratch, change, rng)
        shutil.rmtree(scratch)
    assert 0.1 * count < worked < 0.9 * count  # both happen
