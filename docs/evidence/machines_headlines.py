"""The bars of headlines, from the default runs that the machines script recorded.

Runs are taken in the order in which they were made. Each headline is computed anew, by the model
as it is now, with what earlier runs of the recording tell: all of them the full speed of the
machine, and those of the same function the sensitivity and the spread. Its interval should hold
the median of the other runs of that function, whatever they were beside.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from machine import wilson
from machines_runs import Row
from machines_work import DEFAULTS

import benchrigor as br
from benchrigor.session.conditions.pace_of_rounds import full_speed_of, levels_of, with_pace
from benchrigor.session.stored_runs import with_history
from benchrigor.testing import MemoryStore

__all__ = ["DEFAULT_RUNS", "print_headlines"]

DEFAULT_RUNS = "default"
HOLDS, ALONE, AFTER_TEN, SPREAD, OVER_LEAST = 0.93, 0.07, 0.05, 0.04, 0.10
FALSE, FOUND, MORE, PAIRS = 0.02, 0.75, 1.2, 100
LEAST, MOST_KEPT = "empty", 20


class Headline(NamedTuple):
    """A run, and its figure without and with the runs of its function before it."""

    kept: Row
    record: br.RunRecord
    before: int
    alone: br.Estimate
    found: br.Estimate

    @property
    def just_now(self) -> float:
        """What was measured, with all that disturbed it."""
        analysis = self.record.analysis()
        assert analysis is not None
        assert analysis.estimate is not None
        whole = analysis.disturbed.estimate if analysis.disturbed else None
        return (whole or analysis.estimate).value


def print_headlines(setting: Setting, folder: Path, rows: Sequence[Row]) -> None:
    """Print how often headlines hold, how wide they are, and judge them by the bars."""
    headlines = _in_order(folder, [each for each in rows if each["door"] == DEFAULT_RUNS])
    if not headlines:
        print("- nothing recorded")
        return
    functions = {
        name: [each for each in headlines if each.kept["workload"] == name] for name in DEFAULTS
    }
    heading(["function", "runs", "holds", "after others", "± alone", "± now", "sd", "timeit"])
    spreads = []
    for name, mine in functions.items():
        if len(mine) > 2:
            spreads.append(_print_row(name, mine))
    print()
    judge = partial(_judge, setting)
    for what in ("alone", "found"):
        held = [holds for mine in functions.values() for holds in _held(mine, what)]
        low, high = wilson(sum(held), len(held))
        share = statistics.fmean(held)
        text = f"share that holds the median of the others, {_NAMES[what]}"
        judge(f"{text}, of {len(held)} [{low:.3f}, {high:.3f}]", share, HOLDS, least=True)
    judge("median half-width without history", _width(headlines, "alone"), ALONE)
    later = [each for each in headlines if each.before >= 10]
    if later:
        judge(f"the same of {len(later)} after ten runs", _width(later, "found"), AFTER_TEN)
    judge("sd between runs, median of functions", statistics.median(spreads), SPREAD)
    above = sum(each.found.value - each.found.half_width > each.just_now for each in headlines)
    judge("headlines above just now by more than their half-width", float(above), 0.0)
    best = min(each.kept["timeit"] for each in functions[LEAST])
    usual = statistics.median(each.found.value for each in functions[LEAST])
    judge("an empty function over the least of timeit, less 1", usual / best - 1.0, OVER_LEAST)
    _print_stored(setting, functions)


_NAMES = {"alone": "without history", "found": "with the runs before"}


def _judge(setting: Setting, text: str, value: float, bar: float, *, least: bool = False) -> None:
    verdict = setting.verdict(text, value >= bar if least else value <= bar)
    print(f"- {text}: {value:.3g}, at {'least' if least else 'most'} {bar:g}: {verdict}")


def _print_row(name: str, mine: Sequence[Headline]) -> float:
    spread = statistics.stdev(each.found.value for each in mine)
    spread /= statistics.fmean(each.found.value for each in mine)
    held = [f"{sum(_held(mine, what))} of {len(mine)}" for what in _NAMES]
    widths = [f"{100 * _width(mine, what):.2g} %" for what in _NAMES]
    best = min(each.kept["timeit"] for each in mine)
    over = statistics.median(each.found.value for each in mine) / best
    row(name, len(mine), *held, *widths, f"{100 * spread:.2g} %", f"{over:.3f}")
    return spread


def _held(mine: Sequence[Headline], what: str) -> list[bool]:
    """Return whether each interval holds the median of the other runs."""
    values = np.array([getattr(each, what).value for each in mine])
    held = []
    for place, each in enumerate(mine):
        others = float(np.median(np.delete(values, place)))
        found: br.Estimate = getattr(each, what)
        held.append(found.low <= others <= found.high)
    return held


def _width(headlines: Sequence[Headline], what: str) -> float:
    widths = [float(getattr(each, what).relative_half_width) for each in headlines]
    return statistics.median(widths)


def _in_order(folder: Path, rows: Sequence[Row]) -> list[Headline]:
    """Compute headlines in the order of their runs, each with what those before it tell."""
    found: list[Headline] = []
    kept: dict[str, list[tuple[float, float]]] = defaultdict(list)
    stores: dict[str, MemoryStore] = defaultdict(MemoryStore)
    for each in sorted(rows, key=lambda each: float(each["at"])):
        record = _at_full_speed(br.RunRecord.load(folder / each["record"]), kept)
        for kind, level in levels_of(record.counted_rounds).items():
            kept[kind] = [*kept[kind], level][-MOST_KEPT:]
        store = stores[each["workload"]]
        alone, before = record.headline(), len([*store.runs()])
        later = with_history(record, store).headline()
        if alone is None or later is None:
            continue
        found.append(Headline(each, record, before, alone, later))
        store.finish(store.begin(replace(record, rounds=(), analyses=())), record)
    return found


def _at_full_speed(
    record: br.RunRecord, kept: Mapping[str, Sequence[tuple[float, float]]]
) -> br.RunRecord:
    rounds = record.counted_rounds
    full_s = full_speed_of(levels_of(rounds), kept)
    analyses = tuple(
        with_pace(
            replace(analysis, pace=None, at_full_pace=None),
            rounds,
            full_s,
            record.options.statistic,
        )
        for analysis in record.analyses
    )
    return replace(record, analyses=analyses, run_id=None)


def _print_stored(setting: Setting, functions: Mapping[str, Sequence[Headline]]) -> None:
    """Compare pairs of runs of one function: the same code, and readings a fifth longer."""
    rng = random.Random(setting.seed)
    pairs = [pair for mine in functions.values() for pair in combinations(mine, 2)]
    chosen = rng.sample(pairs, min(PAIRS, len(pairs)))
    same = [br.compare_runs(one.record, two.record) for one, two in chosen]
    more = [br.compare_runs(one.record, _longer(two.record)) for one, two in chosen]
    apart = [each.verdict in (br.Verdict.BETTER, br.Verdict.WORSE) for each in same]
    found = [each.verdict is br.Verdict.WORSE for each in more]
    judge = partial(_judge, setting)
    judge(f"stored runs of the same code called different, of {len(same)}", _share(apart), FALSE)
    judge(f"{MORE:g} times the work found, of {len(more)}", _share(found), FOUND, least=True)


def _share(those: Sequence[bool]) -> float:
    return statistics.fmean(map(float, those))


def _longer(record: br.RunRecord) -> br.RunRecord:
    """Return a run whose readings took longer by that factor, at the same references."""
    rounds = tuple(
        replace(
            each,
            unit_readings={name: MORE * values for name, values in each.unit_readings.items()},
        )
        for each in record.rounds
    )
    return replace(record, rounds=rounds)
