import gc
import itertools
import math
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.instrument import PROBES, Probe, ProbeReader, ProbeRegistry, probe
from benchrigor.model import ProbeReading
from benchrigor.testing import FakeClock


@pytest.fixture
def reader(registry: ProbeRegistry) -> ProbeReader:
    return registry.reader()


def spend(probe: Probe, clock: FakeClock, *durations_ns: int) -> None:
    for each in durations_ns:
        with probe:
            clock.sleep_ns(each)


def figures(reading: ProbeReading) -> tuple[object, ...]:
    """Return count, total, extremes and variance, in nanoseconds."""
    found = (reading.total_s, reading.min_s, reading.max_s)
    variance_s2 = reading.variance_s2
    return (
        reading.count,
        *(None if each is None else round(each * 1e9) for each in found),
        None if variance_s2 is None else round(variance_s2 * 1e18, 6),
    )


def test_a_name_has_one_probe(registry: ProbeRegistry) -> None:
    assert registry.probe("one") is registry.probe("one")
    assert registry.probe("one") is not registry.probe("other")
    assert [each.name for each in registry] == ["one", "other"]
    assert (len(registry), "one" in registry.read()) == (2, True)


def test_threads_that_ask_at_once_get_the_same_probe(registry: ProbeRegistry) -> None:
    found: list[Probe] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        found.extend(registry.probe(f"{each}") for each in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(map(id, found))) == len(registry) == 50


def test_a_probe_keeps_its_clock(registry: ProbeRegistry) -> None:
    registry.probe("one", clock="cpu")
    assert registry.probe("one").clock == registry.probe("one", clock="cpu").clock == "cpu"
    with pytest.raises(InvalidInput):
        registry.probe("one", clock="wall")


def test_a_hundred_thousand_probes_are_made_and_read() -> None:
    registry = ProbeRegistry()
    probes = [registry.probe(f"probe {number}") for number in range(100_000)]
    for each in probes[::20_000]:
        with each:
            pass
    found = registry.read()
    assert (len(found), sum(each.count for each in found.values())) == (100_000, 5)


@pytest.mark.alone
def test_a_probe_in_use_takes_less_than_a_kibibyte() -> None:
    registry, many = ProbeRegistry(), 200
    tracemalloc.start()
    try:
        for number in range(many):
            probe = registry.probe(f"probe {number}")
            for _ in range(100):
                probe.stop(probe.start())
                with probe, probe.again():
                    pass
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / many < 1.1 * 1024  # with what nests in it, and the first pages of the registry


def test_a_registry_that_nobody_has_is_forgotten() -> None:
    own = ProbeRegistry()
    with own.probe("held"), own.probe("again").again():
        pass
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None


def test_readers_see_each_event_once_whoever_else_reads(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    early, late = registry.reader(), registry.reader()
    spend(probe, clock, 10, 90)
    assert figures(early.since_last()["kernel"]) == (2, 100, 10, 90, 3200)
    probe.read()
    spend(probe, clock, 30, 40, 50)
    assert figures(early.since_last()["kernel"]) == (3, 120, 30, 50, 100)
    assert figures(late.since_last()["kernel"]) == (5, 220, 10, 90, 880)
    assert figures(early.since_last()["kernel"]) == (0, 0, None, None, None)
    assert figures(probe.read())[:4] == (5, 220, 10, 90)


def test_digits_are_not_lost_to_a_large_mean(
    hand: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(time, "perf_counter_ns", lambda: -(10**16))  # began long ago
        probe = ProbeRegistry().probe("kernel", clock=hand)
    spend(probe, clock, *(10**15 + each % 3 for each in range(6_400)))
    assert probe.read().variance_s2 == pytest.approx(2e-18 / 3, rel=0.02)


def test_an_event_that_lasts_keeps_no_list_of_all_that_ran_inside(
    registry: ProbeRegistry, probe: Probe, hand: str, clock: FakeClock
) -> None:
    inner = registry.probe("inner", clock=hand)
    with probe.again():
        for _ in range(1_000):
            with inner.again():
                clock.sleep_ns(2)
        assert sum(len(each.nested) for each in probe.cells) < 200
    assert (probe.read().total_s, probe.read().self_s) == (pytest.approx(2e-6), 0.0)


def test_threads_that_ended_have_lost_nothing(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    for _ in range(20):
        thread = threading.Thread(target=spend, args=(probe, clock, 1, 2))
        thread.start()
        thread.join()
    assert probe.read().count == 40
    spend(probe, clock, 1)
    assert probe.read().count == 41


def test_no_event_is_lost_or_counted_twice_while_a_reader_resets(registry: ProbeRegistry) -> None:
    probe, events, threads = registry.probe("kernel"), 2_000, 8
    reader, counts, done = registry.reader(), [], threading.Event()

    def write() -> None:
        for _ in range(events // 4):
            probe.stop(probe.start())
            with probe:
                pass
            with probe.again():
                pass
            timed()

    def read() -> None:
        while not done.is_set():
            counts.append(reader.since_last()["kernel"])

    timed = probe(lambda: None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        writers = [threading.Thread(target=write) for _ in range(threads)]
        reading = threading.Thread(target=read)
        for each in [reading, *writers]:
            each.start()
        for each in writers:
            each.join()
        done.set()
        reading.join()
    finally:
        sys.setswitchinterval(before)
    counts.append(reader.since_last()["kernel"])
    total_s = sum(each.total_s for each in counts)
    assert sum(each.count for each in counts) == probe.read().count == threads * events
    assert total_s == pytest.approx(probe.read().total_s)
    assert probe.read().rejected == 0


def test_nobody_waits_for_a_cell_that_another_thread_adds_up(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    with probe.cell.lock:  # as the handler of a signal finds it
        spend(probe, clock, *[1] * 260)
        assert registry.read()["kernel"].count == 0
    assert probe.read().count == 260


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_begins_from_zero(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock, in_fork: Callable[..., int]
) -> None:
    reader = registry.reader()
    spend(probe, clock, *[1] * 100)

    def work() -> None:
        spend(probe, clock, 5)
        assert (probe.read().count, reader.since_last()["kernel"].count) == (1, 1)

    with registry.lock, probe.cell.lock:  # as another thread may hold them
        assert in_fork(work) == 0
    assert probe.read().count == reader.read()["kernel"].count == 100


def test_all_probes_are_switched_at_once(registry: ProbeRegistry) -> None:
    one = registry.probe("one")
    registry.on = False
    other = registry.probe("other")
    with one, other:
        pass
    assert [each.on for each in registry] == [False, False]
    registry.on = True
    with one, other:
        pass
    assert [each.count for each in registry.read().values()] == [1, 1]


@pytest.mark.parametrize(
    ("value", "on"),
    [(None, True), ("", True), ("1", True), ("0", False), ("off", False), (" No ", False)],
)
def test_the_environment_switches_probes_of_a_program(value: str | None, on: bool) -> None:
    environment = {**os.environ, "BENCHRIGOR_PROBES": value or ""}
    if value is None:
        del environment["BENCHRIGOR_PROBES"]
    code = "from benchrigor.instrument import probe; import sys; "
    code += "print(probe('one').on, {'numpy', 'scipy', 'asyncio', 'ddsketch'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{on} set()\n"


def test_quantiles_are_of_the_samples_that_were_kept(
    registry: ProbeRegistry, hand: str, clock: FakeClock
) -> None:
    probe = registry.probe("kernel", clock=hand, samples=100)
    reader = registry.reader()
    spend(probe, clock, *range(1, 101))
    first = reader.since_last()["kernel"]
    assert first.p50_s == pytest.approx(50e-9, rel=0.02)
    assert first.p99_s == pytest.approx(99e-9, rel=0.02)
    spend(probe, clock, *range(1, 131))
    second = reader.since_last()["kernel"]
    assert (first.samples, first.samples_lost) == (100, 0)
    assert (second.samples, second.samples_lost) == (100, 30)
    assert (probe.read().samples, probe.read().samples_lost) == (200, 30)
    assert registry.reader().read()["kernel"].p99_s == pytest.approx(125e-9, rel=0.2)


# Each event is in the share of samples that is kept, within five standard deviations.
RUNS, EVENTS, KEPT = 1_000, 40, 10
NEAR = pytest.approx(RUNS * KEPT / EVENTS, abs=5.0 * math.sqrt(RUNS * 0.25 * 0.75))


@pytest.mark.parametrize(
    "blocks",
    [[40], [3, 7, 29, 1]],
)
def test_each_event_is_as_likely_as_any_other_to_be_a_sample(
    blocks: list[int], hand: str, clock: FakeClock
) -> None:
    probe = ProbeRegistry().probe("kernel", clock=hand, samples=KEPT)
    drawn = Counter[int]()
    for _ in range(RUNS):
        numbers = iter(range(EVENTS))
        for size in blocks:
            spend(probe, clock, *itertools.islice(numbers, size))
            probe.read()
        drawn.update(round(each * 1e9) for each in probe.samples())
    assert sum(drawn.values()) == RUNS * KEPT
    assert all(drawn[number] == NEAR for number in range(EVENTS))


@pytest.mark.parametrize("is_read", [False, True])
def test_with_a_half_life_events_are_likely_by_their_weights(
    is_read: bool, hand: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that is kept, each event's chance is its weight, which doubles with every block."""
    monkeypatch.setattr(time, "perf_counter_ns", clock.now_ns)
    probe = ProbeRegistry().probe("kernel", clock=hand, samples=1, half_life_s=1e-2)
    shares = np.zeros(4)
    for _ in range(RUNS):
        for block in range(4):
            spend(probe, clock, *[block] * 12)  # lists of four: none goes over to the next block
            if is_read:
                probe.read()
            clock.sleep_ns(10**7)
        (drawn_s,) = probe.samples()
        shares[round(drawn_s * 1e9)] += 1.0
    weights = 2.0 ** np.arange(4)
    # A share has a standard deviation of 0.016 at most.
    assert shares / shares.sum() == pytest.approx(weights / weights.sum(), abs=0.08)


@pytest.mark.parametrize(("half_life_s", "is_recent"), [(1e-9, True), (1.0, False), (1e11, False)])
def test_with_any_half_life_as_many_samples_as_asked_are_kept(
    half_life_s: float, is_recent: bool, registry: ProbeRegistry, hand: str, clock: FakeClock
) -> None:
    """With a half-life of a nanosecond only the last of those that are added up together stay."""
    probe = registry.probe("kernel", clock=hand, samples=20, half_life_s=half_life_s)
    for each, recent in ((probe, is_recent), (probe.work, is_recent), (probe, False)):
        spend(each, clock, *[100] * 4_500, *[10_000] * 500)
        drawn = each.samples()
        assert len(drawn) == 20
        assert (min(drawn) > 9e-6) == recent
        if each is not probe:
            registry.probe("kernel", samples=20)  # with any half-life no more


def test_samples_are_returned_once_and_their_number_can_be_changed(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    spend(probe, clock, 1)
    assert probe.samples() == []
    assert registry.probe("kernel", samples=30) is probe
    spend(probe, clock, *range(1, 11))
    probe.read()
    assert registry.probe("kernel", samples=3) is probe
    spend(probe, clock, *range(11, 21))
    drawn_ns = [round(each * 1e9) for each in probe.samples()]
    assert len(set(drawn_ns)) == 3
    assert drawn_ns == sorted(drawn_ns)
    assert probe.samples() == []
    registry.probe("kernel", samples=0)
    spend(probe, clock, 5)
    assert probe.samples() == []


def test_samples_need_an_extra_that_is_named(
    registry: ProbeRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ddsketch", None)
    with pytest.raises(MissingExtra):
        registry.probe("kernel", samples=10)
    registry.probe("kernel")


def test_the_work_of_a_probe_keeps_samples_as_it_does(registry: ProbeRegistry) -> None:
    probe = registry.probe("x" * 200, samples=10)
    with probe.work:
        pass
    assert (len(probe.work.samples()), probe.work.name) == (1, "x" * 200 + ".work")


def test_the_program_has_one_registry() -> None:
    assert probe("test_probe_registry").name in PROBES.read()
    assert probe("test_probe_registry") is PROBES.probe("test_probe_registry")


def test_events_that_miss_a_deadline_are_counted_from_then_on(
    registry: ProbeRegistry, hand: str, clock: FakeClock
) -> None:
    probe = registry.probe("frame", clock=hand)
    spend(probe, clock, 8_000)  # before there is a deadline
    assert (probe.read().deadline_s, probe.read().missed) == (None, 0)
    assert registry.probe("frame", deadline_s=4e-6) is probe
    for elapsed_ns in (3_999, 4_000, 4_001, 9_000):
        spend(probe, clock, elapsed_ns)
    reader = registry.reader()
    assert (probe.read().deadline_s, probe.read().missed, probe.read().count) == (4e-6, 2, 5)
    with pytest.raises(InvalidInput):
        registry.probe("frame", samples=3, deadline_s=1.0)
    for same in (None, 4e-6):
        assert registry.probe("frame", clock=hand, deadline_s=same) is probe
    spend(probe, clock, 9_000)
    assert registry.read()["frame"].missed == 3
    assert probe.samples() == []  # what was refused has changed nothing
    assert [reader.since_last()["frame"].missed for _ in range(2)] == [3, 0]


def test_probes_that_take_more_than_a_hundredth_of_the_time_are_told_of(
    registry: ProbeRegistry,
) -> None:
    often, seldom = registry.probe("often"), registry.probe("seldom")
    reader = registry.reader()
    for _ in range(2_000):
        often.stop(often.start())
    seldom.stop(seldom.start())
    found = registry.read()
    (notice,) = found.notices
    assert notice.evidence["dearest"] == "often"
    assert notice.evidence["cost_s"] == pytest.approx(2_001 * found["often"].own_cost_s)
    reader.since_last()
    seldom.stop(seldom.start())
    time.sleep(0.01)
    assert reader.since_last().notices == ()
