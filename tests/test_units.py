"""Units, clocks, and the layout of pages."""

import math
import re
import subprocess
import sys
import time
from itertools import count, repeat

import pytest

from benchrigor import clocks
from benchrigor.clocks import WallClock, clock_cost_ns, measured_resolution_ns
from benchrigor.errors import ClockFailed
from benchrigor.layout import Title, page, row, table, wrapped
from benchrigor.testing import FakeClock
from benchrigor.units import (
    digits_for,
    direction_of,
    seconds_of,
    share_of,
    time_limit_of,
)


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


WIDTHS = [120, 80, 40, 20]
ROWS = [
    ("stage", "used", "note"),
    ("hash[0]", "7%", ""),
    ("a very long name of a stage that nobody can pronounce", "12%", "busy all of the time"),
]
REPORT = page(
    [
        Title("json[red].dumps"),
        *row("mean", ["53.4 ms ±3.1 % [53.1, 53.7]", "word " * 20]),
        *row("a label of more than a third of a line", ["text"]),
        *wrapped("a sentence that hangs " * 9, hanging=2),
        *wrapped("a warning " * 9, "  ! ", style="yellow"),
        "",
        *table(ROWS, "<><", indent=2),
    ]
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_no_word_is_lost_and_colours_change_no_letter(width: int) -> None:
    lines = REPORT.at(width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    letters = re.sub(r"[\s─]", "", "".join(lines))
    for text in (
        "json[red].dumps",
        "word" * 20,
        "awarning" * 9,
        *(cell for each in ROWS for cell in each),
    ):
        assert text.replace(" ", "") in letters

    coloured = REPORT.at(width, coloured=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == REPORT.at(width)
    assert "\x1b" not in REPORT + REPORT.at(width)


@pytest.mark.parametrize("length", [1, 9, 10, 11, 20, 38, 39, 40, 77, 78, 100])
def test_a_label_of_any_length_is_apart_from_its_text(length: int) -> None:
    label = "latency_ms" * 10
    text = page(row(label[:length], ["53.4 ms [53.1, 53.7] 95%", "word " * 20]))
    assert all(len(line) <= 79 for line in text.splitlines())
    words = text.split()
    assert "".join(words[: words.index("53.4")]) == label[:length]
    assert words[words.index("53.4") :][:5] == ["53.4", "ms", "[53.1,", "53.7]", "95%;"]


@pytest.mark.parametrize("code", ["import benchrigor", "from benchrigor.cli import main"])
def test_rich_is_not_loaded_before_something_is_shown(code: str) -> None:
    check = f"import sys; {code}; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_reading_a_system_clock_costs_no_python_call() -> None:
    assert WallClock().now_ns is time.perf_counter_ns


def test_the_resolution_is_the_smallest_step_seen() -> None:
    steps = iter([0, 0, 50, 50, 75, 175, *range(1_175, 10**9, 1_000)])
    assert measured_resolution_ns(lambda: next(steps)) == 25


def test_the_resolution_of_a_coarse_clock_is_found_by_reading_on() -> None:
    reads = count()
    assert measured_resolution_ns(lambda: next(reads) // 5_500 * 15_600_000) == 15_600_000


def test_a_clock_that_goes_backwards_has_no_resolution() -> None:
    clock = FakeClock(script=[100, 110, 93])
    with pytest.raises(ClockFailed, match="17 ns"):
        measured_resolution_ns(clock.now_ns)


def test_a_clock_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "MOST_BATCHES", 5)
    frozen = repeat(42)
    with pytest.raises(ClockFailed, match="5000"):
        measured_resolution_ns(lambda: next(frozen))


@pytest.mark.parametrize("cost_ns", [0, 1, 40])
def test_the_cost_is_what_two_reads_around_nothing_show(cost_ns: int) -> None:
    assert clock_cost_ns(FakeClock(cost_ns=cost_ns)) == cost_ns


def test_a_cost_below_the_resolution_is_seen_in_the_mean() -> None:
    # Most pairs of reads show no step at all, some show one of 1000 ns.
    assert clock_cost_ns(FakeClock(cost_ns=370, resolution_ns=1_000)) == pytest.approx(370, rel=0.1)


def test_all_processors_count_if_the_system_does_not_say_which_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(clocks.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(clocks.os, "cpu_count", lambda: 6)
    assert clocks.processors() == 6
