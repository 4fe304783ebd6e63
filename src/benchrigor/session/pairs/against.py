"""A session that compares its run with an earlier one while readings come."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from benchrigor.errors import NotComparable, NotEstimable
from benchrigor.model import Code, Comparison, Estimate, Notice, Options, Progress, RunRecord
from benchrigor.model.options import USUAL_TARGET
from benchrigor.model.text import percent
from benchrigor.protocols import Store
from benchrigor.session.pairs.compared_sides import label_of
from benchrigor.session.pairs.run_comparison import compare_named
from benchrigor.session.session import Session
from benchrigor.session.stop_rules import LITTLE, caution, default_rules
from benchrigor.session.stored_runs import StoredRuns
from benchrigor.stats.estimators.pace import AT_FULL_SPEED


class Against:
    """Stops a session when its ratio to a baseline is known well enough, never on a verdict.

    It also stops if further readings cannot make the ratio as narrow as wanted, since the
    uncertainty of the baseline and the variance between runs remain.

    Parameters
    ----------
    baseline
        An earlier run.
    target
        Wanted half-width of the ratio, relative to the ratio.
    store
        Store of further runs, see `compare_runs`.

    Attributes
    ----------
    baseline
        As given.
    stored
        The runs of the store.
    is_asked
        Whether somebody asked for the target.
    told
        A Notice before the first reading if the baseline shows that the target is out of reach.
    """

    def __init__(self, baseline: RunRecord, target: float, store: Store | None = None) -> None:
        self.baseline = baseline
        self.stored = None if store is None else StoredRuns(store)
        self._target = target
        self.is_asked = target != USUAL_TARGET
        self._session: Session | None = None
        self._latest: Comparison | None = None
        self.told: Notice | None = None

    @property
    def ratio(self) -> Estimate | None:
        """At the latest look that agreed with the one before; None before the first."""
        return None if self._latest is None else self._latest.ratio

    def begin(self, options: Options, *arguments: Any, **others: Any) -> Session:
        """Make a session with these rules; other arguments as for `Session`."""
        rules = default_rules(options, narrow=self._is_narrow, no_narrower=self._is_no_narrower)
        self._session = Session(options, *arguments, rules=rules, **others)
        self.is_asked |= bool(options.target_given)
        self.told = self._out_of_reach(options) if self.is_asked else None
        if self.told is not None:
            self._session.note(self.told)
        return self._session

    def compare(self) -> Comparison:
        """Compare the run so far with the baseline.

        Raises
        ------
        NotComparable, NotEstimable
            When the runs allow no comparison.
        """
        if self._session is None:
            raise TypeError("compared before begin")
        return self._compare(self._session.result())

    def _compare(self, candidate: RunRecord) -> Comparison:
        return compare_named(
            {label_of(self.baseline): self.baseline, "this run": candidate},
            statistic=candidate.options.statistic,
            confidence=candidate.options.confidence,
            margin=0.0,
            stored=self.stored,
        )

    def _is_narrow(self, progress: Progress) -> bool:
        """Whether the interval of the ratio is as narrow as wanted."""
        try:
            self._latest = self.compare()
        except NotEstimable:
            self._latest = None
        ratio = self.ratio
        if ratio is None:  # or the baseline is 0
            return False
        options = self._session.options if self._session else Options()
        required = (analysis for analysis in progress.analyses if analysis.metric.must_satisfy)
        careful = max(caution(estimate, options) for estimate in required)
        return bool(ratio.half_width * careful <= self._target * abs(ratio.value))

    def _is_no_narrower(self, _progress: Progress) -> bool:
        """Whether further readings make the ratio hardly narrower, and never as wanted."""
        if self._session is None or self._latest is None:
            return False
        share = _share_of_readings(self._latest, self._session.result())
        return share <= LITTLE and _at_best(self._latest, share) > self._target

    def _out_of_reach(self, options: Options) -> Notice | None:
        """Say if the target is out of reach for a run like the baseline, but of another version."""
        asked = replace(
            self.baseline.options, statistic=options.statistic, confidence=options.confidence
        )
        where = self.baseline.provenance and replace(self.baseline.provenance, source=None)
        like = replace(self.baseline, options=asked, provenance=where, run_id=None)
        try:
            comparison = self._compare(like)
        except (NotComparable, NotEstimable):  # said when there are readings
            return None
        best = _at_best(comparison, _share_of_readings(comparison, like))
        if not self._target < best < math.inf:
            return None
        sentence = (
            f"A half-width of {percent(self._target)} is out of reach: what is known of the "
            f"baseline, and how far runs differ, leave about {percent(best)}, however long this "
            "one is. Several stored runs of each version know more, and so do runs in pieces."
        )
        return Notice.warning(Code.OUT_OF_REACH, sentence, half_width=best, wanted=self._target)


def _share_of_readings(comparison: Comparison, run: RunRecord) -> float:
    """Return the share of the variance of a ratio that more readings of the candidate reduce."""
    baseline, candidate, analysis = comparison.baseline, comparison.candidate, run.analysis()
    if baseline is None or candidate is None or analysis is None or analysis.estimate is None:
        return 1.0
    is_paced = analysis.pace is not None and candidate.method.startswith(AT_FULL_SPEED)
    part = analysis.pace.reducible if is_paced and analysis.pace else 1.0
    fixed, all_of_it = baseline.relative_half_width**2, candidate.relative_half_width**2
    return part * all_of_it / (fixed + all_of_it) if all_of_it else 0.0


def _at_best(comparison: Comparison, share: float) -> float:
    """Return the half-width of a ratio, relative to it, without this share of its variance."""
    ratio = comparison.ratio
    return math.inf if ratio is None else ratio.relative_half_width * math.sqrt(1.0 - share)
