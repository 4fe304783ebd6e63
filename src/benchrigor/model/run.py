"""The readings of a benchmark that another tool recorded, before anything is estimated."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.files import readable, write_whole
from benchrigor.model import codec
from benchrigor.model.analysis import Analysis
from benchrigor.model.decision import Decision
from benchrigor.model.estimate import Estimate
from benchrigor.model.machine import Capability
from benchrigor.model.metric import Metric
from benchrigor.model.notice import Code, Notice
from benchrigor.model.one_line import OneLine, Reported
from benchrigor.model.options import Options
from benchrigor.model.readings import Facts, Round, Selection, readings_of
from benchrigor.model.segments import Interference
from benchrigor.model.series import Floats
from benchrigor.safe_text import hide_secrets
from benchrigor.units import Direction, Quantity, many

FILE = "file"  # kind of the subject of readings that were recorded elsewhere
PROCESSES = ("process", "fork")  # units that are processes
RESTARTED = (*PROCESSES, "repetition")  # units that do not continue one series


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded(OneLine):
    """One benchmark from a file that another tool wrote.

    Parameters
    ----------
    name
        Its name, with the parameters that distinguish it from other benchmarks of the file.
    metrics
        The metric that the tool was asked to measure, then optional ones.
    rounds
        The readings in order; values that the tool took as warm-up are unit readings under
        `readings.WARM_UP` and the name of the metric. Empty if the file holds no raw readings.
    tool
        Name of the tool.
    unit
        Meaning of a round: "process", "fork" or "repetition"; "series" if all readings continue
        one series in one process.
    provenance
        Machine, interpreter, commit, and whatever else the file says about the place of the run.
    parameters
        Parameters of the benchmark.
    notices
        Gaps in the file. A refusal explains why rounds are missing.
    """

    name: str
    metrics: tuple[Metric, ...]
    rounds: tuple[Round, ...]
    tool: str
    unit: str = "series"
    provenance: Provenance | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    @property
    def subject(self) -> dict[str, Any]:
        """Description of the benchmark, for programs."""
        facts = {"tool": self.tool, "unit": self.unit, "parameters": dict(self.parameters)}
        return {"kind": FILE, **facts}


# In the subjects of runs, besides what was measured:
PAIR = "pair"  # the same of both sides of a comparison, and of no other run
BASELINE, CANDIDATE = "baseline", "candidate"  # roles of both sides
AGAIN = "command line"  # the same of both: measures both again
PART_OF = "part of"  # the id of the run that it belongs to
_APART = 2.0  # times the number, from which on a first call is named
_NO_FIGURE = Notice.of(Code.FULL_PACE_NOT_KEPT, "earlier")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(OneLine):
    """Place, time and versions of a run.

    Parameters
    ----------
    host, system, cpu, cores
        Name of the machine, operating system, processor, logical cores.
    python
        Interpreter and version.
    packages
        Versions of the packages that the numbers depend on.
    commit
        Commit of the git repository around the working directory; None outside a repository.
    capabilities
        Measurements that the machine allows.
    source
        Hash of the measured files: the file of a function and its line there, or a command and its
        arguments. None for functions that are typed in, closures and methods.
    function
        Hash of the measured function's source without comments and layout; None if the source is
        not available. It distinguishes a changed benchmark from changed code that it calls.
    started_at
        ISO 8601, UTC.
    load_before, load_after
        One-minute load average around the run; None if the system does not have one.
    environment
        Further facts about host and interpreter, by pyperf's names: "boot_time", "cpu_affinity",
        "python_cflags" and others, read once per process, after its first run. For the file of
        another tool, all its facts about the place of the run; other fields that it lacks are None
        or empty.
    """

    host: str | None = None
    system: str | None = None
    cpu: str | None = None
    cores: int | None = None
    python: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    capabilities: tuple[Capability, ...] = ()
    started_at: str = ""
    source: str | None = None
    function: str | None = None
    load_before: float | None = None
    load_after: float | None = None
    environment: Facts = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """Cores, processor and interpreter, as far as they are known."""
        cores = many(self.cores, "processor") if self.cores and not self.cpu else self.cores
        cpu = " × ".join(str(part) for part in (cores, self.cpu) if part)
        return ", ".join(part for part in (cpu, self.python) if part)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunRecord(Reported):
    """The result of a run, and everything needed to retrace it; prints as one line.

    Parameters
    ----------
    name
        Name of the benchmark, for people; secrets in commands are hidden.
    options, metrics, seed
        The settings of the session.
    rounds
        The finished rounds, in order, with their raw readings.
    analyses
        One per metric, with all intermediate results.
    decision
        Why the session ended; None while it runs.
    session_notices
        Notices about the whole run; see `notices` for all of them.
    provenance
        None if a session was driven without I/O.
    run_id
        Key in the store; None if it is not stored.
    subject
        Description of the benchmark, for programs (the command line, the function's name).
    interference
        Share of the time lost to interference; None if no delay was measured.
    red_rounds
        Indices of the rounds that lost too much and do not count (see `Options`).
    """

    _facts = "benchrigor.report.facts.run_facts:facts_of_run"
    _page = "benchrigor.report.facts.number_facts:line_of"
    _sheet = "benchrigor.report.sheets:sheet_of_run"

    name: str
    options: Options
    metrics: tuple[Metric, ...]
    seed: int
    rounds: tuple[Round, ...]
    analyses: tuple[Analysis, ...]
    decision: Decision | None = None
    session_notices: tuple[Notice, ...] = ()
    provenance: Provenance | None = None
    run_id: str | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    interference: Interference | None = None
    red_rounds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        # Here, so that no record holds secrets, whoever makes, stores or reads it.
        object.__setattr__(self, "name", hide_secrets(self.name))
        object.__setattr__(self, "subject", hide_secrets(self.subject))

    @property
    def counted_rounds(self) -> tuple[Round, ...]:
        """The rounds that the analyses took in: all but the red ones that were left out."""
        left_out = set(self.red_rounds)
        return tuple(round_ for round_ in self.rounds if round_.plan.index not in left_out)

    @property
    def whole_rounds(self) -> tuple[Round, ...]:
        """The counted rounds that were not cut, so that their durations mean something."""
        return tuple(round_ for round_ in self.counted_rounds if not round_.cut)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """All Notices of the run and of its analyses, without repeats."""
        everything = [*self.session_notices, *(n for a in self.analyses for n in a.notices)]
        return tuple(
            notice for index, notice in enumerate(everything) if notice not in everything[:index]
        )

    @property
    def elapsed_s(self) -> float:
        """Sum of the rounds' wall time, in seconds."""
        return sum(round_.elapsed_ns for round_ in self.rounds) / 1e9

    @property
    def facts(self) -> Facts:
        """How the workload measured: the latest values of its facts."""
        return {key: value for round_ in self.rounds for key, value in round_.facts.items()}

    def analysis(self, metric: str | None = None) -> Analysis | None:
        """Return the analysis of a metric; None before there is one.

        Parameters
        ----------
        metric
            Name; None for the first metric that must be satisfied.

        Raises
        ------
        InvalidInput
            When no metric has that name.
        """
        name = self._chosen(metric)
        return next((analysis for analysis in self.analyses if analysis.metric.name == name), None)

    def _chosen(self, metric: str | None) -> str:
        """Return the name of the metric meant; empty while no metric is known."""
        names = [metric.name for metric in self.metrics]
        if not names:  # a run cut off before its metrics were written down
            read = [name for done in self.rounds for name in (*done.unit_readings, *done.readings)]
            names = list(dict.fromkeys(read))
        if metric is None:
            wanted = [metric.name for metric in self.metrics if metric.must_satisfy]
            return next(iter(wanted + names), "")
        if metric not in names:
            raise InvalidInput(
                f"metric {metric!r} is unknown, expected one of {', '.join(map(repr, names))}"
            )
        return metric

    def estimate(self, metric: str | None = None) -> Estimate | None:
        """Return the estimate of a metric, as in `analysis`; None without a number."""
        analysis = self.analysis(metric)
        return None if analysis is None else analysis.estimate

    def at_full_pace(self, metric: str | None = None) -> Estimate | None:
        """Return a time or speed as it would be at the full speed of the machine.

        It is the `headline` of a metric that has references, timed in turn with its readings. None
        without references, and for other metrics; ``metric`` as in `analysis`.
        """
        analysis = self.analysis(metric)
        return None if analysis is None else analysis.at_full_pace

    def headline(self, metric: str | None = None) -> Estimate | None:
        """Return the figure at the full speed of this machine; None without a number.

        Full speed is the fastest level at which this machine spends a real share of its time, in
        this run and in those of the last days. The interval holds what other runs of the same code
        on this machine find. A time or speed without references, and any other metric, have their
        estimate; ``metric`` as in `analysis`.

        Examples
        --------
        >>> import benchrigor as br
        >>> record = br.measure(lambda: sorted(range(1000)), budget_s=1)
        >>> headline = record.headline()
        >>> headline.low <= headline.value <= headline.high
        True
        """
        analysis = self.analysis(metric)
        return None if analysis is None else analysis.headline

    @property
    def throughput(self) -> tuple[Estimate, str] | None:
        """Work per second and its unit, if `measure` knows the amount of work in a call.

        It is the amount over the time of the `headline`.
        """
        time = self.headline()
        if "items" not in self.subject or time is None or time.value <= 0.0:
            return None
        amount, unit = self.subject["items"]
        rate = replace(
            time,
            value=amount / time.value,
            low=amount / time.high,
            high=amount / time.low if time.low > 0.0 else math.inf,
            standard_error=None,
            degrees_of_freedom=None,
        )
        return rate, f"{unit}/s"

    @property
    def first_call_s(self) -> float | None:
        """Median first call of fresh processes, in seconds, if it took more than twice the number.

        It pays for work done once, such as to compile or to fill a cache. None for a first call
        like the others, and for runs of this process.
        """
        facts = (done.facts for done in self.rounds if "startup_s" in done.facts)
        first = [known.get("first_call_s") for known in facts]
        calls = [call for call in first if isinstance(call, float)]
        time = next(
            (analysis.estimate for analysis in self.analyses if analysis.metric.name == "time"),
            None,
        )
        first_s = float(np.median(calls)) if calls else 0.0
        return first_s if time is not None and first_s > _APART * time.value else None

    def readings(self, metric: str | None = None) -> Floats:
        """Return all raw readings of a metric, as in `analysis`, in a read-only array.

        If a speed comes from work amounts and durations, a reading is the work of a round over its
        duration, which counts the overhead as work. Left out rounds are included, rounds that took
        no time are not.
        """
        found = [values for _, values in self.readings_by_round(metric)]
        series: Floats = np.concatenate([np.zeros(0), *found])
        series.flags.writeable = False
        return series

    def readings_by_round(self, metric: str | None = None) -> list[tuple[Round, Floats]]:
        """Return the rounds that measured a metric, each with its part of `readings`."""
        name = self._chosen(metric)
        analysis = self.analysis(name) if name else None
        read = partial(readings_of, metric=name) if analysis is None else analysis.readings_of
        found = ((done, read(done)) for done in self.rounds)
        return [(done, values) for done, values in found if values is not None]

    @property
    def omitted_rounds(self) -> tuple[int, ...]:
        """Indices of the rounds that no analysis took in: red ones, and those cut while empty."""
        return tuple(
            done.plan.index
            for done in self.rounds
            if done.plan.index in self.red_rounds or (done.cut and not done.unit_readings)
        )

    def selection(self, metric: str | None = None) -> Selection | None:
        """Return why each of `readings` counts, or does not; None for old records without it.

        The estimate follows from the readings and from how often each counts. ``metric`` as in
        `analysis`.

        Examples
        --------
        >>> import benchrigor as br
        >>> record = br.measure(lambda: sorted(range(1000)), budget_s=0.2)
        >>> selection = record.selection()
        >>> int(selection.counts.sum()) == record.analysis().n_kept
        True
        """
        if (analysis := self.analysis(metric)) is None:
            return None
        taken = self.readings_by_round(analysis.metric.name)
        are_red = np.array([done.plan.index in self.red_rounds for done, _ in taken], dtype=bool)
        given = np.array([values.size for _, values in taken], dtype=np.int64)
        sizes = np.maximum(given, 1)  # a round of work that took no time is one, and has no speed
        selection = analysis.selection or analysis.select(sizes[~are_red].tolist())
        if selection is None:
            return None
        counts = np.repeat(~are_red, sizes)
        places = np.where(counts, np.cumsum(counts) - 1, -1)
        return selection.at(places[np.repeat(given > 0, sizes)])

    def counted(self, metric: str | None = None) -> Floats:
        """Return the undisturbed readings of `counted_rounds`; phases hold indices into them."""
        readings = replace(self, rounds=self.counted_rounds).readings(metric)
        analysis = self.analysis(metric)
        if analysis is None or analysis.disturbed is None:
            return readings
        if analysis.disturbed.n != readings.size:  # of rounds of work some took no time
            return readings
        return readings[analysis.disturbed.indices]

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts, lists, strings and numbers, with schema versions."""
        plain = {**codec.versions(), **codec.encode(self)}
        plain["analyses"] = [analysis.to_dict() for analysis in self.analyses]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunRecord:
        """Rebuild a record from `to_dict`.

        Raises
        ------
        InvalidInput
            When the data are not a record, or of a newer schema than this version knows.
        """
        record = codec.decode(cls, codec.without_versions(data), where="record")
        return _without_old_headlines(_with_directions(record, data), data)

    def save(self, path: str | Path) -> None:
        """Write the record to a JSON file, whole or not at all."""
        write_whole(path, json.dumps(self.to_dict(), allow_nan=False))

    @classmethod
    def load(cls, path: str | Path) -> RunRecord:
        """Read a record that `save` wrote.

        Raises
        ------
        InvalidInput
            When the file is not JSON or not a record.
        OSError
            When it cannot be read.
        """
        try:
            data = json.loads(readable(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path} is not a record: {error}") from error
        return cls.from_dict(data)


def _without_old_headlines(record: RunRecord, data: Mapping[str, Any]) -> RunRecord:
    """Say where a record had a headline at another speed, and has no figure at full speed."""
    plain = data.get("analyses", ())
    analyses = tuple(
        replace(analysis, notices=(*analysis.notices, _NO_FIGURE))
        if "quiet" in (old.get("pace") or {}) and analysis.at_full_pace is None
        else analysis
        for old, analysis in zip(plain, record.analyses, strict=True)
    )
    return replace(record, analyses=analyses)


def _with_directions(record: RunRecord, data: Mapping[str, Any]) -> RunRecord:
    """Correct the direction of rates in a record from before metrics had a kind: all were lower."""
    old = {metric["name"] for metric in data.get("metrics", ()) if "kind" not in metric}

    def correct(metric: Metric) -> Metric:
        is_old_rate = metric.name in old and metric.kind is Quantity.RATE
        return replace(metric, direction=Direction.HIGHER) if is_old_rate else metric

    if not old:
        return record
    analyses = (replace(analysis, metric=correct(analysis.metric)) for analysis in record.analyses)
    metrics = tuple(map(correct, record.metrics))
    return replace(record, metrics=metrics, analyses=tuple(analyses))


def are_in_turn(runs: Sequence[RunRecord | None]) -> bool:
    """Return whether these are both sides of one comparison."""
    told = [(run.subject.get(PAIR), run.subject.get("as")) for run in runs if run is not None]
    pairs, roles = {pair for pair, _ in told}, {role for _, role in told}
    return len(told) == 2 and len(pairs) == 1 and roles == {BASELINE, CANDIDATE}
