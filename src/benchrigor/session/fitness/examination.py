"""One second of a machine: its pace of fixed work, its state, and its other work."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from benchrigor.clocks import WallClock
from benchrigor.machine import capabilities, health
from benchrigor.machine.kernel_files import ROOT
from benchrigor.machine.states.status_readers import StatusReader
from benchrigor.machine.thresholds import read_thresholds
from benchrigor.model.checks import is_number, refuse, wrong_number
from benchrigor.model.finding import Finding
from benchrigor.session.fitness.findings import Examined, judge
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
