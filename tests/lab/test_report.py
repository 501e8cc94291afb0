"""The report: whole, escaped, readable by machines, and laid out by a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from html import escape, unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from mercbo import Categorical, Forbid, Integer, Space
from mercbo.lab import reaction
from mercbo.lab.charts import ticks
from mercbo.lab.report import render
from mercbo.lab.spacefile import parse, space_of
from mercbo.lab.study import Study

HOSTILE = '<script>window.hacked=1</script>"><img src=x onerror=window.hacked=1>'
VOID = {"meta", "link", "img", "br"}


class Page(HTMLParser):
    """The elements of a page, checked to be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A reaction with results, failures and a pending batch."""
    path = tmp_path_factory.mktemp("report") / "a study.db"
    space = space_of(parse(reaction.SPACE, ".yaml"))
    made = Study.create(
        path, space, direction="maximize", target="yield", title="Ä reaction", seed=0
    )
    rng = np.random.default_rng(0)
    for count in (14, 6):
        points = made.optimizer.ask(count)
        values = [reaction.measured(point, rng=rng) for point in points]
        made.optimizer.tell(points, [None, *values[1:]])
    made.optimizer.ask(5)
    return made


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Study:
    space = Space(
        {HOSTILE: Categorical([HOSTILE, "</style>", "&amp;", None]), "n": Integer(1, 3)},
        [Forbid({HOSTILE: "</style>", "n": 3})],
    )
    path = tmp_path_factory.mktemp("report") / "hostile.db"
    made = Study.create(path, space, target=f"{HOSTILE} result", title=HOSTILE, seed=0)
    points = made.optimizer.ask(6)
    made.optimizer.tell(points, [1.0, 2.0, 3.0, None, 4.0, 5.0])
    made.optimizer.ask(2)
    return made


def test_it_says_what_there_is_to_say(study: Study) -> None:
    page = Page(render(study))
    text = " ".join(page.text)
    heads = "Summary|Progress|Best designs|What matters|Interactions|How far to trust the model"
    heads += "|Pending designs|Space and settings"
    assert all(head in text for head in heads.split("|"))
    best = study.optimizer.best_observed
    assert f"{best.value:.4g}" in text
    assert "Goal: maximize yield" in text
    assert "5 designs to evaluate" in text
    assert "Forbid({'base': 'NaOtBu'" in unescape(text)
    assert str(study.optimizer.to_dict()["entropy"]) in text


def test_it_needs_no_network(study: Study) -> None:
    text = render(study)
    page = Page(text)
    assert not page.all("img")
    assert [each["href"] for each in page.all("link")] == ["data:,"]
    assert all(each["href"].startswith("#") for each in page.all("a"))
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\(", text)


def test_machines_can_read_it(study: Study) -> None:
    page = Page(render(study))
    assert page.all("html") == [{"lang": "en"}]
    names = Counter(each["id"] for _, each in page.found if "id" in each)
    assert max(names.values()) == 1
    assert all(each["href"][1:] in names for each in page.all("a"))
    for picture in page.all("svg"):
        if picture.get("aria-hidden") != "true":
            assert picture["role"] == "img"
            assert set(picture["aria-labelledby"].split()) <= set(names)
    assert len(page.all("caption")) == len(page.all("table")) > 10
    assert all("scope" in each for each in page.all("th"))
    levels = [int(name[1]) for name, _ in page.found if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_values_are_escaped(hostile: Study) -> None:
    text = render(hostile)
    page = Page(text)
    assert len(page.all("script")) == 1
    assert not page.all("img")
    assert escape(HOSTILE) in text
    assert HOSTILE in "".join(page.text)


def test_a_study_without_results_has_a_page_too(tmp_path: Path) -> None:
    empty = Study.create(tmp_path / "e.db", Space.binary(3), seed=0)
    text = " ".join(Page(render(empty)).text)
    assert "none yet" in text
    assert "Effects" not in text
    empty.optimizer.ask(2)
    assert "2 designs to evaluate" in " ".join(Page(render(empty)).text)


def test_one_result_and_one_variable_have_a_page_too(tmp_path: Path) -> None:
    small = Study.create(tmp_path / "s.db", Space({"x": Categorical(["a", "b"])}), seed=0)
    small.optimizer.tell({"x": "a"}, 1.0)
    assert "There is only one variable" in " ".join(Page(render(small)).text)


def test_replicates_count_by_their_mean(tmp_path: Path) -> None:
    space = Space({"x": Categorical(["a", "b"])})
    noisy = Study.create(tmp_path / "r.db", space, direction="maximize", target="y", seed=0)
    points = [{"x": name} for name in "baabb"]
    noisy.optimizer.tell(points, [14.0, 10.0, 11.0, 2.0, 2.0])
    text = " ".join(Page(render(noisy)).text)
    assert "The best result, 10.5 (the mean of 2 results), came from x = a." in text
    assert "The best of the first was 14, the best of all is 10.5 (maximize)" in text
    assert "The 2 best designs" in text
    assert [design.point["x"] for design in noisy.ranked()] == ["a", "b"]


def test_ticks_are_round_and_inside() -> None:
    for low, high in ((0.0, 1.0), (-3.7, 12.2), (1e-9, 3e-9), (5e8, 9e8), (0.0, 0.07)):
        found = ticks(low, high)
        assert 3 <= len(found) <= 8
        assert low - 1e-12 <= found[0] < found[-1] <= high * (1 + 1e-12)
    assert ticks(2.0, 2.0) == [2.0]


# -- in a browser ------------------------------------------------------------------------------

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
MEASURE = """<!DOCTYPE html><html><body><script>
const found = {};
let waiting = 0;
const measured = (frame, width) => {
  const page = frame.contentDocument, root = page.documentElement;
  const right = (e) => e.getBoundingClientRect().right;
  const all = (what) => [...page.querySelectorAll(what)];
  const table = all("table.sortable")[0];
  const column = () => [...table.tBodies[0].rows].map((row) => row.cells[1].dataset.v);
  const before = column();
  table.querySelectorAll("th button")[1].click();
  return {
    overflow: root.scrollWidth - frame.contentWindow.innerWidth,
    outside: all("h1, h2, h3, p, dd, svg.chart, .scroll, nav a")
      .filter((e) => right(e) > width + 0.5).length,
    text: Math.min(...all(".chart text").map((e) => e.getBoundingClientRect().height)),
    charts: all("svg.chart").length,
    hacked: frame.contentWindow.hacked ?? null,
    before, after: column(),
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  };
};
for (const [name, file] of Object.entries(FILES)) for (const width of [390, 1280]) {
  waiting += 1;
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    found[`${name} ${width}`] = measured(frame, width);
    if (--waiting === 0) {
      const out = document.createElement("pre");
      out.id = "found";
      out.textContent = JSON.stringify(found);
      document.body.append(out);
    }
  };
  frame.src = file;
  document.body.append(frame);
}
</script></body></html>"""


def browse(folder: Path, pages: dict[str, str], scheme: int) -> tuple[dict[str, dict], str]:
    """What a browser measures on some pages, and what it says on its console."""
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    files = json.dumps({name: f"{name}.html" for name in pages})
    (folder / "measure.html").write_text(MEASURE.replace("FILES", files), encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
         f"--blink-settings=preferredColorScheme={scheme}", "--enable-logging=stderr",
         f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=20000",
         "--window-size=1400,1000", "--dump-dom", (folder / "measure.html").as_uri()],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert found is not None, done.stderr[-2000:]
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(unescape(found.group(1))), console


@pytest.mark.slow
@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium is installed (Debian: apt install chromium)"
)
def test_a_browser_lays_it_out(study: Study, hostile: Study, tmp_path: Path) -> None:
    pages = {"study": render(study), "hostile": render(hostile)}
    light, console = browse(tmp_path, pages, 1)
    assert console == ""
    assert len(light) == 4
    for name, seen in light.items():
        assert seen["overflow"] <= 0, name
        assert seen["outside"] == 0, name
        assert seen["charts"] == 2
        assert seen["text"] >= 10, name  # pixels, of the smallest letters in charts
        assert seen["hacked"] is None
        assert sorted(seen["after"], key=float) == seen["after"]
        assert sorted(seen["before"]) == sorted(seen["after"])
        assert seen["background"] == "rgb(255, 255, 255)"
    dark, console = browse(tmp_path, {"study": pages["study"]}, 0)
    assert console == ""
    assert {seen["background"] for seen in dark.values()} == {"rgb(13, 17, 23)"}
