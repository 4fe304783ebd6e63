"""Fakes of known truth: workloads, clocks and what delays them."""

from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from benchrigor import InvalidInput
from benchrigor.model import RoundPlan
from benchrigor.testing import (
    ExponentialWarmUp,
    FakeClock,
    Injector,
    StepWarmUp,
    SyntheticWorkload,
    cpu_hog,
    memory_hog,
)

Floats = npt.NDArray[np.float64]
KINDS = [
    {"noise": "normal", "phi": 0.0},
    {"noise": "normal", "phi": 0.9},
    {"noise": "normal", "phi": -0.5},
    {"noise": "lognormal", "phi": 0.0, "cv": 0.8},
    {"noise": "lognormal", "phi": 0.7, "cv": 0.8},
    {"noise": "bimodal", "phi": 0.0},
    {"noise": "bimodal", "phi": 0.95},
]
N = 200_000


def draw(workload: SyntheticWorkload, n: int, index: int = 0) -> Floats:
    return workload.draw(RoundPlan(index=index, readings=n))


def autocorrelation(readings: Floats, lag: int) -> float:
    centred = readings - readings.mean()
    return float(centred[:-lag] @ centred[lag:] / (centred @ centred))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_mean_spread_and_variance_of_long_means_are_as_asked(kind: dict[str, Any]) -> None:
    workload = SyntheticWorkload(mean=3.0, seed=11, **kind)
    readings = draw(workload, N)
    error = readings.mean() - workload.truth
    assert abs(error) < 4 * math.sqrt(workload.long_run_variance / N)
    assert readings.std() / 3.0 == pytest.approx(kind.get("cv", 0.1), rel=0.1)
    assert readings.min() > 0
    stretches, length = 400, N // 400
    means = readings.reshape(stretches, length).mean(axis=1)
    # The share of a chi-squared variable with 399 degrees of freedom, 4 standard deviations.
    share = means.var(ddof=1) * length / workload.long_run_variance
    assert share == pytest.approx(1, abs=4 * math.sqrt(2 / (stretches - 1)))


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("lag", [1, 3])
def test_a_normal_series_remembers_as_asked(phi: float, lag: int) -> None:
    readings = draw(SyntheticWorkload(phi=phi, seed=14), N)
    # Bartlett's variance of an AR(1)'s autocorrelation is at most (1 + phi^2) / (1 - phi^2) / n.
    bound = 4 * math.sqrt((1 + phi**2) / (1 - phi**2) / N)
    assert autocorrelation(readings, lag) == pytest.approx(phi**lag, abs=bound)


def test_a_normal_series_starts_in_its_stationary_state() -> None:
    firsts = [draw(SyntheticWorkload(phi=0.9, seed=seed), 1)[0] for seed in range(400)]
    assert np.std(firsts) == pytest.approx(0.1, rel=4 / math.sqrt(2 * 400))


def test_a_lognormal_series_is_skewed_and_its_variance_sums_its_autocovariances() -> None:
    readings = draw(SyntheticWorkload(noise="lognormal", cv=0.5, seed=1), N)
    skewness = (((readings - 1) / 0.5) ** 3).mean()
    assert skewness == pytest.approx(3 * 0.5 + 0.5**3, rel=0.1)
    for cv, phi in ((0.7, 0.0), (1.5, 0.8)):
        logs = math.log1p(cv**2) * phi ** np.arange(1, 400)
        summed = cv**2 + 2 * np.expm1(logs).sum()
        workload = SyntheticWorkload(noise="lognormal", cv=cv, phi=phi)
        assert workload.long_run_variance == pytest.approx(summed, rel=1e-12)


@pytest.mark.parametrize("phi", [0.0, 0.98])
def test_a_bimodal_series_has_two_modes_and_changes_over_as_asked(phi: float) -> None:
    readings = draw(SyntheticWorkload(noise="bimodal", phi=phi, seed=15), N)
    assert np.mean(np.abs(readings - 1) < 0.03) < 0.03  # of one normal mode a quarter would be
    changes = sum(before != after for before, after in pairwise((readings > 1).tolist()))
    chance = (1 - phi) / 2
    bound = 4 * math.sqrt(N * chance * (1 - chance)) + 0.003 * N  # a few cross without a change
    assert changes == pytest.approx(N * chance, abs=bound)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    kind=st.sampled_from(KINDS),
    warm_up=st.sampled_from(
        [
            None,
            ExponentialWarmUp(amplitude=0.3, time_constant=9.0),
            StepWarmUp(amplitude=0.3, length=50),
        ]
    ),
)
def test_a_series_does_not_depend_on_how_it_is_cut(
    sizes: list[int], kind: dict[str, Any], warm_up: ExponentialWarmUp | StepWarmUp | None
) -> None:
    def make() -> SyntheticWorkload:
        return SyntheticWorkload(warm_up=warm_up, total=sum(sizes), seed=5, **kind)

    in_one = draw(make(), sum(sizes))
    in_pieces = make()
    pieces = [draw(in_pieces, n, index) for index, n in enumerate(sizes)]
    assert np.array_equal(np.concatenate(pieces), in_one)


def test_a_warm_up_lies_on_top_of_the_level_and_may_decay() -> None:
    step, slope = (
        StepWarmUp(amplitude=0.5, length=2),
        ExponentialWarmUp(amplitude=0.15, time_constant=20.0),
    )
    found = draw(SyntheticWorkload(mean=2.0, cv=0.0, warm_up=step), 4)
    assert found.tolist() == [3.0, 3.0, 2.0, 2.0]
    readings = draw(SyntheticWorkload(mean=2.0, cv=0.0, warm_up=slope), 1_000)
    assert readings[:3] == pytest.approx([2.3, 2 + 0.3 * math.exp(-0.05), 2 + 0.3 * math.exp(-0.1)])
    assert readings[-1] == 2.0


def test_a_series_of_a_given_total_ends() -> None:
    workload = SyntheticWorkload(total=5)
    assert [draw(workload, 3).size, draw(workload, 3).size] == [3, 2]
    with pytest.raises(StopIteration):
        draw(workload, 3)


def test_restarted_rounds_are_invocations_of_their_own() -> None:
    def make() -> SyntheticWorkload:
        return SyntheticWorkload(
            cv=0.01, warm_up=StepWarmUp(amplitude=1.0, length=2), restarted=True, seed=3
        )

    one, other = (draw(make(), 50, index) for index in range(2))
    assert np.all(one[:2] > 1.9)
    assert np.all(other[:2] > 1.9)
    assert not np.array_equal(one, other)
    assert np.array_equal(other, draw(make(), 50, index=1))


def test_levels_of_restarted_rounds_spread_as_asked() -> None:
    workload = SyntheticWorkload(mean=2.0, cv=0.0, restarted=True, between_cv=0.05, seed=8)
    levels = [draw(workload, 1, index)[0] for index in range(400)]
    assert np.std(levels) == pytest.approx(0.1, rel=4 / math.sqrt(2 * 400))
    assert np.mean(levels) == pytest.approx(workload.truth, abs=4 * 0.1 / math.sqrt(400))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *(({"mean": wrong}, "mean") for wrong in (0.0, math.nan)),
        *(({"noise": "pink"}, "'pink'"), ({"cv": -0.1}, "cv"), ({"phi": 1.0}, "phi")),
        *(({"cv": 0.2}, "-0.2"), ({"noise": "bimodal", "cv": 0.4}, "lower cv")),
        ({"cv": 0.1, "warm_up": StepWarmUp(amplitude=-0.5, length=3)}, "amplitude"),
        *(({"between_cv": 0.1}, "restarted"), ({"between_cv": 0.3, "restarted": True}, "0.3")),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        SyntheticWorkload(**options)


def test_it_shows_multiples_of_its_resolution_and_loses_nothing_in_between() -> None:
    clock = FakeClock(resolution_ns=100)
    shown = []
    for _ in range(5):
        clock.advance(60)
        shown.append(clock.now_ns())
    assert shown == [0, 100, 100, 200, 300]


def test_a_script_is_shown_as_it_stands_and_then_left_behind() -> None:
    clock = FakeClock(cost_ns=1, script=[5, 3, 3])
    assert [clock.now_ns() for _ in range(5)] == [5, 3, 3, 3, 4]


CALLS = 20_000
ONE_IN_A_MILLION = 1e-6


def always(mean_s: float = 1.0, clock: FakeClock | None = None) -> Injector:
    return Injector(mean_s, 0.0, 1.0, seed=1, clock=clock or FakeClock())


@pytest.mark.parametrize("probability", [0.0, 0.06, 1.0])
def test_calls_are_delayed_at_the_rate_asked_for(probability: float) -> None:
    injector = Injector(1.0, 0.1, probability, seed=2, clock=FakeClock())
    delayed = sum(injector() > 0.0 for _ in range(CALLS))
    low, high = stats.binom.interval(1 - ONE_IN_A_MILLION, CALLS, probability)
    assert low <= delayed <= high
    assert (injector.calls, injector.hits) == (CALLS, delayed)


def test_delays_are_normal_by_the_seed_and_a_negative_draw_is_none() -> None:
    def delays(mean_s: float, sd_s: float, seed: int) -> list[float]:
        clock = FakeClock()
        injector = Injector(mean_s, sd_s, 1.0, seed=seed, clock=clock)
        found = [injector() for _ in range(CALLS)]
        assert injector.injected_s == pytest.approx(math.fsum(found)) == clock.now_ns() / 1e9
        assert injector.hits == CALLS
        return found

    normal = delays(0.010, 0.002, 3)
    assert stats.kstest(normal, stats.norm(0.010, 0.002).cdf).pvalue > ONE_IN_A_MILLION
    assert normal == delays(0.010, 0.002, 3) != delays(0.010, 0.002, 4)
    half = np.array(delays(0.0, 1.0, 4))
    assert half.min() == 0.0
    low, high = stats.binom.interval(1 - ONE_IN_A_MILLION, CALLS, 0.5)
    assert low <= np.count_nonzero(half) <= high


class LateClock(FakeClock):
    """Sleeps for twice the time asked for, as a busy system may."""

    def sleep_ns(self, duration_ns: int) -> None:
        super().sleep_ns(2 * duration_ns)


def test_what_counts_is_how_long_the_sleep_really_took() -> None:
    injector = always(clock=LateClock())
    assert (injector(), injector.injected_s) == (2.0, 2.0)


def test_the_wall_clock_is_slept_on_unless_another_is_given() -> None:
    injector = Injector(0.002, 0.0, 1.0, seed=1)
    start = time.perf_counter()
    injector()
    assert 0.002 <= injector.injected_s <= time.perf_counter() - start


def test_a_wrapped_function_is_itself_but_late() -> None:
    clock, begun = FakeClock(), []

    def work(amount: int, *, unit: str = "s") -> str:
        """Do it."""
        begun.append(clock.now_ns())
        return f"{amount // 1} {unit}"

    injector = always(clock=clock)
    wrapped = injector.wrap(work)
    assert (wrapped.__name__, wrapped.__doc__) == ("work", "Do it.")
    assert wrapped(3, unit="m") == "3 m"
    assert begun == [1_000_000_000]
    with pytest.raises(ZeroDivisionError):
        injector.wrap(divmod)(1, 0)
    assert injector.hits == 2


def test_reading_writing_and_flushing_of_a_file_is_delayed_and_nothing_else(tmp_path: Path) -> None:
    injector = always()
    with (tmp_path / "file").open("w+", encoding="utf-8") as plain:
        file = injector.file(plain)
        file.write("a\nb\n")
        file.writelines(["c\n", "d\n"])
        file.flush()
        assert injector.hits == 3
        assert (file.name, file.fileno(), file.seek(0)) == (plain.name, plain.fileno(), 0)
        assert injector.hits == 3
        assert [file.readline(), next(file), *file.readlines()] == ["a\n", "b\n", "c\n", "d\n"]
        assert list(file) == []
        assert injector.hits == 7
    assert file.closed


def test_bytes_pass_through_a_delayed_file() -> None:
    injector, buffer = always(), bytearray(2)
    with injector.file(io.BytesIO(b"abcd")) as file:
        assert (file.read(2), file.readinto(buffer), buffer) == (b"ab", 2, b"cd")  # type: ignore[attr-defined]
    assert file.closed
    assert injector.hits == 2


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def soon(condition: object) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + 120.0
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def test_hogs_are_busy_in_the_body_and_gone_behind_it() -> None:
    with cpu_hog(2) as pids:
        for pid in pids:
            hog = psutil.Process(pid)
            assert soon(lambda hog=hog: hog.cpu_times().user > 0.03)
    assert [ended(pid) for pid in pids] == [True, True]


def test_bursting_hogs_are_busy_and_asleep_by_turns() -> None:
    with cpu_hog(bursts_s=(0.05, 0.1)) as (pid,):
        hog = psutil.Process(pid)
        for _ in range(2):
            assert soon(lambda: hog.status() == psutil.STATUS_RUNNING)
            assert soon(lambda: hog.status() == psutil.STATUS_SLEEPING)
    assert ended(pid)


def test_a_memory_hog_holds_what_it_copies_and_is_busy() -> None:
    with memory_hog() as (pid,):
        hog = psutil.Process(pid)
        assert soon(lambda: hog.memory_info().rss > 2 * 64 * 2**20)
        used = hog.cpu_times().user
        assert soon(lambda: hog.cpu_times().user > used + 0.03)
    assert ended(pid)


def test_hogs_are_gone_when_the_body_fails() -> None:
    with pytest.raises(ZeroDivisionError), cpu_hog() as pids:
        _ = 1 / 0
    assert ended(pids[0])


PINNED = pytest.mark.skipif(sys.platform != "linux", reason="processes are pinned on Linux only")


@PINNED
def test_a_hog_stays_on_its_core() -> None:
    core = max(os.sched_getaffinity(0))
    with cpu_hog(core=core) as (pid,):
        assert os.sched_getaffinity(pid) == {core}


@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX systems do")
def test_a_hog_does_not_outlive_a_parent_that_was_killed() -> None:
    code = (
        "import sys\nfrom benchrigor.testing import cpu_hog\n"
        "with cpu_hog() as (pid,):\n    print(pid, flush=True)\n    sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not ended(pid)
        parent.send_signal(signal.SIGKILL)
    assert soon(lambda: ended(pid))


NONE = [
    *({"n": wrong} for wrong in (0, -1, 1.0, True)),
    *({"bursts_s": wrong} for wrong in ((0.0, 1.0), (2.0, 1.0), (1.0,), (1.0, math.nan), 0.5)),
    pytest.param({"core": 10**6}, marks=PINNED),
]


@pytest.mark.parametrize("wrong", NONE, ids=str)
def test_hogs_that_cannot_be_are_refused_and_leave_none(wrong: dict[str, Any]) -> None:
    before = psutil.Process().children()
    with pytest.raises(InvalidInput), cpu_hog(**wrong):
        pass
    assert psutil.Process().children() == before
