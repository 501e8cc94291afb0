"""Pictures: what is drawn is what the run says, and what cannot be drawn is refused in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercbo import Binary, Categorical, NoResults, Optimizer, SettingError, Space, plots

SPACE = Space({"a$": Categorical(["p$", "q", "r"]), "b": Binary(), "c": Binary()})


@pytest.fixture(scope="module")
def opt() -> Optimizer:
    opt = Optimizer(SPACE, direction="maximize", seed=0)
    points = SPACE.points(SPACE.enumerate_rows())
    opt.tell(points[:9], [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5])
    opt.ask(3)
    return opt


@pytest.fixture(scope="module")
def explained(opt: Optimizer):
    return opt.explain()


def saved(ax: object, tmp_path: Path) -> None:
    plots.save(ax, tmp_path / "p.svg")
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_convergence_shows_results_and_the_best_so_far(opt: Optimizer, tmp_path: Path) -> None:
    ax = plots.convergence(opt)
    results, best = ax.get_lines()
    assert results.get_ydata().tolist() == [o.value for o in opt.observations]
    assert best.get_ydata().tolist() == [3.0, 3.0, 4.0, 4.0, 5.0, 9.0, 9.0, 9.0, 9.0]
    saved(ax, tmp_path)


def test_a_file_that_is_no_picture_is_refused(opt: Optimizer, tmp_path: Path) -> None:
    ax = plots.convergence(opt)
    with pytest.raises(SettingError, match=r"p\.doc: the ending \.doc is none of a picture; .*png"):
        plots.save(ax, tmp_path / "p.doc")
    with pytest.raises(SettingError, match=r"has no ending; possible are .*\.svg"):
        plots.save(ax, tmp_path / "p")
    assert list(tmp_path.iterdir()) == []


def test_axes_that_are_given_are_drawn_on(opt: Optimizer) -> None:
    ax = plots.convergence(opt)
    before = len(ax.get_lines())
    assert plots.convergence(opt, ax=ax) is ax
    assert len(ax.get_lines()) == 2 * before


def test_effects_have_a_row_per_value(explained, tmp_path: Path) -> None:
    ax = plots.effects(explained)
    labels = {text.get_text() for text in ax.get_yticklabels()}
    assert labels == {r"a\$ = p\$", r"a\$ = q", r"a\$ = r", "b = 0", "b = 1", "c = 0", "c = 1"}
    saved(ax, tmp_path)
    assert len(plots.effects(explained, variables=["b"]).get_yticklabels()) == 2
    with pytest.raises(SettingError, match="'d' has no effect"):
        plots.effects(explained, variables=["d"])


def test_interactions_by_share_and_by_value(explained, tmp_path: Path) -> None:
    ax = plots.interactions(explained)
    shares = ax.get_images()[0].get_array()
    assert shares.shape == (3, 3)
    assert shares[0, 1] == pytest.approx(100 * explained.pairs[0].main)
    saved(ax, tmp_path)
    ax = plots.interactions(explained, variables=("b", "a$"))
    cells = [each.estimate for each in explained.interactions if each.variables == ("a$", "b")]
    np.testing.assert_allclose(ax.get_images()[0].get_array().ravel(), cells)
    saved(ax, tmp_path)
    with pytest.raises(SettingError, match="no interaction of 'b' and 'x'"):
        plots.interactions(explained, variables=("b", "x"))
    with pytest.raises(SettingError, match="two names were wanted"):
        plots.interactions(explained, variables=("b",))


def test_predicted_against_observed(explained, opt: Optimizer, tmp_path: Path) -> None:
    ax = plots.predicted(explained)
    points = ax.get_lines()[0]
    assert points.get_ydata().tolist() == [o.value for o in opt.observations]
    assert points.get_xdata().tolist() == [each.predicted for each in explained.check.results]
    saved(ax, tmp_path)


def test_best_designs_come_first(opt: Optimizer, tmp_path: Path) -> None:
    ax = plots.best_designs(opt, count=4)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["9", "6", "5.5", "5"]
    saved(ax, tmp_path)


def test_batch_diversity_counts_every_pair(opt: Optimizer, tmp_path: Path) -> None:
    ax = plots.batch_diversity(opt)
    assert sum(bar.get_height() for bar in ax.patches) == 3  # pairs of 3 designs
    saved(ax, tmp_path)
    with pytest.raises(SettingError, match="at least 2 designs"):
        plots.batch_diversity(opt, points=[opt.pending[0]])


def test_a_logo_is_as_high_as_the_best_agree(tmp_path: Path) -> None:
    space = Space({f"p{i}": Categorical(list("ACGT")) for i in range(3)})
    opt = Optimizer(space, seed=0)
    opt.tell([["A", c, "G"] for c in "ACGT"], [1.0, 2.0, 3.0, 4.0])
    ax = plots.sequence_logo(opt)
    tops = [0.0, 0.0, 0.0]
    for patch in ax.patches:
        box = patch.get_path().get_extents(patch.get_transform() - ax.transData)
        tops[round(box.x0 + 0.45)] = max(tops[round(box.x0 + 0.45)], box.y1)
    # with the pseudo-count of one: shares of 17/20 and 1/20, of 2 bits
    agreed = 2 + 0.85 * np.log2(0.85) + 3 * 0.05 * np.log2(0.05)
    assert tops == pytest.approx([agreed, 0.0, agreed], abs=0.06)
    saved(ax, tmp_path)


def test_a_logo_of_what_is_no_sequence_is_refused(opt: Optimizer) -> None:
    with pytest.raises(SettingError, match="single characters"):
        plots.sequence_logo(opt)


def test_backends_are_compared_by_their_mean_best(tmp_path: Path) -> None:
    runs = {"one": [[3.0, 1.0, 2.0], [5.0, 4.0, 0.0, 9.0]], "two": [[2.0, 2.0, 1.0]]}
    ax = plots.comparison(runs)
    one, two = ax.get_lines()
    assert one.get_ydata().tolist() == [4.0, 2.5, 0.5]
    assert two.get_ydata().tolist() == [2.0, 2.0, 1.0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    saved(ax, tmp_path)
    with pytest.raises(SettingError, match="at least one run"):
        plots.comparison({"one": []})
    for empty in ({}, {"one": [[]]}, {"one": [[1.0]], "two": [[1.0], []]}):
        with pytest.raises(SettingError, match="at least one run"):
            plots.comparison(empty)


def test_what_is_no_run_or_no_dict_of_runs_is_refused_in_words(opt: Optimizer) -> None:
    with pytest.raises(SettingError, match=r"each name, .*; a dict was wanted, got Optimizer"):
        plots.comparison(opt)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"at least one run, such as \{'mercbo': \[\[3.0"):
        plots.comparison({"one": [3.0, 1.0]})  # type: ignore[list-item]
    for draw in (
        plots.batch_diversity, plots.convergence, plots.best_designs, plots.sequence_logo,
    ):  # fmt: skip
        with pytest.raises(SettingError, match="an Optimizer was wanted, got list"):
            draw([opt.pending])  # type: ignore[arg-type]
    for draw in (plots.effects, plots.interactions, plots.predicted):
        with pytest.raises(SettingError, match="an Optimizer or its Explanation was wanted, got"):
            draw([opt.pending])


def test_without_results_there_is_nothing_to_draw() -> None:
    for draw in (plots.convergence, plots.best_designs, plots.effects):
        with pytest.raises(NoResults):
            draw(Optimizer(SPACE))
