"""Comparison of a table with a study: `compare` finds the results that the study lacks.

`parsing.py` reads the table. `compare` is quick and stores nothing, so it can run within the
transaction that stores the results.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mercbo.arrays import Rows
from mercbo.domain.variables import Point
from mercbo.lab.rows import Cell
from mercbo.space import Space

# Columns that say where a design or a control is.
PLACE = ("plate", "well")
# Columns of the tables that a study writes, which are neither variables nor results.
PLATE_COLUMNS = (*PLACE, "design")
# Columns of an export that are neither variables, results nor notes, and the suffix of their names
# and of those of notes if a name is taken.
RECORDED = ("std", "state", "batch", "time")
STUDY, OWN = "study", "own"
CONTROL = "control"
# Columns of `mercbo ask` on the model's choice of a design.
SUGGESTED = ("source", "acquisition", "acquisition value", "predicted", "predicted std")
# States of the rows of an export.
STATES = ("evaluated", "failed", "pending", CONTROL)


@dataclass(frozen=True)
class Options:
    """Options for reading a table.

    Attributes
    ----------
    target, std
        Names of the columns of results and of their standard deviations.
    bounds
        Lowest and highest possible result.
    new
        Accept designs that nobody asked for.
    replicates
        Accept another result of the same design.
    again
        Store a result again that the study has already. By default such a row is skipped, and the
        same table can be given twice. Failures are never stored twice.
    empty
        Meaning of a row without a result: "skip" (no result yet) or "failed".
    correct
        Replace the stored results by those of the table.
    """

    target: str
    std: str = "std"
    new: bool = False
    replicates: bool = False
    empty: str = "skip"
    again: bool = False
    correct: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)


@dataclass(frozen=True)
class Problem:
    """A problem with a row, and its place in the table."""

    line: int
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


@dataclass(frozen=True)
class Result:
    """A row with a design and its result (None: it failed), the known error, and other columns."""

    line: int
    row: Rows
    key: bytes
    value: float | None
    std: float | None
    notes: dict[str, Cell]


@dataclass(frozen=True)
class Control:
    """The result of a control well (None: it failed), with the other columns of its row."""

    value: float | None
    std: float | None = None
    notes: dict[str, Cell] = field(default_factory=dict)
    line: int = field(default=0, compare=False)
    time: str = field(default="", compare=False)

    @property
    def place(self) -> tuple[str, str] | None:
        """Plate and well; None if the row does not give both."""
        plate, well = (self.notes.get(name) for name in PLACE)
        return None if plate is None or well is None else (str(plate), str(well))


@dataclass(frozen=True)
class Parsed:
    """The content of a table of results."""

    name: str
    space: Space
    results: tuple[Result, ...] = ()
    controls: tuple[Control, ...] = ()
    problems: tuple[Problem, ...] = ()
    # lines without a result, lines of controls, and those of them without a result
    empty: tuple[int, ...] = ()
    control_lines: tuple[int, ...] = ()
    idle_controls: tuple[int, ...] = ()
    # designs of rows with a problem, by line
    spoiled: tuple[tuple[int, bytes], ...] = ()
    # cells that were taken for a value of another spelling
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """A result that a study has (None: a failure), and its known error."""

    value: float | None
    std: float | None = None


@dataclass(frozen=True)
class Known:
    """The content of a study, by the key of the design."""

    told: dict[bytes, list[Measured]] = field(default_factory=dict)
    pending: dict[bytes, Rows] = field(default_factory=dict)
    controls: tuple[Control, ...] = ()

    @cached_property
    def pending_rows(self) -> Rows:
        return np.array(list(self.pending.values()))


@dataclass(frozen=True)
class Reading:
    """The rows of a table that a study lacks, and the reasons to leave out the others."""

    good: tuple[Result, ...]
    controls: tuple[Control, ...]
    problems: tuple[Problem, ...]
    # lines without a result, of controls, of results that the study has already, and of failures
    # of designs that have a result
    empty: tuple[int, ...] = ()
    control_lines: tuple[int, ...] = ()
    again: tuple[int, ...] = ()
    outdone: tuple[int, ...] = ()
    remarks: tuple[str, ...] = ()
    # lines of controls that have no result
    idle_controls: tuple[int, ...] = ()


def compare(parsed: Parsed, known: Known, options: Options) -> Reading:
    """Find the results and controls of a table that a study lacks."""
    good: list[Result] = []
    problems: list[Problem] = []
    again: list[int] = []
    left = {design: list(told) for design, told in known.told.items()}
    first: dict[bytes, int] = {}
    spoiled = iter([*parsed.spoiled, (math.inf, b"")])
    line, design = next(spoiled)
    for result in parsed.results:
        while line < result.line:
            first.setdefault(design, int(line))
            line, design = next(spoiled)
        if _is_told(left.get(result.key, []), result, options):
            again.append(result.line)
            continue
        message = _refused(result, parsed.space, known, first, options)
        first.setdefault(result.key, result.line)
        if message is None:
            good.append(result)
        else:
            problems.append(Problem(result.line, f"{parsed.name}, line {result.line}", message))
    kept, outdone = (good, []) if options.correct else _without_outdone(good, known)
    kept, repeated = _without_repeated(kept)
    controls, conflicts, stored = _new_controls(parsed, known, options)
    all_problems = sorted([*parsed.problems, *problems, *conflicts], key=lambda each: each.line)
    return Reading(
        tuple(kept), tuple(controls), tuple(all_problems), parsed.empty, parsed.control_lines,
        tuple(sorted([*again, *repeated, *stored])), tuple(outdone), parsed.remarks,
        parsed.idle_controls,
    )  # fmt: skip


def _is_told(left: list[Measured], result: Result, options: Options) -> bool:
    """Return True if the study has this result of the design."""
    if options.again and result.value is not None:
        return False
    at = next((i for i, told in enumerate(left) if _same_result(result, told, options)), None)
    if at is None:
        return False
    # among replicates each stands for one row, so that equal ones are counted; failures are not
    if options.replicates and result.value is not None:
        del left[at]
    return True


def _same_result(result: Result | Control, told: Measured | Control, options: Options) -> bool:
    """Whether a result is the one told; a correction may change the known error alone."""
    if not _same(result.value, told.value):
        return False
    return not options.correct or result.std is None or _same(result.std, told.std)


def _refused(
    result: Result, space: Space, known: Known, first: dict[bytes, int], options: Options
) -> str | None:
    """Return the problem with a result, None if there is none."""
    found, told = result.key, known.told.get(result.key, [])
    if options.correct:
        return _uncorrectable(result, told, first)
    if found in first and not options.replicates:
        return f"is the design of line {first[found]} again; --replicates takes both"
    if told and not options.replicates and not _works_now(told, result):
        values = ", ".join(_shown(each.value) for each in told)
        return (
            f"this design has the result {values} already, here it is {_shown(result.value)}; "
            "correct it by `mercbo amend`, or take both by --replicates"
        )
    if found not in known.pending and not told and not options.new:
        near = _closest(result.row, space, known)
        return f"this design was never asked for{near}; --new takes it all the same"
    return None


def _uncorrectable(result: Result, told: list[Measured], first: dict[bytes, int]) -> str | None:
    if result.key in first:
        return f"is the design of line {first[result.key]} again; delete one of the two lines"
    if not told:
        return "this design has no result to correct; `mercbo tell` stores the first one"
    if len(told) > 1:
        return (
            f"the design has {len(told)} results, and a table cannot say which of them to correct; "
            "--point with --value puts one in the place of all"
        )
    return None


def _works_now(told: list[Measured], result: Result) -> bool:
    """Return True for a result of a design that has failed: the result replaces the failure."""
    return [each.value for each in told] == [None] and result.value is not None


def _shown(value: float | None) -> str:
    return "failed" if value is None else f"{value:g}"


def _same(one: float | None, two: float | None) -> bool:
    if one is None or two is None:
        return one is two
    return math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-12)


def _closest(row: Rows, space: Space, known: Known) -> str:
    if not known.pending:
        return ", and none is pending"
    differs = known.pending_rows != row
    nearest = int(np.argmin(differs.sum(axis=1)))
    names = [space.names[i] for i in np.flatnonzero(differs[nearest]).tolist()]
    point: Point = space.points(known.pending_rows[nearest : nearest + 1])[0]
    shown = ", ".join(f"{name}={point[name]!r}" for name in names[:3])
    return f" (the nearest one that was has {shown}{', ...' if len(names) > 3 else ''})"


def _without_outdone(good: list[Result], known: Known) -> tuple[list[Result], list[int]]:
    """Remove failures of designs that have a result in the study or in the table; also return the
    lines removed. A pending design keeps its failure, which ends the waiting."""
    worked = {result.key for result in good if result.value is not None}
    for design, told in known.told.items():
        if any(each.value is not None for each in told) and design not in known.pending:
            worked.add(design)
    outdone = [r.line for r in good if r.value is None and r.key in worked]
    return _without(good, outdone), outdone


def _without_repeated(good: list[Result]) -> tuple[list[Result], list[int]]:
    """Remove all failures of a design but the first; also return the lines removed."""
    first: dict[bytes, int] = {}
    for result in good:
        if result.value is None:
            first.setdefault(result.key, result.line)
    repeated = [r.line for r in good if r.value is None and first[r.key] != r.line]
    return _without(good, repeated), repeated


def _without(good: list[Result], lines: list[int]) -> list[Result]:
    gone = set(lines)
    return [result for result in good if result.line not in gone]


def _new_controls(
    parsed: Parsed, known: Known, options: Options
) -> tuple[list[Control], list[Problem], list[int]]:
    """Return the new controls, the conflicts with stored controls, and the lines of controls that
    are stored already."""
    placed = {each.place: each for each in known.controls if each.place}
    others = Counter(_content(each) for each in known.controls if not each.place)
    first: dict[tuple[str, str], int] = {}
    new: list[Control] = []
    conflicts: list[Problem] = []
    stored: list[int] = []
    for control in parsed.controls:
        content = _content(control)
        before = placed.get(control.place) if control.place else None
        if before is not None and _same_result(control, before, options):
            stored.append(control.line)
        elif control.place is None and others[content] > 0:
            others[content] -= 1
            stored.append(control.line)
        elif message := _refused_control(control, before, first, options):
            where = f"{parsed.name}, line {control.line}"
            conflicts.append(Problem(control.line, where, message))
        else:
            new.append(control if before is None else _corrected(before, control))
        if control.place is not None:
            first.setdefault(control.place, control.line)
    return new, conflicts, stored


def _refused_control(
    control: Control, before: Control | None, first: dict[tuple[str, str], int], options: Options
) -> str:
    """Why the result of a control is not accepted; empty if it is."""
    if control.place is None:
        return ""
    if control.place in first:
        return f"is the control of line {first[control.place]} again; delete one of the two lines"
    if before is None or options.correct:
        return ""
    plate, well = control.place
    return (
        f"the control in plate {plate}, well {well} has the result {_shown(before.value)} "
        f"already, here it is {_shown(control.value)}; correct it by `mercbo amend`"
    )


def _corrected(before: Control, control: Control) -> Control:
    """A corrected control; it keeps the known error and the columns that the table lacks."""
    keeps_std = control.std is None and control.value is not None
    std = before.std if keeps_std else control.std
    return replace(control, std=std, notes={**before.notes, **control.notes})


def _content(control: Control) -> tuple[object, ...]:
    cells = sorted((name, str(cell)) for name, cell in control.notes.items())
    return control.value, control.std, tuple(cells)
