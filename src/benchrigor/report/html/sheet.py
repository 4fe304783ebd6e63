"""A result as HTML: its question, the answer, chapters, and pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine
from benchrigor.report.fact import ADVICE, HEAD, NOTICE, Depth, Fact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GOOD, BAD, DOUBTFUL = "good", "bad", "doubtful"
_ELSEWHERE = (HEAD, NOTICE, ADVICE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(OneLine):
    """A figure that is drawn when it is shown.

    ``words`` describe it below it, and to whoever does not see it.
    """

    title: str
    words: str
    draw: Callable[[], Axes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter(OneLine):
    """Facts under a heading, closed at first if they are for few readers."""

    heading: str
    facts: Sequence[Fact]
    is_closed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet(OneLine):
    """All that HTML shows of a result.

    To show a type of results as HTML, write a function that returns its sheet, and name it in the
    class as ``_sheet = "module:function"``. No renderer and no template changes.

    Parameters
    ----------
    name
        Of the result.
    asked
        The question that it answers.
    answer
        In one sentence.
    tone
        Colour of the answer: `GOOD`, `BAD`, `DOUBTFUL`, or none.
    chapters
        A notebook shows the first.
    pictures
        A notebook shows the first.
    notices
        What to know about it.
    members
        The sheets of its parts, by themselves.
    """

    name: str
    asked: str
    answer: str
    tone: str = ""
    chapters: Sequence[Chapter] = ()
    pictures: Sequence[Picture] = ()
    notices: Sequence[Notice] = ()
    members: Sequence[Sheet] = field(default=())


def sheet_of(result: Any) -> Sheet:
    """Return the sheet of a result, by the function that its class names."""
    module, _, name = result._sheet.partition(":")  # noqa: SLF001  # the protocol of results
    made: Sheet = getattr(import_module(module), name)(result)
    return made


def chapters_of(facts: Iterable[Fact]) -> list[Chapter]:
    """Return the findings, and how they came about; a sheet has the head and Notices elsewhere."""
    shown = [fact for fact in facts if fact.depth is not Depth.LINE and fact.key not in _ELSEWHERE]
    steps = [fact for fact in shown if fact.depth is Depth.EXPLAIN]
    found = Chapter(heading="What was found", facts=[fact for fact in shown if fact not in steps])
    how = Chapter(heading="How it came about", facts=steps, is_closed=True)
    return [chapter for chapter in (found, how) if chapter.facts]
