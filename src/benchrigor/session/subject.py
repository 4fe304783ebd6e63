"""One subject that is measured: its rounds, how far it has come, and its record. No I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchrigor.errors import InvalidInput
from benchrigor.model import (
    Analysis,
    Code,
    Headway,
    Metric,
    Notice,
    Options,
    Progress,
    Round,
    RunRecord,
    StopReason,
    Width,
)
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.notice import leading
from benchrigor.protocols import Detector, StopRule
from benchrigor.safe_text import hide_secrets
from benchrigor.session.engine import Engine
from benchrigor.session.metric_readings import MetricReadings
from benchrigor.session.outcomes import (
    disagreement,
    no_readings,
    warn_not_converged,
    without_readings,
)
from benchrigor.session.pace_of_rounds import full_speed_of, levels_of, with_pace
from benchrigor.session.red_rounds import (
    check_light,
    is_red,
    measured_interference,
    report_stops,
    say_left_out,
    warn_of_loss,
    with_light,
    with_stops,
)
from benchrigor.session.schedules import Alone, piece_after
from benchrigor.session.stop_rules import FEWEST_BLOCKS, LITTLE, SETTLED_S, default_rules
from benchrigor.stats.changepoints.ruptures_adapter import Estimator, as_detector, detector_named
from benchrigor.stats.readings.asked_readings import wanted_half_width
from benchrigor.stats.readings.given_metrics import given_metrics
from benchrigor.stats.readings.inference_units import (
    SUCCESSIVE,
    unit_of,
)
from benchrigor.stats.shares_and_quantiles import whole_of
from benchrigor.stats.work_schedule import NextWork


class Subject:
    """One subject that is measured alone: its readings and their analysis.

    It takes the parameters of `Session`, and these:

    Parameters
    ----------
    seed
        Source of every plan's own seed.
    facts
        Its description for programs: the ``subject`` of a session and its record.
    recorded
        Whether the readings are a recording, so that none will follow.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> engine = Engine(Subject(Options(target=0.05), seed=1))
    >>> while (turn := engine.ask()) is not None:
    ...     values = rng.normal(1.0, 0.1, turn.plan.readings)
    ...     decision = engine.tell(
    ...         Round(plan=turn.plan, elapsed_ns=1000, unit_readings={"time": values})
    ...     )
    >>> decision.reason
    <StopReason.SATISFIED: 'satisfied'>
    """

    def __init__(
        self,
        options: Options | None = None,
        metrics: Sequence[Metric] | None = None,
        *,
        seed: int = 0,
        name: str = "session",
        facts: Mapping[str, Any] | None = None,
        detector: Detector | Estimator | None = None,
        rules: Sequence[StopRule] | None = None,
        next_work: NextWork | None = None,
        recorded: bool = False,
    ) -> None:
        fits = next_work is None or callable(next_work)
        refuse(wrong_values([("next_work", next_work, fits, "a function of a plan, or None")]))
        self.options = Options() if options is None else options
        self.seed = seed
        self.name = hide_secrets(name)
        self.facts = dict(facts or {})
        if rules is None:
            rules = default_rules(self.options, no_narrower=self._is_headline_final)
        self.rules = rules  # that may end the session
        given = as_detector(detector)
        self._detector = given or detector_named(self.options.detector)
        if given is not None and self.options.trim != "auto":
            raise InvalidInput(
                f"detector is given, expected None: trim is {self.options.trim!r}, and nothing is "
                "looked for"
            )
        self.given = given_metrics(self.options, metrics, seed, tries_further=next_work is None)
        self.by_name: dict[str, MetricReadings] = {}  # the metrics that readings came of
        self.schedule = Alone(self.options, seed, self.given.amount, next_work)
        self.kept_levels: dict[str, list[tuple[float, float]]] = {}  # of the reference, before
        self.rounds: list[Round] = []
        self._piece = 0  # under way; their number when all are over
        self._red: dict[int, None] = {}
        self._rejected = 0  # latest rounds in a row that allow no estimate
        self._recorded = self._has_ended = recorded

    def restart_rounds(self) -> None:
        """Take every round for a fresh process, unless the options say otherwise."""
        if self.options.rounds == "auto":
            self.options = replace(self.options, rounds="restarted")
            self.given.options = self.schedule.options = self.options
            for metric in self.by_name.values():
                metric.options = self.options

    def headways(self, engine: Engine[Subject]) -> dict[str, Headway]:
        """Return what its schedule sees."""
        return {self.name: self.headway(engine)}

    def headway(self, engine: Engine[Subject]) -> Headway:
        """Return its state, as a schedule sees it."""
        last = self.rounds[-1] if self.rounds else None
        many = [metric for metric in self.by_name.values() if metric.unit.many]
        restarted = [metric for metric in many if metric.unit.restarted]
        splits = [metric.analysis.split for metric in restarted if metric.analysis is not None]
        return Headway(
            turns=engine.told,
            readings=max((metric.n for metric in many), default=0),
            elapsed_s=engine.elapsed_s,
            last_readings=last.n_readings if last else 0,
            last_s=last.elapsed_ns / 1e9 if last else 0.0,
            to_next_check=min((metric.to_next_check for metric in many), default=1),
            piece=self.piece,
            invocations=max((len(metric.chunks) for metric in restarted), default=0),
            busy_s=max((metric.busy_s for metric in restarted), default=0.0),
            split=next(filter(None, splits), None),
            may_be_short=all(
                metric.analysis is None or metric.analysis.estimate for metric in restarted
            ),
        )

    @property
    def piece(self) -> int:
        """The piece that the next round is of, counted from 0."""
        return min(self._piece, self.options.pieces - 1)

    @property
    def _reading_s(self) -> float:
        """Minimum time of the next call of a function."""
        units = [metric.unit for metric in self.by_name.values()]
        return self.given.least_s(self.rounds[-1], units) if self.rounds else 0.0

    @property
    def _required(self) -> list[MetricReadings]:
        return [metric for metric in self.by_name.values() if metric.metric.must_satisfy]

    def check(self, finished: Round) -> None:
        """Raise InvalidInput if metrics are unknown or readings impossible."""
        known = {name: metric.unit for name, metric in self.by_name.items()}
        refuse(self.given.problems_of(finished, known))

    def take(self, finished: Round, engine: Engine[Subject]) -> None:
        """Add a round that was checked."""
        unit = self.given.unit
        is_left_out = self.options.red_rounds == "repeat" and is_red(
            with_stops([*self.rounds, finished], unit)[-1],
            self.rounds,
            compare_whole=unit.restarted,
            varies=self.given.varies,
        )
        self.rounds.append(finished)
        if is_left_out:
            self._red[finished.plan.index] = None
            self._rejected += 1
        else:
            self.add(finished)
        elapsed_s = engine.elapsed_s
        self._piece = piece_after(finished.plan.piece, elapsed_s, self._reading_s, self.options)
        readings = max((metric.n for metric in self.by_name.values()), default=0)
        for metric in self.by_name.values():
            metric.spend(
                [
                    (self.options.budget_s, elapsed_s, finished.elapsed_ns / 1e9),
                    (self.options.budget_readings, readings, finished.n_readings),
                    (self.options.max_rounds, metric.rounds, 1),
                ]
            )
            metric.end_pieces(self._piece)

    def add(self, finished: Round) -> None:
        """Add the readings of a round to their metrics."""
        self.given.metrics = self.given.after(finished)
        metrics, usable = {metric.name: metric for metric in self.given.metrics}, False
        for name, so_far in self.by_name.items():
            so_far.metric = metrics.get(name, so_far.metric)
        for name, unit, values in self.given.readings_of(finished):
            if name not in self.by_name:
                self.by_name[name] = MetricReadings(
                    metric=metrics[name],
                    unit=unit,
                    options=self.options,
                    detector=self._detector,
                    ended=self._has_ended,
                )
            usable |= self.by_name[name].add(finished, values)
        if usable or not finished.cut:  # one that was cut may have had no time to give anything
            self._rejected = 0 if usable else self._rejected + 1

    @property
    def is_due(self) -> bool:
        """Whether there are enough new readings; without rules only the end needs an analysis."""
        return self.rules != () and any(metric.is_due for metric in self.by_name.values())

    @property
    def is_early(self) -> bool:
        """Whether a metric that must be satisfied has too few readings for a full look."""
        return any(metric.is_early for metric in self._required)

    def look(self, *, fully: bool) -> None:
        """Analyse the readings so far."""
        for metric in self.by_name.values():
            self._rejected = max(self._rejected, metric.look(fully=fully))

    def rough_figure(self, most: int) -> Width | None:
        """Make a figure of the latest readings of the first metric that must be satisfied."""
        required = (metric.name for metric in self.given.metrics if metric.must_satisfy)
        first = self.by_name.get(next(required, ""))
        return first.rough_figure(most) if first is not None and first.n else None

    def _is_headline_final(self, progress: Progress) -> bool:
        """Whether more readings would narrow no headline by a tenth."""
        if progress.elapsed_s < SETTLED_S:
            return False
        required = [analysis for analysis in progress.analyses if analysis.metric.must_satisfy]
        paces = [analysis.pace for analysis in self._with_pace(required, self._counted_rounds())]
        return all(
            pace is not None and pace.blocks >= FEWEST_BLOCKS and pace.reducible <= LITTLE
            for pace in paces
        )

    def state(self, engine: Engine[Subject]) -> dict[str, Any]:
        """Return the progress."""
        metrics, required = self.by_name.values(), self._required
        foreseen = (metric for metric in required if metric.unit.is_foreseen)
        widths = [metric.out_of_reach(engine.elapsed_s) for metric in foreseen]
        analyses = tuple(metric.analysis for metric in metrics if metric.analysis is not None)
        enough = {metric.metric.name for metric in metrics if not metric.is_missing}
        return {
            "readings": max((metric.n for metric in metrics), default=0),
            "rounds": len(self.rounds) - len(self._red),
            "rejected_rounds": self._rejected,
            "analyses": analyses,
            "widths": tuple(
                _width_of(analysis, self.options)
                for analysis in analyses
                if analysis.metric.must_satisfy
            ),
            "agreed": all(metric.agreed for metric in required),
            "reading_s": self._reading_s,
            "kept": sum(metric.n for metric in metrics),
            "reachable": max((width for width in widths if width is not None), default=None),
            "missing": tuple(
                metric.name
                for metric in self.given.metrics
                if metric.must_satisfy and metric.name not in enough
            ),
            "name": self.name,
            "piece": self.rounds[-1].plan.piece if self.rounds else 0,
        }

    def result(self, engine: Engine[Subject]) -> RunRecord:
        """Return the record of all rounds so far."""
        is_exhausted = (
            engine.decision is not None and engine.decision.reason is StopReason.EXHAUSTED
        )
        if is_exhausted and not self._has_ended:
            self._has_ended = True
            for metric in self.by_name.values():
                metric.end()
        reports = [metric.in_full() for metric in self.by_name.values() if metric.n]
        counted = self._counted_rounds()
        red = say_left_out(len(self._red), len(self.rounds))
        all_red = self._describe_red_rounds(red)
        analyses = self._with_pace(all_red or self._analyses(reports, engine), counted)
        delayed = None if self._recorded else measured_interference(counted or self.rounds)
        interference = check_light(delayed, analyses)
        return RunRecord(
            name=self.name,
            options=self.options,
            metrics=self.given.metrics or tuple(analysis.metric for analysis in analyses),
            seed=self.seed,
            rounds=tuple(self.rounds),
            analyses=analyses,
            decision=engine.decision,
            session_notices=(
                *with_light(self._all_notices(engine), interference, self.rounds),
                *disagreement(counted, reports),
                *(() if all_red else red),
                *report_stops(interference),
                *(
                    warn_of_loss(interference, analyses)
                    if len(self._red) < len(self.rounds)
                    else ()
                ),
            ),
            subject=self.facts,
            interference=interference,
            red_rounds=tuple(self._red),
        )

    def _analyses(
        self, reports: Sequence[Analysis], engine: Engine[Subject]
    ) -> tuple[Analysis, ...]:
        """Return the analyses of all metrics, also of those without a reading."""
        known = {analysis.metric.name: analysis for analysis in reports}
        return tuple(
            self._flag(known[metric.name], engine)
            if metric.name in known
            else without_readings(metric, self.rounds)
            for metric in self.given.metrics
        )

    def _counted_rounds(self) -> tuple[Round, ...]:
        """Return the rounds that count, with the stops of the machine during each."""
        counted = tuple(
            round_
            for round_ in self.rounds
            if round_.plan.index not in self._red and not (round_.cut and not round_.unit_readings)
        )
        return with_stops(counted, self.given.unit)

    def _with_pace(
        self, analyses: Sequence[Analysis], rounds: Sequence[Round]
    ) -> tuple[Analysis, ...]:
        full_s = full_speed_of(levels_of(rounds), self.kept_levels)
        return tuple(
            with_pace(analysis, rounds, full_s, self.options.statistic) for analysis in analyses
        )

    def _describe_red_rounds(self, red: tuple[Notice, ...]) -> tuple[Analysis, ...]:
        """Describe the readings of rounds that are all left out; empty if one counts."""
        if not self.rounds or len(self._red) < len(self.rounds):
            return ()
        anew = Subject(self.options, self.given.metrics or None, seed=self.seed)
        for round_ in self.rounds:
            anew.add(round_)
        described = (metric.described(red[0]) for metric in anew.by_name.values())
        return tuple(replace(analysis, n=0) for analysis in described)

    def _flag(self, analysis: Analysis, engine: Engine[Subject]) -> Analysis:
        """Warn of an estimate of one process only, or one that did not reach its target."""
        estimate, metric, notices = analysis.estimate, analysis.metric, analysis.notices
        if estimate is None:
            return analysis
        if unit_of(analysis).restarted:
            only = [notice for notice in engine.notices if notice.code is Code.THIS_PROCESS_ONLY]
            others = [notice for notice in notices if not only or notice.code is not only[0].code]
            notices = tuple(others)
            estimate = replace(estimate, notices=(*only, *others))
        wanted = wanted_half_width(estimate, metric, self.options.asked)
        ended = engine.decision is not None and not engine.decision.satisfied
        if ended and metric.must_satisfy and math.isfinite(wanted):
            notice = warn_not_converged(estimate.half_width, wanted, *whole_of(estimate))
            estimate = replace(estimate, notices=leading(notice, estimate.notices))
            notices = leading(notice, notices)
        return replace(analysis, estimate=estimate, notices=notices)

    def _all_notices(self, engine: Engine[Subject]) -> tuple[Notice, ...]:
        """Return the Notices of the session, and of its rounds the last one per code."""
        of_rounds = {
            (notice.code, notice.evidence.get("metric")): notice
            for round_ in self.rounds
            for notice in round_.notices
        }
        no_data = []
        if engine.decision is not None and not self.given.metrics and not self._red:
            no_data.append(no_readings(self.rounds))
        return (*engine.notices, *of_rounds.values(), *no_data)


def _width_of(analysis: Analysis, options: Options) -> Width:
    """Return how wide the interval of a metric is; few readings must make it narrower.

    Ten rounds often agree by chance, and looks at 10, 15 and 23 rounds find that chance. Half of
    the degrees of freedom raise the coverage of such sessions by 0.02 (to 0.91 to 0.94).
    """
    known, unit, share = analysis.estimate, unit_of(analysis), 1.0
    if known is not None and unit.early_look is not None:
        share = unit.evidence(options.preset).share(unit.inferred(analysis))
    return Width(
        metric=analysis.metric,
        estimate=known,
        whole=0.0 if known is None else whole_of(known)[0],
        caution=unit.caution(analysis, share) if share else math.inf,
        is_full=share == 1.0,
        is_enough=unit.is_enough(analysis, SUCCESSIVE.evidence(options.preset)),
        is_settled=unit.is_settled(analysis),
        required=analysis.required,
    )
