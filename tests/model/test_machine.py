"""Samples and states as people and programs read them."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tests.model.known import AT, STATUS

from benchrigor.errors import InvalidInput
from benchrigor.model import Health, Sample, Status
from benchrigor.model.codec import decode, encode


def test_a_value_is_found_by_its_name() -> None:
    assert STATUS.value("memory available") == 4.2e9
    assert STATUS.value("storage fullest") == "/home"
    assert STATUS.value("gpus") is None
    with pytest.raises(InvalidInput):
        STATUS.value("memory free")


def test_its_map_is_flat_and_can_be_written_as_json() -> None:
    flat = STATUS.to_dict()
    assert json.loads(json.dumps(flat)) == flat
    assert (flat["cpu busy"], flat["swap in"], flat["span_s"]) == (12.34567, None, 0.1)
    assert flat["swap in reason"] == "first reading"  # a reason is data
    assert flat["cost_s memory"] == 0.0001
    assert "cpu busy reason" not in flat


def test_a_table_is_never_wider_than_a_terminal() -> None:
    long = Sample("storage /" + "a" * 200 + " free", 1e9, "B")
    texts = Sample("storage fullest", "/" + "b" * 200)
    shown = str(Health(samples=(long, texts, Sample("x", None, reason="c d " * 60)), at=AT))
    assert all(len(line) < 80 for line in shown.splitlines())


def test_a_state_survives_being_stored_and_cannot_be_changed() -> None:
    assert decode(Status, json.loads(json.dumps(encode(STATUS)))) == STATUS
    with pytest.raises(dataclasses.FrozenInstanceError):
        STATUS.at = "now"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        STATUS.samples[0].value = 1.0  # type: ignore[misc]
