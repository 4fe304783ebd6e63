"""Plans, replays of rules and the track record of intervals as text."""

from __future__ import annotations

from benchrigor.layout import Page, Part, page, row, table, wrapped
from benchrigor.model import Estimate
from benchrigor.model.replay import Replay, Ruling
from benchrigor.model.sample_size import Plan
from benchrigor.model.text import counted, many, percent, show_duration, show_estimate
from benchrigor.model.track_record import Standing, TrackRecord
from benchrigor.report.notice_lines import marked

_NEARLY_CERTAIN = 0.999
# Misses expected of honest intervals (about one), below which counts cannot contradict them.
_FEWEST_MISSES = 0.999
_HEADER = ("rule", "would stop at", "estimate", "later")
_UNTOLD = "cannot tell"
_NOBODY_CAN_TELL = (
    "; cannot tell: too few follow to contradict it (their interval is over twice as wide, or "
    "there is none)"
)


def plan_page(plan: Plan) -> Page:
    """Return the pilot of a plan, the size that it needs, and the cost of narrower intervals."""
    name = f"{plan.name}: " if plan.name else ""
    size = many(plan.pilot.n, plan.counted_in)
    spent = "" if plan.pilot_seconds is None else f" in {show_duration(plan.pilot_seconds)}"
    beyond = f" beyond a margin of {percent(plan.margin)}" if plan.margin else ""
    wanted = f"a change of {percent(plan.change)}{beyond} with power {percent(plan.power)}"
    needed = f"{many(plan.n, plan.counted_in)} a side"
    if plan.n_low < plan.n_high:
        needed += f" {_range(plan.n_low, plan.n_high)}"
    if plan.seconds is not None:
        needed += f", {show_duration(plan.seconds)} each"
    power = f"above {percent(_NEARLY_CERTAIN)}"
    if plan.power_now < _NEARLY_CERTAIN:
        power = percent(plan.power_now)
    now = f"{size} a side: power {power}, smallest change seen {percent(plan.change_now)}"
    return page(
        [
            *wrapped(f"{name}{show_estimate(plan.pilot, plan.unit)} from {size}{spent}"),
            *row("to see", [wanted]),
            *row("takes", [needed]),
            *row("so far", [now]),
            *_price_list(plan),
            *(line for notice in plan.notices for line in marked(notice)),
        ]
    )


def _price_list(plan: Plan) -> list[Part]:
    """Show one price a line."""
    if not plan.prices:
        return []
    rows = [
        (
            f"{'' if index else 'costs':<8}",
            f"half-width {percent(price.half_width)}:",
            many(price.n, plan.counted_in),
            _range(price.n_low, price.n_high),
            "" if price.seconds is None else show_duration(price.seconds),
        )
        for index, price in enumerate(plan.prices)
    ]
    return table(rows, "<<><>", has_names=False, indent=2)


def _range(low: int, high: int) -> str:
    return f"({counted(low)} to {counted(high)})" if low < high else ""


def replay_page(replay: Replay) -> Page:
    """Return a table of rules, and below it what stops none."""
    wanted = "" if replay.target is None else f", half-width wanted {percent(replay.target)}"
    lines = wrapped(
        f"{replay.name}: {many(replay.n, replay.counted_in)} replayed{wanted}", hanging=2
    )
    rows = [_HEADER, *(row for ruling in replay.rulings for row in _rows(ruling, replay.unit))]
    lines += table(rows, "<><<")
    shown = [_agrees(ruling) for ruling in replay.rulings]
    if any(shown):
        lines += wrapped(
            f"later: whether the interval at the stop agrees with the {replay.counted_in}s "
            "after it" + (_NOBODY_CAN_TELL if _UNTOLD in shown else ""),
            hanging=2,
        )
    for rule in replay.rulings:
        lines += wrapped(f"! {rule.name}: {rule.sentence}", hanging=2) if rule.sentence else []
    return page(lines)


def _rows(ruling: Ruling, unit: str) -> list[tuple[str, str, str, str]]:
    """Return the estimate of a rule at its stop, and below it the one from all readings."""
    stop, shown = "not yet", ""
    if ruling.stopped is not None:
        stop, shown = counted(ruling.stopped), _show_estimate(ruling.estimate, unit)
    elif ruling.final is None and ruling.sentence:
        return [(ruling.name, "–", "no number", "")]
    rows = [(ruling.name, stop, shown, _agrees(ruling))]
    if ruling.final is not None or ruling.sentence:
        rows.append(("", "in all", _show_estimate(ruling.final, unit), ""))
    return rows


def _agrees(ruling: Ruling) -> str:
    untold = "" if ruling.stopped is None else _UNTOLD
    return {None: untold, True: "yes", False: "no"}[ruling.held]


def _show_estimate(estimate: Estimate | None, unit: str) -> str:
    return "no number" if estimate is None else show_estimate(estimate, unit)


def track_record_page(record: TrackRecord) -> Page:
    """Say how many intervals held, and what that means."""
    where = "this machine" if record.host is None else record.host
    share = f"{record.share:.0%}"
    if share == "100%" and record.held < record.pairs:
        share = percent(record.share)
    sentence = (
        f"on {where} your {percent(record.confidence, digits=10)} intervals held {share} of "
        f"{many(record.pairs, 'time')} [{record.low:.0%}, {record.high:.0%}]"
    )
    return page([*wrapped(sentence), *wrapped(_meaning(record))])


def _meaning(record: TrackRecord) -> str:
    match record.standing:
        case Standing.LESS:
            wider = (
                f"; intervals {record.widening:.2g} times as wide would have held as often"
                if record.widening is not None
                else ""
            )
            return (
                f"That is less than they claim{wider}. Runs differ by more than one run can "
                "see (memory layout, other load, a change in what was measured): believe no "
                "difference of that size before several invocations of each side show it."
            )
        case Standing.MORE:
            return "That is more than they claim: the intervals are wider than they need be."
        case _ if record.pairs * (1.0 - record.confidence) < _FEWEST_MISSES:
            return "So few pairs of runs cannot contradict the claim: keep more of them."
        case _:
            return "That agrees with what they claim, as far as so many pairs can tell."
