"""Facts: a report is a list of facts, and shows them down to a depth.

Of Notices a page shows the problem and the cure, in everyday words; ``--details`` shows all of them
with their codes and figures. A Notice without advice asks the reader for no action.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from benchrigor.codes import ALIKE
from benchrigor.layout import Line, Page, Part, Title, page, row, table, wrapped
from benchrigor.model.comparison import Verdict
from benchrigor.model.decision import StopReason
from benchrigor.model.estimate import Estimate
from benchrigor.model.notice import Code, Notice, Severity, is_of_modes, one_each
from benchrigor.model.one_line import OneLine, Reported, called
from benchrigor.model.run import RunRecord
from benchrigor.model.text import show_interval
from benchrigor.safe_text import escaped
from benchrigor.stats.figures_at_full_speed import AT_FULL_SPEED
from benchrigor.units import first_few, many

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
    said = str(notice) if with_code else escaped(notice.sentence)
    return mark(f"{name}{said}", notice.severity)


def mark(text: str, severity: Severity) -> list[Part]:
    """Return a text after the mark of a severity."""
    sign, style = _MARKS[severity]
    return wrapped(text, f"  {sign} ", style=style)


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
    for text, name in said:
        concerned.setdefault(text, []).append(name)
    for text, names in concerned.items():
        whose = "" if len(names) == total else f"{first_few(names, _SOME)}: "
        yield f"{whose}{text}"


def sentence_of(notice: Notice, *, in_turn: bool = False, reason: StopReason | None = None) -> str:
    """Return the sentence of a page about a Notice; empty if the page omits it.

    A larger budget does not lengthen a run that ended before its budget, or by itself. Runs in
    turn get no advice to take turns. For files without raw readings, the cure depends on
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


_COLOURS = {Verdict.BETTER: "green", Verdict.WORSE: "red", Verdict.UNDECIDED: "yellow"}
_LABEL = 10  # Columns of a label, of a page and below a step


class Depth(enum.IntEnum):
    """How deep a fact lies: the first report that shows it."""

    LINE = 0  # `print(record)`
    PAGE = 1  # after a run
    DETAILS = 2  # with --details: the page and more
    EXPLAIN = 3  # a step of ``explain``, alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(OneLine):
    """A number, or words instead of it, and its comparison; ``place`` is of a ranking."""

    name: str
    file: str = ""
    metric: str = ""
    place: str = ""
    statistic: str = "mean"
    estimate: Estimate | None = None
    instead: str = "no number"
    unit: str = ""
    ratio: Estimate | None = None
    change: str = ""  # the ratio in words
    verdict: str = ""
    scope: str = ""  # of the verdict, if not the code

    @property
    def shown(self) -> tuple[str, str]:
        """The value with its unit, and the interval."""
        if self.estimate is None:
            return self.instead, ""
        value, _, interval = show_interval(self.estimate, self.unit).rpartition(" [")
        is_moved = self.estimate.method.startswith(AT_FULL_SPEED)
        return f"{value} {AT_FULL_SPEED}" if is_moved else value, f"[{interval}"


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
        A short statement; of a step, one or two sentences. A fact without text or table is not
        known, and left out.
    value
        The same as data: an Estimate, a number, or a Notice, Verdict or Severity, which is shown
        as such.
    rows
        What supports it, below it: pairs of a name and a figure, or rows of a table.
    codes
        Of the Notices that it replaces, so that a report does not repeat them.
    table
        In place of the text.
    figures
        The same as rows of values, for Markdown and CSV.
    """

    key: str
    depth: Depth
    label: str
    text: str
    value: object = None
    rows: tuple[tuple[str, ...], ...] = ()
    codes: tuple[Code, ...] = ()
    table: tuple[Part, ...] = ()
    figures: tuple[Figure, ...] = ()


HEAD, ADVICE, NOTICE = "head", "advice", "notice"  # keys of facts that have a place of their own


def facts_of(result: Reported) -> list[Fact]:
    """Return all that was found, in the order of its report; the class names the function.

    Parameters
    ----------
    result
        A run, a comparison, a family or suites of these, a plan, a state of the machine.

    Examples
    --------
    >>> import benchrigor as br
    >>> facts = facts_of(br.measure(dict, name="dict()", budget_s=0.05))
    >>> facts[0].key  # the number in short, or that there is none
    'short'
    """
    facts: list[Fact] = called(result._facts, result)  # noqa: SLF001  # the protocol of results
    return facts


def page_of(result: Reported, depth: Depth = Depth.PAGE) -> Page:
    """Return the page of a result, or with `Depth.DETAILS` its whole report."""
    return page_of_facts(facts_of(result), depth)


def page_of_facts(facts: Iterable[Fact], depth: Depth = Depth.PAGE) -> Page:
    """Return the rows of facts, down to a depth, as a page."""
    return page(rows_of(facts, depth))


def sentence(key: str, text: str) -> Fact:
    """Return a fact of a page that is said in a sentence."""
    return Fact(key, Depth.PAGE, "", text)


def labelled(label: str, *parts: str, depth: Depth = Depth.PAGE) -> Fact:
    """Return a fact that is said in a row with a label, of the parts that are not empty."""
    return Fact(label, depth, label, "; ".join(filter(None, parts)))


def warn(text: str) -> Fact:
    """Return a warning of a page, which names its subject."""
    return Fact("warning", Depth.PAGE, "", text, Severity.WARNING)


def list_rows(key: str, parts: Iterable[Part], figures: Iterable[Figure] = ()) -> Fact:
    """Return a fact of a page that is a table."""
    return Fact(key, Depth.PAGE, "", "", table=tuple(parts), figures=tuple(figures))


def title(name: str) -> Fact:
    """Return the name of a result above its page; nothing without a name."""
    return list_rows("title", [Title(name)] if name else [])


def head(text: str, value: object = None) -> Fact:
    """Return the sentence that a page begins with."""
    return Fact(HEAD, Depth.PAGE, "", text, value)


def advised(
    notices: Iterable[Notice],
    *,
    most: int | None = None,
    in_turn: bool = False,
    reason: StopReason | None = None,
) -> list[Fact]:
    """Return the advice of a page, the weightiest first; a whole report has the Notices instead.

    A page has room for the ``most`` sentences, and counts the others. It always says that runs
    failed, since errors are among their answers. A missed target has its own row, so it weighs
    less. ``reason`` is why the run ended.
    """

    def weight(notice: Notice) -> tuple[bool, ...]:
        is_refusal = notice.severity is Severity.REFUSAL
        is_failure = notice.code is Code.FAILED_RUNS
        is_of_target = notice.code is Code.NOT_CONVERGED
        return not is_failure, not is_refusal, not is_of_modes(notice), is_of_target

    order = sorted(chosen(notices), key=weight)
    said = [sentence_of(notice, in_turn=in_turn, reason=reason) for notice in order]
    shown = [*dict.fromkeys(filter(None, said))]
    if most is None:
        most = len(shown)
    else:
        most += sum(notice.code is Code.FAILED_RUNS for notice in order)
    facts = [Fact(ADVICE, Depth.PAGE, "", text, Severity.WARNING) for text in shown]
    more = f"{many(len(facts[most:]), 'more warning')}: --details" * bool(facts[most:])
    count = Fact(ADVICE, Depth.PAGE, "", "", table=tuple(wrapped(more, "    ")))
    return [*facts[:most], *known(count), *deeper(facts[most:])]


def step(key: str, text: str, *rows: tuple[str, ...]) -> Fact:
    """Return a step of an explanation, with its rows that say something."""
    return Fact(key, Depth.EXPLAIN, "", text, rows=tuple(row for row in rows if row[-1]))


def known(*facts: Fact) -> list[Fact]:
    """Keep the facts that say something."""
    return [fact for fact in facts if fact.text or fact.table or fact.figures]


def told_by(
    facts: Iterable[Fact],
    notices: Iterable[Notice],
    label: str = "",
    depth: Depth = Depth.DETAILS,
) -> list[Fact]:
    """Return the Notices as facts, but for those that other facts replace."""
    told = {code for fact in facts for code in fact.codes}
    return [
        Fact(NOTICE, depth, label, str(notice), notice)
        for notice in notices
        if notice.code not in told
    ]


def noticed(notices: Iterable[Notice]) -> list[Fact]:
    """Return Notices: a page has warnings and refusals in full, a whole report all, with codes."""
    notices = [*notices]
    asking = [notice for notice in notices if notice.severity is not Severity.NOTE]
    warned = [Fact(ADVICE, Depth.PAGE, "", notice.sentence, notice.severity) for notice in asking]
    return [*told_by((), notices), *warned]


def rows_of(facts: Iterable[Fact], depth: Depth) -> list[Part]:
    """Return the rows of a page, down to a depth; the whole report has codes of Notices."""
    lines, before = list[Part](), ""
    shown = [
        fact
        for fact in facts
        if Depth.LINE < fact.depth <= depth and (fact.key != ADVICE or depth is Depth.PAGE)
    ]
    labels = (len(fact.label) + 2 for fact in shown if not isinstance(fact.value, Notice))
    width = max([_LABEL, *labels])
    for fact in shown:
        colour = _COLOURS.get(fact.value, "") if isinstance(fact.value, Verdict) else ""
        if isinstance(fact.value, Notice):
            lines += marked(fact.value, fact.label)
        elif fact.key == HEAD:
            lines.append(Line(fact.text, hanging=2, style=f"bold {colour}".rstrip()))
        elif isinstance(fact.value, Severity):
            lines += mark(fact.text, fact.value)
        elif not fact.label:
            lines += fact.table or wrapped(fact.text, hanging=2)
        else:
            codes = "".join(f" [{code}]" for code in fact.codes) * (depth >= Depth.DETAILS)
            label = "" if fact.label == before else fact.label
            lines += row(label, [f"{fact.text}{codes}"], width=width, style=colour)
            lines += _below(fact, " " * (width + 2))
            before = fact.label
    return lines


def steps_of(facts: Iterable[Fact]) -> list[Part]:
    """Return the numbered steps of an explanation, with the figures of each below it."""
    lines = list[Part]()
    for number, fact in enumerate((fact for fact in facts if fact.depth is Depth.EXPLAIN), 1):
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


def deeper(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts that a page has no room for."""
    return [replace(fact, depth=max(fact.depth, Depth.DETAILS)) for fact in facts]
