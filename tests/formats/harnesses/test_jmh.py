import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.units import Direction


def test_forks_are_rounds(sample, document) -> None:
    found = sample("jmh.json")["org.example.B.sum avgt (n=10)"]
    raw = document("jmh.json")[0]["primaryMetric"]["rawData"]
    assert found.unit == "fork"
    held = [each.unit_readings["time"] for each in found.rounds]
    assert np.array(held) == pytest.approx(np.array(raw) * 1e-6, rel=1e-12)
    assert found.parameters == {"n": "10", "threads": 1}
    assert found.provenance.environment["jdkVersion"] == "17.0.15"


def test_of_throughput_more_is_better_and_iterations_take_equal_times(sample) -> None:
    (metric,) = sample("jmh.json")["org.example.B.sum thrpt (n=10)"].metrics
    assert (metric.unit, metric.direction) == ("ops/s", Direction.HIGHER)
    assert metric.averaging == "arithmetic"


def test_sampled_calls_give_a_mean_for_each_iteration_in_order(sample) -> None:
    found = sample("jmh.json")["org.example.B.sum sample (n=10)"]
    readings = np.concatenate([each.unit_readings["time"] for each in found.rounds])
    assert readings.size == 25
    assert readings == pytest.approx((1.9 * 300 + 2.1 * 290 + 18) / 592 * 1e-6, rel=0.02)


def test_numbers_that_stand_as_words_are_no_readings(sample, held, document) -> None:
    names = [each.name for each in sample("jmh.json")["org.example.B.sum avgt (n=10)"].metrics]
    assert names == ["time", "·gc.alloc.rate.norm"]
    data = document("jmh.json")
    data[0]["primaryMetric"]["rawData"][1][2] = "+INF"
    with pytest.raises(InvalidInput, match=r"rawData\[1\]\[2\] is '\+INF', expected a number"):
        held(data)


def test_a_score_alone_is_no_reading(held, document) -> None:
    data = document("jmh.json")
    del data[0]["primaryMetric"]["rawData"]
    found = held(data)[0]
    assert "only score 1.5" in found.notices[0].sentence


def test_throughput_in_a_unit_that_is_no_rate_is_refused(held, document) -> None:
    data = document("jmh.json")
    data[1]["primaryMetric"]["scoreUnit"] = "furlong"
    with pytest.raises(InvalidInput, match="throughput in 'furlong', expected one such as ops/s"):
        held(data)
