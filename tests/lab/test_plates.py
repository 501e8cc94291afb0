"""Wells and controls."""

from __future__ import annotations

import pytest

from mercbo import SettingError
from mercbo.lab.plates import FORMATS, Plate, controls_of


@pytest.mark.parametrize("size", FORMATS)
def test_a_plate_has_as_many_wells_as_it_says(size: int) -> None:
    wells = Plate(size).wells()
    assert len(set(wells)) == size
    columns = FORMATS[size][1]
    assert wells[0] == "A1"
    assert wells[columns] == "B1"
    assert wells[-1].endswith(str(columns))


def test_designs_fill_the_free_wells_plate_after_plate() -> None:
    plate = Plate(6, ("A1", "B3"))
    assert list(plate.filled(5)) == [
        (1, "A1", None), (1, "A2", 0), (1, "A3", 1), (1, "B1", 2), (1, "B2", 3), (1, "B3", None),
        (2, "A1", None), (2, "A2", 4), (2, "B3", None),
    ]  # fmt: skip
    assert plate.free() == ["A2", "A3", "B1", "B2"]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingError, match="a plate of 100 wells is not one of"):
        Plate(100)
    with pytest.raises(SettingError, match="'A13' is not a well of this plate, A1 to H12"):
        Plate(96, ("A13",))
    with pytest.raises(SettingError, match="all wells of the plate"):
        Plate(6, tuple(Plate(6).wells()))
    with pytest.raises(SettingError, match="has no column 13"):
        controls_of("column 13", 96)
    with pytest.raises(SettingError, match="96 controls do not leave a free well"):
        controls_of("96", 96)
    for odd in ("²", "9" * 5000):
        with pytest.raises(SettingError, match="is not a well of this plate"):
            Plate(96, controls_of(odd, 96))
    assert controls_of("0", 96) == ()
    assert controls_of("column 1", 96) == tuple(f"{r}1" for r in "ABCDEFGH")
