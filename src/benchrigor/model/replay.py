"""What rules would have said of recorded readings, and when each would have stopped: Replay."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from benchrigor.model.estimate import Estimate
from benchrigor.model.text import counted, many, percent, show_estimate

__all__ = ["Replay", "Ruling"]

_WIDTH = 79
_HEADER = ("rule", "would stop at", "said", "later")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What one rule would have said.

    Parameters
    ----------
    name
        How the rule is called.
    stopped
        Readings (or rounds) after which it would have stopped; None where it would have gone on
        beyond what was recorded.
    estimate
        What it would have said then; None where it would not have stopped.
    final
        What it says of all that was recorded; None where it refuses.
    sentence
        Why there is no number, where one is missing; empty otherwise.
    later
        Estimate of what was recorded after the stop, by its long-run variance (over restarted
        rounds, by their spread); None without a stop, or where too little follows.
    held
        Whether ``estimate`` agrees with ``later``, given the errors that both claim; None where
        nobody can tell.
    """

    name: str
    stopped: int | None = None
    estimate: Estimate | None = None
    final: Estimate | None = None
    sentence: str = ""
    later: Estimate | None = None
    held: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Recorded readings, judged under one or more rules.

    ``print(replay)`` shows a table.

    Parameters
    ----------
    name
        What was measured.
    n
        How many readings (or rounds) were recorded.
    counted_in
        "reading" or "round": what ``n`` and `Ruling.stopped` count.
    target
        Relative half-width wanted; None where only an absolute one was, or none at all.
    confidence
        Nominal coverage asked for, in (0, 1).
    unit
        Of the readings.
    rulings
        One per rule, in the order in which they were given.

    Examples
    --------
    >>> early = Estimate(value=0.010, low=0.0096, high=0.0104, confidence=0.95, n=500,
    ...                  n_effective=500.0, method="long-run-variance")
    >>> print(Replay(name="sort", n=800, counted_in="reading", target=0.05, confidence=0.95,
    ...              unit="s", rulings=(Ruling(name="mine", stopped=500, estimate=early,
    ...                                        final=early, held=True),)))
    sort: 800 readings replayed, half-width wanted 5%
    rule  would stop at  said                        later
    mine            500  10.00 ms [9.60, 10.40] 95%  yes
                 in all  10.00 ms [9.60, 10.40] 95%
    later: whether the interval at the stop agrees with the readings after it
    """

    name: str
    n: int
    counted_in: str
    target: float | None
    confidence: float
    unit: str
    rulings: tuple[Ruling, ...]

    def __str__(self) -> str:
        wanted = "" if self.target is None else f", half-width wanted {percent(self.target)}"
        lines = _wrapped(f"{self.name}: {many(self.n, self.counted_in)} replayed{wanted}")
        lines += _table([row for each in self.rulings for row in _rows(each, self.unit)])
        if any(each.held is not None for each in self.rulings):
            kind = f"{self.counted_in}s"
            lines += _wrapped(
                f"later: whether the interval at the stop agrees with the {kind} after it"
            )
        for each in self.rulings:
            lines += _wrapped(f"! {each.name}: {each.sentence}") if each.sentence else []
        return "\n".join(lines)


_Row = tuple[str, str, str, str]


def _rows(ruling: Ruling, unit: str) -> list[_Row]:
    """Say what a rule found at its stop, and below it what it finds of all readings."""
    stop, said, held = "not yet", "", ""
    if ruling.stopped is not None:
        stop, said = counted(ruling.stopped), _shown(ruling.estimate, unit)
    elif ruling.final is None and ruling.sentence:
        return [(ruling.name, "–", "no number", "")]
    if ruling.held is not None:
        held = "yes" if ruling.held else "no"
    rows = [(ruling.name, stop, said, held)]
    if ruling.final is not None or ruling.sentence:
        rows.append(("", "in all", _shown(ruling.final, unit), ""))
    return rows


def _shown(estimate: Estimate | None, unit: str) -> str:
    return "no number" if estimate is None else show_estimate(estimate, unit)


def _table(rows: list[_Row]) -> list[str]:
    """Lay out rows; a name too long for the table stands on lines of its own."""
    rows = [_HEADER, *rows]
    stop, said, later = (max(len(row[column]) for row in rows) for column in (1, 2, 3))
    room = max(_WIDTH - stop - said - later - 6, len(_HEADER[0]))
    names = min(max(len(row[0]) for row in rows), room)
    lines = []
    for name, *cells in rows:
        fits = len(name) <= names
        lines += [] if fits else _wrapped(name)
        first = name if fits else ""
        line = f"{first:<{names}}  {cells[0]:>{stop}}  {cells[1]:<{said}}  {cells[2]}"
        lines.append(line.rstrip())
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
