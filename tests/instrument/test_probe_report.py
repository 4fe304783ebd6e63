import pytest

from benchrigor.errors import InvalidInput
from benchrigor.instrument import ProbeRegistry
from benchrigor.instrument.data.probe_reading import ProbeReading, ProbeReadings
from benchrigor.instrument.probe_report import probe_table, render_probes
from benchrigor.model import Notice


def reading(name: str, count: int, total_s: float, **figures: object) -> ProbeReading:
    absent = dict.fromkeys(("min_s", "max_s", "mean_s", "variance_s2", "p50_s", "p99_s"))
    known = {"self_s": total_s, "samples": 0, "samples_lost": 0, "rejected": 0}
    given = {**absent, **known, "own_cost_s": 5e-7, **figures}
    return ProbeReading(name=name, clock="wall", count=count, total_s=total_s, **given)


def of(*readings: ProbeReading, notices: tuple[Notice, ...] = ()) -> ProbeReadings:
    by_name = {each.name: each for each in readings}
    return ProbeReadings(readings=by_name, elapsed_s=30.0, notices=notices)


K_MEANS = of(
    reading("init", 1, 9887e-6 + 5e-7),
    reading("init.work", 1, 9829e-6),
    reading("assign", 2_024_251, 22.307 + 2_024_251 * 5e-7),
    reading("assign.work", 2_024_251, 14.069),
    reading("print", 11, 4.2e-3),
    reading("never", 0, 0.0),
)


def test_a_kernel_has_a_row_with_dispatch_and_work() -> None:
    init, assign, printing = probe_table(K_MEANS)
    assert (init.kernel, assign.kernel, printing.kernel) == ("init", "assign", "print")
    assert assign.dispatch_s == pytest.approx(4.07e-6, rel=1e-3)
    assert assign.work_s == pytest.approx(6.95e-6, rel=1e-3)
    assert assign.dispatch_share == pytest.approx(0.369, rel=1e-3)
    assert assign.own_cost_s == pytest.approx(1e-6)
    assert (init.batch, assign.batch, printing.batch) == (False, True, False)
    assert (printing.dispatch_s, printing.work_s, printing.dispatch_share) == (None,) * 3
    assert sum(each.share for each in probe_table(K_MEANS)) == pytest.approx(1.0)


def test_what_probes_cost_is_no_dispatch() -> None:
    work = reading("kernel.work", 1000, 1000e-6)
    for dispatch_us, share, batch in ((0.0, 0.0, False), (0.2, 1 / 6, False), (1.0, 0.5, True)):
        total_s = 1000 * (1.0 + 0.5 + dispatch_us) * 1e-6
        (row,) = probe_table(of(reading("kernel", 1000, total_s), work))
        assert row.dispatch_s == pytest.approx(dispatch_us * 1e-6, abs=1e-12)
        assert (row.dispatch_share, row.batch) == (pytest.approx(share, abs=1e-6), batch)


def test_the_bound_of_dispatch_can_be_set() -> None:
    assert not any(each.batch for each in probe_table(K_MEANS, batch_above=0.4))
    for wrong in (0.0, 1.0, float("nan"), "20%"):
        with pytest.raises(InvalidInput, match="batch_above"):
            probe_table(K_MEANS, batch_above=wrong)


def test_the_table_shows_what_the_rows_say() -> None:
    text = render_probes(K_MEANS)
    assert text.splitlines()[:4] == [
        "kernel  instances  dispatch     work    total   share  in dispatch   probe",
        "init            1     58 µs  9.83 ms  9.89 ms  0.042%        0.59%    1 µs",
        "assign  2,024,251   4.07 µs  6.95 µs   23.3 s    100%    batch 37%    1 µs",
        "print          11         -   382 µs   4.2 ms  0.018%            -  500 ns",
    ]
    assert "Probes themselves took about 2.02 s, 6.7% of 30 s." in text


def test_quantiles_losses_and_notices_are_told() -> None:
    lossy = reading("x" * 90, 5, 1.0, p50_s=0.1, p99_s=0.9, samples=3, samples_lost=2, rejected=4)
    notice = Notice.warning("probe-cost", "Too dear.")
    text = render_probes(of(lossy, notices=(notice,)))
    assert "3     2  100 ms  900 ms" in text
    assert "Rejected events: 4." in text
    assert "! Too dear. [probe-cost]" in text
    assert max(map(len, text.splitlines())) <= 90


def test_probes_without_events_make_no_table() -> None:
    assert render_probes(of(reading("never", 0, 0.0))) == "No probe has counted anything."


@pytest.mark.parametrize(
    "enter", [lambda probe: probe, lambda probe: probe.again()], ids=["held", "again"]
)
def test_the_time_of_work_is_its_kernels_however_it_was_entered(enter: object) -> None:
    registry = ProbeRegistry()
    for name in ("one", "other"):
        kernel = registry.probe(name, clock="cpu")  # which other processes do not slow down
        with enter(kernel), enter(kernel.work):
            sum(range(100_000))
    assert sum(each.share for each in probe_table(registry.read())) == pytest.approx(1.0)
    assert all(each.share > 0.2 for each in probe_table(registry.read()))


def test_missed_deadlines_have_rows_of_their_own() -> None:
    frame = reading("frame", 200, 4.0, deadline_s=0.04, missed=3)
    shown = render_probes(of(frame, reading("free", 5, 1.0)))
    assert "deadline of  deadline  missed  share" in shown
    assert "frame           40 ms       3   1.5%" in shown
    assert "free  " not in shown.partition("deadline of")[2]
    assert "deadline" not in render_probes(of(reading("free", 5, 1.0)))
