"""`minimize` on a cluster of Dask: a real scheduler and real workers, which the tests start."""

import signal
import threading
from pathlib import Path

import pytest
from support.cluster import PATIENCE, cluster
from support.objectives import HangingOnce, Traced, name_of, total, traces, wait_for
from support.stored import url_of

from mercbo import ExecutorError, Optimizer, Space, minimize
from mercbo.loop import campaign
from mercbo.loop.campaign import Campaign, Plan
from mercbo.loop.executors import Dask, as_pool
from mercbo.loop.progress import Silent

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    # connections of workers that were killed are dropped, not closed
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BITS = Space.binary(8)
QUIET = {"progress": False, "seed": 0, "n_initial": 1000}
WORKERS = 3


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster"), WORKERS + 1) as started:
        yield started


@pytest.fixture(scope="module")
def client(running):
    """A client that knows the scheduler by its address only."""
    with distributed.Client(running.address, timeout=PATIENCE, set_as_default=False) as connected:
        connected.wait_for_workers(WORKERS + 1, timeout=PATIENCE)
        yield connected


def test_every_point_is_evaluated_once_by_some_worker(client, tmp_path):
    result = minimize(Traced(tmp_path), BITS, budget=40, executor=client, **QUIET)
    found = traces(tmp_path)
    assert (len(result.observations), result.failures) == (40, ())
    assert set(found) == {name_of(o.point) for o in result.observations}
    assert all(len(processes) == 1 for processes in found.values())
    assert len({process for processes in found.values() for process in processes}) > 1
    assert all(o.value == total(o.point) for o in result.observations)


def test_an_executor_of_the_client_will_do(client):
    for executor in (client.get_executor(), client.get_executor(pure=True)):
        result = minimize(total, BITS, budget=6, executor=executor, **QUIET)
        assert len(result.observations) == 6
    pool = as_pool(client.get_executor(retries=2))
    assert isinstance(pool, Dask)
    assert pool.size == len(client.nthreads())


def test_a_point_is_evaluated_again_also_if_the_users_executor_takes_it_for_pure(client, tmp_path):
    executor = client.get_executor(pure=True)
    f = FailingFirst(tmp_path)
    result = minimize(f, BITS, budget=6, executor=executor, retries=1, **QUIET)
    assert (len(result.observations), result.failures) == (6, ())


class FailingFirst:
    """Raises at the first evaluation of each point."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __call__(self, point: dict) -> float:
        try:
            (Path(self.folder) / name_of(point)).touch(exist_ok=False)
        except FileExistsError:
            return float(sum(point.values()))
        raise OSError("the network is down")


def odd_fails(point: dict) -> float:
    if sum(point.values()) % 2:
        raise ValueError("odd")
    return float(sum(point.values()))


def test_failures_come_back_with_their_reason(client, caplog):
    result = minimize(odd_fails, BITS, budget=10, executor=client, retries=1, **QUIET)
    assert {failure.reason for failure in result.failures} == {"ValueError: odd"}
    assert len(result.observations) + len(result.failures) == 10
    assert caplog.text.count("trying again (1 of 1)") == len(result.failures)


def test_a_late_evaluation_is_given_up_and_no_other(client, tmp_path):
    """Its worker stays busy, and nothing that waits for it counts as late."""
    f = HangingOnce(tmp_path)
    result = minimize(f, BITS, budget=24, batch=8, executor=client, timeout=1, **QUIET)
    (tmp_path / "release").touch()
    assert [failure.reason for failure in result.failures] == ["TimedOut: no result within 1 s"]
    assert len(result.observations) == 23


class Releasing(Silent):
    """Counts the looks at the clock, and then lets other work end."""

    def __init__(self, release: Path):
        self.release, self.looks = release, 0

    def show(self, *_) -> None:
        self.looks += 1
        if self.looks == 60:
            self.release.touch()


def test_time_behind_other_tasks_of_the_cluster_does_not_count(client, tmp_path, monkeypatch):
    """60 looks take many times the limit."""
    monkeypatch.setattr(campaign, "LOOK", 0.05)
    release = tmp_path / "release"
    others = [client.submit(wait_for, release, pure=False) for _ in range(2 * (WORKERS + 1))]
    opt = Optimizer(BITS, seed=0, n_initial=1000)
    plan = Plan(total, 8, timeout=0.2)
    result = Campaign(plan, opt, as_pool(client)).run(Releasing(release))
    assert (len(result.observations), result.failures) == (8, ())
    assert client.gather(others) == [None] * len(others)


def test_a_client_that_is_closed_is_refused(running):
    with distributed.Client(running.address, timeout=PATIENCE, set_as_default=False) as closed:
        pass
    with pytest.raises(ExecutorError, match="is closed"):
        minimize(total, BITS, budget=6, executor=closed, **QUIET)


def test_a_client_that_is_closed_in_the_middle_ends_the_run_with_what_there_is(running, tmp_path):
    closing = distributed.Client(running.address, timeout=PATIENCE, set_as_default=False)
    done = []

    def callback(evaluation) -> None:
        done.append(evaluation)
        if len(done) == 5:
            closing.close()

    url = url_of(tmp_path)
    f = Traced(tmp_path, seconds=0.05)
    result = minimize(f, BITS, budget=20, executor=closing, callback=callback, storage=url, **QUIET)
    assert (result.stopped, result.failures) == ("executor", ())
    assert 5 <= len(result.observations) == len(done) < 20
    opt = Optimizer.open(url)
    assert (len(opt.observations), opt.pending) == (len(done), [])


def test_an_objective_that_cannot_be_sent_is_refused(client):
    lock = threading.Lock()
    with pytest.raises(ExecutorError, match=r"does not accept evaluations: .*serialize"):
        minimize(lambda _: (lock, 1.0)[1], BITS, budget=6, executor=client, **QUIET)


def test_a_worker_killed_in_the_middle_costs_nothing(running, client, tmp_path):
    """The last test of the module: there is a worker less afterwards. None is lost; only what
    that worker had begun is run again."""
    folder = tmp_path / "traces"
    folder.mkdir()
    victim = running.workers[-1]

    def callback(evaluation) -> None:
        # results that came together are all told before the first of their callbacks
        if victim.returncode is None and len(evaluation.optimizer.observations) >= 15:
            victim.kill()
            victim.wait(PATIENCE)

    url = url_of(tmp_path)
    result = minimize(
        Traced(folder, seconds=0.05), BITS, budget=50, executor=client, callback=callback,
        storage=url, **QUIET,
    )  # fmt: skip
    assert victim.returncode == -signal.SIGKILL
    assert (len(result.observations), result.failures) == (50, ())
    found = traces(folder)
    assert set(found) == {name_of(o.point) for o in result.observations}
    again = {name: processes for name, processes in found.items() if len(processes) > 1}
    assert all(victim.pid in processes[:-1] for processes in again.values())
    assert len(again) <= 5
    opt = Optimizer.open(url)
    assert (len(opt.observations), opt.pending) == (50, [])


def test_the_points_of_a_batch_are_the_same_as_without_workers(client):
    batches = []
    for executor in (None, client, client.get_executor()):
        opt = Optimizer(BITS, seed=0, n_initial=1, acquisition="thompson")
        points = BITS.points(BITS.enumerate_rows()[::9])
        opt.tell(points, [total(point) for point in points])
        batches.append(opt.ask(12, executor=executor))
    assert batches[0] == batches[1] == batches[2]
