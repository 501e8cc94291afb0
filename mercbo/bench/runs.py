"""Whole runs, from a benchmark's folder or from a packed file: what the report needs of them.

`evaluations.jsonl` (`runner.py`) has every evaluation with its point, and grows to hundreds of MB.
`pack` keeps of it what tables and plots are made of, in one small file that can be shipped beside
them: compressed JSON lines (`.jsonl.xz` or `.jsonl.gz`), first a header, then one line per run.

| key                  | of a run                                                           |
|----------------------|--------------------------------------------------------------------|
| method, problem, run | which run                                                          |
| initial              | the number of initial points                                       |
| values               | of all evaluations, 9 significant digits; null where one failed    |
| ask                  | seconds of each ask, 2 significant digits                          |
| memory               | peak, MB                                                           |
| optimum              | of the run's instance; null where it is not known                  |
| versions             | of a peer's packages, where the run was played by one              |
| error                | in place of all but the first: why there is no run                 |

A file of that name (`PACKED`) in a benchmark's folder belongs to it: its runs are not played again.
The same runs give the same bytes, so that a checksum can be stated.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mercbo.errors import SettingError

# Every evaluation of a benchmark, and its runs in packed form, in the benchmark's folder.
FILE, PACKED = "evaluations.jsonl", "runs.jsonl.xz"
FORMAT = "mercbo-runs 1"
# Digits of packed values, and by how much, relative to their size, values may differ and count as
# the same: by more than packing changes them.
DIGITS, DIGITS_OF_TIMES = 9, 2
SAME = 1e-8
Key = tuple[str, str, int]  # method, problem, run


@dataclass(frozen=True)
class Run:
    """One run; `error` says why it has no values."""

    method: str
    problem: str
    run: int
    initial: int = 0
    values: tuple[float | None, ...] = ()
    ask: tuple[float, ...] = ()
    memory: float | None = None
    optimum: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None

    @property
    def key(self) -> Key:
        return self.method, self.problem, self.run


def make_folder(out: Path) -> None:
    """Make a folder for results unless it is there; a `SettingError` where it cannot be one."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(
            f"{out} is not a folder and cannot be made one ({error.strerror}); a folder for the "
            "results was wanted"
        ) from None


# -- the file of evaluations -------------------------------------------------------------------


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file; a last one that was cut short, and so has no end, is left out.

    Any other line that cannot be read is a `SettingError`: runs stand behind it.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            found = _object(line)
            if found is not None:
                yield found
            elif line.endswith(b"\n"):
                came = line.decode("utf-8", "replace").strip()
                raise SettingError(
                    f"{path}, line {number}: {_cut(came)!r} came, a JSON object was wanted; take "
                    "the line out, or put back what stood there"
                )


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line.decode("utf-8"))
    except ValueError:  # no JSON, or no text
        return None
    return found if isinstance(found, dict) else None


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[:most] + "..."


def evaluated(path: Path) -> tuple[dict[str, Any], list[Run]]:
    """The header and the runs of a file of evaluations; a failure counts until a run is there."""
    header: dict[str, Any] = {}
    lines: dict[Key, list[dict[str, Any]]] = {}
    failures: dict[Key, Run] = {}
    for line in read(path):
        if "method" not in line:
            header = line
            continue
        key = (line["method"], line["problem"], line["run"])
        if "error" in line:
            failures[key] = Run(*key, error=line["error"])
        elif "index" in line:
            lines.setdefault(key, []).append(line)
    runs = [_whole(key, found) for key, found in lines.items()]
    return header, [*runs, *(run for key, run in failures.items() if key not in lines)]


def _whole(key: Key, lines: Sequence[Mapping[str, Any]]) -> Run:
    memory = [line["memory"] for line in lines if line.get("memory") is not None]
    return Run(
        *key,
        initial=sum(line["ask"] is None for line in lines),
        values=tuple(line["value"] for line in lines),
        ask=tuple(line["ask"] for line in lines if line["ask"] is not None),
        memory=max(memory, default=None),
        optimum=lines[0].get("optimum"),
        versions=lines[0].get("versions", {}),
    )


# -- packed files ------------------------------------------------------------------------------


def packed(path: Path) -> tuple[dict[str, Any], list[Run]]:
    """The header and the runs of a packed file."""
    try:
        text = _decompress(path)
        header, *lines = [json.loads(line) for line in text.splitlines()]
        if header.get("format") != FORMAT:
            raise ValueError(f"it says format={header.get('format')!r}")
        runs = [Run(**{**line, **_tuples(line)}) for line in lines]
    except (OSError, EOFError, ValueError, TypeError, AttributeError, lzma.LZMAError) as error:
        raise SettingError(
            f"{path} is not a file of packed runs ({FORMAT!r} was wanted): {error}"
        ) from None
    return header, runs


def alike(one: float | None, other: float | None) -> bool:
    """Whether two results are the same but for the digits that packing leaves out."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SAME * (1 + abs(one))


def _tuples(line: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(line[key]) for key in ("values", "ask") if key in line}


def pack(path: Path, header: Mapping[str, Any], runs: Iterable[Run]) -> str:
    """Write a packed file, whole or not at all; its SHA-256."""
    compress = _compressor(path)
    ordered = sorted(runs, key=lambda run: (run.problem, run.method, run.run))
    lines = [{"format": FORMAT, **header}, *map(_line, ordered)]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    data = compress(text.encode("utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(data)
    os.replace(temporary, path)
    return hashlib.sha256(data).hexdigest()


def _line(run: Run) -> dict[str, Any]:
    if run.error is not None:
        return {"method": run.method, "problem": run.problem, "run": run.run, "error": run.error}
    line = asdict(run)
    line["values"] = [_rounded(value, DIGITS) for value in run.values]
    line["ask"] = [_rounded(seconds, DIGITS_OF_TIMES) for seconds in run.ask]
    del line["error"]
    return line if run.versions else {k: v for k, v in line.items() if k != "versions"}


def _rounded(value: float | None, digits: int) -> float | None:
    """To so many significant digits, whole numbers as such.

    >>> _rounded(-0.123456789012, 9), _rounded(None, 9), _rounded(3.0, 2)
    (-0.123456789, None, 3)
    """
    if value is None:
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _compressor(path: Path) -> Any:
    if path.suffix == ".xz":
        return lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    if path.suffix == ".gz":
        return lambda data: gzip.compress(data, mtime=0)  # the time would be in the file
    raise SettingError(f"{path} ends neither in .xz nor in .gz")


def _decompress(path: Path) -> str:
    data = path.read_bytes()
    plain = gzip.decompress(data) if path.suffix == ".gz" else lzma.decompress(data)
    return plain.decode("utf-8")


# -- both --------------------------------------------------------------------------------------


def gathered(source: Path, *more: Path) -> tuple[dict[str, Any], list[Run]]:
    """The runs of a folder or a packed file, then those that only the others have.

    In a folder evaluations go before packed runs. The header is that of the first file.
    """
    headers, found = [], list[Run]()
    for place in (source, *more):
        for path in _files(place):
            header, runs = evaluated(path) if path.name == FILE else packed(path)
            headers.append(header)
            found += runs
    played = {run.key for run in found if run.error is None}
    kept: dict[Key, Run] = {}
    for run in found:
        if run.error is None or run.key not in played:
            kept.setdefault(run.key, run)
    return headers[0], list(kept.values())


def _files(place: Path) -> list[Path]:
    """The files of runs in a folder, or the packed file itself."""
    if place.is_file():
        return [place]
    files = [path for path in (place / FILE, place / PACKED) if path.exists()]
    if not files:
        raise SettingError(f"{place / FILE} is not there; run the benchmark first")
    return files
