import math
import re

import pytest

from benchrigor.units import (
    Quantity,
    digits_for,
    direction_of,
    quantity_of,
    scale_for,
    seconds_of,
    share_of,
    time_limit_of,
)


@pytest.mark.parametrize(
    ("typical", "unit", "name"),
    [
        *((0.00123, "s", "ms"), (2.5e-7, "s", "ns"), (0.0, "s", "ns"), (3600.0, "s", "s")),
        *((3.2e6, "B/s", "MB/s"), (3.2e6, "req/s", "M req/s"), (12.0, "Hz", "Hz")),
        (17.0, "widgets", "widgets"),
    ],
)
def test_one_number_fixes_the_prefix(typical: float, unit: str, name: str) -> None:
    assert scale_for(typical, unit).name == name


def test_a_number_is_shown_in_the_scale_of_another() -> None:
    assert scale_for(0.00123, "s").show(0.0101, 2) == "10.10"
    assert scale_for(1.0, "s").show(1.5e-12, 13) == "0.0000000000015"


@pytest.mark.parametrize(
    ("half_width", "typical", "digits"),
    [
        *((0.034, 12.0, 3), (40.0, 1200.0, 0), (0.0, 12.0, 0), (0.0, 0.3, 1), (0.0, 1 / 3, 4)),
        *((0.0, 0.0, 1), (math.inf, 12.0, 2)),
    ],
)
def test_two_digits_of_the_half_width_are_shown(
    half_width: float, typical: float, digits: int
) -> None:
    assert digits_for(half_width, typical) == digits


@pytest.mark.parametrize(
    ("way", "units"),
    [
        ("higher", "req/s B/s MiB/s Gbit/s ops/s /s 1/s Hz MHz rps fps items/sec pages/min s^-1"),
        ("lower", "s ms us µs ns min B kB MiB bytes ns/op B/op s/req"),
        (None, "% points score count ops J W °C errors"),
    ],
)
def test_the_unit_tells_which_way_is_better_where_it_is_plain(way: str | None, units: str) -> None:
    assert {unit for unit in units.split() if direction_of(unit) != way} == set()


def test_the_unit_tells_times_from_rates() -> None:
    assert {quantity_of(unit) for unit in ("s", "ms", "ns/op", "hours")} == {Quantity.TIME}
    assert {quantity_of(unit) for unit in ("req/s", "/s", "kHz", "tx per s")} == {Quantity.RATE}
    assert {quantity_of(unit) for unit in ("", "B", "points")} == {Quantity.OTHER}


@pytest.mark.parametrize(
    ("text", "share"), [("0.02", 0.02), (" 2% ", 0.02), ("250%", 2.5), ("0", 0.0), ("-1", -1.0)]
)
def test_a_share_is_a_number_or_a_percentage(text: str, share: float) -> None:
    assert share_of(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        *(("2", r"2% \(or 0.02\)"), ("1", r"1% \(or 0.01\)")),
        *(("12.5", r"12.5% \(or 0.125\)"), ("x%", "'x%'")),
    ],
)
def test_a_share_from_1_on_needs_its_percent_sign(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        share_of(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("250ms", 0.25), ("5s", 5.0), ("5 s", 5.0), (" 1m ", 60.0), ("2h", 7200.0), ("3", 3.0)),
        *(("1m30s", 90.0), ("1h 30min", 5400.0), ("10us", 1e-5), ("10µs", 1e-5), ("10μs", 1e-5)),
        *(("800ns", 8e-7), ("1e3ms", 1.0), (".5s", 0.5)),
    ],
)
def test_a_duration_has_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds, rel=1e-12)
    assert time_limit_of(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", "s", "soon", "-5s", "1,5s", "1.5.2s", "5x", "1h30", "5 5", "1m30", "5S", "nan", "1_0s"],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        seconds_of(text)


@pytest.mark.parametrize("text", ["0", "0ms", "1e400s"])
def test_a_limit_is_a_duration_above_0_or_none(text: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        time_limit_of(text)
    assert time_limit_of("none") == math.inf


@pytest.mark.parametrize("text", ["100", "0.1", " 1e2 "])
def test_a_bare_number_has_the_unit_that_is_agreed_or_none(text: str) -> None:
    digits = text.strip()
    assert seconds_of(text, bare_s=60.0) == 60.0 * float(text)
    with pytest.raises(ValueError, match=f"{digits}ms or {digits}s$"):
        seconds_of(text, bare_s=None)
