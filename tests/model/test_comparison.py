from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.model import Code, Comparison, Estimate, Notice, Verdict
from benchrigor.model.analysis import Observed
from benchrigor.model.comparison import Family, show_difference
from benchrigor.model.sentence import sentence, show_change
from benchrigor.report.comparison_text import show_basis, show_more
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


JSON = ("json", "orjson")


def test_the_sentence_names_both_sides_and_says_how_much_and_how_sure() -> None:
    assert str(WORSE) == "the candidate is 3.1% higher than the baseline [2.0%, 4.2%]"
    times = replace(WORSE, names=JSON, readings_in="s")
    assert str(times) == "orjson takes 3.1% more time than json [2.0%, 4.2%]"
    rates = replace(WORSE, names=JSON, readings_in="req/s", direction=Direction.HIGHER)
    assert str(rates) == "orjson is 3.1% faster than json [2.0%, 4.2%]"


def test_ratios_from_one_and_a_half_on_are_in_times_both_ways() -> None:
    faster = estimated(1.0 / 12.2, 1.0 / 12.3, 1.0 / 12.1)
    sides = replace(WORSE, names=JSON, readings_in="s", verdict=Verdict.BETTER)
    assert str(replace(sides, ratio=faster)) == "orjson is 12.2x faster than json [12.1, 12.3]"
    slower = replace(sides, ratio=estimated(1.5, 1.45, 1.56))
    assert str(slower) == "orjson is 1.50x slower than json [1.45, 1.56]"
    less = replace(sides, ratio=estimated(0.7, 0.69, 0.71))
    assert str(less) == "orjson takes 30.0% less time than json [29.0%, 31.0%]"


def test_what_is_undecided_is_no_difference() -> None:
    open_ = replace(UNDECIDED, names=JSON, readings_in="s")
    assert str(open_) == (
        "orjson does not clearly differ from json: 0.8% more time [0.4% less, 2.1% more]"
    )
    beyond_0 = replace(open_, ratio=estimated(1.0083, 1.0009, 1.0157))
    assert str(beyond_0) == (
        "orjson takes 0.83% more time than json [0.09%, 1.57%], perhaps within the margin of 1%"
    )
    equal = replace(open_, ratio=estimated(1.001, 0.996, 1.006), verdict=Verdict.EQUIVALENT)
    assert str(equal) == (
        "orjson and json are equal within 1%: 0.10% more time [0.40% less, 0.60% more]"
    )


def test_an_interval_on_both_sides_says_which_side_is_which() -> None:
    open_ = replace(UNDECIDED, names=JSON, readings_in="s", ratio=estimated(1.6, 0.9, 2.4))
    said = "orjson does not clearly differ from json: 1.6x slower [1.1x faster, 2.4x]"
    assert str(open_) == said
    never = replace(open_, ratio=estimated(0.5, 0.0, 1.25))
    assert str(never).endswith("2.0x faster [no limit, 1.2x slower]")


def test_of_several_comparisons_a_large_difference_may_be_chance() -> None:
    ratio = estimated(6.6, 3.3, float("inf"))
    one = replace(UNDECIDED, names=JSON, readings_in="s", ratio=ratio, margin=0.0)
    assert str(one) == "orjson is 6.6x slower than json [3.3, no limit], perhaps by chance"


def test_another_confidence_is_told() -> None:
    ratio = replace(WORSE.ratio, confidence=0.99)  # type: ignore[type-var]
    assert str(replace(WORSE, ratio=ratio)).endswith("[2.0%, 4.2%] at 99%")


def test_what_is_compared_and_what_it_takes_is_told_beside() -> None:
    assert show_basis(WORSE) == "10 vs 10 invocations"
    assert show_more(WORSE) == ""
    assert show_more(UNDECIDED) == "24 more each"
    pairs = replace(UNDECIDED, paired=True, unit="pair")
    assert (show_basis(pairs), show_more(pairs)) == ("10 pairs", "24 more pairs")
    assert show_basis(replace(WORSE, unit=None)) == "n=10 vs 10"


def test_without_a_ratio_the_line_shows_the_difference() -> None:
    found = replace(UNDECIDED, ratio=None, required=None, names=JSON)
    assert str(found) == "orjson minus json: +0.010 [-0.010, 0.020] 95%, undecided; no ratio"
    times = replace(found, readings_in="s")
    assert str(times) == "orjson minus json: +10 ms [-10, 20] 95%, undecided; no ratio"
    assert show_difference(replace(found, difference=None)) == ""


def test_without_a_number_the_line_says_why() -> None:
    why = Notice.refusal(Code.NO_STABLE_PHASE, "No steady {level}: it rises. " * 9)
    found = replace(UNDECIDED, ratio=None, difference=None, p_value=None, notices=(why,))
    assert str(found).startswith("no comparison of the candidate and the baseline: no steady {")
    assert len(str(found)) <= 100
    level = dict.fromkeys(("least", "p10", "median", "mean", "greatest"), 9e-5)
    seen = Observed(n=9, calls=9, levels=(), **level)
    observed = dict.fromkeys(("baseline", "candidate", "ratio"), seen)
    pairs = replace(found, observed=observed, names=("module:an_old_way", "module:a_new_way"))
    assert str(pairs).startswith("no comparison of module:a_new_way and module:an_old_way: no")
    assert len(str(pairs)) <= 100


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (estimated(0.5, 0.45, 0.56), "2.0x lower [1.8, 2.2]"),
        (estimated(0.8, 0.75, 0.86), "20.0% lower [14.0%, 25.0%]"),
        (estimated(1.0, 0.996, 1.004), "0% [-0.40%, +0.40%]"),
        (estimated(1.0, 1.0, 1.0), "0% [0.0%, 0.0%]"),
        (estimated(1_234.5, 1_200.0, 1_300.0), "1,234x higher [1,200, 1,300]"),
        (estimated(1.49, 1.4, 1.6), "49% higher [40%, 60%]"),
        (estimated(5.1, 1.1, float("inf")), "5.1x higher [1.1, no limit]"),
        (estimated(0.2, 0.0, 0.9), "5.0x lower [1.1, no limit]"),
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
    names = ("n" * 90, "json")
    line = str(replace(found, required=required, p_value=p, verdict=verdict, names=names))
    assert len(line) <= 100
    assert "json" in line


def family(*names: str) -> Family:
    return Family(
        comparisons={
            name: replace(WORSE, ratio=estimated(1234.5678, 1e-3, 9_999.0)) for name in names
        },
        adjusted=dict.fromkeys(names, 0.0123),
        verdicts=dict.fromkeys(names, Verdict.UNDECIDED),
        rate=0.05,
        summary=estimated(1.012, 1.008, 1.016, n=len(names)),
        notices=(Notice.warning(Code.HOSTS_DIFFER, "The runs are of two machines: " + "x" * 50),),
    )


def test_a_family_is_a_table_that_fits() -> None:
    lines = str(family("a", "b" * 60, " ".join(["c" * 30] * 5))).split("\n")
    assert max(map(len, lines)) <= 79
    assert lines[0].split() == ["name", "change", "[interval]", "visible", "p", "adj.", "verdict"]
    assert lines[1].split()[0] == "a"
    assert "geometric mean of 3 ratios: 1.20% higher [0.80%, 1.60%] 95%" in lines
    assert "95% intervals, margin 1%, false discoveries at most 5%" in lines
    assert lines[-3].startswith("p adj.: ")


def test_a_family_explains_the_columns_that_it_fills() -> None:
    found = family("a")
    explained = "visible: the smallest change that would be called one in 4 of 5 cases"
    assert explained not in str(found)
    assert explained in str(replace(found, visible={"a": 0.02})).split("\n")


def test_a_family_says_why_a_row_has_no_ratio() -> None:
    why = Notice.refusal(Code.TOO_FEW_READINGS, "There are 2 pairs, expected at least 3.")
    left_out = Notice.warning(Code.NO_RATIO, "Left out of the summary: b.")
    found = family("a", "b")
    none = replace(WORSE, ratio=None, notices=(why,))
    found = replace(
        found, comparisons={**found.comparisons, "b": none}, notices=(*found.notices, left_out)
    )
    assert str(found).split("\n")[-1] == "  ! b: There are 2 pairs, expected at least 3."
    assert "[no-ratio]" not in str(found)


def test_a_family_shows_the_verdict_that_stands() -> None:
    row = str(family("only")).split("\n")[1]
    assert row.split()[-1] == "undecided"
    assert "0.012" in row


def test_two_sides_of_one_name_are_told_apart_by_whole_words() -> None:
    ratio, typical = (
        Estimate(
            value=value, low=0.61, high=1.27, confidence=0.95, n=9, n_effective=9.0, method="ratio"
        )
        for value in (0.82, 2.11)
    )
    said = sentence(("f", "f"), ratio, "undecided", 0.01, unit="s", median=typical)
    assert said.startswith("the candidate does not clearly differ from the baseline: 18% less")
    assert len(said) <= 100
    clear = replace(ratio, low=0.71, high=0.92)
    said = sentence(("f", "f"), clear, "better", 0.01, unit="s", median=typical)
    assert said.endswith("less time than the baseline [8%, 29%]; median 2.1x slower")


def test_names_that_are_the_same_when_shortened_give_way_to_the_sides() -> None:
    names = tuple(f"results of the {which} week of may.jtl" for which in ("first", "third"))
    compared = replace(UNDECIDED, names=names, scope="these two runs")
    assert str(compared).startswith("candidate does not clearly differ from baseline in these two")


def test_names_stay_whole_rather_than_that_a_median_is_said() -> None:
    ratio, typical = (
        Estimate(
            value=value, low=low, high=high, confidence=0.95, n=9, n_effective=9.0, method="ratio"
        )
        for value, low, high in ((1.07, 0.81, 1.5), (1.198, 1.15, 1.25))
    )
    given = (ratio, "undecided", 0.01)
    said = sentence(("sl", "the candidate"), *given, unit="s", median=typical)
    assert said.startswith("the candidate does not clearly differ from sl: 7% more time")
    assert "median" not in said
    assert "; median 19.8% more time" in sentence(("f", "g"), *given, unit="s", median=typical)
