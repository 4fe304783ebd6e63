"""The codes of Notices: how much each matters, its sentences, and the advice of a page.

Each code is a text: the code itself, sentences after marks, and advice after ``>``. The marks
are ``·`` for a note, ``!`` for a warning, and ``✗`` for a refusal. In brackets stands the case that
a sentence is for, unless it is the usual one; a sentence without words has those before it. Figures
stand in braces, as `benchrigor.model.notice` formats them: those with names that end in ``_`` are
shown only, and the others are kept as evidence too.
"""

from __future__ import annotations

import enum
import re
from typing import Self


class Severity(enum.StrEnum):
    """How much a Notice matters."""

    NOTE = "note"  # Good to know; the number stands
    WARNING = "warning"  # The number is weaker than it looks
    REFUSAL = "refusal"  # the number is missing for this reason


_MARKS = {"·": Severity.NOTE, "!": Severity.WARNING, "✗": Severity.REFUSAL}
_ENTRY = re.compile(r"^ *([·!✗>])(?: \[([^]]+)\])?", re.MULTILINE)


class Code(enum.StrEnum):
    """The codes of Notices; ``docs/codes.md`` explains them.

    ``sentences`` has severity and sentence by case, and ``advice`` the sentence of a page: in
    general, where a number is "refused", or of two sides in turn ("pairs"). Without advice the
    reader has nothing to do, and only ``--details`` shows the Notice.
    """

    sentences: dict[str, tuple[Severity, str]]
    advice: dict[str, str]

    def __new__(cls, text: str) -> Self:
        """Make a member of its text."""
        first, *entries = _ENTRY.split(text)
        code = str.__new__(cls, first.strip())
        code._value_ = first.strip()
        code.sentences, code.advice = {}, {}
        words = ""
        for mark, case, said in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
            words = " ".join(said.split()) or words
            if mark == ">":
                code.advice[case or ""] = words
            else:
                code.sentences[case or ""] = _MARKS[mark], words
        return code

    TOO_FEW_READINGS = """too-few-readings
      ✗ {n:many reading}, expected at least {wanted_}.
      ✗ [rounds] {n:many round}, expected at least {wanted_}.
      ✗ [no round] 0 rounds count, expected at least 3.
      ✗ [one amount] The work of {n} rounds differs in one round at most: a line needs rounds of
        several amounts.
      ✗ [subsessions] The work of {n} rounds differs in one subsession of {size_} only.
      ✗ [periods] Items came out in {n} of {periods:many period}, expected in at least {wanted_}.
      > [refused] Allow more time (--budget), or measure something shorter."""
    NO_STABLE_PHASE = """no-stable-phase
      ✗ [no dominant segment] There is no stable phase: {which_} holds {share:.0%} of the {n}
        readings, not over half.
      ✗ [not stable inside] There is no stable phase: {which_} holds {share:.0%} of the {n}
        readings, but a second search shows that it {how_}.
      ✗ [trend] There is no stable phase but a trend: {how_}.
      ✗ [still moving at the end] There is no stable phase: readings still move at its end: {how_}.
      ✗ [random walk] There is no certain stable phase: {which_} looks like a random walk, the
        effective sample size of its {longest} readings is {effective_:.2g}.
      ✗ [too few effective readings] There is no certain stable phase: {which_} holds {longest} of
        the {n} readings with an effective sample size of {effective_:.1f}, {wanted_:.3g} wanted.
      ✗ [no level] No steady level: it {way_}.
      ✗ [levels] The ratio has several levels.
      ✗ [rounds differ] {invocations} invocations have no steady state in common: of {n:g} readings
        the first {start} and the last {end} differ from the rest, up to half may.
      ✗ [rounds move] {invocations} invocations have no steady state in common: after their first
        {first} readings they still {rises_:rise|fall}, from {early:.4g} to {late:.4g}.
      ✗ [short round] The invocation has {n} readings, and the common cut removes {start} at
        the start and {end} at the end: fewer than {wanted_} are left.
      ! [pairs] Baseline and candidate changed their speed together: their times and intervals are
        of this run only, and their ratio is not affected.
      > The machine changed its speed meanwhile. Measure again later, or in turn (benchrigor ab).
      > [refused] The readings do not settle: find what grows or changes (benchrigor show --plot
        FILE), or give each call the same state (setup).
      > [pairs] The speed of the machine changed meanwhile: only the ratio holds."""
    CHANGING_PACE = """changing-pace
      ! Over these {over_} the pace {how_}: the interval is about this time, from blocks of it.
      · [slight]
      > The machine changed its speed meanwhile. Measure again later, or in turn (benchrigor ab)."""
    BLOCKS_OF_PAIRS = """blocks-of-pairs
      ! {why_} Shown is the median of {blocks} blocks of pairs, each in turn, and an
        interval free of assumptions; their ratios are {least_:.3g} to {most_:.3g}.
      > The ratio changed meanwhile: shown is the median of blocks, with an interval that allows
        for it."""
    TOO_WIDE = """too-wide
      ✗ Too wide an interval: {low:in {unit_}} to {high:in {unit_}} around {value:in {unit_}},
        expected ±100% at most.
      > [refused] Measure longer (--budget), or take the median (--statistic median)."""
    FEW_READINGS = """few-readings
      ! Only {n} readings: autocorrelation cannot be seen below {wanted}.
      ! [rounds] Only {n} rounds: autocorrelation and unequal noise cannot be seen below {wanted}.
      · [plan] The power needs {n} a side; autocorrelation shows from {wanted} on: take {wanted}.
      > There are too few readings to rely on the interval. Measure longer (--budget)."""
    FEW_EFFECTIVE = """few-effective-readings
      ! The effective sample size is {whole_} of {n:,} readings: {wanted_} are wanted.
      ! [slow] Readings change slowly, and few are independent, so the interval is wide.
      > Successive readings are similar: few are independent. Measure longer (--budget)."""
    FEW_IN_TAIL = """few-readings-in-tail
      ✗ Only {shown_:g} {shown_:effective reading lies|effective readings lie} {side_} the {q_:g}%
        quantile, {wanted:.3g} are wanted: about {required:many reading} hold them.
      ! [series] The shortest {unit_} has {n} readings, {in_tail:.2g} of them beyond the {q_:g}%
        quantile: below {wanted} the quantile is biased.
      ! [outcomes] Only {shown_:g} effective outcomes are of the rarer kind, {wanted_} are wanted.
      > Few readings are that rare. Measure longer (--budget), or ask for a quantile
        nearer to the median."""
    PERSISTENT_AND_SKEWED = """persistent-and-skewed
      ! The readings are strongly autocorrelated (variance inflation {inflation:.0f}) and skewed, as
        in a busy queue: 95% intervals of such readings cover 85 to 90%.
      > Slow readings come in bursts: the interval is too narrow. Measure longer (--budget)."""
    STILL_CORRELATED = """still-correlated
      ✗ No subsession size that leaves {fewest_} different means brings the autocorrelation of
        {what_} within {limit:g}.
      > [refused] Measure longer (--budget)."""
    SHORT_RUN = """short-run
      ! {n} {noun_}: below {wanted}, a warm-up may stay undetected and bias the estimate.
      > The run is short: a warm-up may be part of the number. Measure longer (--budget)."""
    START_CUT = """start-cut
      · The first {readings:,.0f} readings are {how_} and left out as a warm-up.
      · [cold] The first reading is {ratio:.3g} times the median of the others, and left out as
        cold.
      · [piece] The first piece has no steady level: only its second half counts."""
    END_CUT = """end-cut
      · The last {readings:,.0f} readings are {how_} and left out as a cool-down.
      ! [long]
      > The last readings are at another level and do not count: see --details."""
    MOVED_ON = """moved-on
      ! The last {readings} {noun_} are on another level: the measured phase has ended.
      > The speed changed near the end, as if still warming up. Measure longer (--budget)."""
    TOO_FEW_TO_CALL = """too-few-to-call
      ! {which_} readings are at another level: more would show whether it lasts.
      · [start]
      > The last readings differ from the others. Measure longer (--budget)."""
    CONSTANT = """constant-readings
      ! All {n} readings are {value:plain}: the interval has no width.
      ! [noiseless] The {n} readings have no noise: the interval has no width.
      ! [units] All {n} {unit_}s are at {value:plain}: the interval has no width.
      ! [line] {which_} {n} rounds lie exactly on a line: the intervals have no width.
      ✗ [pilot] The {n} readings of the pilot have no noise to plan from.
      > Readings, or the means of all processes, are the same, so that the interval has no width.
        Check the values read, or put more calls into a reading (--batch)."""
    NO_INTERVAL = """no-interval
      ✗ [minimum] A minimum has no interval: it falls with the number of readings, and how far it is
        from the least possible one is not known. A low percentile such as p10 has one.
      ✗ [outcomes] A trimmed mean of outcomes leaves out the rarer ones: take their mean."""
    NOT_CONVERGED = """not-converged
      ! The session ended before there was enough evidence.
      · [narrow]
      ! [wide] The half-width at the end was {reached_:percent} of the {noun_}, not
        {asked_:percent}.
      ! [side] {side_} ended before its target: {how_}.
      ! [search] The search ended before the interval was as narrow as wanted: allow more.{price_}
      ! [least load] The least load, {load_:.4g}, exceeds the limits: allow less, or take others.
      ! [near limit] At a load of {load_:.4g} responses are too close to the limit to decide whether
        it is kept: take other limits, or other bounds of the load.
      ✗ [unstable-period] No period up to {longest_s:g} s was kept to within {epsilon:.2%} {k} times
        in a row: the machine, or the interpreter, is too busy. Let a separate process watch.
      ✗ [no-nonblocking-period] No period from {period_s:g} s on was free of waiting {k} times in a
        row. Record blocked time instead, or give the stage a fuller queue for a while.
      ✗ [no-items] Nothing passed in {k} periods of {period_s:g} s in a row that were free of
        waiting: nobody works, or an item takes longer than that.
      > The number is less sure than asked for. Measure longer (--budget)."""
    NO_DATA = """no-data
      ✗ No round gave {what_}.{more_}
      ✗ [stage] {why_}.
      ✗ [picture] {name_} has no readings, and none can be drawn.
      ✗ [metric] The run of {name_} holds no readings of {metric_!r}.
      ✗ [plan] The run of {name_} has no estimate to plan from.
      ✗ [choice] No configuration has an answer after {turns:many turn}.
      > [refused] Check the program and the pattern that reads it, or give more time
        (--budget)."""
    UNFINISHED_LINE = """unfinished-line
      · At the end, {what_}."""
    NOT_READ = """not-read
      · Lines above the data, not read: {lines_}.
      · [units] Some results lack {units}, which is left out of all."""
    FAILED_RUNS = """failed-runs
      ! {share_:percent} failed ({failed:,} of {total:,}, {what_}), and {which_}.
      > Errors may be faster than answers. Correct the program, and measure again."""
    NO_RAW_READINGS = """no-raw-readings
      ✗ {why_}"""
    THIS_PROCESS_ONLY = """this-process-only
      ! One invocation: the interval holds for this process only.
      ! [pairs] The pairs are from one run: the verdict holds for this run only.
      ! [one side] The {side_} is one process: the verdict holds for this process only, and drift
        looks like change.
      ! [both sides] Baseline and candidate are one process each: the verdict holds for these
        processes only, and drift looks like change.
      ! [place] One process was measured of each: another process may take another place.
      ! [rounds] All rounds ran in one process.
      ! [function] {name} is a plain function: nothing restarts it between rounds.
      ! [plan] The pilot is one process: variance between processes is not in the plan.
      ✗ [pilot] A single invocation shows no variance between invocations: take two or more.
      · [here] Measured in this process: {why_}.
      > This holds for one process: another may be faster or slower. Measure several (--fresh)."""
    FEW_INVOCATIONS = """few-invocations
      ! Only {invocations} invocations: fewer than {wanted} easily miss a rare case.
      · [plan] The power needs {n} a side; fewer than {wanted} easily miss a rare case: take
        {wanted}.
      ✗ [composite] There are {invocations:many run}, expected {wanted} at least.
      > There were few processes, and others may differ. Measure longer (--budget)."""
    FEW_PIECES = """few-pieces
      ! Only {counts_}: fewer than {wanted} say little of the pace at other times.
      · [plan] The power needs {n} a side; below {wanted} the interval is very wide: take {wanted}.
      > The run was too short to see the machine change its speed. Spread it (--over 10m)."""
    NO_RATIO = """no-ratio
      ✗ No ratio: the {name_} is {value:.4g} [{low:.4g}, {high:.4g}], {why_}
      ✗ [quotient] The interval of {name_} reaches down to {low:.3g}: nothing can be divided by it.
      ! [summary] Left out of the summary, for want of a ratio: {names_}.
      > The baseline may be 0, so that a ratio makes no sense. Compare the difference."""
    FEW_PAIRS_CARRY = """few-pairs-carry
      ! A few extreme pairs decide the interval of the ratio of means, which {how_}.{instead_}
        Measure more pairs, or compare medians (statistic median) if slow readings do not matter.
      > Few slow readings decide the mean. Measure longer, or the median (--statistic median)."""
    SEVERAL_MODES = """several-modes
      ! The readings have {modes} modes: {shown_}. The mean may be near none of them.
      · [near]
      > Find out what makes them, and measure each by itself."""
    BATCHED = """batched
      ! Each reading averages {calls} calls: quantiles of single calls lie farther from the mean.
      ! [minimum] Each reading averages {calls} calls: the least of single calls is less.
      > Readings average several calls, and so do percentiles. For single calls: --batch 1."""
    ROUNDS_REJECTED = """rounds-rejected
      ! {rejected} of {rounds} rounds have no stable phase and do not count.
      > Some processes only warmed up, and do not count. Let each do more work."""
    COARSE_CLOCK = """clock-too-coarse
      ! A reading typically lasts {typical_s:in s}, but a clock with steps of {resolution_s:in s}
        needs at least {wanted_s:in s}: let a reading hold more work.
      ✗ [zeros] {n:many reading}, all 0, expected some above 0: the clock is too coarse for the code
        that was timed, or it never ran. Put more calls into each reading, check it, or name a unit.
      ✗ [rounds] All {n} rounds took 0 s: larger amounts of work are needed.
      > The clock is too coarse for so short a call. Put more calls into a reading (--batch)."""
    CLOCK_COST = """clock-cost
      · Reading the clock takes {cost_s:in s} of a typical {typical_s:in s}, and is taken off."""
    HOOK_FAILED = """hook-failed
      ! The hook {hook} raised {error}: {why_}
      > A hook failed, and the number is of what ran before. Correct it, and measure again."""
    DETECTOR_FAILED = """detector-failed
      ✗ No phases: {why_}.
      > [refused] Correct the detector, or leave it out (--detector ranks)."""
    RESUMED = """resumed
      · Resumed after round {rounds_before}: later rounds ran in a new process."""
    EARLIER_NUMBER = """earlier-number
      · The {name_} was {estimate_} before resuming, by {rounds:many round}; all rounds have
        none."""
    EXHAUSTED = """workload-exhausted
      · {name_} ended after {taken} of the {wanted} readings wanted of its last round."""
    WORKLOAD_FAILED = """workload-failed
      ! {why_}
      > The program failed, and the number is of what ran before. Correct it, and measure again."""
    SEVERAL_MATCHES = """several-matches
      · {matches} numbers of {metric!r} were found in one round: the last one is its reading."""
    CUT_ROUND = """cut-round
      · Round {round} was ended after {seconds:in s}, as the budget was spent: it does not count.
      · [command] Round {round} {how_}, because the budget was spent: {which_}.
      · [hook] Round {round} was ended, as {hook} {command_} spent the budget: it does not count.
      · [exit] What {name_} does at exit was ended after {seconds_:g} s. The readings count.
      ! [call] A call of {name_} still had not ended {seconds:in s} after the budget was spent: it
        was left, and the readings before it count.
      ! [trial] {why_}
      > A call did not end in time and does not count. Check that it cannot hang."""
    LEFT_RUNNING = """left-running
      · {name_} left processes running, which were ended: they would disturb later rounds.
      ! [escaped] {also_}{name_} left processes in sessions of their own, which go on: {which_}.
      > A command left a process running, which disturbs others. Let it wait for its children."""
    WPS_DOUBTFUL = """wps-model-doubtful
      ! The line {unmet_}: duration may not be linear in work, or the overhead not steady, or the
        amounts too similar.
      > Time grows unevenly with work. Run more rounds, or a larger range (--work 1000:1e6)."""
    NO_SPEED = """no-speed
      ✗ Whether duration grows with work is open (the slope is less than its half-width): more
        rounds would show it, or a larger range of work.
      > [refused] Run more rounds, or a larger range of work (--work 1000:1e6)."""
    NOT_LINEAR = """not-linear
      ! Duration is not linear in work: the time per unit of work {bend:+grows|shrinks} by
        {bend:abs .0%} from the smallest to the largest amount{known_}.
      ! [larger] {rounds_:many round} of larger amounts, up to {largest:amount}, took
        {excess:abs .0%} {excess:+more|less} time than the line says.
      > The speed changes with the amount. Measure the range that matters (--work LOW:HIGH)."""
    RAMP = """ramp
      ! Work {rank_correlation:+rises|falls} from round to round, so that a drift in time is taken
        for work; amounts in bisecting or random order prevent that.
      > Work rises from round to round, as a drift would. Run amounts in random order."""
    OUTLYING_ROUNDS = """outlying-rounds
      · {outliers} of {n} rounds lie far from the line.
      ! [matter] {outliers} of {n} rounds lie far from the line, and matter: without them {change_}.
      > Some rounds took far longer or shorter. benchrigor show --plot FILE shows which."""
    SHORT_ROUNDS = """short-rounds
      · Left out: {rounds:many round} below {limit_s_:in s}, or of too little work."""
    PILOT_ROUNDS = """pilot-rounds
      · Left out: {rounds:many round} that found the amounts to run."""
    CUT_ONE_BY_ONE = """cut-one-by-one
      · {rounds} of {all_} rounds change inside the common cut, and are cut one by one."""
    FURTHER_ROUNDS = """further-rounds
      · Left out: {rounds:many round} of larger amounts that test the line."""
    RANGE_UNTRIED = """range-untried
      ! Only amounts up to {largest:amount} of {most_:amount} were tried: give more time.
      > Larger amounts were not reached. Give more time (--budget), or a lower end (--work)."""
    SMALL_WORK = """small-work
      · Left out: {rounds:many round} with more overhead ({overhead_s:in s}) than work."""
    OVERHEAD_DOMINATES = """overhead-dominates
      ! {rounds} of {all_:many round} have more overhead ({overhead_s:in s}) than work; they count,
        because the others are too few or too similar: allow larger amounts.
      > Most of the time is overhead, not work. Raise the largest amount (--work LOW:HIGH)."""
    LONG_ROUNDS = """long-rounds
      · A first rough answer takes {whole_s_:in s}, as rounds take {each_s_:in s} or more."""
    WORK_TOO_SHORT = """work-too-short
      ✗ {why_}
      > [refused] Raise the largest amount of work (--work LOW:HIGH)."""
    METHODS_DISAGREE = """methods-disagree
      ! The readings of {metric!r} give a speed of {readings:in /s}, the line through work and
        duration one of {line:in /s}: their intervals do not overlap. Either some work is done
        outside the units, or their readings include some of the overhead.
      > Two ways to find the speed disagree. Compare both in --details."""
    FEW_SEGMENTS = """few-segments
      ! The run has {n} segments, expected {wanted} at least with the same features: measure longer.
      ! [groups] {time_percent:.0f}% of the time is in groups of fewer than {wanted} segments, too
        few for a reliable threshold: measure longer, or leave features out."""
    UNCLUSTERED = """unclustered-segments
      ! {unclustered_percent:.1f}% of the time is in segments with fewer than {others_} others of
        the same features, and interference there is not counted: measure longer.
      ! [composite] {unclustered_percent:.2g}% of the time is in segments with fewer than {others_}
        others of the same features in their run: the duration still holds their interference.
      · [little]"""
    HIGH_SEGMENT_RATE = """high-segment-rate
      ! The run has {per_second:,.0f} segments per second, and recording makes up much of their
        features and durations: cut it into fewer than {limit:,.0f} per second."""
    MANY_FLAGGED = """many-flagged-segments
      ! {flagged_percent:.0f}% of the segments exceed their threshold. Above {limit_:.0%} the median
        itself is disturbed, and the estimate is too low: it is a lower limit."""
    MEDIAN_MOVED = """median-moved
      ! In groups with {time_percent:.0f}% of the time half of the segments or more took far longer
        than the others. If that is interference, the estimate misses it; if it is work of two
        kinds, record a feature or a label that separates them."""
    MIXED_SEGMENTS = """mixed-segments
      ! In {groups:many group} the segments beyond the threshold also differ in {features}: the
        {excess_percent:.1f}% of excess there may be work of another kind; label the segments."""
    CHAINED = """chained-features
      ! The values of {feature} have no gaps: {cut_off_percent:.0f}% of the time is in groups cut
        off within a chain of near values, with work of different size. Label the segments."""
    NO_REFERENCE = """no-reference
      · Interference that slows all segments equally does not show in a single run: give an
        undisturbed run of the same program as reference to see it."""
    REFERENCE_DIFFERS = """reference-differs
      ! Only {matched_percent:.0f}% of the time is in groups that the reference also has
        ({wanted_percent:.0f}% wanted), and the continuous part is theirs: take one of the same
        input."""
    DELAY_NOT_MEASURED = """delay-not-measured
      ! Other threads or processes used most of the processor time, and their delay is not measured.
      ! [partly] Delay is known for {known_percent:.0f}% of the time: {why_}. The light is unknown
        below {wanted_percent:.0f}%, and the delay seen is a lower limit.
      · [unmeasured]
      · [nowhere] No delay was measured: a neighbour that keeps the processor busy all the time
        slows all segments equally, and the estimate does not show it.
      > It is not known how busy the machine was. Trust the number only if nothing else ran."""
    NO_INSTRUCTIONS = """no-instructions
      ! Instructions are not counted here: {why_}.
      > This machine does not count instructions. Leave them out."""
    BRACKET = """bracket-only
      ! Responses follow no curve that is known: the interval is that between the nearest loads that
        kept the limits and that did not, each by two trials or more.
      · [published] The interval is that between the nearest loads tried: the published rule says
        how well the response is known, not the load."""
    NOT_MONOTONE = """not-monotone
      ! At loads of {least_:.4g} to {most_:.4g} the limits were exceeded in {bad_} of {all_} trials,
        although greater loads kept them: the peak is the last load at which they are met."""
    BISTABLE = """bistable
      ✗ {odd_} of {near_} trials near the peak were far from others: the server is good and bad in
        turn."""
    DRIFTING = """drifting
      ✗ From the first trial near the peak to the last, responses changed by {change:percent}: the
        server, or what else runs, is not the same any more.
      ✗ [slower] In {bad_} of {all_} trials the limits were exceeded at loads below those that kept
        them before: the server, or what else runs, is slower now."""
    GENERATOR_LIMIT = """generator-limit
      ! No greater load was offered: {why_}.
      ! [one] A load of {load_:.4g} was not offered: {why_}.
      ! [none] No load could be offered on time: {which_} invalid, since {why_}."""
    LIMIT_NOT_CHECKED = """limit-not-checked
      ! No trial reported its {names_}: that limit was not checked."""
    RECORDING_COST = """recording-cost
      ! Recording took {recording_percent:.1f}% of the time, above {limit_percent:.0f}%: cut
        less."""
    AT_FULL_PACE = """at-full-pace
      · Compared at the full speed of the machine, which ran at {shares_} of it."""
    STORED_RUNS = """stored-runs
      · {baseline_} and {candidate_} stored runs of the same versions count with the two sides."""
    NO_COMMON_PACE = """no-common-pace
      ! Compared as measured: the runs {why_}. Runs at different times cannot tell code from
        machine: measure both in turn.
      > Runs at different times cannot tell code from machine. Measure in turn (benchrigor ab, or
        pytest --bench-against)."""
    NOT_COMPARED = """not-compared
      ! {why_}.
      > It has no verdict: compare runs of one kind."""
    DISTURBED = """disturbed-run
      ! {who_} took {measured_percent:.1f}% of the time: {advice_}.
      · [pairs] {who_} took {measured_percent:.1f}% of the time: the ratio is of pairs without
        delay, {left_out_} of {all_} are left out.
      ! [side] {side_} has {light_} light: interference took {least_}{percent:.1f}% of its time,
        which may be what differs.
      ! [ranked] Other work took {least_:percent} to {most_:percent} of the time of these runs: the
        times and their ratios are of this busy machine.
      ! [samples] Other work took up to {most:.0%} of {samples} of {all_} samples: they count less.
      > Other programs took processor time. Measure again later, or in turn (benchrigor ab)."""
    STOPPED = """stopped-process
      ! The process stood still for {stopped_s:in s}, {share_:percent} of the time: it neither
        worked nor waited for a processor, as when it is stopped by a signal, or its machine is
        paused. Readings during that do not count.
      ! [pair] A process was stopped, by a signal or with its machine: its pair does not count.
      > The process stood still for a while (Ctrl-Z, or a paused machine). The readings meanwhile do
        not count; measure again if they should."""
    FULL_PACE_NEW = """full-pace-new
      · Full speed is the fastest level of this run, the first on this machine: if it was slow all
        the time, a later run finds a faster one, and compares by that."""
    FULL_PACE_NOT_KEPT = """full-pace-not-kept
      · Full speed is known from this run alone: {why_}.
      · [earlier] An earlier version stored no figure at full speed: the number is as measured."""
    REFERENCE_UNLIKE = """reference-unlike
      · Where the interpreter takes 10% longer, this takes {tenth_:percent} ± {sd_:percent} longer:
        something else limits it, and the interval at full speed is wide."""
    PROCESSOR_TIME = """processor-time
      · Only processor time separates some groups, and contention raises it too: segments slowed by
        contention may count as other work; give work amounts or labels."""
    WIDE_GROUPS = """wide-groups
      ! Durations within groups vary widely, and the estimate depends on where the excess starts:
        {percent:.1f}% from the threshold, {above_median_percent:.1f}% from the median."""
    NATURAL_TAIL = """natural-tail
      · In every run at least {flagged_percent:.1f}% of the segments exceed their threshold: if the
        program itself is slow now and then, the composite leaves that out."""
    DOUBTFUL_RUNS = """doubtful-runs
      ! {n_} of {of} runs cannot be cleaned reliably ({reasons}): take others."""
    RED_ROUNDS = """red-rounds
      ! {red} of {rounds:many round} lost more than 15% of their time, or took 15% longer than
        the others, and were repeated: the estimate is of undisturbed rounds.
      ✗ [all] {red} of {rounds:many round} lost more than 15% of their time, or took 15% longer
        than the others, and were repeated: no round is left.
      > Other programs disturbed some rounds, which do not count. Measure again later."""
    HARDLY_UNDISTURBED = """hardly-undisturbed
      ! {undisturbed} of {taken:many {noun_}} {undisturbed:was|were} taken without delay, too few to
        go by: all count, with their waiting, {lost_:percent} of the time.
      > Other programs disturbed most readings. Measure again later, or in turn (benchrigor ab)."""
    LONGEST_DISTURBED = """longest-disturbed
      ! The longest readings were hardly ever undisturbed: the {stratum_} longest that were count
        {weight:.0f} times as much as others. High quantiles are too low.
      > Other programs disturbed most slow readings: high percentiles are too low."""
    DISTURBED_RATE = """disturbed-rate
      ! The stage waited {delay_share:percent} of its busy time for a processor: it serves more
        slowly than undisturbed, and more replicas do not help. See its rate per processor time."""
    DROPPED_PERIODS = """dropped-periods
      ! {dropped:percent} of the periods have a blocked time that is not known and do not count. The
        others are of slow service, and the rate errs low: record blocked time."""
    RESTLESS_RATE = """restless-rate
      ! The last {last_} of {phases} phases that ended lasted {before_s:.3g} s together, this one
        {length_s_:.3g} s so far: the rate keeps changing, and this is its present value. Take all
        phases together, or watch in longer periods."""
    SATURATED = """saturated-stage
      ✗ The utilisation {is_} {utilisation:percent}: a queue of any size fills up{blocked_}. Use
        faster service, or more replicas if processors are left for them.
      ! [perhaps]
      ! [unknown] The interval of the service rate reaches 0: too few periods to size this."""
    SOURCE_STOPPED = """source-stopped
      · Nothing has arrived at {stage_!r} for {silent_s:.3g} s: advice is for what came before."""
    PROCESSORS_LIMIT = """processors-limit
      ! {needed:,.0f} replicas {possible_} needed, and the processors can run {most:,.0f}: more
        would share them, and serve no faster. Use more processors, or make service cheaper."""
    QUEUE_MODEL = """queue-model-assumed
      · Assumed ({models}): random arrivals, independent service times, one server for each queue,
        and {full_}. Bursts need more room."""
    HUGE_BUFFER = """huge-buffer
      ✗ The utilisation {is_} {utilisation:percent}: even a queue for {most:,.0f} items would be
        full for more than {blocked_share:percent} of arrivals. Use more replicas or faster service.
      ! [perhaps]"""
    UNEVEN_SERVICE = """uneven-service
      ! Service times have {variation:.3g} times the variance of exponential ones: the size depends
        on their tail, which is assumed to be that of a gamma distribution. Allow for 30% more, and
        for twice as much where far less than 1% may be blocked.
      ! [beyond] Service times have {variation:,.0f} times the variance of exponential ones, and
        sizes are for {most_:g} times: there are several kinds of items, or the machine was
        suspended. Measure each kind, or longer."""
    EXPONENTIAL_ASSUMED = """exponential-assumed
      · The variance of the service times of {stage!r} is not known, since that needs at least
        {fewest_} counts: sizes are those for exponential ones. Measure longer."""
    SEVERAL_BOTTLENECKS = """several-bottlenecks
      ! The interval of the capacity of {stage}, {capacity_}, overlaps with the one of {rivals}:
        measure longer to separate them, or widen all of them."""
    HOSTS_DIFFER = """hosts-differ
      ! Made on different machines ({hosts}): they may be what differs.
      > The runs are of two machines, which may be the difference. Compare runs of one machine."""
    METRICS_DIFFER = """metrics-differ
      ! The metrics have different names: {names}.
      > The runs measured different things. Choose one with --metric."""
    FUNCTIONS_DIFFER = """functions-differ
      ! The source of {name} itself differs: the runs may not have measured the same.
      > The measured function itself has changed. Measure both with one benchmark."""
    NO_DIRECTION = """no-direction
      · Ranked from the lowest on: which way is better is not known; choose a direction."""
    RATE_OF_0 = """rate-of-0
      ! {readings:many reading} of {metric_!r} {readings:is|are} 0 or less, so all are taken for
        equal times, and their mean is arithmetic.
      ! [compared] A reading of a rate is 0 or less: all are averaged over time (arithmetic).
      > Rates of 0 make it a mean over time. Of equal work, leave them out (--unit ...,harmonic)."""
    PROBE_COST = """probe-cost
      ! Probes themselves took about {share_:percent 2} of the run time; {dearest} was used most,
        {count_:,.0f} times. Time larger units of work, or switch it off."""
    TOO_FEW_SAMPLES = """too-few-samples
      ✗ Only {n:many point} measured: a model of these factors takes {wanted}.
      ✗ [undetermined] {n:many point} do not determine a quadratic: measure others."""
    SAMPLES_WITHOUT_NUMBER = """samples-without-number
      ! {lost_} of {samples:many sample} {lost_:has|have} no number{since_}; no model counts them.
      ! [failed] Without an answer on a host, and out of the race: {names_}.
      ! [bounded] Not brought to its limits on a host, so that it cannot lose: {names_}."""
    LACK_OF_FIT = """lack-of-fit
      · The surface is not a quadratic: it is {misfit:percent} away from one (standard deviation),
        beyond the errors of the samples. Intervals count that."""
    PREDICTIONS_WIDENED = """predictions-widened
      ! Samples differ from predictions of the others {factor:.2g} times as much as the model
        expects: intervals are wider by that. Measure more points."""
    FEW_HOSTS = """few-hosts
      ! Only {names_} measured: four hosts or more stand for others.
      ! [futile] More turns on {hosts:many host} would not decide: more hosts would."""
    HOSTS_UNKNOWN = """hosts-unknown
      ! {n:many point} cannot part hosts from points, which takes {wanted}: hosts count as error.
      ! [never] A quadratic cannot part hosts from points: hosts count as error."""
    HOSTS_DISAGREE = """hosts-disagree
      ! Hosts disagree: {which_}, and worse on the others, than {chosen_}."""


# Codes of one cause, the most informative first, which makes the others redundant.
CAUSES: tuple[tuple[Code, ...], ...] = (
    (Code.CONSTANT, Code.FEW_IN_TAIL, Code.FEW_READINGS, Code.FEW_EFFECTIVE, Code.SHORT_RUN),
    (Code.COARSE_CLOCK, Code.CLOCK_COST),
)
# Of the codes in a line, a page shows only the first that is present.
ALIKE: tuple[tuple[Code, ...], ...] = (
    (
        Code.DISTURBED,
        Code.HARDLY_UNDISTURBED,
        Code.CHANGING_PACE,
        Code.BLOCKS_OF_PAIRS,
        Code.NO_STABLE_PHASE,
        Code.LONGEST_DISTURBED,
        Code.RED_ROUNDS,
    ),
    (
        Code.NOT_CONVERGED,
        Code.FEW_READINGS,
        Code.FEW_EFFECTIVE,
        Code.SHORT_RUN,
        Code.FEW_INVOCATIONS,
        Code.FEW_PIECES,
        Code.FEW_IN_TAIL,
        Code.PERSISTENT_AND_SKEWED,
        Code.MOVED_ON,
        Code.TOO_FEW_TO_CALL,
    ),
    (Code.WPS_DOUBTFUL, Code.NOT_LINEAR),
)
