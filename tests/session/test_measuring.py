import re

import numpy as np
import pytest

import benchrigor as br
from benchrigor.testing import FakeClock


def test_it_finds_the_time_of_a_call() -> None:
    clock = FakeClock()
    record = br.measure(lambda: clock.advance(5_000_000), clock=clock, seed=1)
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(0.005)
    assert record.metrics[0].unit == "s"


def test_setup_and_teardown_are_not_timed() -> None:
    clock = FakeClock()
    calls = []
    record = br.measure(
        lambda: clock.advance(5_000_000),
        setup=lambda: (calls.append("setup"), clock.advance(70_000_000)),
        teardown=lambda: (calls.append("teardown"), clock.advance(30_000_000)),
        clock=clock,
        seed=1,
    )
    estimate = record.estimate()
    assert estimate is not None
    assert estimate.value == pytest.approx(0.005)
    assert calls[:4] == ["setup", "teardown", "setup", "teardown"]


def test_the_headline_is_one_line_with_name_unit_and_interval() -> None:
    clock = FakeClock()
    ticks = np.random.default_rng(1).normal(5e6, 2e5, 5000).astype(int).tolist()
    record = br.measure(lambda: clock.advance(ticks.pop()), name="nap", clock=clock, seed=1)
    line = str(record)
    assert "\n" not in line
    shape = (
        r"nap: [45]\.\d{3} ms \[4\.9\d\d, 5\.0\d\d\] 95% · n=490 \(\d+ effective\) · satisfied, "
    )
    assert re.match(shape, line)


def test_a_spent_budget_says_so_in_the_headline() -> None:
    clock = FakeClock()
    record = br.measure(lambda: clock.advance(10**9), budget_s=5.0, clock=clock, seed=1)
    assert "time budget spent" in str(record)


def test_what_cannot_be_called_is_named() -> None:
    with pytest.raises(br.InvalidInput, match="func is 'len', expected something"):
        br.measure("len")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ({"target": 0.0}, r"target is 0\.0"),
        ({"confidence": 1.0}, r"confidence is 1\.0"),
        ({"budget_s": -1.0}, r"budget_s is -1\.0"),
        ({"statistic": "mode"}, "statistic is 'mode'"),
        ({"batch": 0}, r"batch is 0, expected a whole number from 1 on, or None"),
        ({"batch": 5, "setup": list}, "batch is 5, expected 1 since setup"),
        ({"setup": "x", "gc": []}, r"2 problems:(.|\n)*setup is 'x'(.|\n)*gc is \[\]"),
        ({"gc": "sometimes"}, "gc is 'sometimes'"),
    ],
)
def test_options_out_of_range_are_named(given: dict[str, object], phrase: str) -> None:
    with pytest.raises(br.InvalidInput, match=phrase):
        br.measure(lambda: None, **given)  # type: ignore[arg-type]


def test_all_bad_options_are_named_at_once() -> None:
    with pytest.raises(br.InvalidInput, match="3 problems") as caught:
        br.Options(target=-1.0, confidence=2.0, analysis="wps")
    assert "in a later version" in str(caught.value)


def test_a_generator_function_is_refused_rather_than_its_making_measured() -> None:
    def steps():  # type: ignore[no-untyped-def]  # as a user writes it
        yield

    with pytest.raises(br.InvalidInput, match="calling it only makes an object"):
        br.measure(steps)
