"""Plans and the track record of intervals as text."""

from __future__ import annotations

from dataclasses import replace

from benchrigor.layout import Part, table
from benchrigor.model.comparison import Plan, Standing, TrackRecord
from benchrigor.model.text import show_estimate
from benchrigor.report.fact import Depth, Fact, known, list_rows, sentence, told_by
from benchrigor.units import counted, many, percent, show_duration

_NEARLY_CERTAIN = 0.999
# Misses expected of honest intervals (about one), below which counts cannot contradict them.
_FEWEST_MISSES = 0.999


def facts_of_plan(plan: Plan) -> list[Fact]:
    """Return the pilot of a plan, the size that its change takes, and the cost of intervals."""
    name = f"{plan.name}: " if plan.name else ""
    spent = "" if plan.pilot_seconds is None else f" in {show_duration(plan.pilot_seconds)}"
    pilot = f"{show_estimate(plan.pilot, plan.unit)} from {many(plan.pilot.n, plan.counted_in)}"
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
    size = many(plan.pilot.n, plan.counted_in)
    now = f"{size} a side: power {power}, finds changes from {percent(plan.change_now)}"
    return known(
        sentence("pilot", f"{name}{pilot}{spent}"),
        Fact("change", Depth.PAGE, "to see", wanted, plan.change),
        Fact("size", Depth.PAGE, "takes", needed, plan.n),
        Fact("power", Depth.PAGE, "so far", now, plan.power_now),
        list_rows("prices", _price_list(plan)),
        *told_by((), plan.notices, depth=Depth.PAGE),
    )


def _price_list(plan: Plan) -> list[Part]:
    """Show one price a line."""
    if not plan.prices:
        return []
    widest_first = sorted(plan.prices, key=lambda price: -price.half_width)
    narrowest = {replace(price, half_width=0.0): price for price in widest_first}  # by cost
    rows = [
        (
            f"{'' if index else 'costs':<8}",
            f"half-width {percent(price.half_width)}:",
            many(price.n, plan.counted_in),
            _range(price.n_low, price.n_high) or "the fewest for any interval",
            "" if price.seconds is None else show_duration(price.seconds),
        )
        for index, price in enumerate(narrowest.values())
    ]
    return table(rows, "<<><>", has_names=False, indent=2)


def _range(low: int, high: int) -> str:
    return f"({counted(low)} to {counted(high)})" if low < high else ""


def facts_of_track_record(record: TrackRecord) -> list[Fact]:
    """Say how many intervals held, and what that means."""
    where = "this machine" if record.host is None else record.host
    share = f"{record.share:.0%}"
    if share == "100%" and record.held < record.pairs:
        share = percent(record.share)
    held = (
        f"on {where} your {percent(record.confidence, digits=10)} intervals held {share} of "
        f"{many(record.pairs, 'time')} [{record.low:.0%}, {record.high:.0%}]"
    )
    return [sentence("held", held), sentence("meaning", _meaning(record))]


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
                "see (memory layout, other load, a change in the program): believe no "
                "difference of that size before several invocations of each side show it."
            )
        case Standing.MORE:
            return "That is more than they claim: the intervals are wider than they need be."
        case _ if record.pairs * (1.0 - record.confidence) < _FEWEST_MISSES:
            return "Too few pairs of runs to contradict the claim: keep more of them."
        case _:
            return "That agrees with their claim, as far as this number of pairs shows."
