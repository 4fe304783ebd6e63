"""Several runs as a table, one line per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from benchrigor.errors import BenchrigorError
from benchrigor.layout import Page, Part, page, table, wrapped
from benchrigor.model.notice import Code
from benchrigor.model.recorded import FILE
from benchrigor.model.run import RunRecord
from benchrigor.model.text import say_end
from benchrigor.report.facts.number_facts import just_now, notes_on, show_number
from benchrigor.report.notice_lines import by_sentence, chosen_of_run, sentence_of
from benchrigor.units import counted, show_value

_MARK = "~"  # Before an observed median in place of an estimate
_MOST_SENTENCES = 4


def tabulate(
    records: Sequence[RunRecord],
    *,
    places: Sequence[int] = (),
    groups: Sequence[str] = (),
    in_turn: bool = False,
    worded: Callable[[str], str] = str,
) -> Page:
    """Return a table of runs: name, number, readings, and how the run ended.

    A column has the times as measured just now where they differ from those at full speed. Warnings
    stand below the table, once for all runs that they concern.

    Parameters
    ----------
    records
        Of finished runs, in the order in which they are shown.
    places
        Of a ranking, one per record: they stand before the names.
    groups
        That the records are of, one per record: they have a column if any has a name.
    in_turn
        Whether the runs took turns.
    worded
        Puts the names of options into sentences as the reader gives them.

    Examples
    --------
    >>> import benchrigor as br
    >>> record = br.measure(dict, name="dict()", budget_s=0.05)
    >>> print(tabulate([record]).splitlines()[0].split()[:2])
    ['name', 'mean']
    """
    statistics = {record.options.statistic for record in records}
    statistic = next(iter(statistics)) if len(statistics) == 1 else "estimate"
    rows = [("name", statistic, "just now", "readings", "ended"), *map(_row, records)]
    for index, place in enumerate(places, start=1):
        rows[index] = (f"{place}. {rows[index][0]}", *rows[index][1:])
    is_corrected = any(row[2] for row in rows[1:])
    notes = notes_on((row[1] for row in rows), corrected=statistic * is_corrected)
    if any(row[1].startswith(_MARK) for row in rows):
        notes.append(f"{_MARK} observed median, no interval")
    grouped = zip(rows, ("group", *(groups or [""] * len(records))), strict=True)
    rows = [(name, group, *cells) for (name, *cells), group in grouped]
    warnings = _warnings(records, worded, in_turn=in_turn)
    return page([*table(rows, "<<<<><"), *notes, *warnings])


def ranking_page(runs: Mapping[str, RunRecord]) -> Page:
    """Return sentences on how much faster the best run is, and a table of runs, best first."""
    if not runs:
        return page(["no runs"])
    from benchrigor.session.pairs.run_comparison import rank_runs  # noqa: PLC0415  # slow to load

    known = {name: run for name, run in runs.items() if run.estimate() is not None}
    places = dict[str, int]()
    with suppress(BenchrigorError):  # runs that are not comparable have no order
        ranked = rank_runs(known)[0] if known else ()
        places = {one.name: one.place for one in ranked}
    others = [run for name, run in runs.items() if name not in places]
    ordered = [*(runs[name] for name in places), *others]
    shown = tabulate(ordered, places=[*places.values()], in_turn=True)
    return page([*_sentences(runs, [*places]), shown])


def _sentences(runs: Mapping[str, RunRecord], ranked: Sequence[str]) -> Iterator[Part]:
    """Say how much faster the best run is than the next ones."""
    from benchrigor.session.pairs.run_comparison import compare_runs  # noqa: PLC0415  # likewise

    for name in ranked[1 : 1 + _MOST_SENTENCES]:
        with suppress(BenchrigorError):
            found = replace(compare_runs(runs[name], runs[ranked[0]]), scope="")  # run in turn
            yield from wrapped(str(found), hanging=2)


def _row(record: RunRecord) -> tuple[str, ...]:
    analysis = record.analysis()
    is_recorded = record.subject.get("kind") == FILE and record.decision is None
    ending = "recorded" if is_recorded else say_end(record.decision)
    observed = None if analysis is None else analysis.observed
    if analysis is None or not (analysis.headline or observed):
        return record.name, "no number", "", "", ending
    unit = analysis.metric.unit
    if analysis.headline is not None or observed is None:
        now = just_now(analysis)
        shown = "" if now is None else show_value(now.value, unit)
        return record.name, show_number(analysis, "mean"), shown, counted(analysis.n), ending
    if record.options.statistic == "min":
        return record.name, show_value(observed.least, unit), "", counted(observed.n), ending
    shown = f"{_MARK}{show_value(observed.median, unit)}"
    return record.name, shown, "", counted(observed.n), ending


def _warnings(
    records: Sequence[RunRecord], worded: Callable[[str], str], *, in_turn: bool
) -> list[Part]:
    """Say once what weakens numbers, but for what their endings say, and which they are."""
    ends = (run.decision.reason if run.decision else None for run in records)
    said = (
        (worded(sentence_of(notice, in_turn=in_turn, reason=reason)), run.name)
        for run, reason in zip(records, ends, strict=True)
        for notice in chosen_of_run(run)
        if notice.code is not Code.NOT_CONVERGED
    )
    sentences = by_sentence(said, len(records))
    return [part for sentence in sentences for part in wrapped(sentence, "! ", style="yellow")]
