"""Workers: the protocol with small scripts of every kind, and Optuna as a real peer."""

from __future__ import annotations

import gc
import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercbo import (
    AtMost,
    BackendError,
    Binary,
    Categorical,
    Integer,
    Ordinal,
    SettingError,
    Space,
)
from mercbo.bench.methods import PEERS, make
from mercbo.bench.methods import worker as workers
from mercbo.bench.methods.worker import Worker, python_of

PEER_FOLDER = Path(workers.__file__).parent / "peers"
SPACE = Space({"base": Categorical(["A", None, 2.5]), "n": Integer(2, 4), "wash": Binary()})

# A worker in the words of the protocol; ANSWER is what it says to an ask.
SCRIPT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(line, end="", file=open(LOG, "a"))
    if "stop" in message:
        break
    if "start" in message:
        answer = {"ready": True, "name": "fake", "versions": {"fake": "1.2"}}
    elif "tell" in message:
        answer = {"ok": True}
    else:
        ANSWER
    print(json.dumps(answer), flush=True)
"""
GOOD = 'answer = {"point": {"base": None, "n": 3, "wash": 1}}'


@pytest.fixture
def fake(tmp_path: Path):
    """`fake(answer, space)`: a worker that answers an ask by running `answer`."""
    made = []

    def start(answer: str, space: Space = SPACE) -> Worker:
        log = repr(str(tmp_path / "log"))
        script = tmp_path / "fake.py"
        script.write_text(SCRIPT.replace("ANSWER", answer).replace("LOG", log))
        made.append(Worker("fake", [sys.executable, str(script)], space, 7, 25))
        return made[-1]

    yield start
    for worker in made:
        worker.close()


def test_the_messages_are_those_of_the_protocol(fake, tmp_path: Path) -> None:
    worker = fake(GOOD)
    assert worker.versions == {"fake": "1.2"}
    worker.tell(np.array([2, 0, 1]), 1.5)
    worker.tell(np.array([0, 2, 0]), float("nan"))
    assert worker.ask().tolist() == [1, 1, 1]
    worker.close()
    worker.close()
    messages = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert messages == [
        {"start": {"space": SPACE.to_dict(), "seed": 7, "evaluations": 25}},
        {"tell": {"point": {"base": 2.5, "n": 2, "wash": 1}, "value": 1.5}},
        {"tell": {"point": {"base": "A", "n": 4, "wash": 0}, "value": None}},
        {"ask": 1},
        {"stop": True},
    ]
    with pytest.raises(BackendError, match="worker 'fake' was closed"):
        worker.ask()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("sys.exit(3)", r"worker 'fake' ended \(exit code 3\)"),
        ("raise KeyError('lost')", r"(?s)exit code 1.*its last words:.*KeyError: 'lost'"),
        ("print('thinking ...', flush=True)\n        continue", "answered 'thinking ...'.*'point'"),
        ("print('[1]', flush=True)\n        continue", r"answered '\[1\]', a JSON object"),
        ("answer = {'ok': True}", "a JSON object with 'point' was wanted"),
        ("answer = {'error': 'no licence'}", "'fake' answered with an error: no licence"),
        ("answer = {'point': {'base': 'B', 'n': 2, 'wash': 0}}", "not in the space: .*'B' is not"),
        ("answer = {'point': 3}", "not in the space"),
    ],
)
def test_a_bad_answer_is_an_error_that_names_the_worker(fake, answer: str, message: str) -> None:
    worker = fake(answer)
    with pytest.raises(BackendError, match=message):
        worker.ask()
    with pytest.raises(BackendError, match="was closed"):
        worker.ask()


def test_a_program_that_is_missing_or_ends_at_once() -> None:
    with pytest.raises(BackendError, match="worker 'worker:/no/such' cannot be started"):
        make("worker:/no/such", SPACE, 0, 10)
    with pytest.raises(BackendError, match="cannot be started"):
        make("worker:", SPACE, 0, 10)
    with pytest.raises(BackendError, match=r"ended \(exit code 0\)|cannot be talked to"):
        make(f"worker:{sys.executable} -c 'import sys; sys.stdin.readline()'", SPACE, 0, 10)


# -- workers that hang -------------------------------------------------------------------------

PAUSE = "import signal; signal.pause()"
# more than a pipe holds
LARGE = Space({"x": Categorical(["short", "long" * 50_000])})


@pytest.mark.parametrize(
    "answer",
    [
        PAUSE,
        f"print('half an ', end='', flush=True); {PAUSE}",
        "import os\n        while True: os.write(1, b'.')",
    ],
    ids=["nothing", "half a line", "never the end of a line"],
)
def test_a_worker_that_does_not_answer_in_time_is_killed(fake, answer: str, monkeypatch) -> None:
    monkeypatch.setattr(workers, "MOST_BYTES", 2**40)
    worker = fake(answer)
    worker.limit = 0.05
    with pytest.raises(BackendError, match=r"'fake' did not answer \{\"ask\": 1\} within 0.05 s"):
        worker.ask()
    assert worker._process.returncode == -signal.SIGKILL
    with pytest.raises(BackendError, match="was closed"):
        worker.ask()


@pytest.mark.parametrize("space", [SPACE, LARGE], ids=["sent", "too long for the pipe"])
def test_a_worker_that_does_not_read_is_killed(space: Space, monkeypatch) -> None:
    monkeypatch.setenv("MERCBO_WORKER_TIMEOUT", "0.05")
    match = r"'still' did not answer \{\"start\": .* within 0.05 s and was killed"
    with pytest.raises(BackendError, match=match):
        Worker("still", [sys.executable, "-c", PAUSE], space, 0, 5)


def test_a_worker_may_write_more_than_a_pipe_holds_before_it_reads() -> None:
    script = (
        "import json, sys; print(json.dumps({'ready': 1, 'more': 'x' * 300_000}), flush=True)\n"
        "for line in sys.stdin: print(json.dumps({'ok': len(line)}), flush=True)"
    )
    worker = Worker("keen", [sys.executable, "-c", script], LARGE, 0, 5)
    worker.tell(np.array([1]), 1.0)
    worker.close()


def test_a_worker_that_goes_on_without_an_end_of_line_is_given_up(fake, monkeypatch) -> None:
    monkeypatch.setattr(workers, "MOST_BYTES", 1000)
    worker = fake("import os\n        while True: os.write(1, b'.' * 100)")
    with pytest.raises(BackendError, match="'fake' wrote more than 1000 bytes"):
        worker.ask()


def test_a_worker_that_closes_its_output_is_given_up(fake, monkeypatch) -> None:
    worker = fake(f"import os; os.close(1); {PAUSE}")
    monkeypatch.setattr(workers, "PATIENCE", 0.01)
    with pytest.raises(BackendError, match="'fake' closed its standard output instead"):
        worker.ask()
    assert worker._process.returncode == -signal.SIGKILL


def test_the_last_line_needs_no_end() -> None:
    script = "print('{\"error\": \"no licence\"}', end='')"
    with pytest.raises(BackendError, match="answered with an error: no licence"):
        Worker("curt", [sys.executable, "-c", script], SPACE, 0, 5)


def test_an_answer_that_is_no_text_is_quoted(fake) -> None:
    worker = fake("import os; os.write(1, b'\\xff\\n'); continue")
    with pytest.raises(BackendError, match="answered '\ufffd', a JSON object with 'point'"):
        worker.ask()


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 600.0), ("", 600.0), ("2.5", 2.5), ("1e6", 1e6)]
)
def test_the_time_limit_is_that_of_the_environment(text, seconds: float, monkeypatch) -> None:
    monkeypatch.delenv("MERCBO_WORKER_TIMEOUT", raising=False)
    if text is not None:
        monkeypatch.setenv("MERCBO_WORKER_TIMEOUT", text)
    assert workers.time_limit() == seconds


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "2e6", "soon"])
def test_a_wrong_time_limit_is_quoted(text: str, monkeypatch) -> None:
    monkeypatch.setenv("MERCBO_WORKER_TIMEOUT", text)
    with pytest.raises(SettingError, match=f"MERCBO_WORKER_TIMEOUT='{text}' is not a number"):
        make("worker:cat", SPACE, 0, 10)


# -- memory ------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells")
def test_the_memory_is_the_peak_of_the_running_process(fake) -> None:
    worker = fake("kept = b'x' * 100_000_000; del kept; " + GOOD)
    before = worker.memory()
    worker.ask()
    # the 95 MB are the peak, though they are no longer held
    assert worker.memory() > before + 90
    worker.close()
    assert worker.memory() == 0.0


def test_where_nobody_tells_the_memory_it_is_nothing() -> None:
    assert workers._peak_memory(-1) == 0.0


# -- constraints -------------------------------------------------------------------------------

LIMITED = Space({"a": Binary(), "b": Binary()}, [AtMost(1, ["a", "b"])])


def test_infeasible_points_are_told_as_failures_and_asked_again(fake, tmp_path: Path) -> None:
    count = "first = not any('ask' in l for l in open(LOG).readlines()[:-1]); "
    worker = fake(count + "answer = {'point': {'a': 1, 'b': int(first)}}", LIMITED)
    assert worker.ask().tolist() == [1, 0]
    assert worker.refused == 1
    told = json.loads((tmp_path / "log").read_text().splitlines()[2])
    assert told == {"tell": {"point": {"a": 1, "b": 1}, "value": None}}


def test_a_worker_that_gives_nothing_feasible_is_given_up(fake, monkeypatch) -> None:
    monkeypatch.setattr(workers, "MOST_REFUSED", 3)
    worker = fake("answer = {'point': {'a': 1, 'b': 1}}", LIMITED)
    with pytest.raises(BackendError, match=r"3 infeasible points in a row; .* breaks AtMost\(1"):
        worker.ask()


def test_a_worker_that_is_dropped_ends(fake) -> None:
    script = f"{sys.executable} -c 'import sys\nfor l in sys.stdin: print(\"{{}}\", flush=True)'"
    with pytest.raises(BackendError, match="'ready' was wanted"):
        make(f"worker:{script}", SPACE, 0, 10)
    worker = Worker("fake", fake(GOOD)._process.args, SPACE, 0, 10)  # type: ignore[arg-type]
    process = worker._process
    del worker
    gc.collect()
    assert process.poll() is not None


def test_peers_may_live_in_other_environments(monkeypatch) -> None:
    monkeypatch.delenv("MERCBO_PEERS_PYTHON", raising=False)
    assert python_of("optuna-tpe") == sys.executable
    monkeypatch.setenv("MERCBO_PEERS_PYTHON", "/a/python")
    assert python_of("optuna-tpe") == "/a/python"
    monkeypatch.setenv("MERCBO_PEER_OPTUNA_TPE_PYTHON", "/b/python")
    assert (python_of("optuna-tpe"), python_of("smac")) == ("/b/python", "/a/python")


# -- the peers' side ---------------------------------------------------------------------------


def load(script: str):
    spec = importlib.util.spec_from_file_location(script, PEER_FOLDER / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOISY = """
import os, sys
sys.path.insert(0, PEERS)
from peerlib import serve

class Peer:
    def __init__(self, start):
        print("a banner")
        os.system("echo a banner of a program")
        self.told = []
    def ask(self):
        print("thinking")
        if any(value < 0 for _, value in self.told):
            raise ValueError("negative")
        return [0, 1, len(self.told) % 2]
    def tell(self, row, value):
        self.told.append((row, value))

serve("noisy", ["numpy", "no-such-package"], Peer)
"""


@pytest.fixture
def noisy(tmp_path: Path):
    script = tmp_path / "noisy.py"
    script.write_text(NOISY.replace("PEERS", repr(str(PEER_FOLDER))))
    worker = Worker("noisy", [sys.executable, str(script)], SPACE, 0, 5)
    yield worker
    worker.close()


def test_what_a_peer_prints_does_not_break_the_protocol(noisy: Worker) -> None:
    assert noisy.versions == {"numpy": np.__version__, "no-such-package": "unknown"}
    assert noisy.ask().tolist() == [0, 1, 0]
    noisy.tell(np.array([0, 0, 0]), 2.0)
    assert noisy.ask().tolist() == [0, 1, 1]
    noisy.tell(np.array([0, 0, 1]), -2.0)
    with pytest.raises(
        BackendError, match=r"(?s)error: ValueError: negative.*last words.*negative"
    ):
        noisy.ask()


def test_failures_wait_for_a_value_and_get_the_worst() -> None:
    failures = load("peerlib").Failures()
    assert failures.valued([0], None) == []
    assert failures.valued([1], -5.0) == [([1], -5.0), ([0], -5.0)]
    assert failures.valued([2], -7.0) == [([2], -7.0)]
    assert failures.valued([3], None) == [([3], -5.0)]


def test_every_peer_has_its_script_and_needs_no_mercbo() -> None:
    for script in [*PEERS.values(), "peerlib.py"]:
        text = (PEER_FOLDER / script).read_text()
        assert "import mercbo" not in text
        assert "from mercbo" not in text


def test_a_missing_peer_says_what_to_install(tmp_path: Path) -> None:
    script = tmp_path / "lost.py"
    text = NOISY.replace("PEERS", repr(str(PEER_FOLDER))).replace("self.told = []", "import lost_p")
    script.write_text(text)
    with pytest.raises(BackendError, match=r"'lost_p'.*pip install numpy no-such-package"):
        Worker("lost", [sys.executable, str(script)], SPACE, 0, 5)


def test_optuna_runs_and_repeats_itself(monkeypatch) -> None:
    pytest.importorskip("optuna")
    monkeypatch.delenv("MERCBO_PEERS_PYTHON", raising=False)
    monkeypatch.delenv("MERCBO_PEER_OPTUNA_TPE_PYTHON", raising=False)

    def run() -> list[list[int]]:
        method = make("optuna-tpe", SPACE, 3, 12)
        assert isinstance(method, Worker)
        for row in SPACE.enumerate_rows()[::3]:
            method.tell(row, float(row.sum()))
        asked = []
        for number in range(12):
            row = method.ask()
            asked.append(row.tolist())
            method.tell(row, float("nan") if number == 4 else float(row.sum()))
        assert "optuna" in method.versions
        method.close()
        return asked

    first = run()
    assert first == run()
    # with the told points it begins below the mean of the space, which is 2.5
    assert np.mean([sum(row) for row in first]) < 2.5


def need(peer: str, package: str) -> None:
    """Skip the test where the peer's interpreter does not have the package."""
    found = (
        f"import importlib.util; raise SystemExit(importlib.util.find_spec({package!r}) is None)"
    )
    if subprocess.run([python_of(peer), "-c", found], check=False).returncode:
        pytest.skip(f"{package} is not installed for {peer}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "package"),
    [
        ("optuna-gp", "torch"),
        ("smac", "smac"),
        ("nevergrad", "nevergrad"),
        ("catcma", "cmaes"),
        ("botorch", "botorch"),
    ],
)
def test_a_peer_runs_and_repeats_itself_where_it_is_installed(peer: str, package: str) -> None:
    need(peer, package)

    def run() -> list[list[int]]:
        method = make(peer, SPACE, 3, 5)
        assert isinstance(method, Worker)
        for row in SPACE.enumerate_rows()[::3]:
            method.tell(row, float(row.sum()))
        asked = []
        for number in range(5):
            asked.append(method.ask().tolist())
            method.tell(np.array(asked[-1]), float("nan") if number == 1 else float(sum(asked[-1])))
        assert package in method.versions
        method.close()
        return asked

    assert run() == run()


@pytest.mark.slow
def test_botorch_asks_for_new_points_until_there_are_none() -> None:
    need("botorch", "botorch")
    space = Space({"a": Categorical(["x", "y"]), "b": Ordinal([1, 5, 9]), "c": Categorical(["k"])})
    peer = make("botorch", space, 0, 6)
    rows = []
    for _ in range(6):
        rows.append(peer.ask().tolist())
        peer.tell(np.array(rows[-1]), float(sum(rows[-1])))
    assert sorted(rows) == space.enumerate_rows().tolist()
    with pytest.raises(BackendError, match="every point of the space has been told"):
        peer.ask()
