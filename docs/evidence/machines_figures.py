"""The bars of the machines script, from what is recorded.

Every run is taken to the best full speed of the recording, by the model as it is now: a recording
also judges a model that is newer. The level of a run is that of the others of its workload, with
as many units, over all conditions: their mean. The spread is the standard deviation of the
logarithm over all conditions; the robust one 1.4826 times the median distance from the median. A
run without a figure does not hold the level.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from coverage_tables import Setting, heading, row
from machine import describe, wilson
from machines_headlines import DEFAULT_RUNS, print_headlines
from machines_recording import SETTING, kept_rows
from machines_runs import CONDITIONS, DOORS, Row
from machines_work import INTERPRETER, PLANTED, UNITS, WORKLOADS

import benchrigor as br
from benchrigor.session.conditions.pace_of_rounds import with_pace

__all__ = ["evaluate"]

ALIKE = 0.03  # paces within so much are the same
FEWEST_OTHERS = 2
PAIRS = 100
RIVALS = ("wall mean", "timeit", "pyperf", "pytest-benchmark")
MOST_SPREAD = 0.4
ALL = "interpreter-bound"


class Run(NamedTuple):
    """A recorded run of benchrigor, with its figure at the best full pace."""

    row: Row
    pace: float | None
    at_full: br.Estimate | None

    @property
    def kind(self) -> tuple[str, int]:
        """Runs of one kind do the same work."""
        return self.row["workload"], self.row["units"]


class Held(NamedTuple):
    """Whether an interval holds its level, and how wide it is; None without a figure."""

    holds: bool
    half_width: float | None


def evaluate(folder: Path, seed: int) -> int:
    """Print all tables with their bars; return 0."""
    rows, setting = kept_rows(folder), Setting(seed=seed)
    known = json.loads((folder / SETTING).read_text(encoding="utf-8"))
    print(f"Recorded on: {known['machine']}; runs of {known['seconds']:g} s, seed {known['seed']}.")
    print(f"Evaluated on: {describe()}.")
    doors = Counter(
        (each["door"], each["cell"], each["condition"], each["number"]) for each in rows
    )
    for name, count in Counter(door for door, *_ in doors).items():
        print(f"- {name}: {count} processes")
    parts: dict[str, Callable[[], None]] = {
        "Headlines": lambda: print_headlines(setting, folder, rows)
    }
    others = [each for each in rows if each["door"] != DEFAULT_RUNS]
    if others:
        for name in DOORS:
            if not any(door == name for door, *_ in doors):
                print(f"- {name}: not recorded")
        runs = _runs(folder, others)
        parts |= {
            "At full speed": lambda: _at_full(setting, runs),
            "Spread between runs": lambda: _spreads(setting, runs, others),
            "The time measured here": lambda: _here(setting, runs),
            "Stored runs compared": lambda: _stored(setting, folder, runs),
            "Pairs measured in turn": lambda: _in_turn(setting, others),
        }
    for title, part in parts.items():
        print(f"\n## {title}\n", flush=True)
        part()
    print(f"\n{setting.bars} bars, {len(setting.missed)} missed.")
    for each in setting.missed:
        print(f"* {each}")
    return 0


def _runs(folder: Path, rows: Sequence[Row]) -> list[Run]:
    """Take every run to the best full speed that any of them knows."""
    own = [each for each in rows if "record" in each]
    best: dict[str, float] = {}
    for each in own:
        for kind, seconds in (each["full_s"] or {}).items():
            best[kind] = min(seconds, best.get(kind, math.inf))
    return [_at_best(folder, each, best) for each in own]


def _at_best(folder: Path, kept: Row, best: Mapping[str, float]) -> Run:
    record = br.RunRecord.load(folder / kept["record"])
    rounds, statistic = record.counted_rounds, record.options.statistic
    analysis = record.analysis()
    assert analysis is not None
    found = with_pace(analysis, rounds, best, statistic)
    return Run(kept, None if found.pace is None else found.pace.mean, found.at_full_pace)


# --- intervals that hold a level


def _at_full(setting: Setting, runs: Sequence[Run]) -> None:
    """Print how many intervals at full pace hold the level of the other runs."""
    for door, least, widest in (("run", 0.90, 0.10), ("pieces", 0.92, 0.07)):
        mine = [each for each in runs if each.row["door"].startswith(door)]
        held = _held(mine, _level_of_kind)
        print(f"{'In six pieces' if door == 'pieces' else 'Single runs'}:\n")
        columns = ["workload", "runs", "holds the level", "median half-width", "unlike reference"]
        heading(columns)
        for name in WORKLOADS:
            _print_held(name, [each for each in held if each[0].row["workload"] == name])
        whole = [each for each in held if each[0].row["workload"] in INTERPRETER]
        _print_held(ALL, whole)
        shares, text = [each for _, each in whole], f"{door} at full pace"
        _judge_share(setting, f"{text}: share that holds the level", _counted(shares), least)
        _judge_width(setting, text, shares, widest)
        print()


def _held(
    runs: Sequence[Run], level: Callable[[Run, Sequence[Run]], float | None]
) -> list[tuple[Run, Held]]:
    """Compare each run at full pace with a level; without one it is left out."""
    found = []
    for each in runs:
        expected = level(each, runs)
        if expected is not None:
            found.append((each, _compared(each.at_full, expected)))
    return found


def _compared(estimate: br.Estimate | None, level: float) -> Held:
    if estimate is None:
        return Held(holds=False, half_width=None)
    return Held(estimate.low <= level <= estimate.high, estimate.relative_half_width)


def _level_of_kind(run: Run, runs: Sequence[Run]) -> float | None:
    """Return the mean of the other runs of its kind, over all conditions."""
    others = [
        each.at_full.value
        for each in runs
        if each is not run and each.kind == run.kind and each.at_full is not None
    ]
    return statistics.fmean(others) if len(others) >= FEWEST_OTHERS else None


def _print_held(name: str, held: Sequence[tuple[Run, Held]]) -> None:
    if not held:
        row(name, 0, "-", "-", "-")
        return
    unlike = sum(bool(run.at_full and run.at_full.notices) for run, _ in held)
    shares = [each for _, each in held]
    row(name, len(held), _share(*_counted(shares)), _width(shares), f"{unlike} of {len(held)}")


def _counted(held: Sequence[Held]) -> tuple[int, int]:
    return sum(each.holds for each in held), len(held)


def _share(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}]"


def _middle(held: Iterable[Held]) -> float:
    """Return the median half-width; a run without a figure has an infinite one."""
    widths = [math.inf if each.half_width is None else each.half_width for each in held]
    return statistics.median(widths) if widths else math.nan


def _width(held: Sequence[Held]) -> str:
    return f"{100.0 * _middle(held):.2g} %" if held else "-"


def _judge_share(
    setting: Setting, text: str, counts: tuple[int, int], least: float, most: float = 1.0
) -> None:
    """Judge a share by its Wilson interval, and say where the share itself falls short."""
    bar = f"at most {most:g}" if most < 1.0 else f"at least {least:g}"
    hits, trials = counts
    if not trials:
        print(f"- {text}: nothing recorded ({bar})")
        return
    low, high = wilson(hits, trials)
    verdict = setting.verdict(text, low <= most and high >= least)
    itself = least <= hits / trials <= most
    beside = "" if itself or verdict != "met" else ", by its interval"
    print(f"- {text}: {hits} of {trials}, {_share(hits, trials)}, {bar}: {verdict}{beside}")


def _judge_width(setting: Setting, text: str, held: Sequence[Held], most: float) -> None:
    if held:
        verdict = setting.verdict(f"{text}: half-width", _middle(held) <= most)
        print(f"- {text}: median half-width {_width(held)}, at most {100 * most:g}: {verdict}")


# --- spread


def _spreads(setting: Setting, runs: Sequence[Run], rows: Sequence[Row]) -> None:
    """Print how far the figures of runs of the same work differ, by figure and workload."""
    figures = _figures(runs, rows)
    heading(["sd of ln, % (robust)", *figures])
    for name in WORKLOADS:
        row(name, *(_spread_cell(each.get(name, [])) for each in figures.values()))
    pooled = {name: _pooled(each) for name, each in figures.items()}
    row(ALL, *(_spread_cell(each) for each in pooled.values()))
    print()
    own = _spread(pooled["at full pace"])
    for rival in RIVALS:
        theirs = _spread(pooled[rival])
        if own is None or theirs is None:
            print(f"- at full pace over {rival}: nothing recorded (at most {MOST_SPREAD:g})")
            continue
        plain, robust = own[0] / theirs[0], own[1] / theirs[1]
        verdict = setting.verdict(f"spread over that of {rival}", plain <= MOST_SPREAD)
        text = f"{plain:.2f} (robust {robust:.2f}), at most {MOST_SPREAD:g}: {verdict}"
        print(f"- at full pace over {rival}: {text}")


def _figures(runs: Sequence[Run], rows: Sequence[Row]) -> dict[str, dict[str, list[float]]]:
    """Gather the figures of the same work, by name of the figure and by workload."""
    found: dict[str, dict[str, list[float]]] = {
        name: {} for name in ("at full pace", "in pieces", "headline", *RIVALS)
    }

    def add(figure: str, workload: str, value: float | None) -> None:
        if value is not None:
            found[figure].setdefault(workload, []).append(value)

    for each in runs:
        kept, at_full = each.row, None if each.at_full is None else each.at_full.value
        if kept["units"] != UNITS:
            continue
        if kept["door"] == "pieces":
            add("in pieces", kept["workload"], at_full)
            continue
        add("at full pace", kept["workload"], at_full)
        add("headline", kept["workload"], (kept["estimate"] or [None])[0])
        add("wall mean", kept["workload"], kept["wall mean"])
    for kept in rows:
        if kept["door"] in RIVALS:
            add(kept["door"], kept["workload"], kept["value"])
    return found


def _pooled(by_workload: Mapping[str, Sequence[float]]) -> list[float]:
    """Put the interpreter-bound workloads together, each relative to its own level."""
    return [
        value / math.exp(statistics.fmean(map(math.log, values)))
        for name, values in by_workload.items()
        if name in INTERPRETER and len(values) > 1
        for value in values
    ]


def _spread(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the plain and the robust standard deviation of the logarithm."""
    if len(values) < 3:
        return None
    logs = np.log(values)
    return float(logs.std(ddof=1)), 1.4826 * float(np.median(np.abs(logs - np.median(logs))))


def _spread_cell(values: Sequence[float]) -> str:
    spread = _spread(values)
    return "-" if spread is None else f"{100 * spread[0]:.2g} ({100 * spread[1]:.2g})"


# --- the time measured here


def _here(setting: Setting, runs: Sequence[Run]) -> None:
    """Print how many headlines hold the level of the other runs beside the same neighbours."""
    mine = [each for each in runs if each.row["door"] == "run"]
    whole: list[Held] = []
    heading(["beside", "all runs", "half-width", f"pace within {100 * ALIKE:g} %", "half-width"])
    for condition in CONDITIONS:
        beside = [
            each
            for each in mine
            if each.row["condition"] == condition and each.row["workload"] in INTERPRETER
        ]
        every, kept = (_headlines(beside, alike=each) for each in (False, True))
        whole += kept
        row(condition, *(cell for each in (every, kept) for cell in _shown(each)))
    print()
    text = "time measured here, pace kept: share that holds the level"
    _judge_share(setting, text, _counted(whole), 0.80)


def _shown(held: Sequence[Held]) -> tuple[str, str]:
    return (_share(*_counted(held)) if held else "-", _width(held))


def _headlines(runs: Sequence[Run], *, alike: bool) -> list[Held]:
    """Compare headlines with the mean of the others of their workload, of like pace if asked."""
    found = []
    for each in runs:
        others = [
            other.row["estimate"][0]
            for other in runs
            if other is not each
            and other.kind == each.kind
            and other.row["estimate"]
            and (not alike or _same_pace(each, other))
        ]
        if len(others) >= FEWEST_OTHERS:
            found.append(_of_row(each.row["estimate"], statistics.fmean(others)))
    return found


def _same_pace(one: Run, two: Run) -> bool:
    if one.pace is None or two.pace is None:
        return False
    return abs(math.log(one.pace / two.pace)) <= ALIKE


def _of_row(estimate: Sequence[float] | None, level: float) -> Held:
    if estimate is None:
        return Held(holds=False, half_width=None)
    value, low, high = estimate
    return Held(low <= level <= high, (high - low) / 2.0 / value)


# --- comparisons


def _stored(setting: Setting, folder: Path, runs: Sequence[Run]) -> None:
    """Print the verdicts on pairs of stored runs, over all conditions."""

    @lru_cache(maxsize=200)
    def load(path: str) -> br.RunRecord:
        return br.RunRecord.load(folder / path)

    heading(["runs", "more work", "workloads", "pairs", "better", "worse", "no verdict", "± ratio"])
    others = tuple(name for name in WORKLOADS if name not in INTERPRETER)
    table = [
        ("run", UNITS, INTERPRETER, 0.07),
        ("run", UNITS, others, None),
        ("run", PLANTED["20 %"], INTERPRETER, 0.75),
        ("pieces", UNITS, INTERPRETER, 0.05),
        ("pieces", UNITS, others, None),
        ("pieces", PLANTED["10 %"], INTERPRETER, 0.75),
    ]
    bars = []
    for number, (door, units, names, bar) in enumerate(table):
        rng = random.Random(1_000 * setting.seed + number)
        pairs = _drawn(rng, [each for each in runs if each.row["workload"] in names], door, units)
        verdicts, widths = _verdicts(pairs, load)
        more = f"{100 * units / UNITS - 100:.0f} %"
        row(door, more, ", ".join(names), *_counts(verdicts), _middle_of(widths))
        if bar is not None:
            bars.append((f"{door}, {more} more", verdicts, units != UNITS, bar))
    print()
    for text, verdicts, planted, bar in bars:
        _judge_verdicts(setting, f"stored runs, {text}", verdicts, bar, planted=planted)


def _drawn(rng: random.Random, runs: Sequence[Run], door: str, units: int) -> list[tuple[Run, Run]]:
    """Draw distinct pairs of the same workload, of different processes, over all conditions."""
    mine = [each for each in runs if each.row["door"].startswith(door)]
    baselines = [each for each in mine if each.row["units"] == UNITS]
    candidates = [each for each in mine if each.row["units"] == units]
    possible = [
        (one, two)
        for one in baselines
        for two in candidates
        if one.row["workload"] == two.row["workload"] and one.row["at"] != two.row["at"]
    ]
    return rng.sample(possible, min(PAIRS, len(possible)))


def _verdicts(
    pairs: Iterable[tuple[Run, Run]], load: Callable[[str], br.RunRecord]
) -> tuple[list[str], list[float]]:
    """Return verdicts, and half-widths of the ratio in so far as there is one."""
    verdicts, widths = [], []
    for sides in pairs:
        try:
            found = br.compare_runs(*(load(each.row["record"]) for each in sides))
        except br.NotEstimable:
            verdicts.append("no number")
            continue
        verdicts.append(str(found.verdict))
        if found.ratio is not None:
            widths.append(found.ratio.relative_half_width)
    return verdicts, widths


def _counts(verdicts: Sequence[str]) -> tuple[int, int, int, int]:
    known = Counter(verdicts)
    open_ = known["undecided"] + known["no number"]
    return len(verdicts), known["better"], known["worse"], open_


def _middle_of(widths: Sequence[float]) -> str:
    return f"{100 * statistics.median(widths):.2g} %" if widths else "-"


def _judge_verdicts(
    setting: Setting, text: str, verdicts: Sequence[str], bar: float, *, planted: bool
) -> None:
    """Judge how many are found, or called different although they are not."""
    known = Counter(verdicts)
    if planted:
        _judge_share(setting, f"{text}: found", (known["worse"], len(verdicts)), bar)
    else:
        false = known["better"] + known["worse"]
        _judge_share(setting, f"{text}: false", (false, len(verdicts)), 0.0, most=bar)


def _in_turn(setting: Setting, rows: Sequence[Row]) -> None:
    """Print the verdicts of pairs that were measured in turn."""
    found: dict[tuple[str, str], list[Row]] = {}
    for each in rows:
        if each["door"].startswith("pair"):
            found.setdefault((each["door"], each["condition"]), []).append(each)
    heading(["pair", "beside", "pairs", "better", "worse", "no verdict", "± ratio"])
    for (door, condition), cell in sorted(found.items()):
        widths = [(high - low) / 2.0 / value for value, low, high in _ratios(cell)]
        row(door, condition, *_counts([each["verdict"] for each in cell]), _middle_of(widths))
    print()

    def judge(door: str, bar: float, *conditions: str) -> None:
        verdicts = [
            each["verdict"]
            for (name, condition), cell in found.items()
            if name == door and condition in (conditions or CONDITIONS)
            for each in cell
        ]
        where = f" ({', '.join(conditions)})" if conditions else ""
        _judge_verdicts(setting, f"{door}{where}", verdicts, bar, planted=door != "pair")

    judge("pair", 0.05)
    judge("pair, 5 % more", 0.90, "idle")
    judge("pair, 5 % more", 0.70, "two hogs")
    judge("pair, twice", 0.98)


def _ratios(cell: Iterable[Row]) -> list[Sequence[float]]:
    return [each["ratio"] for each in cell if each["ratio"]]
