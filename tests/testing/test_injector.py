from __future__ import annotations

import io
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import stats

from benchrigor import InvalidInput
from benchrigor.testing import FakeClock, Injector, cpu_hog, memory_hog

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
