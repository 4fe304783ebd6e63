"""Sheets as HTML: a whole document, or the output of a notebook."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from benchrigor.errors import MissingExtra
from benchrigor.layout import Line, Part, Table, Title
from benchrigor.model.notice import Notice
from benchrigor.report.fact import Depth, Fact, page_of_facts
from benchrigor.report.html.sheet import Sheet, sheet_of
from benchrigor.report.html.svg import css_of_palette, svg_of
from benchrigor.safe_text import escaped

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_WORTH = re.compile(r"([+-]?[\d.,]+(?:e[+-]?\d+)?)(x?) ?(%|[nµmkMG]?)")
_FACTORS = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "%": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9}
_LESS = ("faster", "lower", "less", "smaller")


def document_of(sheets: Sequence[Sheet], title: str) -> str:
    """Return a whole HTML document, which loads nothing from elsewhere.

    Parameters
    ----------
    sheets
        Of the results, in order.
    title
        Of the document.

    Raises
    ------
    MissingExtra
        Without jinja2 or matplotlib, which come with ``pip install 'benchrigor[report]'``.
    """
    script = _text_of("tables.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template("document.html").render(
        sheets=sheets, title=title, script=script, script_digest=digest, style=_style()
    )


def fragment_of(result: Any) -> str:
    """Return the output of a notebook for a result: its answer, first picture and first chapter.

    Without jinja2 or matplotlib it has no picture, and the chapter is plain text.
    """
    sheet = sheet_of(result)
    try:
        return _template("fragment.html").render(sheet=sheet, style=_style())
    except MissingExtra:
        answer = escape(escaped(sheet.answer))
        return f"<p><strong>{answer}</strong></p>\n<pre>{escape(_text_of_chapter(sheet))}</pre>"


def _text_of_chapter(sheet: Sheet) -> str:
    """Return the first chapter as a terminal shows it."""
    return page_of_facts(sheet.chapters[0].facts if sheet.chapters else (), Depth.DETAILS)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table: its text, its side, and the number by which it is sorted."""

    text: str
    side: str
    worth: float | None


def _blocks(facts: Iterable[Fact]) -> Iterator[tuple[str, Any]]:
    """Yield the blocks of a template by kind: facts, steps, lines, tables and titles."""
    for kind, group in groupby(_parts_of(facts), key=_kind_of):
        if kind in ("facts", "steps", "lines"):
            yield kind, [*group]
        else:
            yield from ((kind, item) for item in group)


def _parts_of(facts: Iterable[Fact]) -> Iterator[Fact | Part]:
    """Yield steps and facts with a label, and the tables and texts of others."""
    for fact in facts:
        if fact.label or fact.depth is Depth.EXPLAIN:
            yield fact
        else:
            yield from filter(None, fact.table or [fact.text])


def _kind_of(item: Fact | Part) -> str:
    match item:
        case Fact(depth=Depth.EXPLAIN):
            return "steps"
        case Fact():
            return "facts"
        case Table():
            return "table"
        case Title():
            return "title"
    return "lines"


def _line_of(line: str | Line) -> tuple[str, str]:
    """Return what stands before a line, and its text."""
    return (line.first.strip(), line.text) if isinstance(line, Line) else ("", line.strip())


def _rows_of(table: Table) -> list[list[Cell]]:
    """Return the rows of a table, its names first if it has any."""
    return [
        [Cell(text, side, _worth(text)) for text, side in zip(row, table.sides, strict=True)]
        for row in table.rows
    ]


def _worth(text: str) -> float | None:
    """Return the number that a text begins with, in the unit without prefix; None without one."""
    if (found := _WORTH.match(text.lstrip("~<±"))) is None:
        return None
    try:
        number = float(found[1].replace(",", ""))
    except ValueError:
        return None
    number *= _FACTORS.get(found[3], 1.0)
    return -number if any(word in text for word in _LESS) else number


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader  # noqa: PLC0415  # only who shows HTML pays
        from markupsafe import Markup  # noqa: PLC0415  # likewise
    except ModuleNotFoundError as error:
        raise MissingExtra("HTML", package=str(error.name), extra="report") from error

    def shown(value: object) -> object:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return escaped(str(value)) if is_text else value

    made = Environment(
        loader=PackageLoader("benchrigor.report.html", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {"blocks": _blocks, "rows": _rows_of, "line": _line_of}
    made.filters |= {"svg": lambda *given: Markup(svg_of(*given)), "verbatim": Markup}  # noqa: S704  # made here
    made.tests["notice"] = lambda item: isinstance(item, Notice)
    return made


def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _text_of(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _style() -> str:
    return css_of_palette() + _text_of("style.css")
