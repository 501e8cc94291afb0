"""What is shown of a run."""

import pytest

from mercbo.loop import progress


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((0, 0, None), ""),
        ((0, 3, None), "3 running"),
        ((2, 0, 1.25), "best 1.25, 2 failed"),
        ((1, 4, -1e-9), "best -1e-09, 4 running, 1 failed"),
    ],
)
def test_the_line_says_what_there_is(numbers, said):
    assert progress.described(*numbers) == said


def test_lines_come_now_and_then_and_at_the_end(caplog, monkeypatch):
    clock = iter([0.0, 0.0, 1.0, 20.0, 20.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with caplog.at_level("INFO", logger="mercbo"), progress.Lines(9) as lines:
        for done in (1, 2, 3):
            lines.show(done, 0, 1, 0.5)
    said = [record.message.split(" of ")[0] for record in caplog.records]
    assert said == ["1", "3", "3"]


def test_silence_is_silent(capfd):
    with progress.reporter(False, 5) as shown:
        shown.show(1, 0, 0, 1.0)
    assert capfd.readouterr() == ("", "")
