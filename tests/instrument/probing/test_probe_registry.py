import gc
import os
import statistics
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput, MissingExtra
from benchrigor.instrument import PROBES, Probe, ProbeReader, ProbeRegistry, probe
from benchrigor.instrument.data.probe_reading import ProbeReading
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


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "name has 0 characters"),
        ("x" * 201, "name has 201 characters"),
        ("a\nb", "has '\\\\n' in it"),
        ("a\x00", "in it"),
        ("\ud800", "in it"),
        (None, "expected a string"),
        (["a"], "expected a string"),
        (b"a", "expected a string"),
    ],
)
def test_names_that_no_table_can_show_are_refused(
    name: object, problem: str, registry: ProbeRegistry
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        registry.probe(name)
    assert len(registry) == 0


@pytest.mark.parametrize("name", ["x" * 200, 'a{b="c"}', "größe µs", "a b", "%s{}"])
def test_other_names_are_kept_as_they_are(name: str, registry: ProbeRegistry) -> None:
    registry.probe(name)
    assert list(registry.read()) == [name]


def test_all_that_is_wrong_is_said_at_once(registry: ProbeRegistry) -> None:
    with pytest.raises(InvalidInput) as caught:
        registry.probe("", clock="sun", samples=-1)
    assert len(caught.value.problems) == 3


def test_a_clock_that_is_no_word_is_refused(registry: ProbeRegistry) -> None:
    with pytest.raises(InvalidInput, match=r"clock is \['wall'\], expected 'wall' or 'cpu'"):
        registry.probe("one", clock=["wall"])  # type: ignore[arg-type]


def test_a_probe_keeps_its_clock(registry: ProbeRegistry) -> None:
    registry.probe("one", clock="cpu")
    assert registry.probe("one").clock == registry.probe("one", clock="cpu").clock == "cpu"
    with pytest.raises(InvalidInput, match="has the clock 'cpu' already"):
        registry.probe("one", clock="wall")


@pytest.mark.slow
def test_a_hundred_thousand_probes_are_made_and_read() -> None:
    registry = ProbeRegistry()
    probes = [registry.probe(f"probe {number}") for number in range(100_000)]
    for each in probes[::20_000]:
        with each:
            pass
    found = registry.read()
    assert (len(found), sum(each.count for each in found.values())) == (100_000, 5)


@pytest.mark.alone
@pytest.mark.slow
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


@pytest.mark.slow
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
    assert figures(late.since_last()["kernel"])[:4] == (5, 220, 10, 90)
    assert figures(early.since_last()["kernel"]) == (0, 0, None, None, None)
    assert figures(probe.read())[:4] == (5, 220, 10, 90)


@pytest.mark.parametrize("many", [3, 500])
def test_figures_of_an_interval_are_of_its_events_alone(
    many: int, registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    reader = registry.reader()
    spend(probe, clock, *[1, 1000] * many)
    reader.since_last()
    values = [500 + each % 7 for each in range(many)]
    spend(probe, clock, *values)
    found = figures(reader.since_last()["kernel"])
    assert found[:4] == (many, sum(values), min(values), max(values))
    assert found[4] == pytest.approx(statistics.variance(values))


def test_reading_without_reset_goes_on(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    spend(probe, clock, 1)
    reader = registry.reader()
    assert reader.read()["kernel"].count == 1
    spend(probe, clock, 1)
    assert reader.read(reset=True)["kernel"].count == 2
    assert reader.read()["kernel"].count == 0


def test_a_reading_says_of_how_long_it_is(reader: ProbeReader) -> None:
    first = reader.since_last().elapsed_s
    second = reader.since_last().elapsed_s
    assert first >= second > 0.0


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


@pytest.mark.slow
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


@pytest.mark.parametrize("reads", [1, 7])
def test_quantiles_are_of_all_events_not_of_the_first(
    registry: ProbeRegistry, hand: str, clock: FakeClock, reads: int
) -> None:
    """Short events first, then as many long ones, then three times as many in one go."""
    probe = registry.probe("kernel", clock=hand, samples=200)
    for number in range(5_000):
        spend(probe, clock, 100 if number < 1_000 else 10_000 + number)
        if number % (1_000 // reads) == 0 and number < 2_000:
            probe.read()
    found = probe.read()
    assert found.count == 5_000
    assert found.p50_s == pytest.approx(12_500e-9, rel=0.1)
    assert found.mean_s == pytest.approx(0.8 * 13_000e-9, rel=0.02)
    drawn = probe.samples()
    assert len(drawn) == 200
    assert 10 <= sum(each < 1e-6 for each in drawn) <= 75  # 40 of 200; one in 10 million is beyond


def test_recent_events_are_likelier_where_a_half_life_is_given(
    registry: ProbeRegistry, hand: str, clock: FakeClock
) -> None:
    """With a half-life of a nanosecond only the last of those that are added up together stay."""
    probe = registry.probe("kernel", clock=hand, samples=20, half_life_s=1e-9)
    for number in range(5_000):
        spend(probe, clock, 100 if number < 4_500 else 10_000)
    assert probe.samples() == pytest.approx([10_000e-9] * 20)
    assert probe.work.decay == probe.decay > 0.0
    registry.probe("kernel", samples=20)
    assert probe.decay == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"half_life_s": 1.0}, "half_life_s is 1.0, expected one only with samples"),
        ({"half_life_s": 1.0, "samples": 0}, "expected one only with samples"),
        (
            {"half_life_s": -1.0, "samples": 5},
            "half_life_s is -1.0, expected seconds from 1e-09 on",
        ),
        ({"half_life_s": "a", "samples": 5}, "half_life_s is 'a', expected seconds"),
    ],
)
def test_a_half_life_that_cannot_be_is_refused(
    options: dict[str, object], words: str, registry: ProbeRegistry
) -> None:
    with pytest.raises(InvalidInput, match=words):
        registry.probe("kernel", **options)  # type: ignore[arg-type]


def test_samples_are_returned_once_and_can_be_asked_for_later(
    registry: ProbeRegistry, probe: Probe, clock: FakeClock
) -> None:
    spend(probe, clock, 1)
    assert probe.samples() == []
    assert registry.probe("kernel", samples=3) is probe
    spend(probe, clock, 1, 2)
    probe.read()
    spend(probe, clock, 3, 4)
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
    with pytest.raises(MissingExtra, match=r"ddsketch.*benchrigor\[probes\]"):
        registry.probe("kernel", samples=10)
    registry.probe("kernel")


@pytest.mark.parametrize("samples", [-1, 1.5, True, "many", 10**7])
def test_a_number_of_samples_that_cannot_be_is_refused(
    samples: object, registry: ProbeRegistry
) -> None:
    with pytest.raises(InvalidInput, match="expected a whole number from 0"):
        registry.probe("kernel", samples=samples)


def test_the_work_of_a_probe_keeps_samples_as_it_does(registry: ProbeRegistry) -> None:
    probe = registry.probe("x" * 200, samples=10)
    with probe.work:
        pass
    assert (len(probe.work.samples()), probe.work.name) == (1, "x" * 200 + ".work")


def test_values_of_a_probe_are_unit_readings_of_a_session() -> None:
    kernel = ProbeRegistry().probe("assign", samples=1000)
    session = br.Session(br.Options(target=0.5, budget_readings=2_000, min_seconds=0.0))
    while plan := session.ask():
        for _ in range(plan.readings or 1):
            with kernel:
                sum(range(200))
        values = kernel.samples()
        elapsed_ns = int(sum(values) * 1e9) + 1
        session.tell(br.Round(plan=plan, elapsed_ns=elapsed_ns, unit_readings={"assign": values}))
    assert session.result().readings("assign").size == kernel.read().count


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
    with pytest.raises(InvalidInput, match=r"1\.0, and the probe .frame. counts by 4e-06"):
        registry.probe("frame", samples=3, deadline_s=1.0)
    assert probe.most == 0
    for same in (None, 4e-6):
        assert registry.probe("frame", clock=hand, deadline_s=same) is probe
    spend(probe, clock, 9_000)
    assert registry.read()["frame"].missed == 3
    assert [reader.since_last()["frame"].missed for _ in range(2)] == [3, 0]


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "40ms", True])
def test_a_deadline_that_cannot_be_is_refused(registry: ProbeRegistry, wrong: float) -> None:
    with pytest.raises(InvalidInput, match="deadline_s is"):
        registry.probe("frame", deadline_s=wrong)
