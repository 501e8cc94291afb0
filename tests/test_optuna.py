"""`MercboSampler`: Optuna's own suite, and what a study promises on top of it."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)
from optuna.trial import TrialState

from mercbo import Model, SettingError
from mercbo import optuna as door
from mercbo.optuna import MercboSampler, Record, axis_of, decompose

optuna.logging.set_verbosity(optuna.logging.WARNING)

# The model that is fitted soonest: what is tested is the way to it and back.
PLAIN = Model(inference="map", warp="none")


@pytest.mark.slow
class TestOptunasSuite(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """Optuna's tests of a sampler, none left out but those for several objectives
    (`MultiObjectiveSamplerTestCase`), which `SingleOnlySamplerTestCase` wants refused."""

    @pytest.fixture
    def sampler(self) -> Callable[[], optuna.samplers.BaseSampler]:
        return lambda: MercboSampler(seed=0, model=PLAIN)


SPACE: dict[str, BaseDistribution] = {
    "base": CategoricalDistribution(["A", "C", None]),
    "n": IntDistribution(2, 8, step=2),
    "wash": CategoricalDistribution([False, True]),
}
SIZE = 3 * 4 * 2


def value(params: dict[str, Any]) -> float:
    return params["n"] + 10 * (params["base"] is not None) + 3 * params["wash"]


def objective(trial: optuna.Trial) -> float:
    return value(
        {
            "base": trial.suggest_categorical("base", ["A", "C", None]),
            "n": trial.suggest_int("n", 2, 8, step=2),
            "wash": trial.suggest_categorical("wash", [False, True]),
        }
    )


def points(study: optuna.Study) -> list[tuple[Any, ...]]:
    return [tuple(t.params[name] for name in sorted(t.params)) for t in study.trials]


def sampler(**settings: Any) -> MercboSampler:
    return MercboSampler(**{"seed": 0, "model": PLAIN, **settings})


# -- axes --------------------------------------------------------------------------------------

AXES: list[tuple[BaseDistribution, int]] = [
    (CategoricalDistribution(["a", 1, None, "b"]), 4),
    (CategoricalDistribution(["a", 1, True, None, 1.0, 0, False]), 4),
    (IntDistribution(-3, 9, step=3), 5),
    (IntDistribution(1, 10, log=True), 10),
    (IntDistribution(1, 5000, log=True), 56),
    (IntDistribution(0, 1000), 64),
    (FloatDistribution(-1.0, 1.0, step=0.25), 9),
    (FloatDistribution(-10.2, 10.2, step=0.1), 64),
    (FloatDistribution(0.0, 1.0), 16),
    (FloatDistribution(1e-7, 1.0, log=True), 16),
]


@pytest.mark.parametrize(("distribution", "size"), AXES, ids=str)
def test_every_level_is_a_value_and_back(distribution: BaseDistribution, size: int) -> None:
    axis = axis_of("x", distribution, 16)
    assert axis is not None
    assert len(axis.values) == size == axis.variable.size
    for level, found in enumerate(axis.values):
        assert distribution._contains(distribution.to_internal_repr(found))
        assert axis.level(found) == level
    if not isinstance(distribution, CategoricalDistribution):
        assert (axis.values[0], axis.values[-1]) == (distribution.low, distribution.high)
        assert axis.level(distribution.high + 100) is None
        kind = int if isinstance(distribution, IntDistribution) else float
        assert {type(found) for found in axis.values} == {kind}
    assert axis.level("no such") is None


def test_values_between_two_levels_count_as_the_nearer_one_on_the_scale_of_the_axis() -> None:
    axis = axis_of("x", FloatDistribution(1.0, 100.0, log=True), 3)
    assert axis is not None
    assert axis.values == pytest.approx((1.0, 10.0, 100.0))
    assert [axis.level(v) for v in (3.0, 3.5, 31.0, 32.0)] == [0, 1, 1, 2]


def test_floats_may_be_left_to_another_sampler() -> None:
    assert axis_of("x", FloatDistribution(0.0, 1.0), None) is None
    study = optuna.create_study(sampler=sampler(float_levels=None, n_startup_trials=3))
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("n", 0, 3), n_trials=8)
    assert len({t.params["x"] for t in study.trials}) == 8


@pytest.mark.parametrize("wrong", [{"float_levels": 1}, {"float_levels": 65}])
def test_wrong_numbers_of_levels_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=r"float_levels=\d+ is not from 2 to 64"):
        MercboSampler(**wrong)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a"], r"search_space=\['a'\] is not a dict of name: distribution"),
        ({"a": [1, 2]}, r"search_space: 'a' is \[1, 2\]; a distribution of Optuna was wanted"),
    ],
)
def test_what_is_no_search_space_is_refused_at_once(given: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        MercboSampler(search_space=given)


def test_other_wrong_settings_are_refused_at_once() -> None:
    with pytest.raises(SettingError, match="acquisition='ucb' is not one of"):
        MercboSampler(acquisition="ucb")
    with pytest.raises(SettingError, match="seed='a'"):
        sampler(seed="a")
    with pytest.raises(SettingError, match="n_initial=0"):
        MercboSampler(n_startup_trials=0)


def test_groups_are_the_coarsest_that_every_trial_has_or_lacks() -> None:
    assert decompose([]) == []
    assert decompose([["b", "a"], ["a", "b"]]) == [["a", "b"]]
    assert decompose([["a", "b", "c"], ["b", "d"], ["c"]]) == [["a"], ["b"], ["c"], ["d"]]


# -- studies -----------------------------------------------------------------------------------


def test_a_space_is_tried_out_without_a_repeat_and_then_repeated_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = optuna.create_study(sampler=sampler())
    with caplog.at_level(logging.WARNING):
        study.optimize(objective, n_trials=SIZE)
    assert len(set(points(study))) == SIZE
    assert not caplog.records
    assert study.best_params == {"base": None, "n": 2, "wash": False}
    with caplog.at_level(logging.WARNING):
        study.optimize(objective, n_trials=1)
    assert "trial 24 repeats an earlier one: 1 asked for, 0 left" in caplog.text


@pytest.mark.parametrize("choices", [[0, False, "auto"], ["auto", True, 1, 0.0, False], [0, False]])
def test_equal_choices_do_not_keep_the_others_from_being_tried(
    choices: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    def objective(trial: optuna.Trial) -> float:
        k = trial.suggest_int("k", 0, 2)
        return k + (trial.suggest_categorical("c", choices) == "auto")

    different = 3 * len(set(choices))
    study = optuna.create_study(sampler=sampler())
    with caplog.at_level(logging.WARNING):
        study.optimize(objective, n_trials=different)
    assert len(set(points(study))) == different
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        study.optimize(objective, n_trials=1)
    assert "repeats an earlier one" in caplog.text


def test_an_equal_choice_counts_as_the_first() -> None:
    axis = axis_of("c", CategoricalDistribution([0, False, "auto"]), None)
    assert axis is not None
    assert axis.values == (0, "auto")
    assert [axis.level(v) for v in (0, False, "auto")] == [0, 0, 1]


def test_a_maximum_is_found() -> None:
    study = optuna.create_study(sampler=sampler(model=None), direction="maximize")
    study.optimize(objective, n_trials=14)
    assert study.best_value == 21


def test_the_same_seed_gives_the_same_study_whoever_continues_it() -> None:
    whole = optuna.create_study(sampler=sampler())
    whole.optimize(objective, n_trials=12)
    again = optuna.create_study(sampler=sampler())
    again.optimize(objective, n_trials=12)
    assert points(whole) == points(again)
    # a copy of the sampler goes on with all that matters, by pickle or in another process
    parted = optuna.create_study(sampler=sampler(), storage=optuna.storages.InMemoryStorage())
    parted.optimize(objective, n_trials=6)
    parted.sampler = pickle.loads(pickle.dumps(parted.sampler))
    parted.optimize(objective, n_trials=6)
    assert points(whole) == points(parted)


def test_without_a_seed_copies_differ_and_reseeding_changes_the_stream() -> None:
    first = MercboSampler(search_space=SPACE)
    copies = [first, pickle.loads(pickle.dumps(first))]
    for copy in copies:
        optuna.create_study(sampler=copy).ask(SPACE)
    assert copies[0]._entropy != copies[1]._entropy
    before = copies[0]._entropy
    copies[0].reseed_rng()
    optuna.create_study(sampler=copies[0]).ask(SPACE)
    assert copies[0]._entropy != before


def test_with_a_search_space_not_even_the_first_trials_repeat_one_another() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    trials = [study.ask(SPACE) for _ in range(SIZE)]
    assert len({tuple(t.params.values()) for t in trials}) == SIZE
    for trial in trials:
        study.tell(trial, value(trial.params))


@pytest.mark.slow
def test_threads_do_not_repeat_one_another() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    study.optimize(objective, n_trials=SIZE, n_jobs=2)
    assert len(set(points(study))) == SIZE


@pytest.mark.slow
def test_parameters_of_a_branch_are_modelled_for_themselves() -> None:
    def branches(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("deep", [False, True]):
            return 1 + trial.suggest_int("layers", 0, 7)
        return 5 + trial.suggest_int("width", 0, 7) + trial.suggest_int("bias", 0, 3)

    study = optuna.create_study(sampler=sampler(n_startup_trials=5))
    study.optimize(branches, n_trials=24)
    names = {group.axes for group in study.sampler._groups(study.trials)}
    assert {tuple(a.name for a in axes) for axes in names} == {
        ("bias", "width"), ("deep",), ("layers",),
    }  # fmt: skip
    assert study.best_params == {"deep": True, "layers": 0}


def test_a_range_that_moves_is_followed() -> None:
    study = optuna.create_study(sampler=sampler(n_startup_trials=3))
    study.optimize(lambda t: t.suggest_int("n", 0, 5), n_trials=5)
    study.optimize(lambda t: t.suggest_int("n", 4, 9), n_trials=5)
    late = [t.params["n"] for t in study.trials[-4:]]
    assert min(late) >= 4
    assert len(set(late)) == 4


# -- trials that end otherwise ------------------------------------------------------------------


def told(trials: list[optuna.trial.FrozenTrial], direction: str = "minimize") -> dict[int, float]:
    return door.outcomes(trials, 1.0 if direction == "minimize" else -1.0)


def make(
    number: int, state: TrialState, value: float | None = None, last: float | None = None
) -> optuna.trial.FrozenTrial:
    trial = optuna.trial.create_trial(
        state=state,
        value=value,
        params={"n": 2 + 2 * number},
        distributions={"n": IntDistribution(2, 20, step=2)},
        intermediate_values={} if last is None else {0: 99.0, 3: last},
    )
    trial.number = number
    return trial


def test_a_pruned_trial_counts_with_its_last_value_but_at_best_as_the_median() -> None:
    complete = [make(i, TrialState.COMPLETE, v) for i, v in enumerate([1.0, 2.0, 9.0])]
    pruned = [make(3, TrialState.PRUNED, last=0.5), make(4, TrialState.PRUNED, last=5.0)]
    nothing = [make(5, TrialState.PRUNED), make(6, TrialState.FAIL)]
    trials = [*complete, *pruned, *nothing]
    assert told(trials) == {0: 1.0, 1: 2.0, 2: 9.0, 3: 2.0, 4: 5.0}
    assert told(trials, "maximize") == {0: 1.0, 1: 2.0, 2: 9.0, 3: 0.5, 4: 2.0}


def test_infinite_values_count_as_the_worst_or_best_finite_one() -> None:
    values = [1.0, float("inf"), 4.0, -float("inf")]
    trials = [make(i, TrialState.COMPLETE, v) for i, v in enumerate(values)]
    assert told(trials) == {0: 1.0, 1: 4.0, 2: 4.0, 3: 1.0}
    assert told(trials[1:2]) == {}


@pytest.mark.slow
def test_failed_and_pruned_trials_are_not_tried_again() -> None:
    def sometimes(trial: optuna.Trial) -> float:
        found = objective(trial)
        if trial.params["base"] == "A":
            raise RuntimeError("the reactor is blocked")
        if trial.params["base"] == "C":
            raise optuna.TrialPruned
        return found

    study = optuna.create_study(sampler=sampler())
    study.optimize(sometimes, n_trials=SIZE, catch=RuntimeError)
    assert len(set(points(study))) == SIZE
    assert {t.state for t in study.trials} == {
        TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL,
    }  # fmt: skip
    # what works is tried before what does not
    assert study.best_trial.number < SIZE // 2


def test_what_breaks_a_constraint_is_a_failure() -> None:
    def broken(trial: optuna.trial.FrozenTrial) -> list[float]:
        return [-1.0, 1.0 if trial.params["wash"] else 0.0]

    study = optuna.create_study(sampler=sampler(constraints_func=broken))
    study.optimize(objective, n_trials=14)
    assert len(set(points(study))) == 14
    washed = [t for t in study.trials if t.params["wash"]]
    assert washed
    assert all(door.violates(t) for t in washed)
    assert sum(t.params["wash"] for t in study.trials[5:]) < 9 / 2
    group = study.sampler._groups(study.trials)[0]
    record = Record.of(group, study.trials, -1, "minimize")
    assert len(record.failed) == len(washed)
    assert len(record.told) == 14 - len(washed)


def test_constraints_that_a_trial_sets_count_too() -> None:
    trial = make(0, TrialState.COMPLETE, 1.0)
    trial.system_attrs = {"constraints:budget": -2.0, "constraints": [0.0]}
    assert not door.violates(trial)
    trial.system_attrs = {"constraints:budget": -2.0, "constraints:time": 0.5}
    assert door.violates(trial)


def test_enqueued_parameters_are_kept_and_the_others_fitted_to_them() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    study.optimize(objective, n_trials=8)
    tried = {t.params["n"] for t in study.trials if t.params["base"] == "C" and t.params["wash"]}
    for _ in range(4 - len(tried)):
        study.enqueue_trial({"base": "C", "wash": True})
    study.optimize(objective, n_trials=4 - len(tried))
    late = study.trials[8:]
    assert {(t.params["base"], t.params["wash"]) for t in late} == {("C", True)}
    assert len(set(points(study))) == len(study.trials)


def test_what_waits_with_all_parameters_is_not_suggested() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    for base in ("A", "C", None):
        for n in (2, 4, 6, 8):
            study.enqueue_trial({"base": base, "n": n, "wash": False})
    waiting = study.get_trials(deepcopy=False)
    group = study.sampler._groups([])[0]
    assert len(Record.of(group, waiting, -1, "minimize").taken) == 12


def test_several_objectives_are_refused_by_name() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler())
    with pytest.raises(ValueError, match="one objective, the study has 2"):
        study.ask(SPACE)


# -- many processes -----------------------------------------------------------------------------


def test_of_two_that_choose_the_same_point_one_chooses_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    rival = optuna.trial.Trial(study, study._storage.create_new_trial(study._study_id))
    real, claims = door.claim, []

    def claim_after_the_rival(study: Any, trial: Any, group: Any, point: Any, attempt: int) -> None:
        if not claims:
            real(study, study._storage.get_trial(rival._trial_id), group, point, 0)
        claims.append(point)
        real(study, trial, group, point, attempt)

    monkeypatch.setattr(door, "claim", claim_after_the_rival)
    trial = study.ask(SPACE)
    assert len(claims) == 2
    assert claims[0] != claims[1]
    assert trial.params == study.sampler._groups([])[0].params(claims[1])


def test_a_claim_too_long_for_one_attribute_comes_in_pieces_and_half_of_it_does_not_count() -> None:
    space = {f"parameter number {i} with a long name": IntDistribution(0, 3) for i in range(90)}
    study = optuna.create_study(sampler=sampler(search_space=space))
    trial = study.ask(space)
    frozen = study._storage.get_trial(trial._trial_id)
    assert len(frozen.system_attrs[f"{door.CLAIM}:0:0"]) == 2000
    assert f"{door.CLAIM}:0:1" in frozen.system_attrs
    assert door.claimed(frozen) == trial.params
    half = {k: v for k, v in frozen.system_attrs.items() if not k.endswith(":1")}
    frozen.system_attrs = half
    assert door.claimed(frozen) == {}


WORKER = """
import json, sys
import optuna
from mercbo import Model
from mercbo.optuna import MercboSampler
optuna.logging.set_verbosity(optuna.logging.WARNING)
space = {f"x{i}": optuna.distributions.CategoricalDistribution([0, 1, 2]) for i in range(3)}
study = optuna.load_study(
    study_name="shared", storage=sys.argv[1], sampler=MercboSampler(seed=0, search_space=space)
)
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
study.optimize(lambda t: sum(t.suggest_categorical(f"x{i}", [0, 1, 2]) for i in range(3)), 12)
"""


@pytest.mark.slow
def test_one_process_after_another_goes_on_with_a_study_without_a_repeat(tmp_path: Path) -> None:
    """Both with the same seed and made before the first trial, on 24 of 27 points. (That two in
    step may suggest the same, the sampler's documentation says.)"""
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    study = optuna.create_study(study_name="shared", storage=storage)
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER, storage],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    errors = [worker.communicate("\n", timeout=300)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], errors
    assert len(study.trials) == 24
    assert len(set(points(study))) == 24
    assert study.best_value == 0


def test_without_optuna_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['optuna'] = None; import mercbo.optuna"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'mercbo[optuna]'" in done.stderr


def test_model_and_backend_are_those_of_the_optimizer() -> None:
    study = optuna.create_study(
        sampler=sampler(model=Model(posterior="truncated"), backend="exhaustive")
    )
    study.optimize(objective, n_trials=8)
    assert len(set(points(study))) == 8
    assert json.dumps(study.trials[-1].params)


def test_a_branch_that_always_fails_is_left_alone() -> None:
    """Parameters that come before others may be to blame for a failure, or not: some failures
    without a single result tell."""

    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", ["line", "tree", "net"])
        if kind == "net":
            raise ValueError("no such library")
        if kind == "line":
            return 5.0 + abs(trial.suggest_int("slope", 0, 10) - 4)
        return float(trial.suggest_int("depth", 0, 10))

    study = optuna.create_study(sampler=sampler())
    study.optimize(objective, n_trials=40, catch=(ValueError,))
    failed = [t for t in study.trials if t.state == optuna.trial.TrialState.FAIL]
    assert len(failed) < 13  # a third, as by chance
    assert study.best_value == 0.0
