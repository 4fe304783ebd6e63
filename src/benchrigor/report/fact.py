"""Facts: a report is a list of facts, and shows them down to a depth."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchrigor.layout import Part, row, table, wrapped
from benchrigor.model.comparison import Verdict
from benchrigor.model.decision import StopReason
from benchrigor.model.notice import Code, Notice, Severity, is_of_modes
from benchrigor.model.one_line import OneLine
from benchrigor.report.notice_lines import marked, warnings
from benchrigor.units import many

_COLOURS = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.UNDECIDED: "yellow"}
_LABEL = 10  # Columns of a label, of a page and below a step


class Depth(enum.IntEnum):
    """How deep a fact lies: the first report that shows it."""

    LINE = 0  # `print(record)`
    PAGE = 1  # after a run
    DETAILS = 2  # with --details: the page and more
    EXPLAIN = 3  # a step of ``explain``, alone


@dataclass(frozen=True, slots=True)
class Fact(OneLine):
    """One thing that was found.

    To add a fact to a report, write a function that returns its text, or an empty one if it is not
    known, and a `Fact` with that text in the list of its group, where it is to stand. No renderer
    changes: `rows_of` shows it from its depth on, and `steps_of` numbers facts of `Depth.EXPLAIN`.

    Parameters
    ----------
    key
        For programs; stable, and one for each kind of fact.
    depth
        The first report that shows it.
    label
        Of its row. Facts of one label in a row share it; one without a label starts at the margin.
        Steps have none.
    text
        A short statement; of a step, one or two sentences. A fact without text is not known,
        and left out.
    value
        The same as data: an Estimate, a number, or a Notice or Verdict, which is shown as such.
    rows
        What supports it, below it: pairs of a name and a figure, or rows of a table.
    codes
        Of the Notices that it replaces, so that a report does not repeat them.
    """

    key: str
    depth: Depth
    label: str
    text: str
    value: object = None
    rows: tuple[tuple[str, ...], ...] = ()
    codes: tuple[Code, ...] = ()


def step(key: str, text: str, *rows: tuple[str, ...]) -> Fact:
    """Return a step of an explanation, with its rows that say something."""
    return Fact(key, Depth.EXPLAIN, "", text, rows=tuple(row for row in rows if row[-1]))


def known(*facts: Fact) -> list[Fact]:
    """Keep the facts that say something."""
    return [fact for fact in facts if fact.text]


def told_by(facts: Iterable[Fact], notices: Iterable[Notice], label: str = "") -> list[Fact]:
    """Return the Notices as facts, but for those that other facts replace."""
    told = {code for fact in facts for code in fact.codes}
    return [
        Fact("notice", Depth.DETAILS, label, str(notice), notice)
        for notice in notices
        if notice.code not in told
    ]


def rows_of(facts: Iterable[Fact], depth: Depth, *, width: int = _LABEL) -> list[Part]:
    """Return the rows of a page, down to a depth; the whole report has codes of Notices."""
    lines, before = list[Part](), ""
    shown = [fact for fact in facts if Depth.LINE < fact.depth <= depth]
    labels = (len(fact.label) + 1 for fact in shown if not isinstance(fact.value, Notice))
    width = max([width, *labels])
    for fact in shown:
        if isinstance(fact.value, Notice):
            lines += marked(fact.value, fact.label)
            continue
        codes = "".join(f" [{code}]" for code in fact.codes) * (depth >= Depth.DETAILS)
        label = "" if fact.label == before else fact.label
        style = _COLOURS.get(fact.value, "") if isinstance(fact.value, Verdict) else ""
        lines += row(label, [f"{fact.text}{codes}"], width=width, style=style)
        lines += _below(fact, " " * (width + 2))
        before = fact.label
    return lines


def steps_of(facts: Iterable[Fact]) -> list[Part]:
    """Return the numbered steps of an explanation, with the figures of each below it."""
    lines = list[Part]()
    for number, fact in enumerate((each for each in facts if each.depth is Depth.EXPLAIN), 1):
        lines += [*wrapped(fact.text, f"{number:>2}. "), *_below(fact, " " * 6)]
    return lines


def _below(fact: Fact, indent: str) -> list[Part]:
    """Return the rows below a fact: a table, or names with figures of any length."""
    if any(len(cells) > 2 for cells in fact.rows):
        return table(fact.rows, "<" * len(fact.rows[0]), has_names=False, indent=len(indent))
    label = max((len(name) for name, *figures in fact.rows if figures), default=0)
    return [
        part
        for name, *figures in fact.rows
        for part in (
            wrapped(figures[0], f"{indent}{name:<{label}}  ")
            if figures
            else wrapped(name, f"{indent}· ")
        )
    ]


def advice_on(
    notices: Sequence[Notice], *, in_turn: bool = False, reason: StopReason | None = None
) -> list[Part]:
    """Return the one advice of a page, of its weightiest Notice, and how many more there are.

    A missed target has its own row, so what else there is weighs more. Of failed runs every page
    has this: their number says that errors are among the answers.
    """

    def weight(notice: Notice) -> tuple[bool, bool, bool]:
        is_refusal = notice.severity is Severity.REFUSAL
        return not is_refusal, not is_of_modes(notice), notice.code is Code.NOT_CONVERGED

    failed = [notice for notice in notices if notice.code is Code.FAILED_RUNS]
    others = sorted((each for each in notices if each not in failed), key=weight)
    more = len(others) - 1
    rest = f"{many(more, 'more warning')}: --details" if more > 0 else ""
    told = [*failed, *others[:1]]
    return [*warnings(told, in_turn=in_turn, reason=reason), *wrapped(rest, "    ")]


def deeper(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts that a page has no room for."""
    return [replace(fact, depth=max(fact.depth, Depth.DETAILS)) for fact in facts]
