"""The measurement of a sample: a peak, a metric of a command, or the value of a function."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from benchrigor import machine
from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed, failed
from benchrigor.model import (
    Code,
    Estimate,
    Metric,
    Notice,
    Options,
    RunRecord,
    StopReason,
    codec,
)
from benchrigor.model.checks import attempt, is_number
from benchrigor.model.metric import describe_metric
from benchrigor.model.run import PART_OF
from benchrigor.model.series import short
from benchrigor.protocols import Store
from benchrigor.report.fact import is_undisturbed
from benchrigor.session.session import Session, meter_for
from benchrigor.stats.interference import RED_ABOVE
from benchrigor.storage.user_settings import TIME, picked_metrics, time_metric
from benchrigor.workbench import peak_run
from benchrigor.workbench.data import PeakRate, PeakStatus, Trial, estimate_of
from benchrigor.workbench.designs import (
    MapSample,
    Measured,
    Point,
    Space,
    fill_places,
    lost_share,
    read_answer,
    show_point,
)
from benchrigor.workbench.loadgen.senders import Senders
from benchrigor.workbench.maps.life_cycle import Server, StepDone, same_configuration
from benchrigor.workbench.maps.map_file import VALUE, MapFile, MetricResponse, PeakResponse
from benchrigor.workbench.peak_run import PeakRun
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.settings import ADAPTIVE, LOADS
from benchrigor.workloads import CommandWorkload
from benchrigor.workloads.named_functions import imported
from benchrigor.workloads.processes.own_signals import measuring

PEAK = "peak"  # the name of such a response
_ENDS = r"; its \w+ ends:$"  # the end of a sentence before lines of output
_CUT_SHORT = {StopReason.INTERRUPTED, StopReason.STOP_REQUESTED}  # such a run can be resumed
_CONFIDENCE = 0.95  # of the low and high that a function returns
_BEGIN_AT = 0.7  # of a neighbour's peak: a first trial at the limit itself shows no side
SAMPLE = "sample"  # in the subject of a run that measures one


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a sample: its numbers as `SurfaceMap.tell` takes them, and how it arose.

    Parameters
    ----------
    steps
        Steps of its server that ended meanwhile.
    run_id
        The stored run that measured it; None without one.
    before_s
        Seconds that an earlier process measured it.
    host, attempts
        The host of a pool that measured it, and why it was measured again.
    """

    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    at_least: float | None = None
    at_most: float | None = None
    reason: str | None = None
    steps: tuple[StepDone, ...] = ()
    run_id: str | None = None
    before_s: float = 0.0
    host: str | None = None
    attempts: tuple[str, ...] = ()

    def answer_to(self, sample: MapSample, spent_s: float) -> Measured:
        """Return the result of a sample that was measured for some further seconds."""
        names = ("estimates", "at_least", "at_most", "host", "reason")
        answer: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Measured(sample=sample, cost_s=self.before_s + spent_s, **answer)


def name_of(response: PeakResponse | MetricResponse) -> str:
    """Return the name of the response, for people."""
    if isinstance(response, MetricResponse):
        return response.function or shlex.join(response.command)
    urls = [str(request["url"]) for request in response.requests]
    return f"peak of {urls[0] if urls else shlex.join(response.command)}"


def metric_of(response: PeakResponse | MetricResponse) -> Metric:
    """Return the steering metric."""
    return metrics_of(response)[0]


def metrics_of(response: PeakResponse | MetricResponse) -> tuple[Metric, ...]:
    """Return the metrics of all responses; the first one steers."""
    if isinstance(response, PeakResponse):
        unit = LOADS[response.generator.get("load", "rate")]
        return (describe_metric(PEAK, f"{unit},higher"),)
    ways = response.directions
    if response.function:
        return tuple(describe_metric(name, way) for name, way in ways.items())
    found = _metrics_told(response)
    return tuple(replace(found[name], direction=way) for name, way in ways.items())


def _metrics_told(response: MetricResponse) -> dict[str, Metric]:
    """Return all metrics of a command, by name: the picks from its output, and its time."""
    picked = picked_metrics({pick.metric: pick.description for pick in response.reads})
    return picked if TIME in picked else {**picked, TIME: time_metric()}


def options_at(response: PeakResponse, sample: MapSample) -> dict[str, Any]:
    """Return the options of the search for the peak of a sample."""
    own, seed_load = dict(response.search), sample.seed_load
    if seed_load is not None:
        is_adaptive = own.get("policy", ADAPTIVE) == ADAPTIVE
        own["seed_load"] = (_BEGIN_AT if is_adaptive else 1.0) * seed_load
    load, limits = response.generator.get("load", "rate"), response.limits_at(sample.point)
    return peak_run.search_options(own, load=load, limits=limits, accuracy=sample.accuracy)


class Samples:
    """Measures samples of a map, one after the other; leaving ``with`` ends their server.

    Parameters
    ----------
    file
        The map.
    cwd
        The folder in which commands run, and from which a function is imported.
    store
        The store of the runs of samples; None without one.
    after
        Called with every trial of a search for a peak, and the result so far.
    earlier
        The runs of samples that earlier processes began, by sample.
    map_id
        The run of the whole map.
    senders
        The senders of the requests of searches; None for this process.
    """

    def __init__(
        self,
        file: MapFile,
        *,
        cwd: str,
        store: Store | None = None,
        after: Callable[[Trial, PeakRate], object] = lambda *_: None,
        earlier: Mapping[int, RunRecord] = MappingProxyType({}),
        map_id: str | None = None,
        senders: Senders | None = None,
    ) -> None:
        self._map_id, self._senders = map_id, senders
        self._file, self._cwd, self._store, self._after = file, cwd, store, after
        self._space, self._earlier = Space(file.factors), dict(earlier)
        self._server: Server | None = None
        self._at: Point = {}  # its configuration and workload
        self._steps: list[StepDone] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pop_steps(self) -> list[StepDone]:
        """Return the steps of the server that ended since the last call."""
        steps = self._steps.copy()
        self._steps.clear()
        return steps

    def measure(self, sample: MapSample) -> Found:
        """Measure a sample; a failure becomes the reason of a missing answer.

        The server of the previous sample may still be working off its load. If it fails, another
        one is started, and the sample is measured again.
        """
        earlier = self._earlier.pop(sample.id, None)
        is_kept = self._serves(sample.point)
        try:
            self._serve(sample.point)
            found = without_wrong_numbers(self._answer(sample, earlier))
            if earlier is not None:
                found = replace(found, before_s=earlier.elapsed_s or 0.0)
        except WorkloadFailed as error:
            why, *output = map(str, error.args)
            why = re.sub(_ENDS, "", why)
            if output and not any(step.end for step in self._steps):  # output of the measurement
                self._steps.append(StepDone(name="measure", how=why, end=tuple(output)))
            found = Found(reason=why)
            self.close()  # the next sample gets a new one
            if is_kept:
                return self.measure(sample)
        return replace(found, steps=tuple(self.pop_steps()))

    def _serves(self, point: Point) -> bool:
        """Whether there is a server in the configuration of a point."""
        return self._server is not None and same_configuration(self._space, self._at, point)

    def _serve(self, point: Point) -> None:
        """Have a server in the configuration of a point, warmed up for its workload."""
        if self._file.life_cycle is None:
            return
        if self._server is None or not self._serves(point):
            self.close()
            server = Server(self._file.life_cycle, point, cwd=self._cwd, steps=self._steps)
            self._server = server.__enter__()
        elif dict(point) != dict(self._at):
            self._server.warm_up(point)
        self._at = point

    def close(self) -> None:
        """End the server; its steps record failures, which do not affect the sample."""
        server, self._server = self._server, None
        if server is not None:
            with suppress(WorkloadFailed):
                server.__exit__(None, None, None)

    def _answer(self, sample: MapSample, earlier: RunRecord | None) -> Found:
        response = self._file.response
        if isinstance(response, PeakResponse):
            return self._peak(response, sample, earlier)
        if response.function:
            names = [*response.directions]
            return Found(estimates=values_of(response.function, sample.point, self._cwd, names))
        return self._metric(response, sample, earlier)

    def _subject_of(self, sample: MapSample) -> dict[str, Any]:
        """Return the part of the subject of a run that names its map and sample."""
        return {PART_OF: self._map_id, SAMPLE: codec.encode(sample)}

    def _name(self, sample: MapSample) -> str:
        name = fill_places(name_of(self._file.response), sample.point)
        of = f" (of map {self._map_id})" if self._map_id else ""
        return f"{name}, {show_point(sample.point)}{of}"

    def _peak(self, response: PeakResponse, sample: MapSample, earlier: RunRecord | None) -> Found:
        if earlier is not None and earlier.decision is not None:
            return answer_of_peak(peak_run.peak_of(earlier), earlier.run_id)
        options = options_at(response, sample)
        described = response.generator_at(sample.point)
        if earlier is not None and self._store is not None:
            search = peak_run.search_of(earlier)
            run = PeakRun.resumed(search, earlier, self._store)
        else:
            search = PeakSearch(**options)
            run = PeakRun(
                search,
                name=self._name(sample),
                options={**options, "limits": codec.encode(options["limits"])},
                generator={**described, "cwd": self._cwd},
                subject=self._subject_of(sample),
                provenance=machine.provenance(full=True),
                store=self._store,
            )
        restart = self._server.restart if self._server else None
        given: dict[str, Any] = {"cwd": self._cwd, "recover": restart, "senders": self._senders}
        generator = peak_run.generator_of(described, search.limits, **given)
        return answer_of_peak(
            peak_run.find_peak(run, generator, after=self._after), run.campaign.run_id
        )

    def _metric(
        self, response: MetricResponse, sample: MapSample, earlier: RunRecord | None
    ) -> Found:
        metrics, record = metrics_of(response), earlier
        if record is None or record.decision is None or record.decision.reason in _CUT_SHORT:
            record = self._measure_metric(response, sample, earlier)
        if _lost_percent(record) > RED_ABOVE:
            record = self._less_disturbed(record, response, sample)
        estimates = {}
        for name in (metric.name for metric in metrics):
            estimate = record.headline(name) or record.estimate(name)
            if estimate is not None:
                notices = (*estimate.notices, *_disturbances(record))
                estimates[name] = replace(estimate, notices=notices)
        reason = None
        if metrics[0].name not in estimates:  # the others are kept
            reason = " ".join(notice.sentence for notice in record.notices) or "no number"
        return Found(estimates=estimates, reason=reason, run_id=record.run_id)

    def _less_disturbed(
        self, record: RunRecord, response: MetricResponse, sample: MapSample
    ) -> RunRecord:
        """Measure a disturbed sample again; return the run that lost less, and has a number."""
        steering = metric_of(response).name
        try:
            again = self._measure_metric(response, sample, None)
        except WorkloadFailed:
            return record
        is_worse = _lost_percent(again) >= _lost_percent(record)
        return record if is_worse or again.estimate(steering) is None else again

    def _measure_metric(
        self, response: MetricResponse, sample: MapSample, earlier: RunRecord | None
    ) -> RunRecord:
        given, clock = response.options, WallClock()
        workload = CommandWorkload(
            fill_places(list(response.command), sample.point),
            picks=response.reads,
            timeout_s=given.get("timeout_s"),
            cwd=self._cwd,
            clock=clock,
            meter=meter_for(clock),
        )
        if earlier is not None and self._store is not None and earlier.run_id is not None:
            return Session.resume(self._store, earlier.run_id).run(workload)
        options = Options(target=given.get("accuracy") or sample.accuracy)
        if "budget_s" in given:
            options = replace(options, budget_s=given["budget_s"] or math.inf)
        told = _metrics_told(response) | {metric.name: metric for metric in metrics_of(response)}
        steering, *others = told.values()
        session = Session(
            options,
            (steering, *(replace(metric, must_satisfy=False) for metric in others)),
            name=self._name(sample),
            subject={**workload.describe(), "name": self._name(sample), **self._subject_of(sample)},
            store=self._store,
        )
        return session.run(workload)


def _disturbances(record: RunRecord) -> list[Notice]:
    """Return the warnings of other work, unless the disturbed readings were left out."""
    if is_undisturbed(record):
        return []
    return [notice for notice in record.session_notices if notice.code is Code.DISTURBED]


def _lost_percent(record: RunRecord) -> float:
    return max((100.0 * lost_share(notice) for notice in _disturbances(record)), default=0.0)


def values_of(
    target: str, point: Point, cwd: str, names: Sequence[str] = (VALUE,)
) -> dict[str, Estimate]:
    """Call a function with the levels of a point; return its answers by response.

    A number counts as exact.

    Raises
    ------
    WorkloadFailed
        When the function raises, or returns something else than an Estimate; value, low and high;
        a number; or, for several responses, a mapping of these by name.
    """
    function = imported(target, cwd)
    try:
        with redirect_stdout(sys.stderr), measuring():
            answer = function(**point)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise failed(target, error) from error
    answers = answer if isinstance(answer, Mapping) else {names[0]: answer}
    if {*answers} != {*names}:
        has = ", ".join(map(str, answers)) if isinstance(answer, Mapping) else short(answer)
        raise WorkloadFailed(f"{target} returned {has}, expected a mapping of {', '.join(names)}")
    return {name: _value_of(target, name, answers[name]) for name in names}


def _value_of(target: str, name: str, answer: object) -> Estimate:
    try:
        return read_answer(name, (answer,) * 3 if is_number(answer) else answer, _CONFIDENCE)
    except InvalidInput as error:
        said = f"{target} returned {short(answer)}, expected an Estimate, value, low and high, or"
        raise WorkloadFailed(f"{said} a number: {error}") from error


def without_wrong_numbers(found: Found) -> Found:
    """Remove numbers that a surface would refuse."""
    wrong: list[str] = []
    read = {
        name: attempt(wrong, read_answer, name, estimate, _CONFIDENCE)
        for name, estimate in found.estimates.items()
    }
    if not wrong:
        return found
    right = {name: estimate for name, estimate in read.items() if estimate is not None}
    return replace(found, estimates=right, reason="; ".join(wrong))


def answer_of_peak(peak: PeakRate, run_id: str | None) -> Found:
    """Return the result of a search for a peak; one bound is not a value, two are an interval.

    A search that contradicts itself has neither.
    """
    load = peak.load
    if load is None and peak.status is not PeakStatus.UNSTABLE:
        load = _between(peak)
    if load is not None:
        return Found(estimates={PEAK: load}, run_id=run_id)
    # The details, after the colon of a sentence, are in the run of the search.
    short_reasons = [notice.sentence.partition(": ")[0].rstrip(".") for notice in peak.notices]
    return Found(
        at_least=peak.at_least if peak.status is PeakStatus.NOT_SATURATED else None,
        at_most=peak.at_most if peak.status is PeakStatus.SATURATED_AT_LOWEST else None,
        reason="; ".join(short_reasons) or str(peak.status),
        run_id=run_id,
    )


def _between(peak: PeakRate) -> Estimate | None:
    """Return the interval between the bounds of a peak, on the logarithmic scale; None without."""
    low, high = peak.at_least, peak.at_most
    if low is None or high is None or not low < high:
        return None
    how: Any = {"confidence": _CONFIDENCE, "n": len(peak.trials), "method": "bounds"}
    return estimate_of(math.sqrt(low * high), low, high, **how)
