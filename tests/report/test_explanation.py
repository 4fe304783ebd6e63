"""The explanation retraces statistics of every kind."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Metric, RunRecord
from benchrigor.report import explain

Draw = Callable[[int], np.ndarray]


def told(draw: Draw, averaging: str = "arithmetic", **given: object) -> RunRecord:
    session = br.Session(
        br.Options(**{"target": 0.05, **given}),  # type: ignore[arg-type]
        (Metric(name="speed", unit="B/s", averaging=averaging),),
        name="told",
        seed=1,
    )
    while (plan := session.ask()) is not None:
        values = {"speed": draw(plan.readings)}
        session.tell(br.Round(plan=plan, elapsed_ns=1000, unit_readings=values))
    return session.result()


def steady() -> Draw:
    rng = np.random.default_rng(1)
    return lambda n: rng.normal(100.0, 10.0, n)


def autocorrelated() -> Draw:
    rng = np.random.default_rng(2)
    return lambda n: 100.0 + np.repeat(rng.normal(0.0, 10.0, n // 5 + 1), 5)[:n]


def fresh_starts() -> Draw:
    rng = np.random.default_rng(3)
    return lambda n: (
        rng.normal(100.0, 3.0) + rng.normal(0.0, 1.0, n) + np.where(np.arange(n) < 60, 50, 0)
    )


RECORDS = {
    "quantile": lambda: told(steady(), statistic="p10"),
    "harmonic": lambda: told(steady(), averaging="harmonic"),
    "subsessions": lambda: told(autocorrelated(), method="subsessions"),
    "invocations": lambda: told(fresh_starts(), rounds="restarted"),
    "published": lambda: told(fresh_starts(), rounds="restarted", detector="edm"),
    "published quantile": lambda: told(
        steady(), statistic="p10", detector="edm", budget_readings=1_000
    ),
    "median of invocations": lambda: told(fresh_starts(), rounds="restarted", statistic="median"),
}


@cache
def record_of(name: str) -> RunRecord:
    return RECORDS[name]()


@pytest.mark.parametrize("name", RECORDS)
def test_explanations_fit_a_terminal_of_80_columns(name: str) -> None:
    lines = explain(record_of(name)).splitlines()
    assert max(map(len, lines)) <= 79
    assert lines[0] == "How the speed of told came about"


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        (
            "quantile",
            [
                "The p10 is the reading below which that share",
                "The ends of the interval are readings",
            ],
            ["Mean ", "Level "],
        ),
        (
            "harmonic",
            ["Level 0.01", "the mean of the reciprocals; its reciprocal is the estimate"],
            [],
        ),
        (
            "subsessions",
            ["Mean 1", "count as uncorrelated: the long-run variance is "],
            ["autoregressive", "transients"],
        ),
        (
            "invocations",
            [
                "All rounds are cut alike, where it suits them together: that leaves a stable",
                "Each of 15 invocations gives its level; the interval comes from the spread",
                " of the value, single readings inside them by ",
                "Student t with 14 degrees of freedom",
            ],
            ["Mean ", "Level ", "autoregressive"],
        ),
        (
            "published",
            ["The longest segment of each round counts if it holds more than half; "],
            ["cut alike"],
        ),
        ("published quantile", ["no promise about false ones"], ["transients", "margin"]),
        ("median of invocations", ["Each of 15 invocations gives its median; "], ["below which"]),
    ],
)
def test_the_step_to_the_level_is_that_of_its_kind(
    name: str, said: list[str], unsaid: list[str]
) -> None:
    flat = " ".join(explain(record_of(name)).split())
    assert [words for words in said if words not in flat] == []
    assert [words for words in unsaid if words in flat] == []


def test_figures_are_those_of_the_analysis() -> None:
    quantile, merged = (record_of(name).analysis() for name in ("quantile", "subsessions"))
    assert quantile is not None
    assert quantile.estimate is not None
    assert merged is not None
    found = quantile.estimate
    size = f"{found.n:,} readings have the effective sample size {found.n_effective:,.0f}"
    assert size in " ".join(explain(record_of("quantile")).split())
    (fit,) = merged.fits
    assert fit.batch > 1
    counted = f"subsessions of {fit.batch} readings"
    assert counted in " ".join(explain(record_of("subsessions")).split())
