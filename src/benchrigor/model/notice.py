"""Notices for the reader of a number, with documented codes."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchrigor.control_characters import escaped
from benchrigor.model.one_line import OneLine
from benchrigor.secret_texts import hide_in_text

Figure = str | int | float | bool | None  # One figure of a Notice's evidence

Evidence = Mapping[str, Figure]


class Severity(enum.StrEnum):
    """How much a Notice matters."""

    NOTE = "note"  # Good to know; the number stands
    WARNING = "warning"  # The number is weaker than it looks
    REFUSAL = "refusal"  # the number is missing for this reason


class Code(enum.StrEnum):
    """The codes of Notices; ``docs/codes.md`` explains them."""

    TOO_FEW_READINGS = "too-few-readings"
    NO_STABLE_PHASE = "no-stable-phase"
    CHANGING_PACE = "changing-pace"
    BLOCKS_OF_PAIRS = "blocks-of-pairs"
    TOO_WIDE = "too-wide"
    FEW_READINGS = "few-readings"
    FEW_EFFECTIVE = "few-effective-readings"
    FEW_IN_TAIL = "few-readings-in-tail"
    PERSISTENT_AND_SKEWED = "persistent-and-skewed"
    STILL_CORRELATED = "still-correlated"
    SHORT_RUN = "short-run"
    START_CUT = "start-cut"
    END_CUT = "end-cut"
    MOVED_ON = "moved-on"
    TOO_FEW_TO_CALL = "too-few-to-call"
    CONSTANT = "constant-readings"
    NO_INTERVAL = "no-interval"
    NOT_CONVERGED = "not-converged"
    NO_DATA = "no-data"
    UNFINISHED_LINE = "unfinished-line"
    NOT_READ = "not-read"
    FAILED_RUNS = "failed-runs"
    NO_RAW_READINGS = "no-raw-readings"
    THIS_PROCESS_ONLY = "this-process-only"
    FEW_INVOCATIONS = "few-invocations"
    FEW_PIECES = "few-pieces"
    NO_RATIO = "no-ratio"
    FEW_PAIRS_CARRY = "few-pairs-carry"
    SEVERAL_MODES = "several-modes"
    BATCHED = "batched"
    ROUNDS_REJECTED = "rounds-rejected"
    COARSE_CLOCK = "clock-too-coarse"
    CLOCK_COST = "clock-cost"
    HOOK_FAILED = "hook-failed"
    DETECTOR_FAILED = "detector-failed"
    RESUMED = "resumed"
    EARLIER_NUMBER = "earlier-number"
    EXHAUSTED = "workload-exhausted"
    WORKLOAD_FAILED = "workload-failed"
    SEVERAL_MATCHES = "several-matches"
    CUT_ROUND = "cut-round"
    LEFT_RUNNING = "left-running"
    WPS_DOUBTFUL = "wps-model-doubtful"
    NO_SPEED = "no-speed"
    NOT_LINEAR = "not-linear"
    RAMP = "ramp"
    OUTLYING_ROUNDS = "outlying-rounds"
    SHORT_ROUNDS = "short-rounds"
    PILOT_ROUNDS = "pilot-rounds"
    CUT_ONE_BY_ONE = "cut-one-by-one"
    FURTHER_ROUNDS = "further-rounds"
    RANGE_UNTRIED = "range-untried"
    SMALL_WORK = "small-work"
    OVERHEAD_DOMINATES = "overhead-dominates"
    LONG_ROUNDS = "long-rounds"
    WORK_TOO_SHORT = "work-too-short"
    METHODS_DISAGREE = "methods-disagree"
    FEW_SEGMENTS = "few-segments"
    UNCLUSTERED = "unclustered-segments"
    HIGH_SEGMENT_RATE = "high-segment-rate"
    MANY_FLAGGED = "many-flagged-segments"
    MEDIAN_MOVED = "median-moved"
    MIXED_SEGMENTS = "mixed-segments"
    CHAINED = "chained-features"
    NO_REFERENCE = "no-reference"
    REFERENCE_DIFFERS = "reference-differs"
    DELAY_NOT_MEASURED = "delay-not-measured"
    NO_INSTRUCTIONS = "no-instructions"
    BRACKET = "bracket-only"
    NOT_MONOTONE = "not-monotone"
    BISTABLE = "bistable"
    DRIFTING = "drifting"
    GENERATOR_LIMIT = "generator-limit"
    LIMIT_NOT_CHECKED = "limit-not-checked"
    RECORDING_COST = "recording-cost"
    AT_FULL_PACE = "at-full-pace"
    STORED_RUNS = "stored-runs"
    NO_COMMON_PACE = "no-common-pace"
    NOT_COMPARED = "not-compared"
    DISTURBED = "disturbed-run"
    STOPPED = "stopped-process"
    FULL_PACE_NEW = "full-pace-new"
    FULL_PACE_NOT_KEPT = "full-pace-not-kept"
    REFERENCE_UNLIKE = "reference-unlike"
    PROCESSOR_TIME = "processor-time"
    WIDE_GROUPS = "wide-groups"
    NATURAL_TAIL = "natural-tail"
    DOUBTFUL_RUNS = "doubtful-runs"
    RED_ROUNDS = "red-rounds"
    HARDLY_UNDISTURBED = "hardly-undisturbed"
    LONGEST_DISTURBED = "longest-disturbed"
    DISTURBED_RATE = "disturbed-rate"
    DROPPED_PERIODS = "dropped-periods"
    RESTLESS_RATE = "restless-rate"
    SATURATED = "saturated-stage"
    SOURCE_STOPPED = "source-stopped"
    PROCESSORS_LIMIT = "processors-limit"
    QUEUE_MODEL = "queue-model-assumed"
    HUGE_BUFFER = "huge-buffer"
    UNEVEN_SERVICE = "uneven-service"
    EXPONENTIAL_ASSUMED = "exponential-assumed"
    SEVERAL_BOTTLENECKS = "several-bottlenecks"
    HOSTS_DIFFER = "hosts-differ"
    METRICS_DIFFER = "metrics-differ"
    FUNCTIONS_DIFFER = "functions-differ"
    NO_DIRECTION = "no-direction"
    RATE_OF_0 = "rate-of-0"
    PROBE_COST = "probe-cost"
    TOO_FEW_SAMPLES = "too-few-samples"
    SAMPLES_WITHOUT_NUMBER = "samples-without-number"
    LACK_OF_FIT = "lack-of-fit"
    PREDICTIONS_WIDENED = "predictions-widened"
    FEW_HOSTS = "few-hosts"
    HOSTS_UNKNOWN = "hosts-unknown"
    HOSTS_DISAGREE = "hosts-disagree"


# Codes of one cause, the most informative first, which makes the others redundant.
CAUSES: tuple[tuple[Code, ...], ...] = (
    (Code.CONSTANT, Code.FEW_IN_TAIL, Code.FEW_READINGS, Code.FEW_EFFECTIVE, Code.SHORT_RUN),
    (Code.COARSE_CLOCK, Code.CLOCK_COST),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(OneLine):
    """One thing that the reader of a number must know.

    Parameters
    ----------
    code, severity
        For programs; stable.
    sentence
        For people; secrets are hidden.
    evidence
        The figures that support the sentence.

    Examples
    --------
    >>> notice = Notice.note(Code.CONSTANT, "All 12 readings are 3.0.", n=12)
    >>> print(notice)
    All 12 readings are 3.0. [constant-readings]
    """

    code: Code
    severity: Severity
    sentence: str
    evidence: Evidence = field(default_factory=dict)

    @classmethod
    def note(cls, code: Code, sentence: str, **evidence: Figure) -> Notice:
        """Make a Notice that is good to know."""
        return cls(code=code, severity=Severity.NOTE, sentence=sentence, evidence=evidence)

    @classmethod
    def warning(cls, code: Code, sentence: str, **evidence: Figure) -> Notice:
        """Make a Notice that weakens a number."""
        return cls(code=code, severity=Severity.WARNING, sentence=sentence, evidence=evidence)

    @classmethod
    def refusal(cls, code: Code, sentence: str, **evidence: Figure) -> Notice:
        """Make a Notice that explains a missing number."""
        return cls(code=code, severity=Severity.REFUSAL, sentence=sentence, evidence=evidence)

    def __post_init__(self) -> None:
        # Here, as in a record: a sentence may repeat the command that was run, and its output.
        object.__setattr__(self, "sentence", hide_in_text(self.sentence))

    def __str__(self) -> str:
        return escaped(f"{self.sentence} [{self.code}]")


def weakening(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Return the warnings and refusals among Notices."""
    return tuple(notice for notice in notices if notice.severity is not Severity.NOTE)


def leading(notice: Notice, notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
    """Put a Notice before others, but behind a warning of several modes: it comes first."""
    modes = [each for each in notices if is_of_modes(each)]
    return (*modes, notice, *(each for each in notices if each not in modes))


def is_of_modes(notice: Notice) -> bool:
    """Whether a Notice warns of modes that are far apart."""
    return notice.code is Code.SEVERAL_MODES and notice.severity is Severity.WARNING


def one_each(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Keep the most informative code per cause.

    Examples
    --------
    >>> few = Notice.warning(Code.FEW_READINGS, "Only 9 readings.", n=9)
    >>> [*map(str, one_each([Notice.warning(Code.SHORT_RUN, "Short.", n=9), few]))]
    ['Only 9 readings. [few-readings]']
    """
    given = tuple(notices)
    codes = {notice.code for notice in given}
    found = [[code for code in cause if code in codes] for cause in CAUSES]
    repeats = {code for cause in found for code in cause[1:]}
    return tuple(notice for notice in given if notice.code not in repeats)
