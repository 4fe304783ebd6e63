"""Notices as lines: all with their codes, or the problem and the cure, in everyday words.

A Notice without advice asks the reader for no action. ``--details`` shows all Notices, with their
figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from benchrigor.codes import ALIKE
from benchrigor.control_characters import escaped
from benchrigor.layout import Part, wrapped
from benchrigor.model.decision import StopReason
from benchrigor.model.notice import Code, Notice, Severity, is_of_modes, one_each
from benchrigor.model.run import RunRecord
from benchrigor.units import first_few

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
# What has no use for those who measured in turn already.
_TURNS = re.compile(r", or in turn \(benchrigor ab\)| To compare versions, measure them in turn.*")


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

    A page shows every refusal, since it says why the number is missing, and how many runs of each
    side failed.
    """
    asked = [notice for notice in one_each(notices) if sentence_of(notice)]
    codes = {notice.code for notice in asked}
    present = [[code for code in alike if code in codes] for alike in ALIKE]
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
    """Yield every sentence once, with the names of its subjects unless it concerns all."""
    concerned: dict[str, list[str]] = {}
    for sentence, name in said:
        concerned.setdefault(sentence, []).append(name)
    for sentence, names in concerned.items():
        whose = "" if len(names) == total else f"{first_few(names, _SOME)}: "
        yield f"{whose}{sentence}"


def warnings(
    chosen: Iterable[Notice], *, in_turn: bool = False, reason: StopReason | None = None
) -> list[Part]:
    """Return the lines of a page about its Notices; ``reason`` is why the run ended."""
    sentences = dict.fromkeys(
        sentence_of(notice, in_turn=in_turn, reason=reason) for notice in chosen
    )
    return [part for sentence in sentences for part in wrapped(sentence, "  ! ", style="yellow")]


def sentence_of(notice: Notice, *, in_turn: bool = False, reason: StopReason | None = None) -> str:
    """Return the sentence of a page about a Notice; empty if the page omits it.

    A larger budget does not lengthen a run that ended before its budget, or by itself. What was
    measured in turn is not advised to do so. For files without raw readings, the cure depends on
    the tool. What failed, why runs are not compared, and modes that are far apart are said in full.
    """
    if notice.code is Code.NO_RAW_READINGS:
        return str(notice.evidence.get("cure", ""))
    if notice.code in (Code.FAILED_RUNS, Code.NOT_COMPARED) or is_of_modes(notice):
        return f"{notice.sentence.removesuffix('.')}. {notice.code.advice['']}"
    if notice.severity is Severity.NOTE:
        return ""
    usual = notice.code.advice.get("", "")
    if reason is StopReason.SATISFIED:
        usual = usual.replace(_LONGER, _NARROWER)
    elif reason is StopReason.EXHAUSTED:
        usual = usual.replace(_LONGER, _MORE_STEPS)
    elif reason is StopReason.OUT_OF_REACH:
        is_width = notice.code is Code.NOT_CONVERGED
        usual = _OUT_OF_REACH if is_width else usual.replace(_LONGER, _OTHER_RUNS)
    if notice.severity is Severity.REFUSAL:
        usual = notice.code.advice.get("refused", usual)
    elif in_turn:
        usual = _TURNS.sub("", notice.code.advice.get("pairs", usual))
    return _OPTIONS.sub("", usual) if reason is None else usual
