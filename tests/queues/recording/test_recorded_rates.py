"""A recording is estimated by what estimates while a program runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import commented_csv
from benchrigor.model.series import Floats
from benchrigor.queues import ServiceRateEstimator
from benchrigor.queues.data.service import ServiceRate
from benchrigor.queues.recording.recorded_rates import rate_recording
from benchrigor.queues.recording.recordings import Recording

EXAMPLE = Path(__file__).parents[3] / "examples" / "recorded_stage.csv"


def simulated(n: int, *, rate: float, used: float = 0.7, seed: int = 1) -> tuple[Floats, Floats]:
    """Return items and blocked seconds of periods of 50 ms."""
    rng = np.random.default_rng(seed)
    blocked_s = 0.05 * (1.0 - used) * rng.uniform(0.5, 1.5, n)
    return rng.poisson(rate * (0.05 - blocked_s)).astype(float), blocked_s


def text(
    items: Floats, third: Floats, *, column: str = "blocked_s", head: str = ""
) -> Iterator[str]:
    if head:
        yield head
    yield f"period_s,items,{column}\n"
    for one, other in zip(items, third, strict=True):
        yield f"0.05,{one:.0f},{float(other)!r}\n"


def same(left: ServiceRate, right: ServiceRate) -> bool:
    assert left.estimate is not None
    assert right.estimate is not None
    return left.estimate.value == pytest.approx(right.estimate.value) and (
        left.periods,
        left.used,
        left.converged,
        left.reason,
    ) == (right.periods, right.used, right.converged, right.reason)


def test_the_file_gives_what_the_estimator_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    items, blocked_s = simulated(3000, rate=1000.0)
    est = ServiceRateEstimator(target=0.01, confidence=0.9)
    est.tell_many(items, 0.05, blocked_s)
    monkeypatch.setattr(commented_csv, "LINES_AT_ONCE", 170)
    recording = Recording(text(items, blocked_s), name="run.csv")
    (found,) = rate_recording(recording, target=0.01, confidence=0.9)
    assert (found.name, len(found.rates)) == ("", len(est.rates))
    assert same(found.rates[-1], est.rates[-1])
    estimate = found.rates[-1].estimate
    assert estimate is not None
    assert estimate.confidence == 0.9
    assert estimate.low < 1000.0 < estimate.high


def test_where_only_flags_are_known_it_is_the_quantile() -> None:
    items, blocked_s = simulated(3000, rate=1000.0, used=0.95)
    flags = (blocked_s > np.median(blocked_s)).astype(float)
    est = ServiceRateEstimator("quantile")
    est.tell_many(items, 0.05, 0.0, flags > 0.0)
    (found,) = rate_recording(Recording(text(items, flags, column="blocked"), name="run.csv"))
    assert {each.method for each in found.rates} == {"quantile"}
    assert len(found.rates) == len(est.rates)
    assert all(map(same, found.rates, est.rates))


@pytest.mark.parametrize("wanted", ["", "# period_s: 0.05\n"])
def test_as_published_other_periods_do_not_count(wanted: str) -> None:
    items, _ = simulated(400, rate=1000.0, used=1.0)
    lines = [*text(items, np.zeros(400), column="blocked", head=wanted), "5.0,9000,0\n"]
    (found,) = rate_recording(Recording(lines, name="run.csv"), method="published")
    assert found.rates[-1].periods == 401
    assert found.rates[-1].used == 400


def test_each_end_is_estimated_by_itself_and_one_may_be_chosen() -> None:
    ends = {"parse": simulated(500, rate=900.0), "index": simulated(500, rate=400.0, seed=2)}
    lines = ["t_s,end,items,blocked_s\n", "0,parse,0,0\n", "0,index,0,0\n", "25,once,1,0\n"]
    for number in range(500):
        for name, (items, blocked_s) in ends.items():
            lines.append(
                f"{0.05 * (number + 1):.6f},{name},{items[number]:.0f},{blocked_s[number]:.9f}\n"
            )
    found = rate_recording(Recording(lines, name="run.csv"))
    assert [each.name for each in found] == ["parse", "index", "once"]
    for each, truth in zip(found, (900.0, 400.0), strict=False):
        assert each.rates[-1].estimate is not None
        assert each.rates[-1].estimate.value == pytest.approx(truth, rel=0.03)
        assert each.outline.throughput(0.0, 25.0)[0] == pytest.approx(0.7 * truth, rel=0.05)
    assert found[2].rates == ()
    (index,) = rate_recording(Recording(lines, name="run.csv"), end="index")
    assert same(index.rates[-1], found[1].rates[-1])
    with pytest.raises(br.InvalidInput, match="no end 'hash', expected one of parse, index, once"):
        rate_recording(Recording(lines, name="run.csv"), end="hash")


def test_an_end_of_a_file_without_ends_is_not_there() -> None:
    recording = Recording(["period_s,items,blocked\n", "0.1,1,0\n"], name="run.csv")
    with pytest.raises(br.InvalidInput, match="has no column 'end', and so no end 'parse'"):
        rate_recording(recording, end="parse")


def test_several_servers_are_as_fast_together() -> None:
    items, blocked_s = simulated(500, rate=900.0)
    head = "# servers: 4\n"
    (found,) = rate_recording(Recording(text(4 * items, 4 * blocked_s, head=head), name="run.csv"))
    assert found.rates[-1].estimate is not None
    assert found.rates[-1].estimate.value == pytest.approx(3600.0, rel=0.03)


def test_processor_time_counts_where_it_is_known() -> None:
    items, blocked_s = simulated(600, rate=1000.0)
    cpu_s = np.where(np.arange(600) % 10 == 3, np.nan, items / 2000.0)
    delay_s = np.where(np.arange(600) < 100, np.nan, 0.001)
    lines = ["period_s,items,blocked_s,cpu_s,delay_s\n"]
    lines += [
        f"0.05,{item:.0f},{float(blocked)!r},{float(cpu)!r},{float(delay)!r}\n"
        for item, blocked, cpu, delay in zip(items, blocked_s, cpu_s, delay_s, strict=True)
    ]
    (found,) = rate_recording(Recording(lines, name="run.csv"))
    rate = found.rates[-1]
    assert rate.periods == 600
    est = ServiceRateEstimator()
    for item, blocked, cpu, delay in zip(items, blocked_s, cpu_s, delay_s, strict=True):
        est.tell(
            float(item),
            0.05,
            float(blocked),
            cpu_s=None if np.isnan(cpu) else float(cpu),
            delay_s=None if np.isnan(delay) else float(delay),
        )
    assert same(rate, est.rates[-1])
    assert (rate.cpu_rate is None) == (est.rates[-1].cpu_rate is None)
    assert rate.delay_share == est.rates[-1].delay_share


def test_an_unknown_method_is_named() -> None:
    recording = Recording(["period_s,items,blocked\n", "0.1,1,0\n"], name="run.csv")
    with pytest.raises(br.InvalidInput, match="method is 'mean', expected one of busy-time, quan"):
        rate_recording(recording, method="mean")


def test_the_recorded_stage_of_the_examples_has_two_phases() -> None:
    with Recording.open(EXAMPLE) as recording:
        (found,) = rate_recording(recording)
    early, late = found.rates
    for rate, truth in ((early, 1e3 / 0.802), (late, 1e3 / 1.087)):
        assert rate.converged
        assert rate.estimate is not None
        assert rate.estimate.value == pytest.approx(truth, rel=0.02)
    assert late.start_s == pytest.approx(90.0, abs=1.0)
    assert found.outline.throughput(late.start_s, late.stop_s)[1] == pytest.approx(1500, rel=0.02)
