"""Samples, states and alarms as people and programs read them."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Health, Sample, Status, codec
from benchrigor.model.machine import Alarm

AT = "2026-11-24T19:00:00.000+00:00"
STATUS = Status(
    samples=(
        Sample("cpu busy", 12.34567, "%"),
        Sample("memory available", 4.2e9, "B"),
        Sample("storage fullest", "/home"),
        Sample("swap in", None, "B/s", "first reading"),
        Sample("swap out", None, "B/s", "first reading"),
        Sample("gpus", None, reason="no driver is loaded"),
    ),
    at=AT,
    span_s=0.1,
    cost_s={"cpu": 0.0002, "memory": 0.0001},
)


def test_a_value_is_found_by_its_name() -> None:
    assert STATUS.value("memory available") == 4.2e9
    assert STATUS.value("storage fullest") == "/home"
    assert STATUS.value("gpus") is None


def test_an_unknown_name_is_refused_with_those_that_are_alike() -> None:
    with pytest.raises(InvalidInput, match=r"no sample is named 'memory free'.*'memory available'"):
        STATUS.value("memory free")
    with pytest.raises(InvalidInput, match="such are 'cpu busy'"):
        STATUS.value("?")


def test_its_map_is_flat_and_can_be_written_as_json() -> None:
    flat = STATUS.to_dict()
    assert json.loads(json.dumps(flat)) == flat
    assert flat["cpu busy"] == 12.34567
    assert flat["swap in"] is None
    assert flat["swap in reason"] == "first reading"
    assert flat["span_s"] == 0.1
    assert flat["cost_s memory"] == 0.0001
    assert "cpu busy reason" not in flat


def test_it_prints_as_a_table_with_each_reason_once() -> None:
    assert str(STATUS).splitlines() == [
        f"Status at {AT}, rates over 100 ms, read in 300 µs",
        "cpu busy           12.3%",
        "memory available  4.2 GB",
        "storage fullest    /home",
        "not known: swap in, swap out: first reading",
        "not known: gpus: no driver is loaded",
    ]


def test_a_table_is_never_wider_than_a_terminal() -> None:
    long = Sample("storage /" + "a" * 200 + " free", 1e9, "B")
    texts = Sample("storage fullest", "/" + "b" * 200)
    shown = str(Health(samples=(long, texts, Sample("x", None, reason="c d " * 60)), at=AT))
    assert all(len(line) < 80 for line in shown.splitlines())
    assert str(Health(samples=(), at=AT)) == f"Health at {AT}, read in 0 ns"


def test_a_state_survives_being_stored() -> None:
    assert codec.decode(Status, json.loads(json.dumps(codec.encode(STATUS)))) == STATUS


def test_what_is_known_of_a_machine_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        STATUS.at = "now"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        STATUS.samples[0].value = 1.0  # type: ignore[misc]


def test_an_alarm_says_what_is_wrong_since_when_and_by_which_figures() -> None:
    alarm = Alarm(
        code="disk-full",
        sentence="A file system is nearly full: remove files.",
        since=AT,
        value=97.1234,
        threshold=95.0,
        evidence={"storage used": 97.1234, "storage fullest": "/home"},
    )
    assert str(alarm) == (
        f"A file system is nearly full: remove files. [disk-full] since {AT} "
        "(storage used 97.1, storage fullest /home)"
    )
    assert codec.decode(Alarm, codec.encode(alarm)) == alarm
