"""Whether a machine is fit for measurements.

`examine` takes one second of it: its pace of fixed work, its state, and its other work. `judge`
makes findings of that, and reads nothing.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock
from benchrigor.machine import capabilities, health
from benchrigor.machine.alarms import Threshold, read_thresholds
from benchrigor.machine.kernel_files import ROOT
from benchrigor.machine.status_readers import StatusReader
from benchrigor.model import Capability, Code, Sample
from benchrigor.model.checks import is_number, refuse, wrong_number
from benchrigor.model.notice import Finding, Fitness
from benchrigor.stats.interference import RED_ABOVE, YELLOW_FROM
from benchrigor.units import percent, show_value
from benchrigor.workloads.processes.worker import Reference
from benchrigor.workloads.timing import Stopwatch

_PARTS = 10
_SEEN = 0.02  # of a processor
_OF_PROGRAMS = {"under-used"}  # alarms that a function in one thread raises wherever it runs


def examine(*, seconds: float = 1.0, root: Path = ROOT) -> tuple[Finding, ...]:
    """Find out whether a machine is fit to be measured on; no setting is changed.

    Fixed work is done in the meantime, as by the measured code.

    Parameters
    ----------
    seconds
        For how long.
    root
        Folder that holds ``proc`` and ``sys``.

    Raises
    ------
    InvalidInput
        When that is not a number of seconds above 0.
    ClockFailed
        When the clock stands still, or goes backwards.

    Examples
    --------
    >>> [each.name for each in examine(seconds=0.02)][:3]
    ['clock', 'clock cost', 'noise']
    """
    refuse(wrong_number("seconds", seconds))
    watch = Stopwatch(WallClock())
    reader, reference = StatusReader(root=root), Reference()
    known = _processor_times()
    reader.read()
    began_s, used_s = time.perf_counter(), time.process_time()
    work_s = [_mean_work_s(reference, seconds / _PARTS) for _ in range(_PARTS)]
    took_s, own_s = time.perf_counter() - began_s, time.process_time() - used_s
    status = reader.read()
    later, span_s = _processor_times(), time.perf_counter() - began_s
    others = [
        (name, (used - known[key][1]) / span_s)
        for key, (name, used) in later.items()
        if key in known
    ]
    busy = status.value("cpu busy")
    cores = psutil.cpu_count() or 1
    return judge(
        Examined(
            resolution_s=watch.resolution_ns / 1e9,
            cost_s=watch.cost_ns / 1e9,
            shortest_s=watch.shortest_ns / 1e9,
            capabilities=capabilities(root=root),
            samples=(*status.samples, *health(root=root).samples),
            processors=cores,
            busy=max(busy * cores / 100.0 - own_s / took_s, 0.0) if is_number(busy) else None,
            others=sorted((use for use in others if use[1] >= _SEEN), key=lambda use: -use[1]),
            work_s=work_s,
            thresholds=[each for each in read_thresholds() if each.code not in _OF_PROGRAMS],
        )
    )


def _mean_work_s(reference: Reference, seconds: float) -> float:
    """Return the mean time of the fixed work, done for that long."""
    until_s, times = time.perf_counter() + seconds, list[int]()
    while time.perf_counter() < until_s or not times:
        times.append(reference.measure(lasting_ns=0))
    return statistics.fmean(times) / 1e9


def _processor_times() -> dict[tuple[int, float], tuple[str, float]]:
    """Return name and processor time of all other visible processes."""
    found = {}
    for process in psutil.process_iter(["pid", "create_time", "name", "cpu_times"]):
        told = process.info
        if told["pid"] != os.getpid() and told["cpu_times"] is not None:
            name = "".join(filter(str.isprintable, told["name"] or f"process {told['pid']}"))
            used_s = told["cpu_times"].user + told["cpu_times"].system
            found[told["pid"], told["create_time"] or 0.0] = name, used_s
    return found


_COARSE_S = (1e-3, 0.1)  # shortest reading that the clock resolves
_SLOW_CLOCK_S = (1e-6, 1e-3)  # to read it
_LOAD = (0.5, 1.0)  # tasks per processor
_OTHERS = (0.05, math.inf)  # processors that others keep busy: how much that hurts is measured
_NOISE = (0.02, 0.1)  # doubtful from the half-width on that a session wants by default
_LIGHT = (YELLOW_FROM, RED_ABOVE)  # percent of the time
_MOST_NAMED = 3
_QUIETER = "end what else runs, or measure later"
_OTHER_CLOCK = "let a reading hold more work, or use the clock source tsc"
_SPREAD = "measure in pieces over minutes (--pieces 6 --over 10)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """Figures of a machine, read while fixed work kept one of its processors busy.

    Parameters
    ----------
    resolution_s, cost_s, shortest_s
        Of the clock: its step, what reading it takes, the shortest reading that it resolves.
    capabilities, samples
        Abilities of the machine; its status and health.
    processors
        Of the whole machine, as the load is.
    busy
        Processors that others kept busy; None if it is unknown.
    others
        The busiest other visible processes, with the number of processors they kept busy.
    work_s
        Mean times of the fixed work in equal parts of the time.
    thresholds
        Of alarms.
    """

    resolution_s: float
    cost_s: float
    shortest_s: float
    capabilities: Sequence[Capability]
    samples: Sequence[Sample]
    processors: int
    busy: float | None
    others: Sequence[tuple[str, float]]
    work_s: Sequence[float]
    thresholds: Sequence[Threshold]


def judge(found: Examined) -> tuple[Finding, ...]:
    """Judge the figures of a machine.

    Findings are "clock", "clock cost", "noise", "waiting", "others", "load", "pressure", settings
    by the names of their capabilities, and what may raise an alarm by its code.
    """
    known = {sample.name: sample for sample in found.samples}
    most = tuple(load * found.processors for load in _LOAD)
    waits = [known[name] for name in ("run delay", "steal") if name in known]
    load = [known[name] for name in ("load 1 min",) if name in known]
    pressure = [sample for name, sample in known.items() if name.startswith("pressure")]
    return (
        _clock(found),
        _cost(found.cost_s),
        _noise(found.work_s),
        _of_samples("waiting", waits, sum, _LIGHT, Code.DISTURBED),
        _others(found),
        _of_samples("load", load, sum, most, Code.DISTURBED),
        _of_samples("pressure", pressure, max, _LIGHT, Code.CHANGING_PACE),
        *_settings(found),
        *(_alarm(threshold, known) for threshold in found.thresholds if threshold.enabled),
    )


def _clock(found: Examined) -> Finding:
    source = {fact.name: fact.value for fact in found.capabilities}.get("clock source")
    step, shortest = (show_value(time, "s") for time in (found.resolution_s, found.shortest_s))
    shown = f"{f'{source}, ' if source else ''}steps of {step}: for readings from {shortest} on"
    verdict = _grade(found.shortest_s, _COARSE_S)
    return _finding("clock", shown, verdict, _OTHER_CLOCK, Code.COARSE_CLOCK)


def _cost(cost_s: float) -> Finding:
    shown = f"{show_value(cost_s, 's')} in each reading"
    verdict = _grade(cost_s, _SLOW_CLOCK_S)
    return _finding("clock cost", shown, verdict, _OTHER_CLOCK, Code.CLOCK_COST)


def _noise(work_s: Sequence[float]) -> Finding:
    spread = statistics.stdev(work_s) / statistics.fmean(work_s)
    shown = f"±{_percent(spread)} from one tenth of a second to the next, of the same work"
    return _finding("noise", shown, _grade(spread, _NOISE), _SPREAD, Code.CHANGING_PACE)


def _of_samples(
    name: str,
    samples: Sequence[Sample],
    joined: Callable[[Iterable[float]], float],
    limits: tuple[float, ...],
    code: Code,
) -> Finding:
    """Judge samples that show other work, by their sum or the greatest."""
    if not (numbers := _numbers(samples)):
        return _unknown(name, samples)
    verdict = _grade(joined(numbers.values()), limits)
    shown = _list_samples(samples).replace(f"{name} ", "")
    return _finding(name, shown, verdict, _QUIETER, code)


def _others(found: Examined) -> Finding:
    named = ", ".join(f"{name} {_percent(share)}" for name, share in found.others[:_MOST_NAMED])
    busy = sum(share for _, share in found.others) if found.busy is None else found.busy
    shown = f"keep {_percent(busy)} of a processor busy{named and f': {named}'}"
    return _finding("others", shown, _grade(busy, _OTHERS), _QUIETER, Code.DISTURBED)


# By setting: whether its value is right, given whether other work keeps the machine busy; the
# advice if it is not; the code of its effect.
_SETTINGS: dict[str, tuple[Callable[[str, bool], bool], str, Code]] = {
    "cpu governor": (
        lambda value, _: value == "performance",
        "cpupower frequency-set --governor performance",
        Code.CHANGING_PACE,
    ),
    "turbo": (
        lambda value, _: value == "off",
        "turn it off: the pace depends on heat, and on what other cores do",
        Code.CHANGING_PACE,
    ),
    "smt": (
        lambda value, are_busy: value == "off" or not are_busy,
        "end what else runs, which may share your core; or turn SMT off",
        Code.CHANGING_PACE,
    ),
    "cores available": (
        lambda value, _: value == "1 of 1" or not value.startswith("1 of"),
        "allow two: all else that runs takes its time from the measured code",
        Code.DISTURBED,
    ),
    "cpu quota": (
        lambda value, _: value == "none",
        "raise the quota (cpu.max): a program that has used it up is stopped",
        Code.DISTURBED,
    ),
    "virtualisation": (lambda _, __: True, "", Code.CHANGING_PACE),
    "scheduler statistics": (
        lambda value, _: value != "",
        "use a kernel with schedstats: without them waiting is not measured",
        Code.DELAY_NOT_MEASURED,
    ),
}


def _settings(found: Examined) -> Iterator[Finding]:
    are_busy = found.busy is not None and found.busy >= _OTHERS[0]
    for capability in found.capabilities:
        if capability.name not in _SETTINGS:
            continue
        fits, advice, code = _SETTINGS[capability.name]
        name = capability.name.removesuffix(" statistics")
        if not capability.available and code is not Code.DELAY_NOT_MEASURED:
            yield Finding(name=name, found=capability.reason, verdict=Fitness.UNKNOWN)
            continue
        value = capability.value or ""
        verdict = Fitness.OK if fits(value, are_busy) else Fitness.DOUBTFUL
        yield _finding(name, value or capability.reason, verdict, advice, code)


def _alarm(threshold: Threshold, known: Mapping[str, Sample]) -> Finding:
    """Judge by a threshold as `Alarms` would if these samples lasted."""
    samples = [known[condition.sample] for condition in threshold.when if condition.sample in known]
    values = _numbers(samples)
    if threshold.when[0].sample not in values:
        return _unknown(threshold.code, samples)
    told = [condition for condition in threshold.when if condition.sample in values]
    verdict = Fitness.DOUBTFUL
    if all(condition.holds(values[condition.sample]) for condition in told):
        verdict = Fitness.UNFIT
    elif any(condition.is_over(values[condition.sample]) for condition in told):
        verdict = Fitness.OK
    advice = threshold.sentence[:1].lower() + threshold.sentence[1:].rstrip(".")
    return _finding(threshold.code, _list_samples(samples), verdict, advice)


def _finding(
    name: str, found: str, verdict: Fitness, advice: str, code: Code | None = None
) -> Finding:
    """Make a finding; one that is OK has neither advice nor code."""
    if verdict is Fitness.OK:
        return Finding(name=name, found=found, verdict=verdict)
    return Finding(name=name, found=found, verdict=verdict, advice=advice, code=code)


def _unknown(name: str, samples: Iterable[Sample]) -> Finding:
    reasons = dict.fromkeys(sample.reason for sample in samples if sample.reason)
    return Finding(name=name, found="; ".join(reasons) or "not told", verdict=Fitness.UNKNOWN)


def _grade(value: float, limits: tuple[float, ...]) -> Fitness:
    """Grade a value that should be small by the limits of doubtful and of unfit."""
    doubtful, unfit = limits
    if value < doubtful:
        return Fitness.OK
    return Fitness.DOUBTFUL if value <= unfit else Fitness.UNFIT


def _numbers(samples: Iterable[Sample]) -> dict[str, float]:
    return {sample.name: float(sample.value) for sample in samples if is_number(sample.value)}


def _list_samples(samples: Iterable[Sample]) -> str:
    return ", ".join(
        f"{sample.name} {_percent(sample.value / 100.0) if sample.unit == '%' else sample.shown}"
        for sample in samples
        if is_number(sample.value)
    )


def _percent(share: float) -> str:
    """Show a share, rounded to a thousandth."""
    return percent(round(share, 3), digits=2)
