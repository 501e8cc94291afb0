"""A run's file: whole or not at all, and refused with a reason when it is not what it says."""

import json
import os
import stat

import pytest

from mercbo import Optimizer, Space, StateError
from mercbo.record import snapshot

STATE = {"asked": 3, "points": [{"x": "ä", "n": None}], "values": [0.1, 1e-300, -0.0]}
OTHER = {"asked": 4, "points": [], "values": []}


def only_files(folder):
    return sorted(p.name for p in folder.iterdir())


# -- writing and reading -----------------------------------------------------------------------


def test_what_is_written_is_read_back(tmp_path):
    snapshot.write(tmp_path / "run.json", STATE)
    read = snapshot.read(tmp_path / "run.json")
    assert {name: read[name] for name in STATE} == STATE
    assert only_files(tmp_path) == ["run.json"]


def test_a_file_says_its_format_and_version(tmp_path):
    snapshot.write(tmp_path / "run.json", STATE)
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert data["format"] == "mercbo run"
    assert data["version"] == snapshot.VERSION == 5


def test_writing_again_replaces_the_file(tmp_path):
    path = tmp_path / "run.json"
    snapshot.write(path, {**STATE, "padding": "x" * 10_000})
    snapshot.write(path, OTHER)
    assert snapshot.read(path)["asked"] == 4
    assert path.stat().st_size < 1000
    assert only_files(tmp_path) == ["run.json"]


def test_paths_may_be_text_and_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snapshot.write("run.json", STATE)
    assert snapshot.read("run.json")["asked"] == 3


def test_the_file_reaches_the_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    calls = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("sync"), real_sync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), real_replace(a, b)))
    snapshot.write(tmp_path / "run.json", STATE)
    assert calls[:2] == ["sync", "replace"]


# -- failures in the middle --------------------------------------------------------------------


def broken(*_args, **_kwargs):
    raise OSError("no space left on device")


def interrupted(*_args, **_kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize(
    ("failure", "error"), [(broken, OSError), (interrupted, KeyboardInterrupt)]
)
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path, monkeypatch, call, failure, error
):
    path = tmp_path / "run.json"
    snapshot.write(path, STATE)
    before = path.read_bytes()
    monkeypatch.setattr(os, call, failure)
    with pytest.raises(error):
        snapshot.write(path, OTHER)
    assert path.read_bytes() == before
    assert only_files(tmp_path) == ["run.json"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_of_the_first_write_leaves_no_file(tmp_path, monkeypatch, call):
    monkeypatch.setattr(os, call, broken)
    with pytest.raises(OSError, match="no space left"):
        snapshot.write(tmp_path / "run.json", STATE)
    assert only_files(tmp_path) == []


@pytest.mark.parametrize("state", [{"a": float("nan")}, {"a": {1, 2}}, {"a": object()}])
def test_a_state_that_json_cannot_hold_leaves_the_old_file(tmp_path, state):
    path = tmp_path / "run.json"
    snapshot.write(path, STATE)
    before = path.read_bytes()
    with pytest.raises((ValueError, TypeError), match="JSON"):
        snapshot.write(path, state)
    assert path.read_bytes() == before
    assert only_files(tmp_path) == ["run.json"]


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(OSError, match=r"run\.json cannot be written: there is no folder .*missing"):
        snapshot.write(tmp_path / "missing" / "run.json", STATE)


def test_a_folder_cannot_be_written_over(tmp_path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError, match=r"run\.json cannot be written: it is a folder"):
        snapshot.write(tmp_path / "run.json", STATE)
    assert only_files(tmp_path) == ["run.json"]


# -- permissions -------------------------------------------------------------------------------


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o664])
def test_permissions_of_the_old_file_are_kept(tmp_path, bits):
    path = tmp_path / "run.json"
    snapshot.write(path, STATE)
    path.chmod(bits)
    snapshot.write(path, OTHER)
    assert mode(path) == bits


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, mask):
    old = os.umask(mask)
    try:
        snapshot.write(tmp_path / "run.json", STATE)
        (tmp_path / "plain.txt").touch()
    finally:
        left = os.umask(old)
    assert mode(tmp_path / "run.json") == mode(tmp_path / "plain.txt")
    assert left == mask


# -- files that are refused --------------------------------------------------------------------


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    snapshot.write(tmp_path / "whole.json", STATE)
    whole = (tmp_path / "whole.json").read_bytes()
    assert whole.endswith(b"}\n")
    path = tmp_path / "cut.json"
    for length in range(len(whole) - 1):  # without the last line break it is still whole
        path.write_bytes(whole[:length])
        with pytest.raises(StateError, match=r"cut\.json"):
            snapshot.read(path)


def test_a_file_cut_short_is_said_to_be_cut_short(tmp_path):
    snapshot.write(tmp_path / "run.json", STATE)
    text = (tmp_path / "run.json").read_text(encoding="utf-8")
    (tmp_path / "run.json").write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(StateError, match="cut short"):
        snapshot.read(tmp_path / "run.json")


def test_a_real_run_cut_short_is_refused(tmp_path):
    opt = Optimizer(Space.binary(3), seed=0, n_initial=2)
    for value in (1.0, 2.0):
        opt.tell(opt.ask(), value)
    opt.ask()
    opt.save(tmp_path / "run.json")
    whole = (tmp_path / "run.json").read_bytes()
    for length in range(0, len(whole) - 1, 17):
        (tmp_path / "run.json").write_bytes(whole[:length])
        with pytest.raises(StateError):
            Optimizer.load(tmp_path / "run.json")


def written(path, **changes) -> None:
    data = {"format": snapshot.FORMAT, "version": snapshot.VERSION, **STATE, **changes}
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.mark.parametrize("version", [6, 7, 10**6])
def test_a_newer_version_is_refused_with_what_to_do(tmp_path, version):
    written(tmp_path / "run.json", version=version)
    with pytest.raises(StateError, match=f"newer mercbo.*version {version}.*update"):
        snapshot.read(tmp_path / "run.json")


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5, [1]])
def test_what_is_no_version_is_refused(tmp_path, version):
    written(tmp_path / "run.json", version=version)
    with pytest.raises(StateError, match="version"):
        snapshot.read(tmp_path / "run.json")


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "3", "null", '"mercbo run"', '{"format": "optuna"}', '{"version": 1}'],
)
def test_json_of_something_else_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(StateError, match="not a saved mercbo run"):
        snapshot.read(tmp_path / "run.json")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"hello", b"\x00" * 64, bytes(range(256)), b"\xff\xfe{\x00}\x00", b"{]"],
)
def test_what_is_not_json_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(StateError, match=r"run\.json"):
        snapshot.read(tmp_path / "run.json")


@pytest.mark.parametrize("content", ["[" * 100_000, "7" * 10_000], ids=["deep", "long number"])
def test_json_that_python_gives_up_on_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(StateError, match=r"run\.json"):
        snapshot.read(tmp_path / "run.json")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(StateError, match=r"nowhere\.json: no such file"):
        snapshot.read(tmp_path / "nowhere.json")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StateError, match="cannot be read"):
        snapshot.read(tmp_path)
