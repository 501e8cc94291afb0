"""The loop of `minimize`: workers kept busy, and everything that may go wrong with them."""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import dimod
import pytest
from support.objectives import HangingOnce, Killing, Traced, name_of, total, traces, wait_for
from support.stored import SPACE, cost, log_of, url_of

from mercbo import (
    BackendError,
    Binary,
    ExecutorError,
    NoneFound,
    Optimizer,
    ResultError,
    Space,
    StateError,
    Where,
    minimize,
)
from mercbo.domain import feasible
from mercbo.loop import campaign
from mercbo.loop.campaign import Campaign, Plan
from mercbo.loop.executors import as_pool
from mercbo.loop.progress import Silent
from mercbo.record.store import Store

# points of the initial design only, where the model does not matter
QUIET = {"progress": False, "seed": 0, "n_initial": 1000}
BITS = Space.binary(8)


class Manual:
    """An executor whose evaluations are done when the test says so."""

    def __init__(self, workers: int):
        self._max_workers = workers
        self.running: list[tuple[Future, dict]] = []
        self.most = 0
        self.sent: list[dict] = []

    def submit(self, _call, point: dict) -> Future:
        future: Future = Future()
        future.set_running_or_notify_cancel()
        self.running.append((future, point))
        self.sent.append(point)
        self.most = max(self.most, len(self.running))
        return future

    def finish(self, number: int) -> None:
        future, point = self.running.pop(number)
        future.set_result(total(point))


def scripted(executor: Manual, order: list[int], **plan) -> list[int]:
    """Play a run in which evaluations end in a given order; the numbers running before each."""
    seen = []
    pool = as_pool(executor)
    wait = pool.finished

    def finished(seconds: float) -> list[Future]:
        seen.append(len(executor.running))
        executor.finish(order[len(seen) - 1] % len(executor.running))
        return wait(seconds)

    pool.finished = finished
    opt = Optimizer(BITS, seed=0, n_initial=1000)
    Campaign(Plan(total, **plan), opt, pool).run(Silent())
    return seen


def test_every_worker_gets_the_next_point_as_soon_as_it_is_free(monkeypatch):
    monkeypatch.setattr(campaign, "_mean", lambda *_: 0.0)  # asking takes no time
    executor = Manual(4)
    seen = scripted(executor, [3, 3, 0, 3, 1, 2, 3, 0, 1, 1, 2, 0], budget=12)
    assert seen == [4] * 9 + [3, 2, 1]
    assert len({name_of(point) for point in executor.sent}) == 12


def test_a_batch_is_the_number_of_points_that_are_out():
    assert scripted(Manual(2), [0] * 9, budget=9, batch=5) == [5] * 5 + [4, 3, 2, 1]


@pytest.mark.parametrize(("ratio", "ahead"), [(0.001, 0), (0.1, 1), (0.5, 2), (5.0, 4)])
def test_points_are_asked_for_ahead_where_asking_takes_long(ratio, ahead):
    """While one is asked for, 4 * ratio workers become free."""
    running = Campaign(Plan(total, 9), Optimizer(BITS), as_pool(Manual(4)))
    assert running._room() == 4
    running._asking, running._evaluating = ratio, 1.0
    assert running._room() == 4 + ahead


def test_asks_that_take_long_now_and_then_are_reckoned_with():
    running = Campaign(Plan(total, 9), Optimizer(BITS), as_pool(Manual(4)))
    running._evaluating = 1.0
    for _ in range(50):
        running._note_ask(0.01)
    assert running._room() == 4
    for seconds in (*[0.01] * 9, 0.6) * 3:
        running._note_ask(seconds)
    assert running._room() > 5
    for _ in range(50):
        running._note_ask(0.01)
    assert running._room() == 4


def test_without_an_executor_nothing_is_asked_for_ahead():
    running = Campaign(Plan(total, 9), Optimizer(BITS), as_pool(None))
    running._asking, running._evaluating = 5.0, 1.0
    assert running._room() == 1


def test_threads_evaluate_every_point_once():
    lock, calls = threading.Lock(), []

    def f(point: dict) -> float:
        with lock:
            calls.append(name_of(point))
        return total(point)

    with ThreadPoolExecutor(5) as executor:
        result = minimize(f, BITS, budget=60, executor=executor, **QUIET)
    assert len(calls) == len(set(calls)) == len(result.observations) == 60
    assert result.optimizer.pending == []


# -- evaluations that fail ---------------------------------------------------------------------


def fails_on_odd(point: dict) -> float:
    if sum(point.values()) % 2:
        raise ValueError("odd")
    return total(point)


@pytest.mark.parametrize("workers", [0, 3])
def test_an_exception_makes_a_failed_point_and_a_line_with_its_traceback(workers, caplog):
    executor = ThreadPoolExecutor(workers) if workers else None
    result = minimize(fails_on_odd, BITS, budget=20, executor=executor, catch=ValueError, **QUIET)
    assert len(result.observations) + len(result.failures) == 20
    assert len(result.failures) > 3
    assert all(sum(failure.point.values()) % 2 for failure in result.failures)
    assert {failure.reason for failure in result.failures} == {"ValueError: odd"}
    assert [failure.point for failure in result.failures] == result.optimizer.failed
    assert caplog.text.count('raise ValueError("odd")') == len(result.failures)


@pytest.mark.parametrize("value", ["much", float("inf"), [1.0], 1j, {}])
def test_what_is_no_result_is_a_failure_that_says_so(value, caplog):
    with pytest.raises(ResultError):
        minimize(lambda _: value, BITS, budget=2, **QUIET)
    result = minimize(lambda _: value, BITS, budget=2, catch=ResultError, **QUIET)
    assert all(failure.reason.startswith("ResultError: ") for failure in result.failures)
    assert len(result.failures) == 2
    assert "failed" in caplog.text


@pytest.mark.parametrize("retries", [0, 1, 2, 5])
def test_an_evaluation_is_tried_again_as_often_as_wanted(retries, caplog):
    tries: dict[str, int] = {}

    def f(point: dict) -> float:
        tries[name_of(point)] = tries.get(name_of(point), 0) + 1
        if tries[name_of(point)] <= 2:
            raise OSError("the network is down")
        return total(point)

    result = minimize(f, BITS, budget=4, retries=retries, catch=OSError, **QUIET)
    assert set(tries.values()) == {min(retries, 2) + 1}
    assert len(tries) == 4
    assert len(result.failures) == (4 if retries < 2 else 0)
    assert caplog.text.count("trying again") == 4 * min(retries, 2)


# -- objectives that are wrong -----------------------------------------------------------------


def always_raises(_point: dict) -> float:
    raise KeyError("yield")


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_minimize_raises_what_all_of_the_first_batch_raise(workers, kept, tmp_path, caplog):
    executor = ThreadPoolExecutor(workers) if workers else None
    options = {"executor": executor, "storage": url_of(tmp_path) if kept else None, **QUIET}
    with pytest.raises(KeyError, match="yield") as caught:
        minimize(always_raises, BITS, budget=30, **options)
    assert traceback.extract_tb(caught.tb)[-1].name == "always_raises"
    number = max(workers, 1)
    assert f"the first {number} evaluations raised KeyError; pass catch=KeyError" in caplog.text
    if not kept:
        return
    opt = Optimizer.open(url_of(tmp_path))
    assert (opt.observations, opt.failed) == ([], [])
    left = opt.pending
    assert len(left) >= number
    evaluated: list[dict] = []
    options["executor"] = None
    result = minimize(lambda p: evaluated.append(p) or total(p), BITS, budget=30, **options)
    assert evaluated[: len(left)] == left
    assert (len(result.observations), result.failures) == (30, ())


def test_minimize_leaves_nothing_pending_when_it_raises():
    seen = []

    class Watched(Optimizer):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            seen.append(self)

    with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(3) as executor:
        patched.setattr("mercbo.loop.driver.Optimizer", Watched)
        with pytest.raises(KeyError):
            minimize(always_raises, BITS, budget=30, executor=executor, **QUIET)
    assert (seen[0].pending, seen[0].failed) == ([], [])


def test_minimize_raises_what_worker_processes_raise():
    with pytest.raises(KeyError, match="yield") as caught:
        minimize(always_raises, BITS, budget=30, workers=2, **QUIET)
    assert "in always_raises" in str(caught.value.__cause__)


class Scripted:
    """Answers in the order of the script: a number, or an exception to raise; then numbers."""

    def __init__(self, *script):
        self.script, self.calls = list(script), 0

    def __call__(self, _point: dict) -> float | None:
        self.calls += 1
        answer = self.script.pop(0) if self.script else 1.0
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("first", [1.0, None, float("nan")])
def test_an_exception_after_the_first_evaluation_is_a_failure(first):
    f = Scripted(first, *(KeyError("yield") for _ in range(30)))
    result = minimize(f, BITS, budget=24, **QUIET)
    assert (f.calls, result.stopped) == (24, "budget")
    assert len(result.failures) == (23 if first == 1.0 else 24)


def test_a_first_batch_with_different_exceptions_is_a_batch_of_failures():
    f = Scripted(KeyError("a"), KeyError("b"), ValueError("c"))
    result = batched(f, budget=6, batch=3)
    reasons = [failure.reason for failure in result.failures]
    assert reasons == ["KeyError: 'a'", "KeyError: 'b'", "ValueError: c"]
    assert len(result.observations) == 3


def test_a_first_batch_with_one_result_is_no_reason_to_raise():
    result = batched(Scripted(KeyError("a"), KeyError("b"), 1.0), budget=6, batch=3)
    assert (len(result.failures), len(result.observations)) == (2, 4)


def test_a_first_batch_that_raises_the_same_type_is_a_reason_to_raise():
    f = Scripted(*(KeyError(letter) for letter in "abcdef"))
    with pytest.raises(KeyError, match="a"):
        batched(f, budget=6, batch=3)


def batched(f, **options):
    """A run in one thread, whose first batch is evaluated in the order in which it is sent."""
    with ThreadPoolExecutor(1) as executor:
        return minimize(f, BITS, executor=executor, **options, **QUIET)


def test_results_of_an_earlier_call_are_no_reason_to_raise(tmp_path):
    kept = {**QUIET, "storage": url_of(tmp_path)}
    minimize(total, BITS, budget=2, **kept)
    result = minimize(always_raises, BITS, budget=5, **kept)
    assert (len(result.observations), len(result.failures)) == (2, 3)


@pytest.mark.parametrize("catch", [KeyError, LookupError, (OSError, KeyError), Exception])
@pytest.mark.parametrize("workers", [0, 3])
def test_an_exception_in_catch_is_never_raised(catch, workers):
    executor = ThreadPoolExecutor(workers) if workers else None
    result = minimize(always_raises, BITS, budget=30, catch=catch, executor=executor, **QUIET)
    assert (len(result.failures), result.stopped, result.best) == (30, "budget", None)


def test_an_exception_that_is_not_in_catch_is_raised():
    with pytest.raises(KeyError):
        minimize(always_raises, BITS, budget=30, catch=(OSError, ValueError), **QUIET)


def test_an_exception_of_the_first_evaluation_is_raised_after_its_retries():
    with pytest.raises(OSError, match="third"):
        minimize(Scripted(OSError("first"), OSError("second"), OSError("third")), BITS, budget=3,
                 retries=2, **QUIET)  # fmt: skip
    result = minimize(Scripted(OSError(), OSError(), 1.0), BITS, budget=3, retries=2, **QUIET)
    assert len(result.observations) == 3


def test_a_timeout_error_of_the_objective_is_an_exception_like_others():
    with pytest.raises(TimeoutError, match="the server does not answer"):
        minimize(Scripted(TimeoutError("the server does not answer")), BITS, budget=3, **QUIET)


def test_the_run_goes_on_once_the_objective_is_mended_without_a_word(tmp_path):
    kept = {**QUIET, "storage": url_of(tmp_path)}
    with pytest.raises(KeyError):
        minimize(always_raises, BITS, budget=24, **kept)
    result = minimize(total, BITS, budget=24, **kept)
    assert (len(result.observations), result.failures, result.stopped) == (24, (), "budget")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_printed_is_a_failure():
    result = minimize(Scripted(1.0, Mute()), BITS, budget=3, **QUIET)
    assert [failure.reason for failure in result.failures] == ["Mute: <its __str__ raises>"]
    with pytest.raises(Mute):
        minimize(Scripted(Mute()), BITS, budget=3, **QUIET)


# -- executors that are shut down --------------------------------------------------------------


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("kept", [False, True])
def test_an_executor_that_is_shut_down_is_refused_and_nothing_is_pending(make, kept, tmp_path):
    executor, storage = make(2), url_of(tmp_path) if kept else None
    executor.shutdown()
    with pytest.raises(ExecutorError, match="cannot schedule new futures after shutdown"):
        minimize(total, BITS, budget=9, executor=executor, storage=storage, **QUIET)
    if kept:
        assert Optimizer.open(storage).pending == []
        result = minimize(total, BITS, budget=9, storage=storage, **QUIET)
        assert len(result.observations) == 9


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_that_is_shut_down_in_the_middle_ends_the_run_with_what_there_is(make, caplog):
    executor, done = make(2), []

    def callback(evaluation) -> None:
        done.append(evaluation)
        if len(done) == 4:
            executor.shutdown(wait=False)

    result = minimize(total, BITS, budget=30, executor=executor, callback=callback, **QUIET)
    assert result.stopped == "executor"
    assert 4 <= len(result.observations) == len(done) < 30
    assert (result.failures, result.optimizer.pending) == ((), [])
    assert "cannot schedule new futures after shutdown; the run ends here" in caplog.text


def refuse() -> None:
    raise ValueError("no licence")


def test_a_thread_pool_whose_initializer_raises_is_refused(caplog):
    executor = ThreadPoolExecutor(2, initializer=refuse)
    with pytest.raises(ExecutorError, match="is broken"):
        minimize(total, BITS, budget=9, executor=executor, **QUIET)
    assert "no licence" in caplog.text


@pytest.mark.parametrize("own", [False, True])
def test_processes_that_all_die_are_no_reason_to_blame_the_points(own):
    options = {"workers": 2} if own else {"executor": ProcessPoolExecutor(2)}
    with pytest.raises(
        ExecutorError, match=r"the pool breaks each time it evaluates .*terminated abruptly"
    ):
        minimize(ends_its_process, BITS, budget=9, **options, **QUIET)


def ends_its_process(_point: dict) -> float:
    os._exit(1)


class Unreadable:
    """Can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("unreadable",)


def returns_unreadable(point: dict) -> object:
    return Unreadable() if point["x0"] else total(point)


def test_an_answer_that_breaks_the_pool_is_a_failure_and_its_cause_is_logged(caplog):
    result = minimize(returns_unreadable, BITS, budget=8, workers=2, **QUIET)
    assert len(result.observations) + len(result.failures) == 8
    assert all(failure.point["x0"] for failure in result.failures)
    assert "invalid literal for int() with base 10: 'unreadable'" in caplog.text


def test_a_value_outside_target_bounds_is_a_failure():
    options = {"target_bounds": (None, 3), "catch": ResultError, **QUIET}
    result = minimize(total, BITS, budget=20, **options)
    assert len(result.observations) + len(result.failures) == 20
    assert all(seen.value <= 3 for seen in result.observations)
    assert result.failures
    assert all("is outside target_bounds=(-inf, 3)" in each.reason for each in result.failures)


# -- time limits -------------------------------------------------------------------------------


def slow_on_first(point: dict) -> float:
    if point["x0"]:
        time.sleep(60)
    return total(point)


def test_a_time_limit_here_interrupts():
    result = minimize(slow_on_first, BITS, budget=6, timeout=0.5, **QUIET)
    assert {failure.reason for failure in result.failures} == {"TimedOut: no result within 0.5 s"}
    assert all(failure.point["x0"] for failure in result.failures)
    assert len(result.observations) + len(result.failures) == 6


def test_a_late_thread_is_given_up_and_its_answer_ignored():
    release, lock, late = threading.Event(), threading.Lock(), []

    def f(point: dict) -> float:
        with lock:
            held = bool(point["x0"]) and not late
            late.extend([point] * held)
        if held:
            release.wait(60)
            return -1000.0
        return total(point)

    def seen(evaluation) -> None:
        if evaluation.value is None:
            release.set()  # the answer comes after it was given up

    with ThreadPoolExecutor(2) as executor:
        result = minimize(
            f, BITS, budget=12, executor=executor, timeout=1.0, callback=seen, **QUIET
        )
    assert [failure.point for failure in result.failures] == late
    assert result.failures[0].reason == "TimedOut: no result within 1 s"
    assert len(result.observations) == 11
    assert result.best.value >= 0


def test_where_every_thread_is_late_the_run_waits_for_them(caplog):
    release = threading.Event()

    def f(point: dict) -> float:
        release.wait(60)  # the first two only: it is set by then
        return total(point)

    given_up = []

    def seen(evaluation) -> None:
        given_up.extend([evaluation.point] * (evaluation.value is None))
        if len(given_up) == 2 and not release.is_set():  # both are held: let the run wait a while
            threading.Timer(0.3, release.set).start()

    with ThreadPoolExecutor(2) as executor:
        result = minimize(f, BITS, budget=4, executor=executor, timeout=1.0, callback=seen, **QUIET)
    assert (len(result.failures), len(result.observations)) == (2, 2)
    assert "every worker is busy with an evaluation that is over its time" in caplog.text


def test_a_time_limit_here_leaves_the_callers_timer_running():
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        minimize(total, BITS, budget=6, timeout=60, **QUIET)
        left, _ = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert 500 < left <= 1000


def test_a_process_of_the_user_that_does_not_stop_is_left_alone_with_all_other_work(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(campaign, "GRACE", 0.0)
    with ProcessPoolExecutor(3) as executor:
        unrelated = executor.submit(wait_for, tmp_path / "release")
        result = minimize(
            HangingOnce(tmp_path), BITS, budget=9, executor=executor, timeout=1.0, **QUIET
        )
        assert not unrelated.done()
        (tmp_path / "release").touch()
        assert unrelated.result(60) is None
        assert executor.submit(total, {"x": 2}).result(60) == 2.0
    assert [failure.reason for failure in result.failures] == ["TimedOut: no result within 1 s"]
    assert len(result.observations) == 8


class Releasing(Silent):
    """Counts the looks at the clock, and then lets other work end."""

    def __init__(self, release: Path):
        self.release, self.looks = release, 0

    def show(self, *_) -> None:
        self.looks += 1
        if self.looks == 30:
            self.release.touch()


def test_time_behind_other_work_of_the_users_pool_does_not_count(tmp_path, monkeypatch):
    """30 looks take many times the limit."""
    monkeypatch.setattr(campaign, "GRACE", 0.0)
    monkeypatch.setattr(campaign, "LOOK", 0.05)
    with ProcessPoolExecutor(1) as executor:
        executor.submit(wait_for, tmp_path / "release")
        pool, opt = as_pool(executor), Optimizer(BITS, seed=0, n_initial=1000)
        shown = Releasing(tmp_path / "release")
        result = Campaign(Plan(total, 2, timeout=0.2), opt, pool).run(shown)
        pool.close()
    assert (len(result.observations), result.failures) == (2, ())


def test_a_process_of_minimize_that_does_not_stop_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "GRACE", 0.0)
    before = set(multiprocessing.active_children())
    result = minimize(HangingOnce(tmp_path), BITS, budget=9, workers=2, timeout=1.0, **QUIET)
    assert [failure.reason for failure in result.failures] == ["TimedOut: no result within 1 s"]
    assert len(result.observations) == 8
    assert set(multiprocessing.active_children()) == before


@pytest.mark.parametrize("ended", ["callback", "raised", "interrupted"])
def test_processes_of_minimize_end_with_the_run(ended, tmp_path):
    """One of them waits for ever."""
    before = set(multiprocessing.active_children())

    def callback(_) -> bool:
        if ended == "raised":
            raise ZeroDivisionError
        if ended == "interrupted":
            raise KeyboardInterrupt
        return True

    run = {"budget": 9, "workers": 2, "callback": callback, **QUIET}
    if ended == "raised":
        with pytest.raises(ZeroDivisionError):
            minimize(HangingOnce(tmp_path), BITS, **run)
    else:
        assert minimize(HangingOnce(tmp_path), BITS, **run).stopped == ended
    assert set(multiprocessing.active_children()) == before


@pytest.mark.slow
def test_processes_that_do_not_stop_are_killed_and_the_others_are_sent_again(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "GRACE", 0.5)
    folder = tmp_path / "traces"
    folder.mkdir()
    result = minimize(Traced(folder, hanging=3), BITS, budget=16, workers=2, timeout=2, **QUIET)
    hung = [failure.point for failure in result.failures]
    assert hung
    assert all(point["x0"] and point["x1"] and point["x2"] for point in hung)
    assert len(result.observations) + len(hung) == 16


# -- workers that die --------------------------------------------------------------------------


def test_a_killed_worker_process_costs_nothing(tmp_path, caplog):
    with ProcessPoolExecutor(3) as executor:
        result = minimize(Killing(tmp_path), BITS, budget=20, executor=executor, **QUIET)
    assert (tmp_path / "killed").exists()
    assert (len(result.observations), result.failures) == (20, ())
    (tmp_path / "killed").unlink()
    assert set(traces(tmp_path)) == {name_of(o.point) for o in result.observations}
    assert "lost with their worker" in caplog.text


@pytest.mark.slow
def test_a_point_that_ends_its_worker_fails_and_no_other_does(tmp_path):
    f = Traced(tmp_path, deadly=4)
    with ProcessPoolExecutor(3) as executor:
        result = minimize(f, BITS, budget=30, executor=executor, **QUIET)
    deadly = {name_of(failure.point) for failure in result.failures}
    assert deadly
    assert all(name.startswith("1111") for name in deadly)
    assert all("the pool breaks each time" in failure.reason for failure in result.failures)
    assert not any(name_of(o.point).startswith("1111") for o in result.observations)
    assert len(result.observations) + len(deadly) == 30


# -- ends --------------------------------------------------------------------------------------


def test_a_callback_sees_every_evaluation_and_may_end_the_run():
    seen = []

    def callback(evaluation) -> bool:
        seen.append(evaluation)
        assert evaluation.optimizer.observations[-1].value == evaluation.value
        return len(seen) == 4

    result = minimize(cost, BITS, budget=20, callback=callback, **QUIET)
    assert (result.stopped, len(seen)) == ("callback", 4)
    assert [(e.point, e.value) for e in seen] == [(o.point, o.value) for o in result.observations]
    assert all(evaluation.seconds >= 0 for evaluation in seen)
    assert result.optimizer.pending == []


def test_a_callback_that_raises_ends_the_run_with_its_error_and_leaves_nothing_pending():
    opts = []

    def callback(evaluation) -> None:
        opts.append(evaluation.optimizer)
        raise ZeroDivisionError

    with ThreadPoolExecutor(3) as executor, pytest.raises(ZeroDivisionError):
        minimize(cost, BITS, budget=20, executor=executor, callback=callback, **QUIET)
    assert opts[0].pending == []
    assert len(opts[0].observations) >= 1


@pytest.mark.parametrize("at", [4, 7, 10])
def test_minimize_interrupted_in_a_transaction_releases_the_write_lock(at, tmp_path, monkeypatch):
    begun, real = [], Store.begin

    def begin(store: Store, since: int):
        news = real(store, since)
        begun.append(since)
        if len(begun) == at:
            raise KeyboardInterrupt
        return news

    monkeypatch.setattr(Store, "begin", begin)
    storage = f"{url_of(tmp_path)}?timeout=2"
    with ThreadPoolExecutor(3) as executor:
        result = minimize(total, BITS, budget=90, executor=executor, storage=storage, **QUIET)
    assert result.stopped == "interrupted"
    assert Optimizer.open(storage).to_dict() == result.optimizer.to_dict()


@pytest.mark.parametrize("kept", [False, True])
def test_control_c_keeps_what_is_done(kept, tmp_path, caplog):
    """A real signal, while threads evaluate and the main thread waits."""
    calls, storage = [], url_of(tmp_path) if kept else None
    release, lock = threading.Event(), threading.Lock()

    def f(point: dict) -> float:
        with lock:
            calls.append(point)
            number = len(calls)
        if number == 6:
            os.kill(os.getpid(), signal.SIGINT)
        if number >= 6:
            release.wait(60)
        return cost(point)

    with ThreadPoolExecutor(3) as executor:
        result = minimize(f, BITS, budget=20, executor=executor, storage=storage, **QUIET)
        release.set()
    assert result.stopped == "interrupted"
    done = len(result.observations)
    assert 3 <= done <= 6
    assert f"interrupted after {done} evaluations" in caplog.text
    if not kept:
        assert result.optimizer.pending == []
        return
    assert "make the same call to go on with sqlite:///" in caplog.text
    assert Optimizer.open(storage).to_dict() == result.optimizer.to_dict()
    left = Optimizer.open(storage).pending
    assert len(left) >= len(calls) - done
    again = []
    minimize(lambda p: again.append(p) or cost(p), BITS, budget=20, storage=storage, **QUIET)
    assert again[: len(left)] == left
    assert len(again) == 20 - done
    assert len(Optimizer.open(storage).observations) == 20


def test_control_c_in_an_evaluation_here_ends_the_run_too():
    calls = []

    def f(point: dict) -> float:
        calls.append(point)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return cost(point)

    result = minimize(f, BITS, budget=20, **QUIET)
    assert (result.stopped, len(result.observations)) == ("interrupted", 2)
    assert result.optimizer.pending == []


def test_a_store_that_fails_ends_the_run_with_its_error(tmp_path, monkeypatch):
    url = url_of(tmp_path)
    told = Optimizer.tell

    def tell(opt, *arguments, **options) -> None:
        if len(opt.observations) == 3:
            raise StateError("the disk is full")
        told(opt, *arguments, **options)

    monkeypatch.setattr(Optimizer, "tell", tell)
    with pytest.raises(StateError, match="the disk is full"):
        minimize(cost, SPACE, budget=9, storage=url, **QUIET)
    monkeypatch.undo()
    assert [len(Optimizer.open(url).observations), len(Optimizer.open(url).pending)] == [3, 1]
    result = minimize(cost, SPACE, budget=9, storage=url, **QUIET)
    assert len(result.observations) == 9
    assert [entry.kind for entry in log_of(url)].count("ask") == 9


def test_an_ask_that_fails_ends_the_run_after_the_evaluations_that_are_out(tmp_path, monkeypatch):
    release, asked, url = threading.Event(), Optimizer.ask, url_of(tmp_path)
    first = threading.Lock()

    def ask(opt, count):
        if opt.observations:
            release.set()
            raise BackendError("the service is down")
        return asked(opt, count)

    def f(point: dict) -> float:
        if not first.acquire(blocking=False):
            release.wait(60)
        return total(point)

    monkeypatch.setattr(Optimizer, "ask", ask)
    with ThreadPoolExecutor(3) as executor, pytest.raises(BackendError, match="service is down"):
        minimize(f, BITS, budget=9, executor=executor, storage=url, **QUIET)
    opt = Optimizer.open(url)
    assert (len(opt.observations), opt.pending) == (3, [])


class Interrupted(dimod.Sampler):
    """A backend that hangs until Ctrl-C."""

    parameters: ClassVar[dict] = {}
    properties: ClassVar[dict] = {}

    def sample(self, *_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)


def test_control_c_ends_a_backend_that_hangs_and_nothing_is_pending():
    opt = Optimizer(BITS, seed=0, n_initial=2, backend=Interrupted())
    opt.tell(opt.ask(2), [1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        opt.ask()
    assert opt.pending == []
    opt.tell(opt.space.points(opt.space.enumerate_rows()[:1]), [3.0])
    result = minimize(
        total, BITS, budget=9, backend=Interrupted(), n_initial=2, seed=0, progress=False
    )
    assert (result.stopped, len(result.observations)) == ("interrupted", 2)
    assert result.optimizer.pending == []


def test_failures_of_points_that_have_a_result_count_towards_the_budget() -> None:
    """A history keeps nothing of them, and a point that fails when it is repeated would be asked
    for again without end."""
    calls: list[tuple] = []

    def fails_again(point: dict) -> float | None:
        found = tuple(point.values())
        calls.append(found)
        return None if calls.count(found) > 1 else float(sum(found))

    result = minimize(fails_again, Space.binary(3), budget=20, repeats="allow", **QUIET)
    assert (len(calls), result.stopped) == (20, "budget")
    assert len(result.observations) == len(set(calls))


def test_a_predicate_of_which_no_other_point_is_found_ends_the_run(monkeypatch, caplog) -> None:
    """Whether there are others nobody knows; what was evaluated is kept."""
    monkeypatch.setattr(feasible, "LONG_PATIENCE", 5_000)
    bits = {f"x{i}": Binary() for i in range(15)}
    few = Space(bits, [Where(lambda p: sum(p.values()) <= 1, name="few")])
    result = minimize(total, few, budget=60, **QUIET)
    assert result.stopped == "exhausted"
    assert 0 < len(result.observations) <= 16
    assert "long search met no other point that satisfies [Where('few')]" in caplog.text
    none = Space(bits, [Where(lambda p: sum(p.values()) > 99, name="none")])
    with pytest.raises(NoneFound, match="long search"):
        minimize(total, none, budget=60, **QUIET)
