"""Amounts of work as they are written: the values of --work."""

import click
import pytest

from benchrigor.cli import main

CONTEXT = click.Context(main)
(WORK,) = (each for each in main.get_command(CONTEXT, "run").params if each.name == "work")


@pytest.mark.parametrize(
    ("text", "work", "unit"),
    [
        ("1000", 1000, "/s"),
        ("1k", 1000, "/s"),
        ("1K", 1000, "/s"),
        ("1E+6", 10**6, "/s"),
        (".5", 0.5, "/s"),
        ("2.", 2, "/s"),
        ("4.35k", 4350, "/s"),
        ("1e-3", 0.001, "/s"),
        ("7B", 7, "B/s"),
        ("0.1MB", 100_000, "B/s"),
        ("64KiB", 65536, "B/s"),
        ("64kiB", 65536, "B/s"),
        ("1.5Gi", 3 * 2**29, "/s"),
        ("1PiB", 2**50, "B/s"),
        (" 1MB ", 10**6, "B/s"),
        ("12345678901234567890", 12345678901234567890, "/s"),
        ("1MB:1GB", (10**6, 10**9), "B/s"),
        ("1k:", (1000, None), "/s"),
        (":1GB", (0, 10**9), "B/s"),
        (":", (0, None), "/s"),
        ("0.5:2", (0.5, 2), "/s"),
        ("1 : 2", (1, 2), "/s"),
    ],
)
def test_an_amount_or_a_range_is_read(text, work, unit):
    found = WORK.type.convert(text, WORK, CONTEXT)
    assert (found.work, found.speed_unit) == (work, unit)
    assert repr(found.work) == repr(work)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1m", "1b", "1i", "1iB", "1 k", "1kk", "MB", "-1", "-1:5", "1:x", "x:5"),
        *("1:2:3", "nan", "inf", "0x10", "1_000", "1e999", "1e", "1,5", "٣", "9" * 5000),
        *("0", "0MB", "1GB:1MB", "5:5", ":0"),  # out of range
    ],
)
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(click.BadParameter):
        WORK.type.convert(text, WORK, CONTEXT)
