"""Results as HTML, a whole document or the output of a notebook: sheets, and figures as SVG."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from benchrigor.errors import MissingExtra
from benchrigor.layout import Line, Part, Table, Title
from benchrigor.model.notice import Notice
from benchrigor.model.one_line import OneLine, called
from benchrigor.report.fact import ADVICE, HEAD, NOTICE, Depth, Fact, page_of_facts
from benchrigor.report.plots.drawing import PALETTE
from benchrigor.safe_text import escaped

if TYPE_CHECKING:
    from jinja2 import Environment, Template
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
    made: Sheet = called(result._sheet, result)  # noqa: SLF001  # the protocol of results
    return made


def chapters_of(facts: Iterable[Fact]) -> list[Chapter]:
    """Return the findings, and how they came about; a sheet has the head and Notices elsewhere."""
    shown = [fact for fact in facts if fact.depth is not Depth.LINE and fact.key not in _ELSEWHERE]
    steps = [fact for fact in shown if fact.depth is Depth.EXPLAIN]
    found = Chapter(heading="What was found", facts=[fact for fact in shown if fact not in steps])
    how = Chapter(heading="How it came about", facts=steps, is_closed=True)
    return [chapter for chapter in (found, how) if chapter.facts]


_DARK = (
    "@media screen and (prefers-color-scheme: dark) {{ .benchrigor {{ {0} }} }}\n"
    '[data-jp-theme-light="false"] .benchrigor, .vscode-dark .benchrigor {{ {0} }}\n'
)
_VARIABLES = {light: f"var(--{name})" for name, (light, _) in PALETTE.items()}
_BEFORE = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_GROUP = re.compile(r'(<g) id="[^"]*"')
_FONT = re.compile(r" font-family: [^;\"]*;?| ?transform=\"rotate\(-0 [^)]*\)\"")
_FINE = re.compile(r"(\.\d\d)\d+")
_SIZE = re.compile(r' width="([\d.]+)pt" height="[\d.]+pt"')
_SPACE = re.compile(r"\s+")
# A round mark begins with a curve from the point below its middle.
_ROUND = re.compile(r'<path id="(\w+)" d="M 0 ([\d.]+)\s+C [^"]*"(?: style="stroke: none")?/>')
_DOTS = re.compile(  # of one mark and style
    r'<use xlink:href="#(\w+)" x=[^>]*? style="fill: ([^;"]*)((?:;[^"]*)?)"/>'
    r'(?>\s*<use xlink:href="#\1" x=[^>]*? style="fill: \2\3"/>){20,}+'
)
_PLACE = re.compile(r'x="([\d.-]+)" y="([\d.-]+)"')


def css_of_palette() -> str:
    """Return the colours as variables of CSS, in both themes."""
    light, dark = (
        " ".join(f"--{name}: {pair[which]};" for name, pair in PALETTE.items()) for which in (0, 1)
    )
    return f".benchrigor {{ {light} }}\n" + _DARK.format(dark)


def svg_of(picture: Picture, number: int = 0) -> str:
    """Draw a picture as SVG; ``number`` tells its names from the names of other pictures."""
    from matplotlib import rc_context  # noqa: PLC0415  # matplotlib is loaded by now

    figure: Any = picture.draw().get_figure(root=True)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": f"{number}"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return _embedded(written.getvalue(), escape(escaped(picture.title)))


def _embedded(text: str, title: str) -> str:
    """Leave out of an SVG all that a page has, and shorten it."""
    text = _join_dots(_BEFORE.sub("", text))
    text = _TAG.sub(lambda tag: _shortened(tag[0]), text)
    return _SIZE.sub(r' role="img" style="--width: \1pt"', text, count=1).replace(
        ">", f"><title>{title}</title>", 1
    )


def _shortened(tag: str) -> str:
    tag = _FINE.sub(r"\1", _FONT.sub("", _GROUP.sub(r"\1", tag)))
    for color, variable in _VARIABLES.items():
        tag = tag.replace(color, variable)
    return _SPACE.sub(" ", tag)


def _join_dots(text: str) -> str:
    """Write many round marks as one path: its strokes without length have round ends."""
    radii = {found[1]: float(found[2]) for found in _ROUND.finditer(text)}

    def join(found: re.Match[str]) -> str:
        if found[1] not in radii:
            return found[0]
        places = " ".join(f"M{float(x):.1f} {float(y):.1f}h0" for x, y in _PLACE.findall(found[0]))
        style = f"fill: none; stroke: {found[2]}{found[3].replace('fill', 'stroke')}"
        width = 2.0 * radii[found[1]]
        return f'<path d="{places}" style="{style}; stroke-width: {width}; stroke-linecap: round"/>'

    return _DOTS.sub(join, text)


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
        loader=PackageLoader("benchrigor.report", "templates"),
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
