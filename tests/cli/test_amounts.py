import click
import pytest

from benchrigor.cli.amounts import Amounts, amounts


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("1000", 1000, "/s"),
        ("1k", 1000, "/s"),
        ("1K", 1000, "/s"),
        ("1e6", 10**6, "/s"),
        ("1E+6", 10**6, "/s"),
        ("0.5", 0.5, "/s"),
        (".5", 0.5, "/s"),
        ("2.", 2, "/s"),
        ("4.35k", 4350, "/s"),
        ("1e-3", 0.001, "/s"),
        ("7B", 7, "B/s"),
        ("1kB", 1000, "B/s"),
        ("1MB", 10**6, "B/s"),
        ("0.1MB", 100_000, "B/s"),
        ("1MiB", 2**20, "B/s"),
        ("64KiB", 65536, "B/s"),
        ("64kiB", 65536, "B/s"),
        ("1.5Gi", 3 * 2**29, "/s"),
        ("2T", 2 * 10**12, "/s"),
        ("1PiB", 2**50, "B/s"),
        (" 1MB ", 10**6, "B/s"),
        ("12345678901234567890", 12345678901234567890, "/s"),
    ],
)
def test_an_amount_is_read(text, amount, unit):
    found = amounts(text)
    assert found == Amounts(work=amount, speed_unit=unit)
    assert type(found.work) is type(amount)


@pytest.mark.parametrize(
    ("text", "work", "unit"),
    [
        ("1MB:1GB", (10**6, 10**9), "B/s"),
        ("1000:1e6", (1000, 10**6), "/s"),
        ("0:64KiB", (0, 65536), "B/s"),
        ("1k:", (1000, None), "/s"),
        (":1GB", (0, 10**9), "B/s"),
        (":", (0, None), "/s"),
        ("0.5:2", (0.5, 2), "/s"),
        ("1 : 2", (1, 2), "/s"),
    ],
)
def test_a_range_is_read(text, work, unit):
    assert amounts(text) == Amounts(work=work, speed_unit=unit)
    assert [type(end) for end in amounts(text).work] == [type(end) for end in work]


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1m", "1b", "1i", "1iB", "1 k", "1kk", "MB", "-1", "-1:5", "1:x", "x:5"),
        *("1:2:3", "nan", "inf", "0x10", "1_000", "1e999", "1e", "1,5", "٣", "9" * 5000),
    ],
)
def test_what_is_no_amount_is_named(text):
    with pytest.raises(click.BadParameter, match="no amount"):
        amounts(text)


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("0", "'0': work is 0, expected an amount above 0"),
        ("0MB", "'0MB': work is 0"),
        ("1GB:1MB", "'1GB:1MB': .*expected a range that ends above its beginning"),
        ("5:5", "expected a range that ends above its beginning"),
        (":0", "expected a range that ends above its beginning"),
    ],
)
def test_what_is_out_of_range_is_named(text, phrase):
    with pytest.raises(click.BadParameter, match=phrase):
        amounts(text)
