"""A session that compares its run with an earlier one while readings come."""

from __future__ import annotations

from typing import Any

from benchrigor.errors import NotEstimable
from benchrigor.model import Comparison, Estimate, Options, Progress, RunRecord
from benchrigor.session.pairs.run_comparison import compare_named, label_of
from benchrigor.session.session import Session
from benchrigor.session.stop_rules import caution, default_rules


class Against:
    """Stops a session when its ratio to a baseline is known well enough, never on a verdict.

    Parameters
    ----------
    baseline
        An earlier run.
    target
        Half-width of the ratio that is wanted, relative to the ratio.

    Attributes
    ----------
    baseline
        As given.
    ratio
        At the latest look that agreed with the one before; None before the first.
    """

    def __init__(self, baseline: RunRecord, target: float) -> None:
        self.baseline = baseline
        self._target = target
        self._session: Session | None = None
        self.ratio: Estimate | None = None

    def begin(self, options: Options, *arguments: Any, **others: Any) -> Session:
        """Make a session that stops so; the rest as for `Session`, whose own target is none."""
        rules = default_rules(options, narrow=self._is_narrow)
        self._session = Session(options, *arguments, rules=rules, **others)
        return self._session

    def compared(self) -> Comparison:
        """Compare the run so far with the baseline.

        Raises
        ------
        NotComparable, NotEstimable
            When the runs allow no comparison.
        """
        if self._session is None:
            raise TypeError("compared before begin")
        candidate = self._session.result()
        return compare_named(
            {label_of(self.baseline): self.baseline, "this run": candidate},
            statistic=candidate.options.statistic,
            confidence=candidate.options.confidence,
            margin=0.0,
        )

    def _is_narrow(self, progress: Progress) -> bool:
        """Whether the interval of the ratio is as narrow as wanted."""
        try:
            ratio = self.compared().ratio
        except NotEstimable:
            return False
        self.ratio = ratio
        if ratio is None:  # the baseline is 0
            return False
        careful = max(caution(each) for each in progress.analyses if each.metric.must_satisfy)
        return bool(ratio.half_width * careful <= self._target * abs(ratio.value))
