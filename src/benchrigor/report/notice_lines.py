"""Notices as lines: all with their codes, or the problem and the cure, in everyday words.

Notices that are not in `PAGE` ask the reader for no action. ``--details`` shows all Notices, with
their figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from benchrigor.control_characters import escaped
from benchrigor.layout import Part, wrapped
from benchrigor.model.decision import StopReason
from benchrigor.model.notice import Code, Notice, Severity, is_of_modes, one_each
from benchrigor.model.run import RunRecord
from benchrigor.model.text import first_few

_MARKS = {
    Severity.NOTE: ("·", ""),
    Severity.WARNING: ("!", "yellow"),
    Severity.REFUSAL: ("✗", "red"),
}
_SOME = 5  # names that a sentence is listed with
_LONGER = "Measure longer (--budget)."
# Options of verbs that measure: whoever reads files and earlier runs has none of them.
_OPTIONS = re.compile(r" \(--(?:budget|fresh|over|batch)\b[^)]*\)")
_MORE_STEPS = "It ended by itself: let it give more readings."
_NARROWER = "Ask for a narrower interval (--target)."
_OTHER_RUNS = "More readings would hardly change that, runs at other times would."
_OUT_OF_REACH = (
    "More readings would not narrow this: how far runs on this machine differ remains. To compare "
    "versions, measure them in turn (benchrigor ab)."
)
_AGAIN = "Measure again later, or versions in turn (benchrigor ab)."
PAGE: dict[Code, str] = {
    Code.NOT_CONVERGED: f"The number is less sure than asked for. {_LONGER}",
    Code.FEW_READINGS: f"There are too few readings to rely on the interval. {_LONGER}",
    Code.FEW_EFFECTIVE: "Successive readings resemble each other too much to rely on the "
    f"interval. {_LONGER}",
    Code.SHORT_RUN: f"The run is short: a warm-up may be part of the number. {_LONGER}",
    Code.FEW_INVOCATIONS: f"There were few processes, and others may differ. {_LONGER}",
    Code.FEW_PIECES: "The run was too short to see how the speed of the machine changes. Spread it "
    "over more time (--over 10m).",
    Code.FEW_IN_TAIL: "Few readings are that slow or that rare. Measure longer (--budget), or "
    "ask for a percentile nearer to the median.",
    Code.END_CUT: "The last readings are at another level and do not count: see --details.",
    Code.MOVED_ON: f"The speed changed near the end: the run may still have warmed up. {_LONGER}",
    Code.TOO_FEW_TO_CALL: f"The last readings differ from the others. {_LONGER}",
    Code.DISTURBED: f"Other programs took processor time. {_AGAIN}",
    Code.HARDLY_UNDISTURBED: f"Other programs disturbed nearly all readings. {_AGAIN}",
    Code.CHANGING_PACE: f"The speed of the machine changed meanwhile. {_AGAIN}",
    Code.LONGEST_DISTURBED: "Other programs disturbed most of the slow readings: high "
    f"percentiles are too low. {_AGAIN}",
    Code.STOPPED: "The process stood still for a while (Ctrl-Z, or a paused machine). The readings "
    "meanwhile do not count; measure again if they should.",
    Code.RED_ROUNDS: f"Other programs disturbed some rounds, which do not count. {_AGAIN}",
    Code.BLOCKS_OF_PAIRS: "The speed of the machine changed too much for a mean ratio. Measure "
    "again later.",
    Code.SEVERAL_MODES: "Measure each by itself: find out what makes them.",
    Code.NO_STABLE_PHASE: f"The speed of the machine changed meanwhile. {_AGAIN}",
    Code.THIS_PROCESS_ONLY: "This holds for one process: another start may be faster or slower. "
    "Measure several processes (--fresh).",
    Code.FEW_PAIRS_CARRY: "A few slow readings decide the mean. Measure longer, or compare "
    "medians (--statistic median).",
    Code.NO_RATIO: "The baseline may be 0, so that there is no ratio. Compare the difference.",
    Code.CONSTANT: "Readings, or the means of all processes, are the same, so that the interval "
    "has no width. Check what is read, or put more calls into a reading (--batch).",
    Code.COARSE_CLOCK: "The clock is too coarse for so short a call. Put more calls (--batch) or "
    "more work into a reading.",
    Code.BATCHED: "Each reading averages several calls, and so do the percentiles. For single "
    "calls: --batch 1.",
    Code.PERSISTENT_AND_SKEWED: "Slow readings come in bursts: the interval is too narrow. "
    f"{_LONGER}",
    Code.ROUNDS_REJECTED: "Some processes did nothing but warm up, and do not count. Let each do "
    "more (raise the work of a process).",
    Code.CUT_ROUND: "A call did not end in time and does not count. Check that it cannot hang.",
    Code.LEFT_RUNNING: "A command left a process running, which disturbs what is measured next. "
    "Let it wait for its children.",
    Code.WORKLOAD_FAILED: "The program failed, and the number is of what ran before. Mend it, and "
    "measure again.",
    Code.FAILED_RUNS: "Errors may be faster than answers. Mend what is measured, and measure "
    "again.",
    Code.HOOK_FAILED: "A hook failed, and the number is of what ran before. Mend it, and measure "
    "again.",
    Code.WPS_DOUBTFUL: "Time does not grow evenly with the work. Run more rounds, or a larger "
    "range (--work 1000:1e6).",
    Code.NOT_LINEAR: "Time per unit of work changes with the amount. Measure the range that "
    "matters (--work LOW:HIGH).",
    Code.RANGE_UNTRIED: "Only a small part of the amounts was tried. Give more time (--budget), or "
    "a smaller range (--work LOW:HIGH).",
    Code.RAMP: "Work rises from round to round, like a drift of the machine would. Run amounts in "
    "random order.",
    Code.OUTLYING_ROUNDS: "Some rounds took far longer or shorter than the others. "
    "benchrigor show --plot FILE shows which.",
    Code.OVERHEAD_DOMINATES: "Most of the time is overhead, not work. Raise the largest amount "
    "(--work LOW:HIGH).",
    Code.METHODS_DISAGREE: "Two ways to find the speed disagree. Compare both in --details.",
    Code.RATE_OF_0: "Some rates are 0 or less, so the mean is over time. Leave them out if each "
    "reading is of equal work (--unit ...,harmonic).",
    Code.HOSTS_DIFFER: "The runs are of two machines, which may be the difference. Compare runs "
    "of one machine.",
    Code.METRICS_DIFFER: "The runs measured different things. Choose one with --metric.",
    Code.FUNCTIONS_DIFFER: "The measured function itself has changed. Measure both versions of "
    "the code with one benchmark.",
    Code.NO_COMMON_PACE: "Runs at different times cannot tell code from machine. Measure in turn "
    "(benchrigor ab, or pytest --bench-against).",
    Code.NOT_COMPARED: "There is no verdict on it: compare runs of one kind.",
    Code.NO_INSTRUCTIONS: "This machine does not count instructions. Leave them out.",
    Code.DELAY_NOT_MEASURED: "It is not known how busy the machine was. Trust the number only "
    "if nothing else ran.",
}
REFUSED: dict[Code, str] = {
    Code.TOO_FEW_READINGS: "Allow more time (--budget), or measure something shorter.",
    Code.TOO_WIDE: "Measure longer (--budget), or take the median (--statistic median).",
    Code.NO_STABLE_PHASE: "The readings do not settle: find what grows or changes (benchrigor show "
    "--plot FILE), or give each call the same state (setup).",
    Code.STILL_CORRELATED: _LONGER,
    Code.NO_SPEED: "Run more rounds, or a larger range of work (--work 1000:1e6).",
    Code.WORK_TOO_SHORT: "Raise the largest amount of work (--work LOW:HIGH).",
    Code.NO_DATA: "Check that there is something to measure, and the pattern that reads it, or "
    "allow more time (--budget).",
    Code.DETECTOR_FAILED: "Mend the detector, or leave it out (--detector ranks).",
}
OF_PAIRS = {
    Code.NO_STABLE_PHASE: "The speed of the machine changed meanwhile: the times are of these "
    "minutes, the ratio is not affected."
}
# Of the codes in a line, a page shows only the first that is present.
_ALIKE: tuple[tuple[Code, ...], ...] = (
    (
        Code.DISTURBED,
        Code.HARDLY_UNDISTURBED,
        Code.CHANGING_PACE,
        Code.BLOCKS_OF_PAIRS,
        Code.NO_STABLE_PHASE,
        Code.LONGEST_DISTURBED,
        Code.RED_ROUNDS,
    ),
    (
        Code.NOT_CONVERGED,
        Code.FEW_READINGS,
        Code.FEW_EFFECTIVE,
        Code.SHORT_RUN,
        Code.FEW_INVOCATIONS,
        Code.FEW_PIECES,
        Code.FEW_IN_TAIL,
        Code.PERSISTENT_AND_SKEWED,
        Code.MOVED_ON,
        Code.TOO_FEW_TO_CALL,
    ),
    (Code.WPS_DOUBTFUL, Code.NOT_LINEAR),
)


def marked(notice: Notice, name: str = "", *, with_code: bool = True) -> list[Part]:
    """Return a Notice after the mark of its severity, and the name of its subject."""
    mark, style = _MARKS[notice.severity]
    said = str(notice) if with_code else escaped(notice.sentence)
    return wrapped(f"{name}{said}", f"  {mark} ", style=style)


def marked_all(notices: Iterable[Notice], *, whole: bool) -> list[Part]:
    """Return Notices with their codes; or only warnings and refusals, without codes."""
    shown = (notice for notice in notices if whole or notice.severity is not Severity.NOTE)
    return [line for notice in shown for line in marked(notice, with_code=whole)]


def chosen(notices: Iterable[Notice]) -> list[Notice]:
    """Return the Notices that a page shows: those with a cure, once per cause.

    A page shows every refusal, since it says why there is no number, and how many runs of each
    side failed.
    """
    asked = [notice for notice in one_each(notices) if sentence_of(notice)]
    codes = {notice.code for notice in asked}
    present = [[code for code in alike if code in codes] for alike in _ALIKE]
    refused = {notice.code for notice in asked if notice.severity is Severity.REFUSAL}
    repeated = {code for alike in present for code in alike[1:]} - refused
    first = {sentence_of(notice): notice for notice in reversed(asked)}
    shown = dict.fromkeys(map(sentence_of, asked))
    return [first[said] for said in shown if first[said].code not in repeated]


def chosen_of_run(record: RunRecord) -> list[Notice]:
    """Return the Notices that a page shows; of a busy machine only if the number is affected."""
    return chosen(
        notice
        for notice in record.notices
        if notice.code is not Code.DISTURBED or not is_undisturbed(record)
    )


def is_undisturbed(record: RunRecord) -> bool:
    """Return whether only undisturbed readings count."""
    counting = [analysis for analysis in record.analyses if analysis.estimate is not None]
    return bool(counting) and all(analysis.disturbed is not None for analysis in counting)


def by_sentence(said: Iterable[tuple[str, str]], total: int) -> Iterator[str]:
    """Yield every sentence once, with the names of what it is about unless it concerns all."""
    concerned: dict[str, list[str]] = {}
    for sentence, name in said:
        concerned.setdefault(sentence, []).append(name)
    for sentence, names in concerned.items():
        whose = "" if len(names) == total else f"{first_few(names, _SOME)}: "
        yield f"{whose}{sentence}"


def warnings(
    chosen: Iterable[Notice], *, of_pairs: bool = False, reason: StopReason | None = None
) -> list[Part]:
    """Return the lines of a page about its Notices; ``reason`` is why what was measured ended."""
    sentences = dict.fromkeys(
        sentence_of(notice, of_pairs=of_pairs, reason=reason) for notice in chosen
    )
    return [part for sentence in sentences for part in wrapped(sentence, "  ! ", style="yellow")]


def sentence_of(notice: Notice, *, of_pairs: bool = False, reason: StopReason | None = None) -> str:
    """Return the sentence of a page about a Notice; empty if the page omits it.

    A larger budget does not lengthen a run that ended before its budget, or by itself. For files
    without raw readings, the cure depends on the tool. What failed, why runs are not compared, and
    modes that are far apart are told in full.
    """
    if notice.code is Code.NO_RAW_READINGS:
        return str(notice.evidence.get("cure", ""))
    if notice.code in (Code.FAILED_RUNS, Code.NOT_COMPARED) or is_of_modes(notice):
        return f"{notice.sentence.removesuffix('.')}. {PAGE[notice.code]}"
    usual = PAGE.get(notice.code, "")
    if reason is StopReason.SATISFIED:
        usual = usual.replace(_LONGER, _NARROWER)
    elif reason is StopReason.EXHAUSTED:
        usual = usual.replace(_LONGER, _MORE_STEPS)
    elif reason is StopReason.OUT_OF_REACH:
        is_width = notice.code is Code.NOT_CONVERGED
        usual = _OUT_OF_REACH if is_width else usual.replace(_LONGER, _OTHER_RUNS)
    if notice.severity is Severity.NOTE:
        return ""
    if notice.severity is Severity.REFUSAL:
        usual = REFUSED.get(notice.code, usual)
    elif of_pairs:
        usual = OF_PAIRS.get(notice.code, usual)
    return _OPTIONS.sub("", usual) if reason is None else usual
