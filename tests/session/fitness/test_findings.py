from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchrigor.machine import read_thresholds
from benchrigor.model import Capability, Code, Sample
from benchrigor.session.fitness.findings import Examined, judge

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


def finding(name: str, found: Examined) -> Any:
    return next(each for each in judge(found) if each.name == name)


def test_a_quiet_machine_is_fit_and_has_nothing_to_be_told() -> None:
    findings = judge(FIT)
    assert {each.verdict for each in findings} == {"ok"}
    assert not any(each.advice or each.code for each in findings)
    assert len({each.name for each in findings}) == len(findings)


@pytest.mark.parametrize(
    ("name", "found", "verdict", "code"),
    [
        ("clock", {"shortest_s": 0.001}, "doubtful", Code.COARSE_CLOCK),
        ("clock", {"shortest_s": 15.6}, "unfit", Code.COARSE_CLOCK),
        ("clock cost", {"cost_s": 2e-6}, "doubtful", Code.CLOCK_COST),
        ("noise", {"work_s": (1.0, 1.1, 1.0, 1.1)}, "doubtful", Code.CHANGING_PACE),
        ("noise", {"work_s": (1.0, 2.0, 1.0, 2.0)}, "unfit", Code.CHANGING_PACE),
        ("others", {"busy": 0.05}, "doubtful", Code.DISTURBED),
        ("others", {"busy": None, "others": [("gcc", 1.0)]}, "doubtful", Code.DISTURBED),
        ("smt", {"busy": 1.0}, "doubtful", Code.CHANGING_PACE),
    ],
)
def test_what_was_measured_is_judged(
    name: str, found: dict[str, Any], verdict: str, code: Code
) -> None:
    each = finding(name, replace(FIT, **found))
    assert (each.verdict, each.code) == (verdict, code)
    assert each.advice


@pytest.mark.parametrize(
    ("name", "value", "verdict", "code"),
    [
        ("cpu governor", "performance, powersave", "doubtful", Code.CHANGING_PACE),
        ("turbo", "on", "doubtful", Code.CHANGING_PACE),
        ("cores available", "1 of 16", "doubtful", Code.DISTURBED),
        ("cpu quota", "1.5 cores", "doubtful", Code.DISTURBED),
        ("cores available", "16 of 16", "ok", None),
        ("cores available", "1 of 1", "ok", None),
        ("smt", "off", "ok", None),
        ("virtualisation", "virtual machine (QEMU)", "ok", None),
        ("turbo", None, "unknown", None),
        ("cpu quota", None, "unknown", None),
    ],
)
def test_settings_are_judged(name: str, value: str | None, verdict: str, code: Code) -> None:
    each = finding(name, set_to(name, value))
    assert (each.verdict, each.code) == (verdict, code)
    assert each.found == (value or "no file")
    assert bool(each.advice) is (code is not None)


def test_where_nobody_counts_waiting_a_run_will_say_so() -> None:
    each = finding("scheduler", set_to("scheduler statistics", None))
    assert (each.verdict, each.code) == ("doubtful", Code.DELAY_NOT_MEASURED)


@pytest.mark.parametrize(
    ("name", "state", "verdict", "code"),
    [
        ("waiting", {"run_delay": 5.0, "steal": 4.0}, "doubtful", Code.DISTURBED),
        ("waiting", {"run_delay": 16.0, "steal": None}, "unfit", Code.DISTURBED),
        ("waiting", {"run_delay": None, "steal": None}, "unknown", None),
        ("load", {"load_1_min": 4.0}, "doubtful", Code.DISTURBED),
        ("load", {"load_1_min": 8.1}, "unfit", Code.DISTURBED),
        ("load", {"load_1_min": None}, "unknown", None),
        ("pressure", {"pressure_io_some": 8.0}, "doubtful", Code.CHANGING_PACE),
        ("pressure", {"pressure_memory_some": 50.0}, "unfit", Code.CHANGING_PACE),
        ("stolen", {"steal": 7.0}, "doubtful", None),
        ("stolen", {"steal": 12.0}, "unfit", None),
        ("throttling", {"throttled": 20.0}, "unfit", None),
        ("thrashing", {"swap_in": 5e6}, "ok", None),
        (
            "thrashing",
            {"swap_in": 5e6, "swap_out": 5e6, "pressure_memory_some": 20.0},
            "unfit",
            None,
        ),
        (
            "thrashing",
            {"swap_in": 5e6, "swap_out": 5e6, "pressure_memory_some": None},
            "unfit",
            None,
        ),
        ("thrashing", {"swap_in": None}, "unknown", None),
        ("memory-low", {"memory_available_share": 7.0}, "doubtful", None),
        ("disk-full", {"storage_used": 96.0}, "unfit", None),
        ("hot", {"temperature_margin": 2.0}, "unfit", None),
        ("disk-failing", {"smart_failing_disks": 1}, "unfit", None),
        ("memory-errors", {"memory_errors_uncorrected": None}, "unknown", None),
    ],
)
def test_the_state_is_judged(
    name: str, state: dict[str, float | None], verdict: str, code: Code | None
) -> None:
    each = finding(name, at(**state))
    assert (each.verdict, each.code) == (verdict, code)
    if verdict == "unknown":
        assert each.found == "no file"


def test_a_machine_that_tells_nothing_is_judged_by_what_is_measured() -> None:
    silent = replace(FIT, samples=(), capabilities=(), busy=None)
    by_verdict = {each.name: each.verdict for each in judge(silent)}
    assert by_verdict["clock"] == by_verdict["noise"] == by_verdict["others"] == "ok"
    assert {by_verdict[name] for name in ("load", "pressure", "waiting", "hot")} == {"unknown"}
