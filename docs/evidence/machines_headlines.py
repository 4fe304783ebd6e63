"""The bars of headlines, from what the machines script recorded.

Runs are taken in the order in which they were made. Each headline is computed anew, by the model
as it is now, with what earlier runs of the recording tell: the quiet pace of all, and the spread of
those of the same work, of each ten minutes one. Its interval should hold the level of the other
runs of that work over all conditions: the mean of their log headlines, at the quiet pace of this
one.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from coverage_tables import Setting, heading, row
from machine import wilson
from machines_runs import CONDITIONS, Row
from machines_work import INTERPRETER, UNITS

import benchrigor as br
from benchrigor.model.pace import reference_s
from benchrigor.session.conditions.pace_of_rounds import delay_of, quiet_medians, with_pace
from benchrigor.stats.estimators.headline import (
    MOST_DELAY,
    Told,
    one_of_each_cluster,
    quiet_of_runs,
    spread_of,
    with_spread,
)

__all__ = ["print_headlines"]

HOLDS, WIDTH, DISJOINT, USED = 0.90, 1.25, 0.05, 10
DOORS = ("run", "run, fresh")
HALF_WIDTHS = {("quiet", False): 0.04, ("busy", False): 0.08, ("quiet", True): 0.03}
HALF_WIDTHS |= {("busy", True): 0.05}
"""The largest median, by the state of the machine, and with ten runs before or with none."""


class Headline(NamedTuple):
    """A run, and its headline without and with the runs of its work before it."""

    work: tuple[str, str]
    condition: str
    began_s: float
    quiet_s: float
    sensitivity: float
    is_quiet: bool
    before: int
    alone: br.Estimate
    found: br.Estimate

    @property
    def log_value(self) -> float:
        """The logarithm of its value."""
        return math.log(self.found.value)

    def log_at(self, quiet_s: float) -> float:
        """Return that at another quiet pace."""
        return self.log_value + self.sensitivity * math.log(quiet_s / self.quiet_s)


def print_headlines(setting: Setting, folder: Path, rows: Sequence[Row]) -> None:
    """Print how often headlines hold, how wide they are, and judge them by the bars."""
    mine = [each for each in rows if each["door"] in DOORS and each["units"] == UNITS]
    headlines = _in_order(folder, mine)
    shares, widths = [], []
    heading(
        ["door", "work", "beside", "runs", "holds the level", "± now", "± alone", "sd", "width"]
    )
    for work in sorted({each.work for each in headlines}):
        of_work = [each for each in headlines if each.work == work]
        held = [_holds(each, of_work) for each in of_work]
        sd = _sd(of_work)
        for condition in (*CONDITIONS, "all"):
            chosen = [
                (one, holds)
                for one, holds in zip(of_work, held, strict=True)
                if condition in (one.condition, "all") and holds is not None
            ]
            if chosen:
                _print_row(work, condition, chosen, sd)
        shares += [holds for holds in held if holds is not None]
        widths += [_width(each, sd) for each in of_work if sd]
    print()
    _judge(setting, headlines, shares, widths)


def _print_row(
    work: tuple[str, str], condition: str, chosen: Sequence[tuple[Headline, bool]], sd: float
) -> None:
    count, held = len(chosen), sum(holds for _, holds in chosen)
    low, high = wilson(held, count)
    now, alone = (
        statistics.median(getattr(one, name).relative_half_width for one, _ in chosen)
        for name in ("found", "alone")
    )
    width = statistics.median(_width(one, sd) for one, _ in chosen) if sd else math.nan
    share = f"{held / count:.3f} [{low:.2f}, {high:.2f}]"
    shown = (f"{100 * each:.2g} %" for each in (now, alone, sd))
    row(*work, condition, count, share, *shown, f"{width:.2f}")


def _judge(
    setting: Setting, headlines: Sequence[Headline], shares: Sequence[bool], widths: list[float]
) -> None:
    if not shares:
        print("- nothing recorded")
        return
    share, width = statistics.fmean(shares), statistics.median(widths)
    text = f"headlines that hold the level of the others: {sum(shares)} of {len(shares)}"
    print(f"- {text}, {share:.3f}, at least {HOLDS}: {setting.verdict(text, share >= HOLDS)}")
    text = "median width over that of an oracle"
    print(f"- {text}: {width:.2f}, at most {WIDTH}: {setting.verdict(text, width <= WIDTH)}")
    pairs = [(a, b) for a, b in combinations(headlines, 2) if a.work == b.work]
    apart = sum(_are_disjoint(*pair) for pair in pairs) / max(len(pairs), 1)
    text = f"disjoint of {len(pairs)} pairs"
    print(f"- {text}: {apart:.3f}, at most {DISJOINT}: {setting.verdict(text, apart <= DISJOINT)}")
    for (state, is_used), most in HALF_WIDTHS.items():
        found = [
            (each.found if is_used else each.alone).relative_half_width
            for each in headlines
            if each.work[1] in INTERPRETER
            and each.is_quiet == (state == "quiet")
            and (not is_used or each.before >= USED)
        ]
        text = f"half-width, {state}, {'after ten runs' if is_used else 'without history'}"
        if not found:
            print(f"- {text}: nothing recorded (at most {100 * most:g} %)")
            continue
        middle = statistics.median(found)
        verdict = setting.verdict(text, middle <= most)
        print(f"- {text}: {100 * middle:.2g} % of {len(found)}, at most {100 * most:g}: {verdict}")


def _holds(one: Headline, of_work: Iterable[Headline]) -> bool | None:
    """Return whether an interval holds the level of the other runs; None without two others."""
    others = [each.log_at(one.quiet_s) for each in of_work if each is not one]
    if len(others) < 2:
        return None
    return one.found.low <= math.exp(statistics.fmean(others)) <= one.found.high


def _sd(of_work: Sequence[Headline]) -> float:
    if len(of_work) < 3:
        return 0.0
    return statistics.stdev(each.log_at(of_work[0].quiet_s) for each in of_work)


def _width(one: Headline, sd: float) -> float:
    """Return the half-width over what is needed by who knows the spread between these runs."""
    return one.found.relative_half_width / (1.96 * sd)


def _are_disjoint(one: Headline, two: Headline) -> bool:
    ratio = math.exp(two.log_at(one.quiet_s) - two.log_value)
    return two.found.low * ratio > one.found.high or two.found.high * ratio < one.found.low


def _in_order(folder: Path, rows: Sequence[Row]) -> list[Headline]:
    """Compute headlines in the order of their runs, each with what those before it tell."""
    found: list[Headline] = []
    medians: dict[str, list[float]] = defaultdict(list)
    for kept in sorted(rows, key=lambda kept: float(kept["at"])):
        record = br.RunRecord.load(folder / kept["record"])
        headline = _headline(kept, record, medians, found)
        for kind, median in quiet_medians(record.rounds, {}).items():
            medians[kind].append(median)
        if headline is not None:
            found.append(headline)
    return found


def _headline(
    kept: Row,
    record: br.RunRecord,
    medians: Mapping[str, Sequence[float]],
    earlier: Sequence[Headline],
) -> Headline | None:
    analysis, where = record.analysis(), record.provenance
    if analysis is None or analysis.pace is None or where is None:
        return None
    rounds, full_s = record.counted_rounds, analysis.pace.full_s
    quiet = quiet_of_runs(medians)
    found = with_pace(analysis, rounds, full_s, record.options.statistic, quiet=quiet)
    if found.pace is None or found.pace.quiet is None or found.headline is None:
        return None
    alone, quiet_s = found.headline, reference_s(found.pace.quiet.seconds)
    work = (kept["door"], kept["workload"])
    like = [each for each in earlier if each.work == work]
    apart = [like[index] for index in one_of_each_cluster([each.began_s for each in like])]
    told = [
        Told(each.log_at(quiet_s), ((each.alone.standard_error or 0.0) / each.alone.value) ** 2)
        for each in apart
    ]
    return Headline(
        work=work,
        condition=kept["condition"],
        began_s=datetime.fromisoformat(where.started_at).timestamp(),
        quiet_s=quiet_s,
        sensitivity=found.pace.sensitivity,
        is_quiet=delay_of(rounds) < MOST_DELAY,
        before=len(apart),
        alone=alone,
        found=with_spread(alone, spread_of([told])),
    )
