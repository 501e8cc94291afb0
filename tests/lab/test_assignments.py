"""Values of variables on a command line, with commas and quotes in them."""

from __future__ import annotations

import pytest

from mercbo import Categorical, Ordinal, PointError, Space
from mercbo.lab.assignments import assigned

SPACE = Space(
    {
        "solvent": Categorical(["DMSO, dry", "water, 5 %", "THF"]),
        "heat, K": Ordinal([293, 313.5]),
        "note": Categorical(["5'-end", "a=b", '"x, y"']),
    }
)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["solvent=THF, note=a=b"], {"solvent": "THF", "note": "a=b"}),
        (['solvent="DMSO, dry"'], {"solvent": "DMSO, dry"}),
        (["solvent='dmso, dry' , note=5'-end"], {"solvent": "DMSO, dry", "note": "5'-end"}),
        (["solvent=DMSO, dry"], {"solvent": "DMSO, dry"}),
        (["solvent = water, 5 %", "note=a=b"], {"solvent": "water, 5 %", "note": "a=b"}),
        (['"heat, K"=293,solvent=THF'], {"heat, K": 293, "solvent": "THF"}),
        (["solvent=THF,'heat, K'='313,5'"], {"heat, K": 313.5, "solvent": "THF"}),
        (['note="x, y"'], {"note": '"x, y"'}),
        (["solvent=THF,"], {"solvent": "THF"}),
    ],
)
def test_commas_separate_unless_they_belong_to_a_value(
    texts: list[str], wanted: dict[str, object]
) -> None:
    assert assigned(SPACE, *texts) == wanted


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ([""], "'' is not of the form NAME=VALUE"),
        (["solvent=DMSO, wet"], "'DMSO' is not one of .*; the nearest is 'DMSO, dry'"),
        (
            ["solvent=THF,note"],
            "'note' is not of the form NAME=VALUE; a value with a comma in it must",
        ),
        (["=3"], "unknown variable ''"),
        (["solvant=THF"], "unknown variable 'solvant'; did you mean 'solvent'"),
        (['solvent="DMSO, wet"'], "'solvent': 'DMSO, wet' is not one of .* nearest is 'DMSO, dry'"),
        (["note=a=b", "note=a=b"], "'note' is given twice in note=a=b, note=a=b"),
        (["note=a=b,note=a=b"], "'note' is given twice"),
    ],
)
def test_what_is_wrong_is_named(texts: list[str], complaint: str) -> None:
    with pytest.raises(PointError, match=complaint):
        assigned(SPACE, *texts)
