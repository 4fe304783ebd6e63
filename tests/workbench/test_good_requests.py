"""Conditions of good requests, as they are written."""

from __future__ import annotations

import pytest

from benchrigor import Limit, LoadResult
from benchrigor.model import codec
from benchrigor.workbench.good_requests import read_slo


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
    assert not Limit(metric="depth<1 now", at_most=0.5).conditions


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
