"""What verbs print, and the files that they write next to it or in its place.

It writes all files of a verb or none, tables in Markdown and CSV and the picture too, and replaces
existing ones only with --force.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from benchrigor import safe_text
from benchrigor.cli.options import (
    Decorator,
    awaits_json,
    hint,
    note_json,
    remember,
    remembered,
    wants_details,
    wants_json,
)
from benchrigor.errors import InvalidInput
from benchrigor.files import replacing, write_whole
from benchrigor.layout import Page, page
from benchrigor.model import Analysis, Options, Progress, Round, RunRecord, Width, codec
from benchrigor.model.analysis import Kind
from benchrigor.model.checks import refuse
from benchrigor.model.codec import is_there
from benchrigor.model.text import show_interval
from benchrigor.safe_text import escaped
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.units import counted, many, percent, shortened, show_duration, show_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from benchrigor.report.fact import Depth, Fact


force_option = click.option("--force", is_flag=True, help="Replace files that are there.")


def refuse_those_there(paths: list[Path], *, force: bool) -> None:
    """Raise InvalidInput for files that may not be replaced."""
    if not force:
        there = [path for path in paths if is_there(path)]
        refuse([f"{path} is there already: --force replaces it" for path in there])


def write_files(contents: Mapping[Path, str | bytes]) -> None:
    """Write files, and make the folders of those that have none; InvalidInput if one cannot be."""
    try:
        with ExitStack() as replaced:
            for path, content in contents.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                replaced.enter_context(replacing(path, content))
    except OSError as error:
        name = error.filename or next(iter(contents))
        raise InvalidInput(f"{name} cannot be written: {error.strerror or error}") from error


_SUFFIXES = (".png", ".svg", ".pdf")


def _check(context: click.Context, option: click.Parameter, path: Path | None) -> Any:
    if path is not None and path.suffix.lower() not in _SUFFIXES:
        raise click.BadParameter(f"'{path}' ends otherwise than in {', '.join(_SUFFIXES)}")
    return remember(context, option, path)


plot_option = click.option(
    "--plot",
    "picture",
    type=click.Path(dir_okay=False, path_type=Path),
    expose_value=False,  # what draws asks for it
    callback=_check,
    metavar="FILE",
    help="Draw the result into FILE: readings, segments or rates in time order, durations over "
    "work, the trials of a search, or a map; png, svg or pdf, by its suffix.",
)


def wants_picture() -> bool:
    """Return whether the current verb is to draw a picture."""
    return remembered("picture", None) is not None


def write_picture(draw: Callable[[], Axes]) -> None:
    """Write a figure, if one is wanted; comes last, so that a failure loses no output."""
    path = remembered("picture", None)
    if path is None:
        return
    axes = draw()
    try:
        drawn = io.BytesIO()
        cast("Figure", axes.figure).savefig(drawn, format=path.suffix[1:].lower())
        write_whole(path, drawn.getvalue())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error


_TABLES = "benchrigor.tables"
_STDOUT = "-"


def _remember(context: click.Context, option: click.Parameter, target: str | None) -> None:
    if target is None:
        return
    known: dict[str, str] = context.meta.setdefault(_TABLES, {})
    if target == _STDOUT and (awaits_json() or _STDOUT in known.values()):
        raise click.BadParameter("'-' is standard output, which has another document: name a file")
    folder = Path(target).absolute().parent
    if target != _STDOUT and not is_there(folder, Path.is_dir):
        raise click.BadParameter(f"no folder {folder}")
    known[str(option.name)] = target


def _option(form: str, text: str) -> Decorator:
    return click.option(
        f"--{form}",
        type=click.Path(dir_okay=False, allow_dash=True),
        expose_value=False,  # printers of results ask for it
        callback=_remember,
        metavar="FILE|-",
        help=f"{text}; - prints it in place of the report.",
    )


_MARKDOWN = _option("markdown", "Write names, values, intervals, ratios and verdicts as Markdown")
_CSV = _option("csv", "Write them as CSV, with all digits")


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --markdown and --csv."""
    return _MARKDOWN(_CSV(command))


def are_wanted() -> bool:
    """Return whether the current verb is to write a table."""
    return bool(click.get_current_context().meta.get(_TABLES))


def is_replaced() -> bool:
    """Return whether a table stands on standard output in place of the report."""
    return _STDOUT in click.get_current_context().meta.get(_TABLES, {}).values()


def write_tables(facts: Callable[[], Sequence[Fact]]) -> None:
    """Write the tables that were asked for; comes last, so that a failure loses no output."""
    if not are_wanted():
        return
    from benchrigor.report.figures import csv_of, markdown_of  # noqa: PLC0415  # slow to load

    for form, target in click.get_current_context().meta[_TABLES].items():
        text = (csv_of if form == "csv" else markdown_of)(facts())
        if target == _STDOUT:
            say(text)
            continue
        try:
            write_whole(target, f"{text}\n")
        except OSError as error:
            raise InvalidInput(f"{target} cannot be written: {error.strerror or error}") from error


_REDRAWN_EVERY_S = 0.1
_FEWEST_COLUMNS = 20
_NAME = 30  # characters of a name, to leave room for figures


def say(text: str, *, err: bool = False) -> None:
    """Print lines; escape control characters, and others that the stream cannot encode.

    A page is as wide as the terminal, and has colours there.
    """
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    if isinstance(text, Page):
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        shown = text.at(_columns(), coloured=stream.isatty() and not plain)
    else:
        shown = safe_text.page(text.split("\n"))
    click.echo(shown.encode(encoding, "backslashreplace").decode(encoding), err=err)


def _columns() -> int:
    """Return COLUMNS, else the columns of the terminal, else 80."""
    return max(shutil.get_terminal_size().columns, _FEWEST_COLUMNS)


def remark(sentence: str) -> None:
    """Print a line on stderr."""
    say(f"benchrigor: {escaped(sentence)}", err=True)


def print_json(document: object) -> None:
    """Print a document as JSON; numbers that JSON cannot express become strings."""
    say(json.dumps(codec.encode(document), allow_nan=False, indent=2))
    note_json()


def print_result(
    show: Callable[[], object] | None = None,
    *,
    facts: Callable[[], Sequence[Fact]] | None = None,
    next_verb: str = "",
    **fields: object,
) -> None:
    """Print a result, or its fields as JSON with the versions of its layout and arithmetic.

    Its ``facts`` are its page, unless ``show`` makes another one, and go to the files of
    `table_options`. ``next_verb`` goes on with the run of a field ``run_id``, or both of
    ``run_ids``, if kept.
    """
    if wants_json():
        print_json({**codec.versions(), **fields})
    elif facts is None or not is_replaced():
        shown = _page_of(facts) if show is None else show()
        say(shown if isinstance(shown, str) else str(shown))
        both: Any = fields.get("run_ids") or (fields.get("run_id"),)
        if next_verb and all(both):
            _say_hint(f"kept as {', '.join(both)}", hint(*next_verb.split(), *both))
    if facts is not None:
        write_tables(facts)


def _page_of(facts: Callable[[], Sequence[Fact]] | None) -> Page:
    """Return the page of facts, or all of them with --details."""
    from benchrigor.report.fact import page_of_facts  # noqa: PLC0415  # not before the first call

    return page_of_facts(facts() if facts else (), shown_depth())


def shown_depth() -> Depth:
    """Return how deep the facts lie that the current verb shows."""
    from benchrigor.report.fact import Depth  # noqa: PLC0415  # not before the first call

    return Depth.DETAILS if wants_details() else Depth.PAGE


def print_record(record: RunRecord) -> None:
    """Print the report of a run, or its summary as JSON."""
    if wants_json():
        print_json(summary(record))
        return
    say(report_of(record))
    if record.run_id:
        verb = ("explain",) if wants_details() else ("show", "--details")
        _say_hint(f"kept as {record.run_id}", hint(verb[0], record.run_id, *verb[1:]))
        if record.decision is None:
            why = "has no end: it is under way, or its process was killed"
            _say_hint(why, hint("resume", record.run_id))


def _say_hint(what: str, command: str) -> None:
    """Print a command line to go on with, unbroken so that it can be copied."""
    what, command = escaped(what), escaped(command)
    fits = len(what) + len(command) + len("  : ") <= _columns()
    say(f"  {what}: {command}" if fits else f"  {what}:\n  {command}")


def report_of(record: RunRecord) -> Page:
    """Return the page of a run, or the whole report."""
    from benchrigor.report.fact import page_of  # noqa: PLC0415  # not before the first call

    return page_of(record, shown_depth())


def print_records(records: Mapping[str, RunRecord]) -> None:
    """Print how several runs compare, and a table of them, the best first; or all as JSON."""
    if wants_json():
        print_json({name: summary(record) for name, record in records.items()})
        return
    from benchrigor.report.fact import page_of_facts  # noqa: PLC0415  # not before the first call
    from benchrigor.report.tables import facts_of_ranking  # noqa: PLC0415  # likewise

    runs = records.values() if wants_details() else ()
    reports = (part for record in runs for part in ("", report_of(record)))
    say(page([page_of_facts(facts_of_ranking(records)), *reports]))
    kept = [record.run_id for record in records.values() if record.run_id]
    if kept:
        _say_hint(f"kept as {', '.join(kept)}", hint("show", kept[0], "--details"))


def summary(record: RunRecord) -> dict[str, Any]:
    """Return the record as plain data without the raw readings."""
    document = replace(record, rounds=(), analyses=()).to_dict()
    document["rounds"] = [_outline_round(round_) for round_ in record.rounds]
    document["analyses"] = [outline(analysis) for analysis in record.analyses]
    document["first_call_s"] = record.first_call_s
    document["facts"] = codec.encode(record.facts)
    return document


def outline(analysis: Analysis) -> dict[str, Any]:
    """Return an analysis as plain data without the means of subsessions, and places of readings."""
    document = analysis.to_dict()
    if analysis.subsessions:
        del document["subsessions"]["means"]
    if analysis.disturbed:
        del document["disturbed"]["starts"], document["disturbed"]["stops"]
    return document


def _outline_round(finished: Round) -> dict[str, Any]:
    document: dict[str, Any] = {
        "index": finished.plan.index,
        "elapsed_ns": finished.elapsed_ns,
        "n": finished.n_readings,
    }
    if finished.plan.work is not None:
        document |= {"work": finished.plan.work, "duration_s": finished.duration_s}
    return document


class LiveLine:
    """One line that shows how a session stands, drawn between rounds by the thread that measures.

    ``draw`` replaces the line, not more often than ``every_s`` seconds; it is None if stderr is not
    a terminal.
    """

    def __init__(
        self, draw: Callable[[str], object] | None, *, every_s: float = _REDRAWN_EVERY_S
    ) -> None:
        self._draw, self._every_s = draw, every_s
        self._drawn_at = 0.0
        self._name, self._options = "", Options()
        self._warned: set[str] = set()  # names

    def follow(self, name: str, options: Options) -> None:
        """Name the measured code (empty for several in turn), and the target."""
        self._name, self._options = name, options

    def __call__(self, progress: Progress) -> None:
        """Redraw, unless that was done a moment ago: drawing may take longer than a round."""
        now = time.monotonic()
        reachable = out_of_reach(progress, self._options)
        if self._draw is None and reachable and progress.name not in self._warned:
            self._warned.add(progress.name)
            remark(f"{progress.name}: {reachable}")
        if self._draw is not None and now - self._drawn_at >= self._every_s:
            name = shortened(self._name or progress.name, _NAME)
            self.show(_line(name, progress, self._options))
            self._drawn_at = now

    def show(self, text: str) -> None:
        """Redraw with a text, if there is a terminal."""
        if self._draw is not None:
            self._draw(text)

    def say(self, sentence: str) -> None:
        """Show a sentence in place of the line; without a line, on stderr."""
        if self._draw is not None:
            self._draw(sentence)
        else:
            remark(sentence)


@contextmanager
def live_line() -> Iterator[LiveLine]:
    """Open a live line on a terminal, or a silent one if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield LiveLine(None)
        return
    from rich.console import Console  # noqa: PLC0415  # where nobody looks, nothing is drawn
    from rich.live import Live  # noqa: PLC0415  # likewise
    from rich.text import Text  # noqa: PLC0415  # likewise

    with Live(
        console=Console(stderr=True),
        auto_refresh=False,  # no thread
        transient=True,
        redirect_stdout=False,  # a measured function that prints must not pay for the line
        redirect_stderr=False,
    ) as live:
        yield LiveLine(
            lambda line: live.update(
                Text(escaped(line), no_wrap=True, overflow="ellipsis"), refresh=True
            )
        )


def _line(name: str, progress: Progress, options: Options) -> str:
    required = (analysis.kind for analysis in progress.analyses if analysis.metric.must_satisfy)
    is_speed = next(required, None) is Kind.WORK
    if is_speed:  # rounds are the readings: their speed says more
        parts = [many(progress.rounds, "round"), *_show_speed(progress.widths[0])]
        if progress.readings_needed:
            parts.append(f"about {counted(progress.readings_needed)} to go")
    else:
        parts = [*_figure(progress), *_half_width(progress.widths, options)]
    if options.pieces > 1:
        parts.append(f"piece {progress.piece + 1} of {options.pieces}")
    if progress.waiting_s:
        parts.append(f"the next one in {show_duration(math.ceil(progress.waiting_s))}")
    elif progress.seconds_left is not None and progress.decision is None:
        parts.append(f"at most {show_value(progress.seconds_left, 's')}")
    if not is_speed:  # a narrow terminal cuts off the end
        parts.append(many(progress.readings, "reading"))
    parts += filter(None, (out_of_reach(progress, options),))
    return (f"{name}: " if name else "") + " · ".join(parts)


def out_of_reach(progress: Progress, options: Options) -> str:
    """Say that the target cannot be reached within the budget, and what can; empty if it can."""
    is_asked = options.target is None or options.asked is not None
    if not is_asked or progress.reachable is None or progress.decision is not None:
        return ""
    goal = "the target" if options.target is None else f"±{percent(options.target)}"
    sentence = f"{goal} cannot be reached within {show_duration(options.budget_s)} here"
    if math.isinf(progress.reachable) or progress.reachable <= (options.target or 0.0):
        return f"{sentence}, which hold too few readings"
    return f"{sentence}; about ±{percent(progress.reachable, digits=2)} can"


def _figure(progress: Progress) -> list[str]:
    """Show the estimate of the first metric, and until there is one a rough figure."""
    first = next(iter(progress.widths), None)
    reached = first if first is not None and first.estimate else progress.provisional
    if reached is None or reached.estimate is None:
        return []
    found, unit = reached.estimate, reached.metric.unit
    shown = show_value(found.value, unit)
    if math.isfinite(found.half_width):
        shown = show_interval(found, unit)
    return [shown if reached is first else f"about {shown}"]


def _half_width(widths: Sequence[Width], options: Options) -> list[str]:
    """Show the half-width that is furthest from its target, and the target."""
    far, shown = 0.0, list[str]()
    for reached in widths:
        found = reached.estimate
        if found is None or found.value == 0.0:
            continue
        width = wanted_half_width(found, reached.metric, options.asked) / abs(found.value)
        if shown and found.relative_half_width / width <= far:
            continue
        far = found.relative_half_width / width
        shown = [f"half-width {percent(found.relative_half_width, digits=2)}"]
        shown[0] += f", wanted {percent(width)}" if math.isfinite(width) else ""
    return shown


def _show_speed(reached: Width) -> list[str]:
    """Show the speed roughly, as soon as there is any number."""
    if reached.estimate is None:
        return []
    speed = show_value(reached.estimate.value, reached.metric.unit)
    width = percent(reached.estimate.relative_half_width, digits=2)
    return [f"about {speed}, give or take {width}"]


_MODULES = {
    "choice": "benchrigor.workbench.map_verb",
    "map": "benchrigor.workbench.map_verb",
    "peak": "benchrigor.workbench.peak_verb",
}
"""By the kind in the subject of a record."""


def is_special(record: RunRecord) -> bool:
    """Return whether a run is something else than readings of a workload."""
    return record.subject.get("kind") in _MODULES


def module_for(record: RunRecord) -> Any:
    """Return the module with `noun_of`, `show`, `sheet`, `draw`, `explain`, `resume` of a run."""
    return import_module(_MODULES[record.subject["kind"]])
