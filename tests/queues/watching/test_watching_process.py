"""What the process that watches does inside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchrigor.queues import Page, Recording, Stage
from benchrigor.queues.counting.ends import End
from benchrigor.queues.stages.stage_figures import Watching
from benchrigor.queues.watching.process_watch import Order, read_published, watch


def ordered(page: Page, folder: Path) -> Order:
    return Order(
        stages=[Stage("hash", reads=[End(page, "work.head")])],
        watching=Watching(period_s=0.005),
        state=folder / "state.rates",
        record=folder / "run.csv",
        launcher=0,
    )


def serving(page: Page, times: int, then: Callable[[], bool]) -> Callable[[float], bool]:
    """Return a way to wait in which items pass, so often, and then something happens."""
    cell, left = page.claim("work.head"), iter(range(times))

    def wait(seconds: float) -> bool:
        time.sleep(min(seconds, 0.005))
        for _ in range(3):
            cell.count()
        return next(left, None) is None and then()

    return wait


def test_it_watches_until_told_and_leaves_all_it_knows(page: Page, tmp_path: Path) -> None:
    order = ordered(page, tmp_path)
    report = watch(order, serving(page, 40, lambda: True))
    assert report.failure is None
    assert report.stages[0].rate is not None
    assert read_published(order.state) == report
    with Recording.open(str(order.record)) as recording:
        ((name, periods),) = recording.periods()
    assert (name, periods.n) == ("hash", report.stages[0].rate.periods)


def test_what_goes_wrong_midway_leaves_the_rates_so_far(page: Page, tmp_path: Path) -> None:
    def broken() -> bool:
        raise RuntimeError("torn")

    report = watch(ordered(page, tmp_path), serving(page, 80, broken))
    assert report.failure == "RuntimeError: torn"
    assert report.stages[0].rate is not None


@pytest.mark.slow
def test_it_tells_what_it_knows_once_a_second_and_at_the_end(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    replace = Path.replace

    def counted(self: Path, target: Path) -> Path:
        written.append(target)
        return replace(self, target)

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return len(written) == 2

    monkeypatch.setattr(Path, "replace", counted)
    began = time.monotonic()
    watch(ordered(page, tmp_path), wait)
    assert time.monotonic() - began >= 0.9
    assert len(written) == 3


@pytest.mark.parametrize("text", [None, "", "{", '{"stages": [3]}'])
def test_what_is_no_report_tells_nothing(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "state.rates"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert read_published(path) is None
