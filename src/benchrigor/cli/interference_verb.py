"""``benchrigor interference``: what of a run's time was lost to others."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from benchrigor import stats
from benchrigor.cli.options import json_option, store_option
from benchrigor.cli.output import print_json
from benchrigor.cli.picture import plot_option, write_picture
from benchrigor.cli.recordings import recorded_run
from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Interference, Light, RunRecord, SegmentProfile, codec
from benchrigor.report import plot_interference, render_composite, render_interference
from benchrigor.session.red_rounds import interference_of

__all__ = ["interference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run: its segments, or, of a session, what is known of them."""

    name: str
    source: str = ""
    profile: SegmentProfile | None = None
    found: Interference | None = None
    parts: dict[str, SegmentProfile] | None = None


@click.command(short_help="Tell what of a run's time was lost to others.")
@click.argument("sources", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--reference",
    metavar="FILE",
    multiple=True,
    help="Segment profile of a fast run of the same program, for continuous interference; again "
    "for each of its processes.",
)
@click.option(
    "--composite",
    is_flag=True,
    help="One profile of all runs, free of instantaneous interference.",
)
@store_option
@plot_option
@json_option
def interference(
    *,
    sources: tuple[str, ...],
    reference: tuple[str, ...],
    composite: bool,
    store: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Tell what of a run's time was lost to others, by a traffic light.

    FILE is a segment profile, as benchrigor.segments() or a program's own wrapper writes it; or
    the saved record, or the id, of a session's run. Profiles of several processes of one run are
    judged together, all else one by one. Exit code 0 whatever the light.

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
    runs = _runs(sources, store)
    _check_picture(picture, runs, composite=composite)
    if composite:
        _print_composite(runs, as_json=as_json)
        return
    found = _judged(runs, _reference(reference))
    _print_runs(runs, found, as_json=as_json)
    if picture and runs[0].profile is not None:
        write_picture(plot_interference(runs[0].profile, found[0], title=runs[0].name), picture)


def _check(sources: Sequence[str], reference: Sequence[str], *, composite: bool) -> None:
    problems = [
        f"{source} is given {times} times, expected once: however often, it is one run"
        for source, times in Counter(sources).items()
        if times > 1
    ]
    if composite and reference:
        problems.append(
            f"--reference is given ({', '.join(reference)}) with --composite, which compares with "
            "no other run: leave one of both away"
        )
    if problems:
        raise InvalidInput(problems)


def _runs(sources: Sequence[str], store: Path | None) -> list[_Run]:
    """Read runs, those of several processes once all of their profiles are known."""
    runs: list[_Run] = []
    together: dict[tuple[str, str], dict[str, SegmentProfile]] = {}
    for source in sources:
        record = None if Path(source).is_dir() else recorded_run(source, store=store)
        if record is not None:
            runs.append(_Run(name=f"{source}: {record.name}", found=_known(record, source)))
            continue
        profile = _profile(source)
        alike = together.setdefault((profile.program, profile.run or source), {})
        if not alike:
            runs.append(_Run(name="", parts=alike))
        alike[source] = profile
    return [each if each.parts is None else _merged(each.parts) for each in runs]


def _profile(source: str) -> SegmentProfile:
    try:
        return SegmentProfile.load(source)
    except OSError as error:
        raise InvalidInput(f"{source} is no segment profile: {error.strerror}") from error


def _known(record: RunRecord, source: str) -> Interference:
    """Return what a session lost; a record of old has readings that tell it, too."""
    told = (interference_of(each, record.counted_rounds) for each in record.analyses)
    found = record.interference or next((each for each in told if each is not None), None)
    if found is None:
        raise InvalidInput(
            f"{source} tells nothing of interference: no delay was measured, and there is no "
            "stable phase of a duration to estimate from; run it again"
        )
    # Nobody can give a session a reference.
    notices = tuple(each for each in found.notices if each.code is not Code.NO_REFERENCE)
    return replace(found, notices=notices)


def _merged(parts: Mapping[str, SegmentProfile]) -> _Run:
    """Make one run of the profiles of its processes."""
    first = next(iter(parts.values()))
    profile = _together(parts)
    where = next(iter(parts)) if len(parts) == 1 else f"run {first.run}"
    about = [first.program] if first.program else []
    if max(profile.processes, len(parts)) > 1:
        about.append(f"{len(parts)} of {profile.processes} processes")
    name = f"{where}: {', '.join(about)}" if about else where
    return _Run(name=name, source=where, profile=profile)


def _reference(sources: Sequence[str]) -> SegmentProfile | None:
    return _together({each: _profile(each) for each in sources}) if sources else None


def _together(parts: Mapping[str, SegmentProfile]) -> SegmentProfile:
    """Merge profiles of processes."""
    with _naming(list(parts)):
        return stats.merge_processes(parts.values())


@contextmanager
def _naming(files: Sequence[str]) -> Iterator[None]:
    """Let errors name the files of profiles."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(
            re.sub(r"profiles\[(\d+)\]", lambda found: files[int(found[1])], problem)
            for problem in error.problems
        ) from error


def _judged(runs: Sequence[_Run], reference: SegmentProfile | None) -> list[Interference]:
    found = []
    for run in runs:
        if run.profile is not None:
            found.append(stats.profile_interference(run.profile, reference=reference))
        elif reference is not None:
            raise InvalidInput(f"--reference is for segment profiles, found {run.name}")
        elif run.found is not None:
            found.append(run.found)
    return found


def _check_picture(picture: Path | None, runs: Sequence[_Run], *, composite: bool) -> None:
    if picture and (composite or len(runs) > 1 or runs[0].profile is None):
        names = ", ".join(each.name for each in runs) + (", --composite" if composite else "")
        raise InvalidInput(f"--plot draws the segment profile of one run, found {names}")


def _print_runs(runs: Sequence[_Run], found: Sequence[Interference], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": run.name, "total_percent": each.total_percent, **codec.encode(each)}
            for run, each in zip(runs, found, strict=True)
        ]
        print_json({**codec.versions(), "runs": rows})
        return
    texts = (
        render_interference(each, name=run.name) for run, each in zip(runs, found, strict=True)
    )
    _echo("\n\n".join(texts))


def _print_composite(runs: Sequence[_Run], *, as_json: bool) -> None:
    profiles = [each.profile for each in runs if each.profile is not None]
    if len(profiles) < len(runs):
        others = ", ".join(each.name for each in runs if each.profile is None)
        raise InvalidInput(f"--composite is for segment profiles, found {others}")
    with _naming([each.source for each in runs]):
        found = stats.composite_profile(profiles)
    names = [each.name for each in runs]
    if as_json:
        print_json({**codec.versions(), "names": names, **codec.encode(found)})
    else:
        _echo(render_composite(found, name=profiles[0].program, runs=names))


def _echo(text: str) -> None:
    """Print a report, its lights in colour where somebody looks."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console  # noqa: PLC0415  # where nobody looks, nothing is coloured
    from rich.text import Text  # noqa: PLC0415  # likewise

    shown = Text(text)
    for light in Light:
        shown.highlight_regex(f"● {light}", f"bold {light}")
    Console().print(shown, soft_wrap=True)
