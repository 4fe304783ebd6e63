from __future__ import annotations

import os
import re
from dataclasses import replace
from types import SimpleNamespace as Told

import psutil
import pytest
from tests.session.telling import asked, engine_of

from benchrigor.machine import StatusReader, read_thresholds
from benchrigor.model import Capability, Code, Options, Round, Sample
from benchrigor.session import Session, examine, loop
from benchrigor.session.fitness import Examined, judge
from benchrigor.testing import FakeClock, FakeSampler


def process(pid: int, name: str | None, used_s: float | None) -> Told:
    times = None if used_s is None else Told(user=used_s, system=0.0)
    return Told(info={"pid": pid, "create_time": 1.0, "name": name, "cpu_times": times})


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others use ten seconds of processor time between two looks, or hide it."""
    looks = iter(([0.0, 5.0], [10.0, 15.0]))

    def look(_: object) -> list[Told]:
        first, second = next(looks)
        return [
            process(7, "g\x1bcc", first),
            process(8, None, second),
            process(9, "hidden", None),
            process(os.getpid(), "ourselves", first),
        ]

    monkeypatch.setattr(psutil, "process_iter", look)


def test_a_machine_is_examined(crowd: None) -> None:
    found = {each.name: each for each in examine(seconds=0.02)}
    assert found["clock"].verdict == "ok"
    assert re.search(r": gcc [\d,]+%, process 8 [\d,]+%$", found["others"].found)
    assert "under-used" not in found


def test_a_load_is_of_all_processors_however_few_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda **_: 8)
    monkeypatch.setattr(psutil, "getloadavg", lambda: (3.0, 3.0, 3.0))
    found = {each.name: each for each in examine(seconds=0.01)}
    assert found["load"].verdict == "ok"


def test_what_is_not_there_is_unknown_and_breaks_nothing(tmp_path) -> None:
    found = {each.name: each for each in examine(seconds=0.01, root=tmp_path)}
    assert found["turbo"].verdict is found["pressure"].verdict == "unknown"
    assert str(tmp_path) in found["turbo"].found


# How the figures are judged


SETTINGS = {
    "cpu governor": "performance",
    "turbo": "off",
    "smt": "on",
    "cores available": "8 of 8",
    "cpu quota": "none",
    "virtualisation": "none seen",
    "clock source": "tsc",
    "aslr": "full",
    "scheduler statistics": "time running and waiting of each process",
}
STATE = {
    "run delay": (0.1, "%"),
    "steal": (0.0, "%"),
    "load 1 min": (0.4, ""),
    "pressure cpu some": (1.0, "%"),
    "pressure io some": (0.0, "%"),
    "pressure memory some": (0.0, "%"),
    "swap in": (0.0, "B/s"),
    "swap out": (0.0, "B/s"),
    "memory available share": (60.0, "%"),
    "storage used": (40.0, "%"),
    "throttled": (0.0, "%"),
    "temperature margin": (30.0, "°C"),
    "smart failing disks": (0, ""),
    "memory errors uncorrected": (0, ""),
}
FIT = Examined(
    resolution_s=20e-9,
    cost_s=40e-9,
    shortest_s=20e-6,
    capabilities=tuple(
        Capability(name=name, available=True, value=value) for name, value in SETTINGS.items()
    ),
    samples=tuple(Sample(name, value, unit) for name, (value, unit) in STATE.items()),
    processors=8,
    busy=0.01,
    others=(),
    work_s=(1.0, 1.01, 0.99, 1.0),
    thresholds=[each for each in read_thresholds() if each.code != "under-used"],
)


def set_to(name: str, value: str | None) -> Examined:
    """Return the machine with one other setting, None for one that is not known."""
    others = [each for each in FIT.capabilities if each.name != name]
    own = Capability(name=name, available=value is not None, value=value, reason="no file")
    return replace(FIT, capabilities=(*others, own))


def at(**values: float | None) -> Examined:
    """Return the machine with other samples, None for one that is not known."""
    samples = {each.name: each for each in FIT.samples}
    for words, value in values.items():
        name = words.replace("_", " ")
        reason = "no file" if value is None else ""
        samples[name] = replace(samples[name], value=value, reason=reason)
    return replace(FIT, samples=tuple(samples.values()))


def test_a_quiet_machine_is_fit_and_has_nothing_to_be_told() -> None:
    findings = judge(FIT)
    assert {each.verdict for each in findings} == {"ok"}
    assert not any(each.advice or each.code for each in findings)
    assert len({each.name for each in findings}) == len(findings)


NO_PRESSURE = {"pressure_memory_some": None}


@pytest.mark.parametrize(
    ("name", "machine", "verdict", "code"),
    [
        # What was measured
        ("clock", replace(FIT, shortest_s=0.001), "doubtful", Code.COARSE_CLOCK),
        ("clock", replace(FIT, shortest_s=15.6), "unfit", Code.COARSE_CLOCK),
        ("clock cost", replace(FIT, cost_s=2e-6), "doubtful", Code.CLOCK_COST),
        ("noise", replace(FIT, work_s=(1.0, 1.1, 1.0, 1.1)), "doubtful", Code.CHANGING_PACE),
        ("noise", replace(FIT, work_s=(1.0, 2.0, 1.0, 2.0)), "unfit", Code.CHANGING_PACE),
        ("others", replace(FIT, busy=0.05), "doubtful", Code.DISTURBED),
        ("others", replace(FIT, busy=None, others=[("gcc", 1.0)]), "doubtful", Code.DISTURBED),
        ("smt", replace(FIT, busy=1.0), "doubtful", Code.CHANGING_PACE),
        # Settings
        ("cpu governor", set_to("cpu governor", "powersave"), "doubtful", Code.CHANGING_PACE),
        ("turbo", set_to("turbo", "on"), "doubtful", Code.CHANGING_PACE),
        ("turbo", set_to("turbo", None), "unknown", None),
        ("cores available", set_to("cores available", "1 of 16"), "doubtful", Code.DISTURBED),
        ("cores available", set_to("cores available", "1 of 1"), "ok", None),
        ("cpu quota", set_to("cpu quota", "1.5 cores"), "doubtful", Code.DISTURBED),
        ("cpu quota", set_to("cpu quota", None), "unknown", None),
        ("virtualisation", set_to("virtualisation", "virtual machine (QEMU)"), "ok", None),
        ("scheduler", set_to("scheduler statistics", None), "doubtful", Code.DELAY_NOT_MEASURED),
        # The state
        ("waiting", at(run_delay=5.0, steal=4.0), "doubtful", Code.DISTURBED),
        ("waiting", at(run_delay=16.0, steal=None), "unfit", Code.DISTURBED),
        ("waiting", at(run_delay=None, steal=None), "unknown", None),
        ("load", at(load_1_min=4.0), "doubtful", Code.DISTURBED),
        ("load", at(load_1_min=8.1), "unfit", Code.DISTURBED),
        ("load", at(load_1_min=None), "unknown", None),
        ("pressure", at(pressure_io_some=8.0), "doubtful", Code.CHANGING_PACE),
        ("pressure", at(pressure_memory_some=50.0), "unfit", Code.CHANGING_PACE),
        # What may raise an alarm
        ("stolen", at(steal=7.0), "doubtful", None),
        ("stolen", at(steal=12.0), "unfit", None),
        ("thrashing", at(swap_in=5e6), "ok", None),
        ("thrashing", at(swap_in=5e6, swap_out=5e6, **NO_PRESSURE), "unfit", None),
        ("thrashing", at(swap_in=None), "unknown", None),
        ("hot", at(temperature_margin=2.0), "unfit", None),
        ("memory-errors", at(memory_errors_uncorrected=None), "unknown", None),
    ],
)
def test_figures_settings_and_the_state_are_judged(
    name: str, machine: Examined, verdict: str, code: Code | None
) -> None:
    each = next(each for each in judge(machine) if each.name == name)
    assert (each.verdict, each.code) == (verdict, code)
    assert code is None or each.advice
    if verdict == "unknown":
        assert each.found == "no file"


def test_a_machine_that_tells_nothing_is_judged_by_what_is_measured() -> None:
    silent = replace(FIT, samples=(), capabilities=(), busy=None)
    by_verdict = {each.name: each.verdict for each in judge(silent)}
    assert by_verdict["clock"] == by_verdict["noise"] == by_verdict["others"] == "ok"
    assert {by_verdict[name] for name in ("load", "pressure", "waiting", "hot")} == {"unknown"}


# The status of the machine around rounds


MS = 1_000_000
COST_S = 0.002


class Watched:
    """A session of given rounds on a machine that a test sets, all of it in fake time."""

    def __init__(self, **options: float) -> None:
        clock = self.clock = FakeClock()
        machine = FakeSampler(
            {"cpu busy": 50.0, "steal": None, "storage used": 40.0}, clock=self.clock, cost_s=COST_S
        )
        self.engine = engine_of(Options(target=None, **options))  # type: ignore[arg-type]
        self.watch = loop.StatusWatch(clock, StatusReader(samplers=[machine], clock=clock))

    def round(self, lasting_ms: float) -> Round:
        """Carry out a round."""
        plan = asked(self.engine)
        assert plan is not None
        self.passed_ns = self.watch.before()
        self.clock.advance(round(lasting_ms * MS))
        done = Round(plan=plan, elapsed_ns=round(lasting_ms * MS), unit_readings={"time": [0.1]})
        finished = self.watch.after(done)
        self.engine.tell(finished)
        return finished


def machine_facts(finished: Round) -> dict[str, object]:
    return {
        name.removeprefix("machine: "): value
        for name, value in finished.facts.items()
        if name.startswith("machine: ")
    }


def test_what_is_known_of_the_machine_stands_in_the_facts_of_a_round_by_its_short_names() -> None:
    watched = Watched()
    assert machine_facts(watched.round(500)) == {"span_s": 0.502, "cpu busy": 50.0}


def test_a_reading_costs_a_hundredth_of_the_time_since_the_last_one_at_most() -> None:
    watched = Watched(budget_s=1000)
    read = [bool(machine_facts(watched.round(50))) for _ in range(100)]
    spent_s = (sum(read) + 1) * COST_S  # and the first one
    assert 0 < spent_s <= 0.01 * 100 * 0.05 + 2 * COST_S


def test_what_a_reading_between_rounds_takes_counts_for_no_round() -> None:
    watched = Watched()
    watched.round(500)
    watched.clock.advance(500 * MS)  # a pause
    assert machine_facts(watched.round(500))["span_s"] == pytest.approx(0.502)  # without it
    assert watched.passed_ns == COST_S * 1e9


def test_a_run_tells_what_its_machine_was_like(monkeypatch) -> None:
    monkeypatch.setattr(loop, "_MOST_SHARE", 1e9)  # however slow a reading is here
    short = Session(Options(budget_s=0.2), seed=1).run(lambda: None)
    assert "machine: span_s" not in short.facts
    monkeypatch.setattr(loop, "_LEAST_BUDGET_S", 0.0)
    assert "machine: span_s" in Session(Options(budget_s=0.2), seed=1).run(lambda: None).facts
    clock = FakeClock()
    record = Session(Options(budget_s=0.2), seed=1, clock=clock).run(lambda: clock.advance(MS))
    assert "machine: span_s" not in record.facts  # in simulated time
