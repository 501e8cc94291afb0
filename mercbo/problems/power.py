"""Power system of an electric quadcopter: battery pack, motor, propeller and wiring.

Of the shape of the paper's UAV problem (five design variables, 16 bits when binary encoded, energy
or mass to be minimised, initial points from the worst tenth), whose data set is not public. The
simulator is our own; all that it knows is below. A mission of climb, cruise and hover is flown in
steps of time; in each, thrust gives rotor speed and shaft power by momentum theory and propeller
coefficients, the motor turns these into current and voltage, and the pack has to supply them
through its own resistance and that of the wires while it runs down.

| variable | values                                             | bits |
|----------|----------------------------------------------------|------|
| series   | 4 to 11 cells in series                            | 3    |
| parallel | 1 to 8 strings in parallel                         | 3    |
| motor    | 4 sizes (mass in g) x 4 windings (Kv in rpm / V)   | 4    |
| diameter | of the propellers, 10 to 24 inch in steps of 2     | 3    |
| gauge    | of the wires to the motors, AWG 10 (thick) to 24   | 3    |

All quantities are in SI units (kg, m, s, V, A, ohm, W, J) but for energies that are called Wh. A
design that cannot fly the mission is not refused: what it lacks (voltage that the pack does not
have, current beyond what cells may give, charge that is not there, heat that motors and wires
cannot lose) is counted as an energy, the *shortfall*, and priced:

- power-energy: energy out of the cells + PRICE_ENERGY * shortfall, in Wh;
- power-mass: take-off mass + shortfall / PRICE_MASS, in kg.

power-energy-bits and power-mass-bits are the same with the paper's encoding of all variables as
bits. The instance is the same in all runs, only the initial points differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from mercbo.arrays import Floats, Rows
from mercbo.domain.variables import Categorical, Integer, Ordinal, Variable
from mercbo.errors import choose
from mercbo.problems.base import INITIAL, Problem
from mercbo.space import Space

# -- the design space --------------------------------------------------------------------------

SERIES, PARALLEL = range(4, 12), range(1, 9)
SIZES = (60, 110, 180, 280)  # motor masses, g
WINDINGS = (150, 240, 380, 600)  # Kv, rpm / V
INCHES = range(10, 26, 2)
GAUGES = range(10, 26, 2)
# Share of the space from which initial points come, as in the paper.
WORST = 0.1

# -- physics -----------------------------------------------------------------------------------

GRAVITY, AIR = 9.81, 1.225
ROTORS = 4
# Cells of the 21700 format: open-circuit voltage falls linearly from full to empty.
CELL_MASS, CELL_CHARGE, CELL_OHM, CELL_CURRENT = 0.070, 4.0 * 3600, 0.018, 35.0
CELL_FULL, CELL_EMPTY = 4.15, 3.30
PACK_FACTOR = 1.15  # housing and bars, relative to the cells
# Motors by size: torque per root of copper loss, and torque of friction and iron.
MOTOR_CONSTANT = np.array([0.035, 0.065, 0.100, 0.150])  # N m / sqrt(W)
IDLE_TORQUE = np.array([0.004, 0.008, 0.014, 0.022])  # N m
MOTOR_HEAT = 0.4  # W of copper loss per g of motor that it can be rid of
# Inverters must bear the current at which a motor loses as much heat as it can.
INVERTER_MASS, INVERTER_MASS_PER_AMPERE, INVERTER_OHM = 0.015, 0.001, 0.004
# Propellers: thrust = C_T rho n^2 D^4; profile power = C_P0 rho n^3 D^5; induced power is that of
# momentum theory times a factor for its losses.
THRUST, PROFILE, INDUCED = 0.10, 0.012, 1.15
PROPELLER_MASS = 0.33  # kg / m^3 of diameter cubed
# Wires: copper, there and back along an arm, with insulation.
COPPER_OHM, COPPER_DENSITY, INSULATION = 1.72e-8, 8960.0, 1.4
WIRE_HEAT = 1.5  # W per m of wire that it can be rid of
ARM_PER_DIAMETER, ARM_EXTRA = 0.75, 0.10  # arms must keep the rotors apart, m
ARM_MASS = 0.30  # kg / m
BODY_MASS, PAYLOAD = 0.9, 2.0
DRAG_AREA = 0.03  # m^2

# Phases of the mission: seconds, speed upwards, speed forwards, steps of time.
MISSION = ((60.0, 4.0, 0.0, 2), (1200.0, 0.0, 12.0, 6), (300.0, 0.0, 0.0, 3))

WH = 3600.0
PRICE_ENERGY = 3.0  # a Wh that is lacking costs as much as three that are used
PRICE_MASS = 20.0  # Wh / kg: as if a very poor spare battery had to make up for it


@dataclass(frozen=True)
class Design:
    """Designs as arrays (N,), in SI units."""

    series: Floats
    parallel: Floats
    size: Rows  # position in SIZES
    kv: Floats  # rad / s / V
    diameter: Floats
    wire: Floats  # diameter of the copper

    @classmethod
    def of(cls, rows: Rows) -> Design:
        size, winding = np.divmod(rows[:, 2], len(WINDINGS))
        gauge = np.array(GAUGES)[rows[:, 4]]
        return cls(
            np.array(SERIES, dtype=np.float64)[rows[:, 0]],
            np.array(PARALLEL, dtype=np.float64)[rows[:, 1]],
            size,
            np.array(WINDINGS)[winding] * 2 * np.pi / 60,
            np.array(INCHES)[rows[:, 3]] * 0.0254,
            0.127e-3 * 92.0 ** ((36 - gauge) / 39),  # the definition of AWG
        )

    @property
    def arm(self) -> Floats:
        return ARM_PER_DIAMETER * self.diameter + ARM_EXTRA

    @property
    def wire_area(self) -> Floats:
        return np.pi / 4 * self.wire**2

    @property
    def wire_ohm(self) -> Floats:
        """Of one arm, there and back."""
        return COPPER_OHM * 2 * self.arm / self.wire_area

    @property
    def motor_ohm(self) -> Floats:
        """Torque per ampere is 1 / Kv; this and the motor constant give the resistance."""
        return np.asarray((1 / (self.kv * MOTOR_CONSTANT[self.size])) ** 2)

    @property
    def motor_heat(self) -> Floats:
        """The most copper loss that a motor can be rid of."""
        return np.asarray(MOTOR_HEAT * np.array(SIZES)[self.size])

    @property
    def motor_current(self) -> Floats:
        """The most current that it can bear for long."""
        return np.sqrt(self.motor_heat / self.motor_ohm)

    @property
    def pack_ohm(self) -> Floats:
        return CELL_OHM * self.series / self.parallel

    @property
    def mass(self) -> Floats:
        """At take-off."""
        wires = INSULATION * COPPER_DENSITY * 2 * self.arm * self.wire_area
        motor = np.array(SIZES)[self.size] / 1000
        propeller = PROPELLER_MASS * self.diameter**3
        inverter = INVERTER_MASS + INVERTER_MASS_PER_AMPERE * self.motor_current
        per_rotor = wires + motor + inverter + propeller + ARM_MASS * self.arm
        pack = PACK_FACTOR * CELL_MASS * self.series * self.parallel
        return np.asarray(BODY_MASS + PAYLOAD + pack + ROTORS * per_rotor)


@dataclass(frozen=True)
class Flight:
    """What a mission takes, arrays (N,): masses in kg, energies in Wh."""

    mass: Floats
    energy: Floats  # out of the cells, losses included
    wire_loss: Floats
    pack_loss: Floats
    shortfall: Floats


def shaft(design: Design, upwards: float, forwards: float) -> tuple[Floats, Floats]:
    """Speed (rad / s) and power (W) of each rotor."""
    drag = 0.5 * AIR * DRAG_AREA * np.hypot(upwards, forwards) ** 2
    weight = design.mass * GRAVITY
    thrust = (weight + drag if upwards else np.hypot(weight, drag)) / ROTORS
    turns = np.sqrt(thrust / (THRUST * AIR * design.diameter**4))
    hover = thrust / (2 * AIR * np.pi / 4 * design.diameter**2)  # induced speed in hover, squared
    if upwards:
        induced = np.sqrt(upwards**2 / 4 + hover) - upwards / 2
    else:
        induced = np.sqrt(np.sqrt(forwards**4 / 4 + hover**2) - forwards**2 / 2)
    moving = upwards * thrust + forwards * drag / ROTORS
    profile = PROFILE * AIR * turns**3 * design.diameter**5
    return 2 * np.pi * turns, INDUCED * thrust * induced + moving + profile


def motor(design: Design, speed: Floats, power: Floats) -> tuple[Floats, Floats, Floats]:
    """Current, voltage and copper loss of each motor."""
    torque = power / speed + IDLE_TORQUE[design.size]
    current = torque * design.kv
    ohm = design.motor_ohm
    return current, speed / design.kv + current * (ohm + INVERTER_OHM), current**2 * ohm


def supply(source: Floats, ohm: Floats, power: Floats) -> tuple[Floats, Floats]:
    """Current of a source with inner resistance under a load, and the power that it cannot give.

    The load takes (source - ohm * i) * i; the most that there is is source^2 / (4 ohm).
    """
    most = source**2 / (4 * ohm)
    given = np.minimum(power, most)
    root = np.sqrt(np.maximum(source**2 - 4 * ohm * given, 0.0))  # rounding may go below 0
    return (source - root) / (2 * ohm), power - given


def over(came: Floats, most: Floats) -> Floats:
    """By how much a limit is exceeded."""
    return np.maximum(came - most, 0.0)


def fly(design: Design) -> Flight:
    charge = CELL_CHARGE * design.parallel
    ohm = design.pack_ohm + design.wire_ohm / ROTORS
    used, energy, lacking, wire_loss, pack_loss = np.zeros((5, len(design.series)))
    for seconds, upwards, forwards, steps in MISSION:
        current, voltage, heat = motor(design, *shaft(design, upwards, forwards))
        time = seconds / steps
        for _ in range(steps):
            left = np.maximum(1 - used / charge, 0.0)
            source = design.series * (CELL_EMPTY + (CELL_FULL - CELL_EMPTY) * left)
            drawn, missing = supply(source, ohm, ROTORS * current * voltage)
            in_wires = drawn**2 * design.wire_ohm / ROTORS
            missing = (
                missing
                + ROTORS * current * over(voltage, source - ohm * drawn)
                + source * over(drawn, CELL_CURRENT * design.parallel)
                + ROTORS * over(heat, design.motor_heat)
                + over(in_wires, ROTORS * WIRE_HEAT * 2 * design.arm)
            )
            used = used + drawn * time
            energy = energy + source * drawn * time
            lacking = lacking + missing * time
            wire_loss = wire_loss + in_wires * time
            pack_loss = pack_loss + drawn**2 * design.pack_ohm * time
    lacking = lacking + CELL_EMPTY * design.series * over(used, charge)
    return Flight(design.mass, energy / WH, wire_loss / WH, pack_loss / WH, lacking / WH)


# -- the problems ------------------------------------------------------------------------------


def value(rows: Rows, goal: str) -> Floats:
    flight = fly(Design.of(rows))
    if goal == "mass":
        return flight.mass + flight.shortfall / PRICE_MASS
    return flight.energy + PRICE_ENERGY * flight.shortfall


def power_space(encoding: str) -> Space:
    """The native variables, or all of them as bits."""
    motors = [f"{size} g, {kv} rpm/V" for size in SIZES for kv in WINDINGS]
    native: dict[str, Variable] = {
        "series": Integer(SERIES[0], SERIES[-1]),
        "parallel": Integer(PARALLEL[0], PARALLEL[-1]),
        "motor": Categorical(motors),
        "diameter": Ordinal(INCHES),
        "gauge": Ordinal(GAUGES),
    }
    if encoding == "native":
        return Space(native)
    return Space({n: Categorical(v.values, encoding="binary") for n, v in native.items()})


@cache
def everything(goal: str) -> Floats:
    """The values of all 65,536 designs, in lexicographic order."""
    return value(power_space("native").enumerate_rows(), goal)


def power(
    run: int,
    data: Path | None = None,  # noqa: ARG001
    *,
    goal: str = "energy",
    encoding: str = "native",
) -> Problem:
    choose("goal", goal, ["energy", "mass"])
    choose("encoding", encoding, ["native", "binary"])
    space, values = power_space(encoding), everything(goal)
    worst = np.argsort(values, kind="stable")[-round(WORST * len(values)) :]
    rng = np.random.default_rng([run, 13])
    initial = np.stack(
        np.unravel_index(rng.choice(worst, INITIAL, replace=False), space.sizes), axis=1
    )
    suffix = "-bits" if encoding == "binary" else ""
    return Problem(
        f"power-{goal}{suffix}", space, partial(value, goal=goal), initial,
        "Belakaria et al. 2020; simulator written here", float(values.min()),
    )  # fmt: skip
