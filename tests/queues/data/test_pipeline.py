import math
from dataclasses import replace
from typing import Any

import pytest
from simulated.estimates import estimated

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Notice
from benchrigor.model.notice import Severity
from benchrigor.queues.data.pipeline import (
    Bottleneck,
    BufferSize,
    PipelineAdvice,
    PipelineStage,
    ReplicaCount,
    StageAdvice,
    StageLoad,
)

CAPACITY = estimated(120.0, 110.0, 130.0)
LOAD = StageLoad(stage=PipelineStage(name="hash", rate=120.0), capacity=CAPACITY)


def buffer(**given: Any) -> BufferSize:
    known: dict[str, Any] = {
        "capacity": 34,
        "capacity_at_value": 13,
        "blocked_share": 0.01,
        "utilisation": 0.8,
        "worst_utilisation": 0.95,
        "variation": 1.0,
    }
    return BufferSize(**{**known, **given})


def replicas(worst: int | None, at_value: int) -> ReplicaCount:
    return ReplicaCount(replicas=worst, replicas_at_value=at_value, utilisation=0.8)


def bottleneck(*rivals: str) -> Bottleneck:
    return Bottleneck(stage="hash", rivals=rivals, capacity=CAPACITY, loads=(LOAD,))


def advice(count: ReplicaCount) -> PipelineAdvice:
    stage = StageAdvice(load=LOAD, replicas=count, buffer=buffer(), buffer_now=buffer())
    return PipelineAdvice(source_rate=100.0, bottleneck=bottleneck(), stages=(stage,))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": 3}, "name is 3, expected the name of a stage"),
        ({"name": ""}, "name is '', expected the name of a stage"),
        ({"rate": "x"}, "rate of 'hash' is 'x', expected a number above 0 .*, or an Estimate"),
        ({"rate": math.nan}, "rate of 'hash' is nan, expected a number above 0"),
        ({"rate": True}, "rate of 'hash' is True, expected a number above 0"),
        ({"rate": estimated(0.0, -1.0, 1.0)}, "rate of 'hash'.value is 0.0, expected a number"),
        ({"visits": -1}, "visits of 'hash' is -1, expected a number above 0"),
        ({"replicas": 0}, "replicas of 'hash' is 0, expected a whole number of at least 1"),
        ({"replicas": 1.5}, "replicas of 'hash' is 1.5, expected a whole number"),
        ({"process": "odd"}, "process of 'hash' is 'odd', expected one of 'deterministic', 'expon"),
        ({"process": "other"}, "variation of 'hash' is None, expected the squared coefficient"),
        ({"process": "other", "variation": 101}, "variation of 'hash' is 101, expected the squ"),
        ({"variation": 0.5}, "variation of 'hash' is 0.5, expected None: the process is 'expo"),
    ],
)
def test_a_stage_that_there_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        PipelineStage(**{"name": "hash", "rate": 1.0, **given})


def test_all_that_is_wrong_with_a_stage_is_said_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        PipelineStage(name=3, rate="x", visits=-1, replicas=None)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 4


def test_a_load_shows_what_a_stage_can_do_and_how_much_is_used() -> None:
    assert str(LOAD) == "hash: 120 items/s [110, 130] 95%"
    used = StageLoad(stage=LOAD.stage, capacity=CAPACITY, utilisation=estimated(0.8, 0.7, 1.1))
    assert str(used) == "hash: 120 items/s [110, 130] 95% · 80% used [70%, 110%]"


def test_a_bottleneck_shows_who_else_it_may_be() -> None:
    assert str(bottleneck()) == "hash is the bottleneck: 120 items/s [110, 130] 95%"
    assert bottleneck().certain
    doubtful = bottleneck("verify", "reduce")
    assert str(doubtful).startswith("hash may be the bottleneck, or verify, reduce: 120 items/s")
    assert not doubtful.certain


def test_a_buffer_shows_its_size_at_worst_and_as_estimated() -> None:
    assert str(buffer()) == (
        "room for 34 items (13 at the estimated rates): at most 1% blocked · "
        "utilisation 80%, at worst 95%"
    )
    exact = buffer(capacity=1, capacity_at_value=1, worst_utilisation=0.8)
    assert str(exact) == "room for 1 item: at most 1% blocked · utilisation 80%"


def test_a_buffer_that_may_be_too_small_at_any_size_says_so() -> None:
    maybe = (
        "room for 13 items at the estimated rates, at worst no number is enough: at most 1% blocked"
    )
    assert str(buffer(capacity=None, worst_utilisation=1.06)) == (
        f"{maybe} · utilisation 80%, at worst 106%"
    )
    assert str(buffer(capacity=None, worst_utilisation=None)) == (
        f"{maybe} · utilisation 80%, at worst without limit"
    )
    none = buffer(capacity=None, capacity_at_value=None, utilisation=1.2, worst_utilisation=1.2)
    assert str(none) == "no size is enough: at most 1% blocked · utilisation 120%"


def test_replicas_are_shown_at_worst_and_as_estimated() -> None:
    assert str(replicas(1, 1)) == "1 replica: utilisation 80% at most"
    assert str(replicas(3, 2)) == "3 replicas (2 at the estimated rates): utilisation 80% at most"
    assert str(replicas(None, 2)) == (
        "2 replicas at the estimated rates, at worst no number is enough: utilisation 80% at most"
    )


def test_advice_shows_what_would_change() -> None:
    head, goal, _, change = str(advice(replicas(3, 2))).splitlines()
    assert head == "hash is the bottleneck: 120 items/s [110, 130] 95%"
    assert goal.startswith("to serve ")
    assert goal.endswith(" of the source, at most 80% used, 1% blocked:")
    assert "1 → 3  34" in change
    assert "→" not in str(advice(replicas(1, 1)))
    assert "1 → 2 or more" in str(advice(replicas(None, 2)))
    assert str(advice(replicas(1, 1)).stages[0]) == (
        f"hash: 120 items/s [110, 130] 95% · 1 replica: utilisation 80% at most · {buffer()}"
    )


def test_advice_tells_each_warning_once_and_whose_it_is() -> None:
    def warning(stage: str, code: Code, severity: Severity = Severity.WARNING) -> Notice:
        sentence = f"{stage}: It is said of {stage}."
        return Notice(code=code, severity=severity, sentence=sentence, evidence={"stage": stage})

    notices = (
        warning("hash", Code.QUEUE_MODEL, Severity.NOTE),
        warning("hash", Code.SATURATED),
        warning("verify", Code.FEW_READINGS),
        warning("reduce", Code.FEW_READINGS),
    )
    lines = str(replace(advice(replicas(1, 1)), notices=notices)).splitlines()
    assert lines[-2:] == [
        "! hash: It is said of hash. [saturated-stage]",
        "! verify: It is said of verify. The same holds for reduce. [few-readings]",
    ]
