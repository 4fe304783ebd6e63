"""``benchrigor interference``: what share of a run's time is interference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click

from benchrigor import stats
from benchrigor.cli import options as shared
from benchrigor.cli.output import (
    plot_option,
    print_result,
    remark,
    shown_depth,
    wants_picture,
    write_picture,
)
from benchrigor.cli.recordings import recorded_run
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.files import open_text
from benchrigor.interference.report import (
    facts_of_composite,
    facts_of_interference,
    plot_interference,
)
from benchrigor.layout import join_pages
from benchrigor.model import Code, Interference, RunRecord, SegmentProfile, codec
from benchrigor.model.checks import refuse
from benchrigor.model.text_tables import whole_lines
from benchrigor.report.fact import page_of_facts, title
from benchrigor.report.facts.machine_facts import Pressure, pressure_of_profile, pressure_of_run
from benchrigor.session.red_rounds import check_light, measured_interference

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run: its segments, or the interference of a session."""

    name: str
    source: str = ""
    profile: SegmentProfile | None = None
    interference: Interference | None = None
    pressure: Pressure | None = None


@click.command(cls=Verb)
@click.argument("sources", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--reference",
    metavar="FILE",
    multiple=True,
    help="Segment profile of a fast run of the same program, for continuous interference; again "
    "for each of its processes.",
)
@click.option(
    "--composite", is_flag=True, help="One profile of all runs, free of instantaneous interference."
)
@shared.store_option
@shared.details_option
@plot_option
@shared.json_option
def interference(
    *,
    sources: tuple[str, ...],
    reference: tuple[str, ...],
    composite: bool,
) -> None:
    """Estimate what share of a run's time is interference, with a traffic light.

    FILE is a segment profile, written by benchrigor.segments() or by a program itself; or the
    saved record, or the id, of a session's run. Profiles of several processes of one run count as
    one run. Exit code 0 whatever the light.

    \b
    green   below 7.5% lost: good for performance analysis
    yellow  up to 15%: good for a rough picture; another run may be worth it
    red     above 15%: run it again

    \b
    Examples:
      benchrigor interference run.csv
      benchrigor interference rank-*.csv --reference quiet.csv
      benchrigor interference monday.csv tuesday.csv friday.csv --composite
      benchrigor interference run.csv --plot run.png
      benchrigor interference 3f2a --json
    """  # noqa: D301  # click wants the backspace itself
    _check(sources, reference, composite=composite)
    runs = _read_runs(sources)
    _check_picture(runs, composite=composite)
    if composite:
        _print_composite(runs)
        return
    profile = _merge({path: _load(path) for path in reference}) if reference else None
    estimates = [_estimate(run, profile) for run in runs]
    _print_runs(runs, estimates)
    if (drawn := runs[0].profile) is not None:
        write_picture(lambda: plot_interference(drawn, estimates[0], title=runs[0].name))


def _check(sources: Sequence[str], reference: Sequence[str], *, composite: bool) -> None:
    problems = [
        f"{source} is given {times} times, expected once"
        for source, times in Counter(sources).items()
        if times > 1
    ]
    if composite and reference:
        problems.append(
            f"--reference is given ({', '.join(reference)}) with --composite, which compares with "
            "no other run: leave out one of both"
        )
    refuse(problems)


def _read_runs(sources: Sequence[str]) -> list[_Run]:
    """Read runs, and merge the profiles of the processes of one run."""
    sessions: dict[str, _Run] = {}
    runs: dict[tuple[str, str], dict[str, SegmentProfile]] = {}  # profiles of a run, by file
    for source in sources:
        record = None if codec.is_there(Path(source), Path.is_dir) else recorded_run(source)
        if record is not None:
            sessions[source] = _Run(
                name=f"{source}: {record.name}",
                interference=_of_record(record, source),
                pressure=pressure_of_run(record),
            )
            runs[source, ""] = {}
            continue
        profile = _load(source)
        runs.setdefault((profile.program, profile.run or source), {})[source] = profile
    return [_run_of(files) if files else sessions[source] for (source, _), files in runs.items()]


def _load(source: str) -> SegmentProfile:
    try:
        profile = SegmentProfile.load(source)
        with open_text(source) as file:
            _, last = whole_lines(file.read())
    except OSError as error:
        raise InvalidInput(f"{source} is not a segment profile: {error.strerror}") from error
    if last is not None:
        remark(f"{source} {last}")
    return profile


def _of_record(record: RunRecord, source: str) -> Interference:
    """Return the interference of a session, of an older record from its rounds."""
    estimate = record.interference or measured_interference(record.counted_rounds)
    estimate = check_light(estimate, record.analyses)
    if estimate is None:
        raise InvalidInput(
            f"{source} has no interference: nothing measured how long its rounds waited for a "
            "processor, expected a run that `benchrigor run` made, on Linux"
        )
    # A session cannot be given a reference.
    notices = tuple(notice for notice in estimate.notices if notice.code is not Code.NO_REFERENCE)
    return replace(estimate, notices=notices)


def _run_of(processes: Mapping[str, SegmentProfile]) -> _Run:
    """Make one run of the profiles of its processes, by file."""
    profile = _merge(processes)
    source, first = next(iter(processes.items()))
    if len(processes) > 1:
        source = f"run {first.run}"
    about = [first.program] if first.program else []
    if max(profile.processes, len(processes)) > 1:
        about.append(f"{len(processes)} of {profile.processes} processes")
    name = ": ".join(filter(None, (source, ", ".join(about))))
    pressure = pressure_of_profile(profile.facts)
    return _Run(name=name, source=source, profile=profile, pressure=pressure)


def _merge(processes: Mapping[str, SegmentProfile]) -> SegmentProfile:
    return _of_files(list(processes), stats.merge_processes, list(processes.values()))


def _of_files(
    files: Sequence[str],
    compute: Callable[[Sequence[SegmentProfile]], T],
    profiles: Sequence[SegmentProfile],
) -> T:
    """Compute something of profiles, and name their files in errors."""
    try:
        return compute(profiles)
    except InvalidInput as error:
        raise InvalidInput(
            re.sub(r"profiles\[(\d+)\]", lambda index: files[int(index[1])], problem)
            for problem in error.problems
        ) from error


def _estimate(run: _Run, reference: SegmentProfile | None) -> Interference:
    if run.profile is not None:
        return stats.profile_interference(run.profile, reference=reference)
    if reference is not None or run.interference is None:
        raise InvalidInput(f"--reference is for segment profiles, found {run.name}")
    return run.interference


def _check_picture(runs: Sequence[_Run], *, composite: bool) -> None:
    if wants_picture() and (composite or len(runs) > 1 or runs[0].profile is None):
        names = ", ".join(run.name for run in runs) + (", --composite" if composite else "")
        raise InvalidInput(f"--plot draws the segment profile of one run, found {names}")


def _print_runs(runs: Sequence[_Run], estimates: Sequence[Interference]) -> None:
    pairs = list(zip(runs, estimates, strict=True))
    rows = [
        {"name": run.name, "total_percent": estimate.total_percent, **codec.encode(estimate)}
        for run, estimate in pairs
    ]
    pages = (
        page_of_facts(
            [title(run.name), *facts_of_interference(estimate, run.pressure)], shown_depth()
        )
        for run, estimate in pairs
    )
    print_result(lambda: join_pages(pages), runs=rows)


def _print_composite(runs: Sequence[_Run]) -> None:
    profiles = [run.profile for run in runs if run.profile is not None]
    if len(profiles) < len(runs):
        others = ", ".join(run.name for run in runs if run.profile is None)
        raise InvalidInput(f"--composite is for segment profiles, found {others}")
    composite = _of_files([run.source for run in runs], stats.composite_profile, profiles)
    names = [run.name for run in runs]
    facts = [title(profiles[0].program), *facts_of_composite(composite, names)]
    fields = {"names": names, **codec.encode(composite)}
    print_result(facts=lambda: facts, **fields)
