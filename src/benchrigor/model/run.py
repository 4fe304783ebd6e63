"""One run of a session: its options, its decision, where it ran, and the record of it all."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from benchrigor.errors import InvalidInput
from benchrigor.model import codec, headline
from benchrigor.model.analysis import Analysis, Estimate
from benchrigor.model.machine import Capability
from benchrigor.model.metric import Metric
from benchrigor.model.notice import Notice
from benchrigor.model.readings import Facts, Round
from benchrigor.model.series import Floats, same
from benchrigor.model.statistic import quantile_named

__all__ = ["Decision", "Options", "Provenance", "RunRecord", "StopReason"]


class StopReason(enum.StrEnum):
    """Why a session ended; ``docs/codes.md`` explains each of them."""

    SATISFIED = "satisfied"
    TIME_BUDGET = "time-budget-spent"
    READINGS_BUDGET = "readings-budget-spent"
    ROUND_LIMIT = "round-limit-reached"
    TOO_MANY_REJECTED = "too-many-rejected-rounds"
    STOP_REQUESTED = "stop-requested"
    EXHAUSTED = "workload-exhausted"
    HOOK_FAILED = "hook-failed"
    DETECTOR_FAILED = "detector-failed"
    WORKLOAD_FAILED = "workload-failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to stop, and why; ``reason`` is None while the session goes on."""

    stop: bool
    reason: StopReason | None = None


_CHOICES = {
    "rounds": ("continuous", "restarted"),
    "analysis": ("auto", "readings"),
    "method": ("long-run-variance", "subsessions"),
    "preset": (None, "quick", "normal", "strict"),
}
_LATER = {"analysis": ("wps",)}
_POSITIVE = ("target", "work", "budget_s")
_COUNTS = ("budget_readings", "readings_per_round", "min_rounds", "max_rounds", "max_rejected")
_OPTIONAL = {"target", "work", "budget_readings", "readings_per_round", "max_rounds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a session is asked to reach, and what it may spend. Plain values, all serialisable.

    Parameters
    ----------
    target
        Relative half-width wanted of each metric that must be satisfied; None when only
        absolute widths (see `Metric`) count.
    confidence
        Nominal coverage of the intervals, in (0, 1).
    statistic
        "mean", "median", or a percentile such as "p10" or "p99".
    budget_readings, budget_s
        What may be spent at most: readings, and seconds of the rounds' wall time
        (``math.inf`` for no limit).
    rounds
        "continuous": readings of successive rounds continue one series and the phases are found
        on the whole series so far. "restarted": each round has its own warm-up and is an
        invocation; all are cut alike, and the variance between rounds enters the interval.
    analysis
        "auto" or "readings".
    method
        "long-run-variance", the one that covers; or "subsessions" (means only): adjacent
        readings are merged until neighbours correlate by 0.1 at most, and Student t is applied
        to the merged ones.
    preset
        How much evidence is asked for before the session may be satisfied: "quick" (first look
        at 200 readings, 50 effective ones), "normal" (500, 100; the default), "strict"
        (1000, 200).
    work
        Work amount of each round, for workloads that take one.
    readings_per_round
        Unit readings of each round; None lets the schedule choose.
    min_rounds, max_rounds
        Rounds at least and at most.
    max_rejected
        Rounds in a row that may give nothing before the session gives up.

    Raises
    ------
    InvalidInput
        Naming every option that is out of range, in one go.

    Examples
    --------
    >>> Options(target=0.01).budget_s
    60.0
    >>> Options(target=0.0)
    Traceback (most recent call last):
    ...
    benchrigor.errors.InvalidInput: target is 0.0, expected more than 0
    """

    target: float | None = 0.05
    confidence: float = 0.95
    statistic: str = "mean"
    budget_readings: int | None = None
    budget_s: float = 60.0
    rounds: str = "continuous"
    analysis: str = "auto"
    method: str = "long-run-variance"
    preset: str | None = None
    work: float | None = None
    readings_per_round: int | None = None
    min_rounds: int = 1
    max_rounds: int | None = None
    max_rejected: int = 100

    def __post_init__(self) -> None:
        problems = [*self._bad_numbers(), *self._bad_choices(), *self._bad_statistic()]
        if problems:
            raise InvalidInput(problems)
        for name in (*_POSITIVE, *_COUNTS, "confidence"):
            value = getattr(self, name)
            if value is not None:  # numbers of numpy become Python's own
                plain = int(value) if name in _COUNTS else float(value)
                object.__setattr__(self, name, plain)

    def _bad_numbers(self) -> list[str]:
        problems = []
        for name in (*_POSITIVE, *_COUNTS, "confidence"):
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, Real):
                problems.append(f"{name} is {value!r}, expected a number")
            elif expected := _misfit(name, float(value)):
                problems.append(f"{name} is {value!r}, expected {expected}")
        return problems

    def _bad_choices(self) -> list[str]:
        problems = []
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value in choices:
                continue
            expected = ", ".join(repr(choice) for choice in choices)
            later = value in _LATER.get(name, ())
            hint = " (in a later version: this one cannot do it yet)" if later else ""
            problems.append(f"{name} is {value!r}{hint}, expected one of {expected}")
        return problems

    def _bad_statistic(self) -> list[str]:
        try:
            share = quantile_named(self.statistic)
        except InvalidInput as error:
            return list(error.problems)
        if share is not None and self.method == "subsessions":
            return [f"statistic is {self.statistic!r}, expected 'mean': subsessions merge means"]
        return []


def _misfit(name: str, number: float) -> str:
    """Say what was expected of an option; empty when the number fits."""
    if name == "confidence":
        return "" if 0.0 < number < 1.0 else "between 0 and 1, both excluded"
    if name in _COUNTS:
        return "" if number >= 1.0 and number.is_integer() else "a whole number from 1 on"
    if not number > 0.0:
        return "more than 0"
    return "a finite number" if math.isinf(number) and name != "budget_s" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where, when and with what a run was made.

    Parameters
    ----------
    host, system, cpu, cores
        Name of the machine, operating system, processor, logical cores.
    python
        Interpreter and version.
    packages
        Versions of the packages that the numbers depend on.
    commit
        Commit of the git repository around the working directory; None outside of one.
    capabilities
        What the machine lets benchrigor see.
    started_at
        ISO 8601, UTC.
    load_before, load_after
        One-minute load average around the run; None where the system has none.
    """

    host: str
    system: str
    cpu: str
    cores: int
    python: str
    packages: Mapping[str, str]
    commit: str | None
    capabilities: tuple[Capability, ...]
    started_at: str
    load_before: float | None = None
    load_after: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunRecord:
    """Everything a run found, and everything needed to retrace it.

    ``print(record)`` is its one-line result.

    Parameters
    ----------
    name
        What was measured, for people.
    options, metrics, seed
        What the session was asked.
    rounds
        The finished rounds, in order, with their raw readings.
    analyses
        One per metric, every intermediate result kept.
    decision
        None while the session runs.
    session_notices
        What concerns the run as a whole; see `notices` for all of them.
    provenance
        None where a session was driven without I/O.
    run_id
        Key in the store; None when nothing is stored.
    subject
        What was measured, for programs (the command line, the function's name).
    """

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

    @property
    def notices(self) -> tuple[Notice, ...]:
        """All Notices of the run and of its analyses, each once."""
        everything = [*self.session_notices, *(n for a in self.analyses for n in a.notices)]
        return tuple(
            notice for index, notice in enumerate(everything) if notice not in everything[:index]
        )

    @property
    def elapsed_s(self) -> float:
        """Sum of the rounds' wall time, in seconds."""
        return sum(each.elapsed_ns for each in self.rounds) / 1e9

    @property
    def facts(self) -> Facts:
        """What the workload said of how it measured, the last word of each kind."""
        return {key: value for each in self.rounds for key, value in each.facts.items()}

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
        return next((each for each in self.analyses if each.metric.name == name), None)

    def _chosen(self, metric: str | None) -> str:
        """Return the name of the metric meant; empty while no metric is known."""
        names = [each.name for each in self.metrics]
        if not names:  # a run cut off before its metrics were written down
            given = [name for each in self.rounds for name in (*each.unit_readings, *each.readings)]
            names = list(dict.fromkeys(given))
        if metric is None:
            wanted = [each.name for each in self.metrics if each.must_satisfy]
            return next(iter(wanted + names), "")
        if metric not in names:
            raise InvalidInput(
                f"metric {metric!r} is unknown, expected one of {', '.join(map(repr, names))}"
            )
        return metric

    def estimate(self, metric: str | None = None) -> Estimate | None:
        """Return the estimate of a metric; None when there is none (a Notice says why).

        Parameters
        ----------
        metric
            Name; None for the first metric that must be satisfied.

        Raises
        ------
        InvalidInput
            When no metric has that name.
        """
        analysis = self.analysis(metric)
        return None if analysis is None else analysis.estimate

    def readings(self, metric: str | None = None) -> Floats:
        """Return all raw readings of a metric, all rounds in order, as a read-only array.

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
        units = [each.unit_readings[name] for each in self.rounds if name in each.unit_readings]
        single = [each.readings[name] for each in self.rounds if name in each.readings]
        series = np.concatenate(units) if units else np.asarray(single, dtype=np.float64)
        series.flags.writeable = False
        return series

    def __str__(self) -> str:
        analysis = self.analysis()
        statistic = self.options.statistic
        return headline.line(self.name, analysis, self.decision, self.elapsed_s, statistic)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts, lists, strings and numbers, with schema versions."""
        return {**codec.versions(), **codec.encode(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunRecord:
        """Rebuild a record from `to_dict`, migrating older schemas.

        Raises
        ------
        InvalidInput
            When the data are not a record, or of a newer schema than this version knows.
        """
        return codec.decode(cls, codec.migrated(data), where="record")

    def save(self, path: str | Path) -> None:
        """Write the record to a JSON file, whole or not at all."""
        target = Path(path)
        partial = target.with_name(f"{target.name}.partial")
        partial.write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")
        partial.replace(target)

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
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidInput(f"{path} is not a record: {error}") from error
        return cls.from_dict(data)

    def same_as(self, other: RunRecord) -> bool:
        """Whether both records hold the same values."""
        return same(self, other)
