from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.model import Code, Comparison, Estimate, Family, Notice, Verdict
from benchrigor.model.comparison import show_difference
from benchrigor.model.text import show_change
from benchrigor.units import Direction

UNDECIDED = Comparison(
    statistic="mean",
    direction=Direction.LOWER,
    margin=0.01,
    confidence=0.95,
    paired=False,
    unit="invocation",
    baseline=estimated(1.0, 0.9, 1.1, n=10),
    candidate=estimated(1.0, 0.9, 1.1, n=10),
    ratio=estimated(1.0083, 0.9959, 1.0207),
    difference=estimated(0.01, -0.01, 0.02),
    p_value=0.213,
    p_beyond=1.0,
    verdict=Verdict.UNDECIDED,
    required=24,
)
WORSE = replace(
    UNDECIDED,
    ratio=estimated(1.031, 1.02, 1.042),
    p_value=0.00031,
    p_beyond=0.001,
    verdict=Verdict.WORSE,
)


def test_a_verdict_says_how_much_how_sure_and_on_what_evidence() -> None:
    assert str(WORSE) == (
        "3.1% higher [+2.0%, +4.2%] 95%: worse (margin 1%) · p=0.00031 · 10 vs 10 invocations"
    )


def test_what_is_undecided_says_how_much_more_it_takes() -> None:
    assert str(UNDECIDED) == (
        "0.8% higher [-0.4%, +2.1%] 95%: undecided (margin 1%) · p=0.21 · "
        "10 vs 10 invocations, 24 more each"
    )


def test_pairs_are_counted_once() -> None:
    found = replace(UNDECIDED, paired=True, unit="pair")
    assert str(found).endswith("p=0.21 · 10 pairs, 24 more pairs")


def test_without_a_ratio_the_line_shows_the_difference() -> None:
    found = replace(UNDECIDED, ratio=None, required=None)
    assert str(found).startswith("no ratio, difference +0.010 [-0.010, 0.020] 95%: undecided")


def test_the_difference_is_shown_in_the_unit_of_the_readings() -> None:
    found = replace(UNDECIDED, ratio=None, required=None, readings_in="s")
    assert str(found).startswith("no ratio, difference +10 ms [-10, 20] 95%: undecided")
    assert show_difference(replace(found, difference=None)) == ""


def test_sides_that_count_different_things_are_only_numbered() -> None:
    assert str(replace(WORSE, unit=None)).endswith("n=10 vs 10")


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (estimated(0.5, 0.45, 0.56), "50.0% lower [-55.0%, -44.0%]"),
        (estimated(1.0, 0.996, 1.004), "unchanged [-0.40%, +0.40%]"),
        (estimated(1.0, 1.0, 1.0), "unchanged [+0.0%, +0.0%]"),
        (estimated(1_234.5, 1_200.0, 1_300.0), "1,234 times [1,200, 1,300]"),
        (estimated(1.99, 1.9, 2.1), "99% higher [+90%, +110%]"),
    ],
)
def test_a_ratio_is_told_as_a_change(ratio: Estimate, words: str) -> None:
    assert show_change(ratio) == words


def sized(*, value: float, width: float, n: int, unit: str | None) -> Comparison:
    return replace(
        UNDECIDED,
        baseline=estimated(1.0, 1.0, 1.0, n=n),
        ratio=estimated(value, value * (1 - width), value * (1 + width)),
        unit=unit,
    )


@given(
    st.builds(
        sized,
        value=st.floats(0.001, 1e6),
        width=st.floats(0.0, 0.9),
        n=st.integers(1, 10**9),
        unit=st.sampled_from(["reading", "invocation", None]),
    ),
    st.integers(0, 10**12),
    st.floats(0.0, 1.0),
    st.sampled_from(list(Verdict)),
)
def test_the_line_never_grows_beyond_a_hundred_columns(
    found: Comparison, required: int, p: float, verdict: Verdict
) -> None:
    line = str(replace(found, required=required, p_value=p, verdict=verdict))
    assert len(line) <= 100
    assert f": {verdict} (margin 1%)" in line


def family(*names: str) -> Family:
    return Family(
        comparisons={
            name: replace(WORSE, ratio=estimated(1234.5678, 1e-3, 9_999.0)) for name in names
        },
        adjusted=dict.fromkeys(names, 0.0123),
        verdicts=dict.fromkeys(names, Verdict.UNDECIDED),
        rate=0.05,
        summary=estimated(1.012, 1.008, 1.016, n=len(names)),
        notices=(
            Notice.warning(
                Code.NO_RATIO, "Without a ratio, and so without part in the summary: " + "x" * 30
            ),
        ),
    )


def test_a_family_is_a_table_that_fits() -> None:
    lines = str(family("a", "b" * 60, " ".join(["c" * 30] * 5))).split("\n")
    assert max(map(len, lines)) <= 79
    assert lines[0].split() == ["name", "change", "[interval]", "visible", "p", "adj.", "verdict"]
    assert lines[1].split()[0] == "a"
    assert "geometric mean of 3 ratios: 1.20% higher [+0.80%, +1.60%] 95%" in lines
    assert "95% intervals, margin 1%, false discoveries at most 5%" in lines


def test_a_family_shows_the_verdict_that_stands() -> None:
    row = str(family("only")).split("\n")[1]
    assert row.split()[-1] == "undecided"
    assert "0.012" in row
