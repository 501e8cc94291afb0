"""The power system's simulator: signs, balances and limits; the problems by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from mercbo import SettingError
from mercbo.arrays import Rows
from mercbo.encoding import Encoding
from mercbo.problems import power as simulator
from mercbo.problems.power import Design, fly, motor, power, power_space, shaft, supply

SERIES, PARALLEL, MOTOR, DIAMETER, GAUGE = range(5)


def everywhere() -> Rows:
    return power_space("native").enumerate_rows()


def raised(column: int, by: int = 1) -> tuple[Rows, Rows]:
    """All designs whose variable can be raised, and the same designs with it raised."""
    rows = everywhere()
    sizes = power_space("native").sizes
    low = rows[rows[:, column] + by < sizes[column]]
    high = low.copy()
    high[:, column] += by
    return low, high


@pytest.mark.parametrize("column", [SERIES, PARALLEL, DIAMETER])
def test_more_of_it_is_heavier(column: int) -> None:
    low, high = raised(column)
    assert (Design.of(high).mass > Design.of(low).mass).all()


def test_cells_weigh_what_they_weigh() -> None:
    low, high = (Design.of(np.array([[s, 2, 5, 3, 4]])) for s in (0, 1))
    extra = simulator.PACK_FACTOR * simulator.CELL_MASS * 3  # one more cell in each of 3 strings
    assert (high.mass - low.mass)[0] == pytest.approx(extra)


def test_thinner_wire_is_lighter_and_loses_more() -> None:
    low, high = raised(GAUGE)
    thick, thin = Design.of(low), Design.of(high)
    assert (thin.mass < thick.mass).all()
    assert (thin.wire_ohm > thick.wire_ohm).all()
    # lighter designs need less power, yet never so much less that their wires lose less
    assert (fly(thin).wire_loss > fly(thick).wire_loss).mean() > 0.99


def test_gauges_are_those_of_the_standard() -> None:
    """AWG 10 is 2.588 mm thick; six gauges on, the diameter is halved (92^(6/39) = 2.005)."""
    wires = Design.of(np.array([[0, 0, 0, 0, 0], [0, 0, 0, 0, 3]])).wire
    assert wires[0] == pytest.approx(2.588e-3, rel=1e-3)
    assert wires[0] / wires[1] == pytest.approx(2.005, rel=1e-3)


def test_cells_in_parallel_share_the_current() -> None:
    low, high = raised(PARALLEL)
    assert (Design.of(high).pack_ohm < Design.of(low).pack_ohm).all()


def test_a_source_gives_what_the_load_takes() -> None:
    source, ohm, load = np.full(4, 20.0), np.full(4, 0.5), np.array([0.0, 50.0, 200.0, 300.0])
    current, missing = supply(source, ohm, load)
    np.testing.assert_allclose((source - ohm * current) * current, load - missing, atol=1e-9)
    assert missing.tolist() == [0.0, 0.0, 0.0, 100.0]  # the most is 20^2 / (4 * 0.5) = 200 W


def test_a_motor_loses_what_it_does_not_give() -> None:
    design = Design.of(everywhere()[::97])
    speed, given = shaft(design, 0.0, 0.0)
    current, voltage, copper = motor(design, speed, given)
    idle = simulator.IDLE_TORQUE[design.size] * speed
    inverter = current**2 * simulator.INVERTER_OHM
    np.testing.assert_allclose(current * voltage, given + idle + copper + inverter)


def test_hover_is_that_of_momentum_theory() -> None:
    """Ideal power is T^1.5 / sqrt(2 rho A); real rotors have a figure of merit of 0.5 to 0.8."""
    design = Design.of(everywhere()[::97])
    thrust = design.mass * simulator.GRAVITY / 4
    area = np.pi / 4 * design.diameter**2
    _, given = shaft(design, 0.0, 0.0)
    merit = thrust**1.5 / np.sqrt(2 * simulator.AIR * area) / given
    assert ((merit > 0.5) & (merit < 0.8)).all()


def test_climbing_takes_more_power_than_hovering() -> None:
    design = Design.of(everywhere()[::97])
    assert (shaft(design, 4.0, 0.0)[1] > shaft(design, 0.0, 0.0)[1]).all()


def test_larger_propellers_need_less_power_for_the_same_thrust(monkeypatch) -> None:
    for name in ("PROPELLER_MASS", "ARM_MASS", "COPPER_DENSITY"):
        monkeypatch.setattr(simulator, name, 0.0)
    low, high = raised(DIAMETER)
    small, large = Design.of(low), Design.of(high)
    np.testing.assert_allclose(small.mass, large.mass)
    assert (shaft(large, 0.0, 0.0)[1] < shaft(small, 0.0, 0.0)[1]).all()


def test_losses_are_a_part_of_the_energy() -> None:
    flight = fly(Design.of(everywhere()))
    assert (flight.wire_loss + flight.pack_loss < flight.energy).all()
    assert (flight.shortfall >= 0).all()
    # a fair share of designs flies the mission, and most do not
    assert 0.05 < (flight.shortfall == 0).mean() < 0.5


@pytest.mark.parametrize("goal", ["energy", "mass"])
def test_optimum_and_worst_tenth_by_enumeration(goal: str) -> None:
    problem = power(0, goal=goal)
    values = problem.objective(everywhere())
    assert np.isfinite(values).all()
    assert len(values) == 2**16
    assert values.min() == problem.optimum
    assert (problem.objective(problem.initial) >= np.quantile(values, 0.9) - 1e-9).all()
    best = everywhere()[[values.argmin()]]
    assert fly(Design.of(best)).shortfall[0] < 0.1  # Wh, of about 200: it flies the mission


def test_bits_are_another_view_of_the_same_designs() -> None:
    native, bits = power(1), power(1, encoding="binary")
    assert Encoding(bits.space).to_bits(bits.initial).shape == (20, 16)
    np.testing.assert_array_equal(native.initial, bits.initial)
    np.testing.assert_array_equal(native.objective(native.initial), bits.objective(bits.initial))
    assert native.space.points(native.initial) == bits.space.points(bits.initial)


def test_other_goals_are_quoted() -> None:
    with pytest.raises(SettingError, match="goal='weight'"):
        power(0, goal="weight")
