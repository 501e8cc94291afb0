"""The cost model gives back what it was made from; the simulation, what queueing says."""

import numpy as np
import pytest

from mercbo.bench import batches, scale
from mercbo.bench.scale import Ask, Cost, Played, fed, simulate


def test_the_cost_model_finds_the_terms_that_made_the_times():
    true = Cost(tuple(np.array([0.01, 0, 0, 0, 2e-10, 0.005, 0, 1e-7, 0]).tolist()))
    grid = [(N, n, k) for N in (50, 200, 1000) for n in (25, 100) for k in (1, 10)]
    fitted = Cost.fitted([Ask(*at, true.seconds(*at)) for at in grid])
    for at in [*grid, (700, 60, 30)]:
        assert fitted.seconds(*at) == pytest.approx(true.seconds(*at), rel=1e-6)
    assert "N^3" in str(fitted)


def test_an_ask_is_timed_at_the_size_it_says():
    asked = scale.timed(6, 5, 2)
    assert (asked.results, asked.variables, asked.points) == (6, 5, 2)
    assert asked.seconds > 0


def test_the_time_of_a_turn_is_measured_and_nothing_is_left(tmp_path):
    assert scale.turn_seconds(tmp_path, turns=3) > 0
    assert list(tmp_path.iterdir()) == []


def play(workers: int, optimizers: int, cost: float, *, turn: float = 0.0) -> float:
    """The busy share with evaluations of 1 s and asks of `cost` seconds for each point."""
    rng = np.random.default_rng(0)
    return simulate(workers, optimizers, 1.0, lambda k: cost * k, turn=turn, rng=rng).busy


def test_one_worker_waits_for_each_of_its_asks():
    assert play(1, 1, 0.25) == pytest.approx(1 / 1.25, rel=0.15)


@pytest.mark.parametrize("optimizers", [1, 4])
def test_beyond_what_optimizers_can_ask_for_they_set_the_pace(optimizers):
    """P optimizers give P / cost points a second, shared by W workers that want one each."""
    assert play(400, optimizers, 0.05) == pytest.approx(optimizers / 0.05 / 400, rel=0.1)


def test_below_that_workers_are_busy():
    assert play(100, 1, 1e-5) > 0.98


def test_the_store_is_written_by_one_at_a_time():
    """With 64 points a turn, two optimizers write no more often than one turn lets them."""
    limit = scale.MOST_ASKED / 1.0 / 1000
    assert play(1000, 2, 1e-6, turn=1.0) == pytest.approx(limit, rel=0.15)


def test_the_workers_that_are_fed_are_counted_up_to_the_first_that_are_not():
    shares = {1: 1.0, 10: 0.95, 100: 0.5, 1000: 0.95}
    played = [Played(1.0, 1, workers, busy) for workers, busy in shares.items()]
    assert fed(played, 1.0, 1) == 10
    assert fed(played, 60.0, 1) == 0


@pytest.mark.slow
def test_the_report_and_the_plot_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "WORKERS", (1, 10))
    asks = scale.run(tmp_path, results=(5,), variables=(4, 5), points=(1,))
    cost = Cost((0.01, *[0.0] * (len(scale.TERMS) - 1)))  # one fitted to two asks says little
    played = scale.simulations(cost, 0.001)
    assert len(played) == 2 * len(scale.OPTIMIZERS) * len(scale.SECONDS)
    text = scale.markdown(asks, cost, 0.001, played, 0.95)
    assert "| 1 h | 10 | 10 | 10 | 10 |" in text
    assert "500 evaluations of 2 s: 95.0% busy" in text
    scale.plot(asks, cost, played, tmp_path / "scale.png")
    assert (tmp_path / "scale.png").stat().st_size > 1000
    assert (tmp_path / "scale.jsonl").read_text().count("\n") == 3


@pytest.mark.slow
def test_batches_are_measured_and_shown_beside_each_other(monkeypatch):
    monkeypatch.setattr(batches, "LONG_VARIABLES", 6)
    monkeypatch.setattr(batches, "BEFORE", 8)
    found = batches.measured(results=20, variables=6, sizes=(1, 3), shared=9, long=(12,))
    assert [one.what for one in found] == [
        "ask(1)", "ask(3)", "ask(1)", "ask(3)", "ask(9)", "ask(9) with 2 worker processes",
        'ask(), acquisition="thompson"', 'ask(), acquisition="auto"',
    ]  # fmt: skip
    assert all(one.seconds > 0 for one in found)
    text = batches.markdown([
        batches.Measured("ask(1)", "now", 0.6, 0.5), batches.Measured("ask(9)", "now", 2.0, 1.5),
        batches.Measured("ask(9) with 2 worker processes", "now", 1.0, 0.15),
    ])  # fmt: skip
    assert "| `ask(9)` | now | 2 | 1.5 | 3 |" in text
    assert "2.00 times as fast as alone on the clock; 10.0% of the work stays" in text
