"""Searches for a peak from the command line: the load generator, and the output."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from benchrigor.cli.exits import ExitCode, leave
from benchrigor.cli.options import wants_details
from benchrigor.cli.output import print_result, say
from benchrigor.cli.tables import write_picture
from benchrigor.cli.targets import refuse_hidden
from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, InvalidInput, WorkloadFailed
from benchrigor.layout import page, row, wrapped
from benchrigor.model import Code, RunRecord, codec
from benchrigor.model.secret_values import hide_secrets
from benchrigor.model.shell_words import words_of
from benchrigor.model.text import percent, show_duration, show_value
from benchrigor.storage import Journal
from benchrigor.workbench.arithmetic.run_length import plan_runlength
from benchrigor.workbench.data import (
    Limit,
    LoadResult,
    LoadTrial,
    PeakRate,
    PeakStatus,
    Trial,
)
from benchrigor.workbench.loadgen import (
    HostSenders,
    HttpRequest,
    HttpRequests,
    LoadCommand,
    OpenLoop,
)
from benchrigor.workbench.loadgen.overtime import ended_with_budget
from benchrigor.workbench.loadgen.senders import Senders
from benchrigor.workbench.peak_run import PeakRun, search_of
from benchrigor.workbench.picture import plot_peak
from benchrigor.workbench.planning.expected_cost import expected_costs
from benchrigor.workbench.planning.search import PeakSearch
from benchrigor.workbench.pool.host_table import HostTable, executor_for
from benchrigor.workbench.pool.pool import Pool
from benchrigor.workbench.report import explain_peak, peak_lines, show_metric, show_ratio
from benchrigor.workbench.settings import ADAPTIVE, LOADS, SENDING
from benchrigor.workloads import Pick
from benchrigor.workloads.named_functions import imported
from benchrigor.workloads.processes.command_hooks import run_hook
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.time_limits import CallOverran

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOUN = "a search for a peak"
_BUDGET_S = 240.0  # of the policy "adaptive"
PUBLISHED_ACCURACY = 0.10  # of the other ones
_FAILURES_SHOWN = 3
_PILOTS, _LENGTHS = 5, (0.5, 1.0, 2.0)  # trials per length; lengths over the search's own length
_FEWEST_PILOTS = 2  # of one length


def search_options(
    given: Mapping[str, Any], *, load: str, limits: Sequence[Limit], accuracy: float
) -> dict[str, Any]:
    """Return the options of `PeakSearch`: those that are given, and what else its policy wants.

    ``accuracy`` is that of the policy "adaptive".
    """
    is_adaptive = given.get("policy", ADAPTIVE) == ADAPTIVE
    return {
        "accuracy": accuracy if is_adaptive else PUBLISHED_ACCURACY,
        "budget_s": _BUDGET_S if is_adaptive else None,
        "whole": load != "rate",
        "unit": LOADS[load],
        **given,
        "limits": limits,
    }


def peak_of(record: RunRecord) -> PeakRate:
    """Return the result of a stored search, finished or not."""
    search = search_of(record)
    trial = search.ask() if record.decision is not None else None  # None if it ended by itself
    if trial is not None:
        cuts = [notice for notice in record.notices if notice.code is Code.CUT_ROUND]
        search.cut(trial, cuts[-1].sentence if cuts else "The search ended before its last trial.")
    return search.result()


def announce(search: PeakSearch, options: Mapping[str, Any]) -> None:
    """Print the expected cost of a search."""
    expected = expected_costs(options)
    first = search.ask()
    assert first is not None  # noqa: S101  # it has not begun
    trials, seconds = [len(peak.trials) for peak in expected], [peak.cost_s for peak in expected]
    statuses = [peak.status for peak in expected]

    def text() -> str:
        unit, cut = search.unit, statuses.count(None)
        begun = f"{show_value(first.load, unit)} for {first.duration_s:.3g} s"
        n = _span([str(count) for count in sorted(trials)], cut)
        took = _span([show_duration(spent_s) for spent_s in sorted(seconds)], cut)
        peaks = f"peaks of 2 to 100 times {show_value(search.goal.seed_load, unit)}"
        others = Counter(status for status in statuses if status not in (None, PeakStatus.FOUND))
        ended = [f"{n} of {len(statuses)} end {status}" for status, n in others.items()]
        lines = row("first", [f"{begun}, then on to where the limits are no longer kept"])
        lines += row("expected", [f"{n} trials, {took}: simulated with {peaks}", *ended])
        return page(lines)

    print_result(text, first=first, trials=trials, seconds=seconds, statuses=statuses)


def plan_lengths(search: PeakSearch, generator: Prepared, *, budget_s: float | None) -> None:
    """Run pilot trials of several lengths at the first load, and print the costs by length."""
    first = search.ask()
    assert first is not None  # noqa: S101  # it has not begun
    lengths = [first.duration_s * times for times in _LENGTHS] * _PILOTS
    load = show_value(first.load, search.unit)
    planned = f"{len(lengths)} trials at {load}, {show_duration(sum(lengths))} in all"
    if budget_s is not None and sum(lengths) > budget_s:
        raise InvalidInput(f"--budget is {budget_s:g} s, and --plan takes {planned}: allow more")
    say(planned, err=True)
    generator.check()
    try:
        for number, seconds in enumerate(lengths):
            pilot = replace(first, id=number, duration_s=seconds, reason="pilot")
            search.recall(pilot, generator.offer(pilot))
    finally:
        generator.close()
    trials = search.result().trials
    why = _why_left_out(trials)
    valid = [trial for trial in trials if trial.counts and not trial.result.crashed]
    pilots = {
        seconds: [trial.ratio or 0.0 for trial in valid if trial.asked.duration_s == seconds]
        for seconds in lengths
    }
    if min(map(len, pilots.values())) < _FEWEST_PILOTS:
        raise InvalidInput(f"too few trials at {load} tell anything: {reason}" for reason in why)
    if why:
        say(f"{len(trials) - len(valid)} of them left out: {'; '.join(why)}", err=True)
    if not any(trial.ratio for trial in valid):
        raise InvalidInput(
            f"nothing that is limited differs from 0 at {load}, expected responses that vary: give "
            "--mean or --p95, or a greater --seed-load"
        )
    setup_s = max(0.0, sum(trial.cost_s for trial in trials) - sum(lengths)) / len(trials)
    wanted = {"accuracy": search.goal.accuracy, "confidence": search.goal.confidence}
    plan = plan_runlength(pilots, **wanted, setup_s=setup_s)
    accuracy, confidence = map(percent, wanted.values())
    said = f"the response at {load} within {accuracy} at {confidence}; near the peak it takes more"
    print_result(
        lambda: page([*str(plan).splitlines(), said]),
        **{**wanted, "load": first.load, "setup_s": setup_s, **asdict(plan)},
    )


def _why_left_out(trials: Sequence[Trial]) -> list[str]:
    """Return why trials do not count, once per remedy."""
    said = [trial.invalid or "the server broke down" * trial.result.crashed for trial in trials]
    first = {why.partition(": ")[2]: why for why in reversed(said) if why}
    alike = Counter(why.partition(": ")[2] for why in said if why)
    return [
        f"{why} (and {alike[cure] - 1} more alike)" if alike[cure] > 1 else why
        for cure, why in sorted(first.items())
    ]


def _span(ascending: Sequence[str], cut: int) -> str:
    """Show the range; if searches were cut off, as more than the greatest."""
    least, most = ascending[0], ascending[-1]
    if cut:
        return f"{f'{least} to ' if cut < len(ascending) else ''}more than {most}"
    return least if least == most else f"{least} to {most}"


def carry_out(
    run: PeakRun,
    search: PeakSearch,
    generator: Prepared,
    *,
    accuracy_given: bool,
) -> NoReturn:
    """Carry out a search, with a line per trial on stderr, and end with its exit code."""
    try:
        found = find_peak(run, generator, after=partial(say_trial, budget_s=search.goal.budget_s))
    except (BenchrigorError, KeyboardInterrupt):
        if search.result().trials:  # print the result so far
            print_peak(search.result(), run_id=run.kept.run_id)
        raise
    print_peak(found, run_id=run.kept.run_id)
    write_picture(lambda: plot_peak(found, title=run.record().name))
    leave(_code(found, accuracy_given=accuracy_given))


def find_peak(
    run: PeakRun, generator: Prepared, *, after: Callable[[Trial, PeakRate], object]
) -> PeakRate:
    """Carry out a search; the preparation of its first trial counts for the budget, too."""
    begun_s = time.monotonic()
    try:
        with ended_with_budget(run.left_s()):
            generator.check()
        prepared_s = time.monotonic() - begun_s
        return run.carry_out(generator, after=after, prepared_s=prepared_s)
    except CallOverran:
        raise WorkloadFailed(
            f"The first trial was not prepared, nor a request answered, within the "
            f"{show_duration(run.left_s())} of the budget: check that it cannot hang, or allow more"
        ) from None
    finally:
        generator.close()


def show(record: RunRecord) -> None:
    """Print the report of a stored search."""
    print_peak(peak_of(record), run_id=record.run_id)


def draw(record: RunRecord) -> Axes:
    """Draw the trials of a stored search."""
    return plot_peak(peak_of(record), title=record.name)


def explain(record: RunRecord) -> None:
    """Print how a stored search reached its result."""
    found = peak_of(record)
    print_result(
        lambda: explain_peak(found, record.name),
        run_id=record.run_id,
        name=record.name,
        peak=codec.encode(found),
    )


def resume(record: RunRecord, store: Journal, budget: Mapping[str, float | None]) -> NoReturn:
    """Resume a stored search, with a new budget for all of it if one is given."""
    search = search_of(record, **budget)
    accuracy_given = record.subject["generator"].get("accuracy_given", False)
    if record.decision is not None and not budget:  # it is over: no server is needed
        print_peak(peak_of(record), run_id=record.run_id)
        leave(_code(peak_of(record), accuracy_given=accuracy_given))
    refuse_hidden(record)
    generator = generator_of(record.subject["generator"], search.limits)
    run = PeakRun.resumed(search, record, store)
    carry_out(run, search, generator, accuracy_given=accuracy_given)


def print_peak(found: PeakRate, *, run_id: str | None) -> None:
    """Print the report of a search, or its fields as JSON."""
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    if found.load is not None and found.load.is_bracket:
        fields["load"] = {**codec.encode(found.load), "confidence": None}
    print_result(
        lambda: page(peak_lines(found, whole=wants_details())),
        next_verb="explain",
        run_id=run_id,
        **fields,
    )


def _code(found: PeakRate, *, accuracy_given: bool) -> ExitCode:
    cut_short = (PeakStatus.BUDGET_SPENT, PeakStatus.FAILED)
    if found.status in cut_short and found.load is not None:
        return ExitCode.TARGET_MISSED if accuracy_given else ExitCode.RESULT
    bounded = (PeakStatus.NOT_SATURATED, PeakStatus.SATURATED_AT_LOWEST)
    known = found.load is not None or (found.status in bounded and found.at_least != found.at_most)
    return ExitCode.RESULT if known else ExitCode.NOTHING_MEASURED


def say_trial(
    trial: Trial, peak: PeakRate, *, budget_s: float | None = None, indent: int = 0
) -> None:
    """Print the result of a trial, and the peak so far, on stderr."""
    if trial.invalid:
        why, _, _cure = trial.invalid.partition(": ")  # the remedy is printed below the result
        verdict = f"invalid: {why}"
    elif trial.result.crashed:
        verdict = "broke down"
    else:
        ratio = trial.ratio or 0.0
        verdict = f"{show_metric(trial.binding)} {show_ratio(ratio)} of its limit: "
        verdict += "saturated" if ratio >= 1.0 else "kept"
        most = sorted(trial.result.failures.items(), key=lambda pair: -pair[1])[:_FAILURES_SHOWN]
        failures = ", ".join(f"{n} {what}" for what, n in most)
        verdict += f" ({failures})" if failures else ""
    parts = [f"{show_value(trial.asked.load, peak.unit)}", verdict]
    if peak.load is not None:
        parts.append(f"peak {peak.load.low:.3g} to {peak.load.high:.3g}")
    if budget_s is not None and peak.status is None:
        left_s = budget_s - peak.cost_s
        parts += [f"{show_duration(left_s)} left"] if left_s > 0.0 else []
    say(page(wrapped(" · ".join(parts), " " * indent, hanging=indent + 2)), err=True)


class Prepared:
    """A load generator with commands before a trial, and after a crash of the server."""

    def __init__(
        self,
        generator: OpenLoop | LoadCommand,
        *,
        prepare: Callable[[], object],
        recover: Callable[[], object],
    ) -> None:
        self._generator, self._prepare, self._recover = generator, prepare, recover
        self._broken: BenchrigorError | None = None  # why the server did not recover
        self._checked_s: float | None = None  # duration of the check, which prepares a first trial

    def check(self) -> None:
        """Prepare the first trial, and check that the server answers."""
        begun_s = time.monotonic()
        self._prepare()
        self._generator.check()
        self._checked_s = time.monotonic() - begun_s

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Prepare, carry out the trial, and recover.

        If the server does not recover, the next trial fails: this one shows the breaking load.
        """
        if self._broken is not None:
            raise self._broken
        setup_s, self._checked_s = self._checked_s, None
        if setup_s is None:
            begun_s = time.monotonic()
            self._prepare()
            setup_s = time.monotonic() - begun_s
        result = self._generator.offer(trial)
        begun_s = time.monotonic()
        if result.crashed:
            try:
                self._recover()
                self._generator.check()
            except BenchrigorError as error:
                self._broken = error
            except CallOverran:
                self._broken = WorkloadFailed(
                    "The server had not recovered by the end of the budget"
                )
        spent_s = {"set-up": setup_s, **result.spent_s}
        spent_s["teardown"] = spent_s.get("teardown", 0.0) + time.monotonic() - begun_s
        return replace(result, spent_s=spent_s)

    def close(self) -> None:
        """Release the generator."""
        self._generator.close()


def _pool(described: Mapping[str, Any]) -> Pool:
    """Return the sending hosts, held for the search; a resumed one can take them at once."""
    executor = executor_for(HostTable(**described["hosts"]))
    return Pool(executor, owner=described["owner"], timed=True)


def _hook(command: str | None, option: str, cwd: str | None) -> Callable[[], object]:
    """Return what runs a command that is given as a text."""
    if command is None:
        return lambda: None
    words = words_of(command, f"{option} {hide_secrets(command)!r}")
    return partial(run_hook, option, words, CommandLine(words, cwd=cwd), WallClock())


def generator_of(
    described: Mapping[str, Any],
    limits: Sequence[Limit],
    *,
    cwd: str | None = None,
    recover: Callable[[], object] | None = None,
    senders: Senders | None = None,
) -> Prepared:
    """Return the load generator that `peak` describes; ``recover`` replaces its command.

    Commands run in ``cwd``, or in the folder of the description; ``senders`` replace its own.
    """
    cwd = cwd or described.get("cwd")
    is_rate = described["load"] == "rate"
    made: OpenLoop | LoadCommand
    if described["kind"] == "command":
        picks = [Pick.parse(pick) for pick in described["read"]]
        made = LoadCommand(described["words"], picks, limits=limits, is_rate=is_rate, cwd=cwd)
    else:
        requests: Any
        if described["kind"] == "target":
            requests = imported(described["words"][0], described["cwd"])
        else:
            kinds = [HttpRequest(**request) for request in described["requests"]]
            requests = HttpRequests(kinds=kinds)
        made = OpenLoop(
            requests,
            limits,
            senders=HostSenders(partial(_pool, described)) if described.get("hosts") else senders,
            **{name: described[name] for name in SENDING},
        )
    return Prepared(
        made,
        prepare=_hook(described["prepare"], "--prepare", cwd),
        recover=recover or _hook(described["recover"], "--recover", cwd),
    )
