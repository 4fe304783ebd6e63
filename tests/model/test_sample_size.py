from dataclasses import replace

import pytest
from simulated.estimates import estimated

from benchrigor.model import Code, Notice, codec
from benchrigor.model.notice import Severity
from benchrigor.model.sample_size import Plan, Price
from benchrigor.model.track_record import Standing, Tally, TrackRecord

PILOT = estimated(0.01234, 0.0120, 0.0126, n=500, n_effective=400.0, method="long-run-variance")


def a_plan(**given: object) -> Plan:
    usual: dict[str, object] = {
        "pilot": PILOT,
        "counted_in": "reading",
        "change": 0.03,
        "margin": 0.01,
        "power": 0.8,
        "n": 1200,
        "n_low": 800,
        "n_high": 2100,
        "power_now": 0.43,
        "change_now": 0.0453,
        "prices": (
            Price(half_width=0.05, n=500, n_low=500, n_high=500, seconds=6.2),
            Price(half_width=0.005, n=123_456, n_low=98_765, n_high=234_567, seconds=90_000.0),
        ),
        "name": "sort",
        "unit": "s",
        "seconds": 14.8,
        "pilot_seconds": 6.2,
    }
    return Plan(**{**usual, **given})  # type: ignore[arg-type]


def test_a_plan_is_a_few_lines() -> None:
    assert str(a_plan()).splitlines() == [
        "sort: 12.34 ms [12.00, 12.60] 95% from 500 readings in 6.2 s",
        "  to see    a change of 3% beyond a margin of 1% with power 80%",
        "  takes     1,200 readings a side (800 to 2,100), 14.8 s each",
        "  so far    500 readings a side: power 43%, smallest change seen 4.53%",
        "  costs     half-width 5%:        500 readings                       6.2 s",
        "            half-width 0.5%:  123,456 readings  (98,765 to 234,567)   25 h",
    ]


def test_what_is_not_known_is_not_shown() -> None:
    text = str(a_plan(name="", unit="", margin=0.0, seconds=None, pilot_seconds=None, prices=()))
    assert text.splitlines()[0] == "0.01234 [0.01200, 0.01260] 95% from 500 readings"
    assert "margin" not in text
    assert "each" not in text
    assert "costs" not in text


def test_what_is_nearly_certain_is_not_called_certain() -> None:
    assert "power above 99.9%" in str(a_plan(power_now=1.0))
    assert "power 99.8%" in str(a_plan(power_now=0.998))


@pytest.mark.parametrize("name", ["n" * 200, "a long command line " * 20])
def test_a_plan_fits_a_terminal_of_80_columns(name: str) -> None:
    prices = tuple(
        Price(half_width=w, n=10**9, n_low=10**8, n_high=10**10, seconds=1e8) for w in (0.05, 0.001)
    )
    text = str(a_plan(name=name, n=10**9, n_high=10**11, seconds=1e9, prices=prices))
    assert max(map(len, text.splitlines())) <= 79
    assert not any(line != line.rstrip() for line in text.splitlines())


def test_a_plan_shows_its_notices_with_their_codes_whole() -> None:
    notices = tuple(
        Notice(code=code, severity=severity, sentence=f"{'x' * length} is what must be known.")
        for length in range(20, 60)
        for code, severity in (
            (Code.FEW_INVOCATIONS, Severity.NOTE),
            (Code.THIS_PROCESS_ONLY, Severity.WARNING),
        )
    )
    plain, text = str(a_plan()), str(a_plan(notices=notices))
    assert text.startswith(plain + "\n")
    lines = text.removeprefix(plain + "\n").splitlines()
    assert max(map(len, lines)) <= 79
    assert sum(line.startswith("  · x") for line in lines) == 40
    assert sum(line.startswith("  ! x") for line in lines) == 40
    assert sum("[few-invocations]" in line for line in lines) == 40
    assert sum("[this-process-only]" in line for line in lines) == 40


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0123, "12.3 ms"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7_199.0, "120 min"),
        (7_200.0, "2 h"),
        (172_799.0, "48 h"),
        (172_800.0, "2 days"),
        (1e8, "1,157 days"),
    ],
)
def test_long_times_are_shown_in_units_that_people_plan_by(seconds: float, shown: str) -> None:
    assert f", {shown} each" in str(a_plan(seconds=seconds))


def test_a_plan_survives_the_codec() -> None:
    assert codec.decode(Plan, codec.encode(a_plan())) == a_plan()


def a_record(
    held: int,
    pairs: int,
    low: float,
    high: float,
    standing: Standing = Standing.AS_CLAIMED,
    **given: object,
) -> TrackRecord:
    return TrackRecord(
        held=held,
        pairs=pairs,
        low=low,
        high=high,
        confidence=0.95,
        standing=standing,
        **given,  # type: ignore[arg-type]
    )


def test_a_track_record_is_a_sentence_and_what_it_means() -> None:
    record = a_record(218, 240, 0.865, 0.938, Standing.LESS, widening=1.31)
    lines = str(record).splitlines()
    assert lines[0] == "on this machine your 95% intervals held 91% of 240 times [86%, 94%]"
    assert lines[1].startswith("That is less than they claim; intervals 1.3 times as wide would")
    assert max(map(len, lines)) <= 79


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (a_record(1, 2, 0.1, 0.9), "So few pairs of runs cannot contradict the claim"),
        (a_record(1, 1, 0.2, 1.0), "held 100% of 1 time [20%, 100%]"),
        (a_record(200, 200, 0.98, 1.0, Standing.MORE), "more than they claim"),
        (a_record(239, 240, 0.977, 0.999), "held 99.6% of 240 times"),
        (a_record(5, 10, 0.24, 0.76, Standing.LESS), "less than they claim. Runs differ"),
        (a_record(19, 20, 0.76, 0.99, host="ci-3"), "on ci-3 your 95%"),
    ],
)
def test_the_words_follow_the_standing(record: TrackRecord, words: str) -> None:
    assert words in str(record).replace("\n", " ")
    assert "as wide" not in str(record)
    enough = replace(record, pairs=20, standing=Standing.AS_CLAIMED)
    assert "agrees with what they claim" in str(enough)


def test_a_track_record_survives_the_codec() -> None:
    record = a_record(1, 2, 0.1, 0.9, host="ci", by_name=(Tally(name="sort", held=1, pairs=2),))
    assert codec.decode(TrackRecord, codec.encode(record)) == record
    assert record.by_name[0].share == 0.5
