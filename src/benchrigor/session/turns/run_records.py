"""Runs that were measured in turn: a dict whose text is a ranked table."""

from __future__ import annotations

from contextlib import suppress

from benchrigor.errors import BenchrigorError
from benchrigor.model import RunRecord
from benchrigor.model.one_line import OneLine
from benchrigor.model.run_table import tabulate
from benchrigor.model.text import many, show_interval


class RunRecords(OneLine, dict[str, RunRecord]):
    """Records by name; ``print(records)`` ranks them, the best first.

    Those that do not differ beyond chance share a place, as in `benchrigor compare`. Runs without
    a number have none, and stand in the order given.
    """

    def __str__(self) -> str:
        if not self:
            return "no runs"
        from benchrigor.session.pairs.run_comparison import rank_runs  # noqa: PLC0415  # slow to load

        known = {name: each for name, each in self.items() if each.estimate() is not None}
        places = dict[str, int]()
        with suppress(BenchrigorError):  # what is not comparable has no order
            ranked = rank_runs(known)[0] if known else ()
            places = {each.name: each.place for each in ranked}
        others = [each for name, each in self.items() if name not in places]
        return tabulate([*(self[name] for name in places), *others], places=[*places.values()])

    def _line(self) -> str:
        analyses = {name: each.analysis() for name, each in self.items()}
        shown = (
            f"{name} {show_interval(each.estimate, each.metric.unit)}"
            if each and each.estimate
            else f"{name} no number"
            for name, each in analyses.items()
        )
        return f"{many(len(self), 'run')}: {', '.join(shown)}" if self else "no runs"
