"""Conditions of good requests, as they are written."""

from __future__ import annotations

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import codec
from benchrigor.workbench.data import Limit, LoadResult
from benchrigor.workbench.good_requests import conditions_of, read_slo


@pytest.mark.parametrize(
    ("text", "metric", "at_most"),
    [
        ("response<200ms: 99%", "response<200ms", 0.01),
        ("response < 0.2s:0.95", "response<0.2s", 0.05),
        ("p99<200ms and first-byte<50ms: 99%", "response<200ms and first-byte<50ms", 0.01),
        ("p99.9<1s: 99.9%", "response<1s", 0.001),
        ("median<1s: 50%", "response<1s", 0.5),
        ("  chunk-gap<20ms   and response<2s : 90% ", "chunk-gap<20ms and response<2s", 0.1),
    ],
)
def test_a_limit_is_read(text: str, metric: str, at_most: float):
    assert read_slo(text) == (metric, at_most)
    limit = Limit(metric=metric, at_most=at_most)
    assert codec.decode(Limit, codec.encode(limit)) == limit
    assert limit.conditions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["has no share of good requests, expected ': 99%'", "'' is no condition"]),
        ("response<2s", ["has no share"]),
        ("response<2s: much", ["' much' is no share"]),
        ("response<2s: 100%", ["the share is 100%, expected above 0% and below 100%"]),
        ("response<2s: 0%", ["the share is 0%"]),
        ("response<2s: 99", ["write 99%"]),
        ("response<=2s: 99%", ["'response<=2s' is no condition, expected one as response<200ms"]),
        ("p95<2s: 99%", ["'p95' is no time of a request", "or p99, which means response"]),
        ("mean<2s: 99%", ["'mean' is no time of a request"]),
        (
            "response<2 and first-byte<-1s and gap<1s and first-byte<1s: 1",
            [
                "write 1% (or 0.01)",
                "response: 2 has no unit: write 2ms or 2s",
                "first-byte: '-1s' is no duration",
                "'gap' is no time of a request, expected response, first-byte, chunk-gap",
                "first-byte is limited twice",
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_named(text: str, said: list[str]):
    with pytest.raises(InvalidInput) as caught:
        read_slo(text)
    assert len(caught.value.problems) == len(said) - ("p95" in text)
    assert all(each in str(caught.value) for each in said)


def test_a_limit_refuses_wrong_conditions_and_shares():
    with pytest.raises(InvalidInput, match="'gap' is no time of a request"):
        Limit(metric="response<1s and gap<1s", at_most=0.01)
    with pytest.raises(InvalidInput, match="expected a share below 1"):
        Limit(metric="response<1s", at_most=1.0)
    assert conditions_of("a metric<1 of one's own") == {}


def test_a_share_says_which_times_it_implies():
    limit = Limit(metric="response<200ms and chunk-gap<20ms", at_most=0.001)
    assert limit.times == {"response-p99.9": 0.2, "chunk-gap-p99.9": 0.02}
    assert Limit(metric="p99", at_most=0.5).times == {"p99": 0.5}
    assert Limit(metric="failed", at_most=0.5).times == {}


def test_a_generator_may_tell_the_share_alone():
    limit = Limit(metric="response<200ms", at_most=0.01)
    assert limit.ratio_of(LoadResult(metrics={"response<200ms": 0.004})) == pytest.approx(0.4)
    assert limit.ratio_of(LoadResult(metrics={"response<200ms": 0.004, limit.nearness: 0.7})) == 0.7
    assert limit.ratio_of(LoadResult(mean_response_s=1.0)) is None
