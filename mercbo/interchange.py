"""Acquisition problems as text for other programs, and back.

| format | what is written                           | read by                                   |
|--------|-------------------------------------------|-------------------------------------------|
| coo    | the BQM as lines ``i j bias``             | dimod's ``coo``, any sparse-matrix reader |
| qubo   | the BQM in the DIMACS-like form of qbsolv | qbsolv and many QUBO solvers              |
| json   | the BQM as labels, linear and quadratic   | anything                                  |
| lp     | the CQM, with its constraints             | dimod's ``lp``, Gurobi, CPLEX, SCIP       |

Bits are numbered in the order of ``draw.bqm.variables`` (``draw.cqm.variables`` for lp, where they
are called x0, x1 ...); comments hold the labels, so that `loads` gives them back. Numbers are
written to the last digit. An answer, a row of zeros and ones in the same order, becomes a point by
`decode`. There is no MPS: dimod writes none, and readers differ on its quadratic part.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mercbo.domain.variables import Point
from mercbo.errors import PointError, SettingError, choose
from mercbo.quadratic import Draw

if TYPE_CHECKING:
    import dimod

FORMATS = ("coo", "qubo", "json", "lp")
# Starts a comment that holds a label, after the comment sign of the format.
LABEL = "label"


def dumps(draw: Draw, format: str) -> str:
    """A draw as text.

    >>> from mercbo import Optimizer, Space
    >>> draw = Optimizer(Space.binary(2), seed=0).draw()
    >>> dumps(draw, "coo").splitlines()[:3]
    ['# vartype=BINARY', '# label 0 ["x0", 1]', '# label 1 ["x1", 1]']
    >>> loads(dumps(draw, "coo"), "coo") == draw.bqm
    True
    """
    write: dict[str, Callable[[Draw], str]] = {
        "coo": _coo, "qubo": _qubo, "json": _json, "lp": _lp,
    }  # fmt: skip
    return write[choose("format", format, FORMATS)](_checked(draw))


def loads(text: str, format: str) -> dimod.BinaryQuadraticModel | dimod.ConstrainedQuadraticModel:
    """The model of a text, with the labels that it had: a BQM, for "lp" a CQM."""
    read: dict[str, Callable[[str], Any]] = {
        "coo": _read_coo, "qubo": _read_qubo, "json": _read_json, "lp": _read_lp,
    }  # fmt: skip
    return read[choose("format", format, FORMATS)](text)


def write(draw: Draw, path: str | os.PathLike[str]) -> None:
    """Write a draw to a file, in the format that the end of its name says."""
    Path(path).write_text(dumps(draw, _format_of(path)), encoding="utf-8")


def read(
    path: str | os.PathLike[str],
) -> dimod.BinaryQuadraticModel | dimod.ConstrainedQuadraticModel:
    """Read what `write` wrote, or any file of the same format."""
    return loads(Path(path).read_text(encoding="utf-8"), _format_of(path))


def decode(draw: Draw, bits: Sequence[int], *, format: str = "coo") -> Point | None:
    """The point of an answer: zeros and ones in the order of the file. None where they mean no
    feasible point.

    An answer by labels, such as ``sampleset.first.sample``, is for ``draw.decode``.
    """
    of_lp = choose("format", format, FORMATS) == "lp"
    model = _checked(draw).cqm if of_lp else _checked(draw).bqm
    labels = list(model.variables)
    return draw.decode(dict(zip(labels, _row(bits, len(labels)), strict=True)))


def _checked(draw: object) -> Draw:
    if not isinstance(draw, Draw):
        raise SettingError(
            f"draw: {type(draw).__name__} came, a Draw was wanted, as opt.draw() gives"
        )
    return draw


def _row(bits: object, count: int) -> list[float]:
    try:
        row = np.asarray(bits, dtype=np.float64)
    except (TypeError, ValueError):  # no numbers
        row = np.empty((0, 0))
    if row.ndim != 1:
        raise PointError(
            f"bits: {type(bits).__name__} came, a row of {count} zeros and ones was wanted; "
            "draw.decode takes a sample by its labels, such as sampleset.first.sample"
        )
    if len(row) != count:
        raise PointError(f"{len(row)} bits came, the model has {count}")
    return list(row.tolist())


def _format_of(path: str | os.PathLike[str]) -> str:
    end = Path(path).suffix.removeprefix(".")
    if end not in FORMATS:
        ends = ", ".join(f".{name}" for name in FORMATS)
        raise SettingError(f"{str(path)!r} ends with none of {ends}")
    return end


# -- models as arrays --------------------------------------------------------------------------


def _terms(bqm: dimod.BinaryQuadraticModel) -> Iterator[tuple[int, int, float]]:
    """Linear terms as (i, i, bias), then quadratic ones as (i, j, bias) with i < j."""
    number = {label: i for i, label in enumerate(bqm.variables)}
    for label, bias in bqm.iter_linear():
        yield number[label], number[label], float(bias)
    for first, second, bias in bqm.iter_quadratic():
        i, j = sorted((number[first], number[second]))
        yield i, j, float(bias)


def _model(
    terms: Sequence[tuple[int, int, float]], labels: Sequence[Any], offset: float
) -> dimod.BinaryQuadraticModel:
    import dimod

    bqm = dimod.BinaryQuadraticModel("BINARY")
    for label in labels:
        bqm.add_variable(label)
    for i, j, bias in terms:
        if i == j:
            bqm.add_linear(labels[i], bias)
        else:
            bqm.add_quadratic(labels[i], labels[j], bias)
    bqm.offset = offset
    return bqm


def _digits(number: float) -> str:
    """All digits of a number and no exponent, which dimod's reader does not understand."""
    return np.format_float_positional(number, unique=True, trim="0")


def _label_lines(labels: Sequence[Any], sign: str) -> list[str]:
    return [f"{sign} {LABEL} {i} {json.dumps(label)}" for i, label in enumerate(labels)]


def _labels(text: str, sign: str, count: int) -> list[Any]:
    """The labels in the comments of a text; numbers where there are none."""
    start = f"{sign} {LABEL} "
    found: dict[int, Any] = {}
    for line in text.splitlines():
        if line.startswith(start):
            number, label = line.removeprefix(start).split(" ", 1)
            found[int(number)] = _hashable(json.loads(label))
    return [found.get(i, i) for i in range(max([count, *(i + 1 for i in found)]))]


def _hashable(label: Any) -> Any:
    return tuple(map(_hashable, label)) if isinstance(label, list) else label


# -- the formats -------------------------------------------------------------------------------


def _coo(draw: Draw) -> str:
    bqm = draw.bqm
    lines = ["# vartype=BINARY", *_label_lines(list(bqm.variables), "#")]
    lines.append(f"# offset {_digits(bqm.offset)}")
    lines += [f"{i} {j} {_digits(bias)}" for i, j, bias in _terms(bqm)]
    return "\n".join(lines) + "\n"


def _read_coo(text: str) -> dimod.BinaryQuadraticModel:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    offset = sum(float(w[2]) for w in lines if w[:2] == ["#", "offset"])
    terms = [_triple(words) for words in lines if not words[0].startswith("#")]
    return _model(terms, _labels(text, "#", _count(terms)), offset)


def _qubo(draw: Draw) -> str:
    bqm = draw.bqm
    lines = _label_lines(list(bqm.variables), "c")
    lines.append(f"c offset {_digits(bqm.offset)}")
    lines.append(f"p qubo 0 {len(bqm.variables)} {len(bqm.variables)} {bqm.num_interactions}")
    lines += [f"{i} {j} {_digits(bias)}" for i, j, bias in _terms(bqm)]
    return "\n".join(lines) + "\n"


def _read_qubo(text: str) -> dimod.BinaryQuadraticModel:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    heads = [words for words in lines if words[0] == "p"]
    if len(heads) != 1 or heads[0][1:2] != ["qubo"]:
        raise SettingError("not a qubo file: it needs one line 'p qubo 0 nodes ...'")
    offset = sum(float(w[2]) for w in lines if w[:2] == ["c", "offset"])
    terms = [_triple(words) for words in lines if words[0] not in ("c", "p")]
    return _model(terms, _labels(text, "c", int(heads[0][3])), offset)


def _triple(words: Sequence[str]) -> tuple[int, int, float]:
    try:
        i, j, bias = words
        return int(i), int(j), float(bias)
    except ValueError:
        raise SettingError(f"{' '.join(words)!r} is not a line 'i j bias'") from None


def _count(terms: Sequence[tuple[int, int, float]]) -> int:
    return max((max(i, j) + 1 for i, j, _ in terms), default=0)


def _json(draw: Draw) -> str:
    bqm = draw.bqm
    terms = list(_terms(bqm))
    return json.dumps(
        {
            "format": "qubo",
            "labels": list(bqm.variables),
            "offset": float(bqm.offset),
            "linear": [bias for i, j, bias in terms if i == j],
            "quadratic": [[i, j, bias] for i, j, bias in terms if i != j],
        }
    )


def _read_json(text: str) -> dimod.BinaryQuadraticModel:
    try:
        data = json.loads(text)
        labels = [_hashable(label) for label in data["labels"]]
        linear = [(i, i, float(bias)) for i, bias in enumerate(data["linear"])]
        quadratic = [(int(i), int(j), float(bias)) for i, j, bias in data["quadratic"]]
        return _model([*linear, *quadratic], labels, float(data["offset"]))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise SettingError(f"not a QUBO in JSON: {error!r}") from error


def _lp(draw: Draw) -> str:
    from dimod import lp

    cqm = draw.cqm
    labels, rules = list(cqm.variables), list(cqm.constraints)
    named = cqm.relabel_variables({label: f"x{i}" for i, label in enumerate(labels)}, inplace=False)
    named.relabel_constraints({rule: f"c{i}" for i, rule in enumerate(rules)})
    comments = [
        *_label_lines(labels, "\\"),
        *(f"\\ rule {i} {json.dumps(rule)}" for i, rule in enumerate(rules)),
    ]
    return "\n".join([*comments, lp.dumps(named), ""])


def _read_lp(text: str) -> dimod.ConstrainedQuadraticModel:
    from dimod import lp

    cqm = lp.loads(text)
    numbers = [name[1:] for name in cqm.variables if name[0] == "x" and name[1:].isdigit()]
    labels = _labels(text, "\\", 0)
    cqm.relabel_variables({f"x{i}": labels[int(i)] for i in numbers if int(i) < len(labels)})
    return cqm
