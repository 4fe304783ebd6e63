"""The files of other tools, analysed as runs are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import TOOLS, Result, results_in
from benchrigor.model import Analysis, Code, Options, RunRecord
from benchrigor.model.checks import attempt, refuse
from benchrigor.model.recorded import RESTARTED, Recorded
from benchrigor.model.secret_values import hide_secrets
from benchrigor.session.measured_metrics import MeasuredMetrics
from benchrigor.session.outcomes import without_readings
from benchrigor.session.replays.recorded_run import ensure_analysed, record_of_rounds

_ANALYSIS = (  # options that do not say how the readings were taken
    *("target", "confidence", "statistic", "method", "autocorrelation_limit", "trim", "detector"),
)


def read_results(path: str | Path, *, options: Options | None = None) -> list[RunRecord]:
    """Read the results of a benchmark tool, and analyse every benchmark as a run.

    The tool is recognised by the content, not by the name of the file: pyperf, pytest-benchmark,
    asv, hyperfine, google-benchmark, criterion, JMH, Go, k6, vegeta, JMeter, JSON lines, and
    records that benchrigor saved (docs/formats.md). Readings, units, parameters, warm-up, machine
    and commit are carried over; the subject of a record says which tool wrote it.

    Parameters
    ----------
    path
        A file, which may be compressed by gzip, or a folder of results.
    options
        How to analyse the readings; None for the defaults. Saved records keep theirs.

    Returns
    -------
    list of RunRecord
        One per benchmark, in order. Without raw readings in the file the records have no
        estimate, and a Notice says what the file holds and how the tool keeps the readings.

    Raises
    ------
    InvalidInput
        When no known tool wrote the file, or something in it is wrong; the message names the place.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> times = [0.101, 0.099, 0.102, 0.1, 0.098, 0.103, 0.1, 0.101, 0.099, 0.1]
    >>> content = json.dumps({"results": [{"command": "sleep 0.1", "times": times}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "hyperfine.json")
    ...     _ = path.write_text(content)
    ...     (record,) = read_results(path)
    >>> record.name, f"{record.estimate().value:.4f}"
    ('sleep 0.1', '0.1003')
    """
    found = results_in(path)
    if found is None:
        raise InvalidInput(f"{path} is of no known tool, expected results of {', '.join(TOOLS)}")
    return analyse_file(found, str(path), options)


def analyse_file(found: Sequence[Result], place: str, options: Options | None) -> list[RunRecord]:
    """Analyse the benchmarks of a file; all that is wrong with them is raised at once."""
    return _each(_analyse, found, place, options)


def arrange_file(found: Sequence[Result], place: str) -> list[RunRecord]:
    """Return the benchmarks of a file without estimates: who compares them makes those anyway."""
    return _each(_arrange, found, place, None)


def _each(
    read: Callable[[Result, Options | None], RunRecord],
    found: Sequence[Result],
    place: str,
    options: Options | None,
) -> list[RunRecord]:
    problems = list[str]()
    records = [attempt(problems, read, benchmark, options) for benchmark in found]
    refuse(f"{place}: {problem}" for problem in problems)
    return [record for record in records if record is not None]


def _arrange(found: Result, _: Options | None = None) -> RunRecord:
    """Check the readings of a benchmark, and find their kind."""
    if isinstance(found, RunRecord):
        return ensure_analysed(found)
    options = _options_of(found, None)
    measured = MeasuredMetrics(options, found.metrics, None, recorded=True)
    for round_ in found.rounds:
        with _naming(found.name):
            measured.check(round_)
        measured.take(round_)
    known = {name: metric.empty_analysis() for name, metric in measured.by_name.items()}
    lacking = [without_readings(metric, found.rounds) for metric in found.metrics]
    if not found.rounds:
        lacking = [replace(analysis, notices=found.notices) for analysis in lacking]
    return RunRecord(
        name=hide_secrets(found.name),
        options=options,
        metrics=found.metrics,
        seed=0,
        rounds=found.rounds,
        analyses=tuple(known.get(analysis.metric.name, analysis) for analysis in lacking),
        session_notices=found.notices if found.rounds else (),
        provenance=found.provenance,
        subject=found.subject,
    )


def _options_of(found: Recorded, options: Options | None) -> Options:
    rounds = "restarted" if found.unit in RESTARTED else "continuous"
    return replace(options or Options(), rounds=rounds)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say in an error which benchmark it is about."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {problem}" for problem in error.problems) from error


def _analyse(found: Result, options: Options | None) -> RunRecord:
    if isinstance(found, RunRecord):
        return ensure_analysed(found if options is None else _judged_by(options, found))
    options = _options_of(found, options)
    told: dict[str, Any] = {"name": found.name, "subject": found.subject, "rules": ()}
    with _naming(found.name):
        record = record_of_rounds(found.rounds, options, found.metrics, **told)
    analyses, notices = [*map(_without_counts, record.analyses)], found.notices
    if not found.rounds:
        analyses, notices = [replace(analysis, notices=notices) for analysis in record.analyses], ()
    return replace(
        record,
        provenance=found.provenance,
        session_notices=(*notices, *record.session_notices),
        analyses=tuple(analyses),
    )


def _without_counts(analysis: Analysis) -> Analysis:
    """Leave out that an optional metric is constant: counts of bytes or allocations often are."""
    if analysis.metric.must_satisfy:
        return analysis
    kept = (notice for notice in analysis.notices if notice.code is not Code.CONSTANT)
    return replace(analysis, notices=tuple(kept))


def _judged_by(options: Options, run: RunRecord) -> RunRecord:
    """Return a run without its analyses, to be analysed by other options."""
    asked = {name: getattr(options, name) for name in _ANALYSIS}
    return replace(run, options=replace(run.options, **asked), analyses=(), decision=None)
