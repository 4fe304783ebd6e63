"""Runs that were measured in turn: a dict whose text is a ranked table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from benchrigor.errors import BenchrigorError
from benchrigor.layout import Part, page, wrapped
from benchrigor.model import RunRecord
from benchrigor.model.one_line import OneLine
from benchrigor.model.run_line import show_number
from benchrigor.model.run_table import tabulate
from benchrigor.model.text import many

_MOST_SENTENCES = 4


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
        ranked_table = tabulate(
            [*(self[name] for name in places), *others], places=[*places.values()]
        )
        return page([*self._sentences([*places]), ranked_table])

    def _sentences(self, ranked: Sequence[str]) -> Iterator[Part]:
        """Say how much faster the best is than each of the next ones."""
        from benchrigor.session.pairs.run_comparison import compare_runs  # noqa: PLC0415  # likewise

        for name in ranked[1 : 1 + _MOST_SENTENCES]:
            with suppress(BenchrigorError):
                yield from wrapped(str(compare_runs(self[name], self[ranked[0]])), hanging=2)

    def _line(self) -> str:
        analyses = {name: each.analysis() for name, each in self.items()}
        shown = (
            f"{name} {'no number' if each is None else show_number(each, 'mean')}"
            for name, each in analyses.items()
        )
        return f"{many(len(self), 'run')}: {', '.join(shown)}" if self else "no runs"
