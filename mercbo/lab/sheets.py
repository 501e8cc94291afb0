"""Sheets of a study: the table to fill in (`to_fill`), and everything that is known (`whole`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mercbo.domain.variables import Point
from mercbo.lab.notes import Well, design_key
from mercbo.lab.results import CONTROL, OWN, RECORDED, STUDY, SUGGESTED
from mercbo.lab.rows import Cell
from mercbo.lab.study import Study
from mercbo.record.frames import free_name
from mercbo.record.suggestions import MODEL, Suggestion

Sheet = tuple[list[str], list[list[Cell]]]


def to_fill(
    study: Study,
    points: Sequence[Point],
    wells: Sequence[Well] = (),
    *,
    more: Sequence[Mapping[str, Cell]] = (),
) -> Sheet:
    """Header and rows of a table to fill in: a row per design, and per control well.

    `wells` say where the designs are, and which wells are of controls; without them there is no
    plate. `more` has further columns of each design. The column of results is the last one.
    """
    columns = list(dict.fromkeys(name for cells in more for name in cells))
    rows: list[list[Cell]] = [
        [*(point[name] for name in study.space.names), *(cells.get(n) for n in columns), None]
        for point, cells in zip(points, more or [{}] * len(points), strict=True)
    ]
    names = [*study.space.names, *columns, study.target]
    if not wells:
        return ["design", *names], [[i, *row] for i, row in enumerate(rows, start=1)]
    numbers = {design_key(row): i for i, row in enumerate(study.space.rows(list(points)))}
    left = dict(enumerate(rows))
    listed: list[list[Cell]] = []
    for plate, well, design in wells:
        if design is None:
            listed.append([plate, well, CONTROL, *[None] * len(names)])
        elif numbers.get(design) in left:
            number = numbers[design]
            listed.append([plate, well, number + 1, *left.pop(number)])
    listed += [[None, None, number + 1, *row] for number, row in left.items()]
    return ["plate", "well", "design", *names], listed


def why(study: Study, suggestions: Sequence[Suggestion]) -> list[dict[str, Cell]]:
    """Columns that say why each design was suggested, as far as they are known; a name that is
    taken gets " (model)"."""
    listed: list[dict[str, Cell]] = []
    for each in suggestions:
        numbers = map(_rounded, (each.value, each.mean, each.std))
        listed.append(dict(zip(SUGGESTED, (each.source, each.acquisition, *numbers), strict=True)))
    taken = [*study.space.names, study.target]
    names: dict[str, str] = {}
    for name in SUGGESTED:
        names[name] = free_name([*taken, *names.values()], name, MODEL)
    return [
        {names[name]: cell for name, cell in cells.items() if cell is not None} for cells in listed
    ]


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.6g}")


def pending(study: Study) -> Sheet:
    """The table to fill in of all pending designs: their wells, and the controls of the plates
    that still have a pending design."""
    points = study.optimizer.pending
    waiting = {design_key(row) for row in study.space.rows(points)}
    done = {control.place for control in study.notes.controls()}
    wells = study.notes.wells()
    plates = {each.plate for each in wells if each.design in waiting}
    open_wells = [
        each
        for each in wells
        if each.design in waiting
        or (
            (each.design is None and each.plate in plates)
            and (str(each.plate), each.well) not in done
        )
    ]
    header, rows = to_fill(study, points, open_wells)
    # without plates a number says nothing
    return (header, rows) if open_wells else (header[1:], [row[1:] for row in rows])


def whole(study: Study) -> Sheet:
    """A row per result, failure, pending design and control, with all that is known of each."""
    records = study.optimizer.records()
    notes = study.notes_of(records)
    controls = study.notes.controls()
    all_notes = [*notes, *(each.notes for each in controls)]
    extra = list(dict.fromkeys(name for cells in all_notes for name in cells))
    empty = [None] * len(study.space)
    rows: list[list[Cell]] = [
        [
            *record.point.values(), _result(record.value, record.state), record.std, record.state,
            record.batch, record.time or None, *map(cells.get, extra),
        ]
        for record, cells in zip(records, notes, strict=True)
    ]  # fmt: skip
    rows += [
        [
            *empty, "failed" if each.value is None else each.value, each.std, CONTROL, None,
            each.time or None, *map(each.notes.get, extra),
        ]
        for each in controls
    ]  # fmt: skip
    header = _with_columns([*study.space.names, study.target], RECORDED, STUDY)
    return _with_columns(header, extra, OWN), rows


def _result(value: float | None, state: str) -> Cell:
    return "failed" if state == "failed" else value


def _with_columns(header: Sequence[str], more: Sequence[str], suffix: str) -> list[str]:
    """A header with more columns; no two have one name, so that the table can be read again."""
    names = list(header)
    for name in more:
        names.append(free_name(names, name, suffix))
    return names
