"""How nodes are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchrigor.instrument.data.node import NodeCondition, NodeReport, NodeView
from benchrigor.instrument.data.probe_reading import ProbeReadings
from benchrigor.instrument.node_report import node_notes, node_rows
from benchrigor.model import Sample, Status
from benchrigor.model.machine import Alarm


def view(condition: NodeCondition = NodeCondition.WELL, **given: Any) -> NodeView:
    samples = (
        Sample("cpu busy", 41.6, "%"),
        Sample("load 1 min", 1.26),
        Sample("memory available", 4.2e9, "B"),
        Sample("pressure cpu some", 12.0, "%"),
        Sample("pressure io some", 3.0, "%"),
        Sample("pressure memory some", None, "%", "not there"),
    )
    report = NodeReport(
        node="n",
        name="host",
        echo="",
        place="a:9560",
        sequence=1,
        at_s=0.0,
        cursor="",
        probes=ProbeReadings(readings={}, elapsed_s=1.0),
        status=Status(samples=samples, at=""),
        alarms=given.pop("alarms", ()),
    )
    fields = {"age_s": 1.5, "offset_s": 0.2, "offset_error_s": 0.001, "report": report, **given}
    return NodeView(address="http://a:9560", condition=condition, **fields)


def test_a_row_says_how_a_node_is():
    row = ("a:9560", "well", "1.5 s", "42%", "1.3", "4.2 GB", "12%", "+200 ms", "")
    assert node_rows([view()]) == [row]
    assert node_notes([view()]) == []


def test_a_clock_that_is_off_by_no_more_than_the_way_hides_is_not_said_to_be_off():
    assert node_rows([view(offset_error_s=0.3)])[0][7] == "< 300 ms"
    assert node_rows([view(offset_s=-2.0)])[0][7] == "-2 s"
    assert node_rows([view(offset_s=None)])[0][7] == ""


def test_what_is_wrong_stands_below():
    alarm = Alarm(code="hot", sentence="It is hot.", since="now")
    silent = view(NodeCondition.SILENT, reason="no answer", alarms=(alarm,), age_s=90.0)
    assert node_rows([silent])[0][:3] == ("a:9560", "silent", "90 s")
    assert node_rows([silent])[0][-1] == "1"
    assert node_notes([silent]) == ["a:9560: no answer", "a:9560: It is hot. [hot] since now"]


def test_a_clock_that_is_far_off_is_told_in_units_that_people_plan_by():
    assert node_rows([view(offset_s=-250.0 * 86_400.0)])[0][7] == "-250 days"


def test_whatever_a_node_tells_its_row_stays_narrow():
    names = ("cpu busy", "load 1 min", "memory available", "pressure cpu some")
    lying = Status(samples=tuple(Sample(each, -1e140) for each in names), at="")
    plain = view(age_s=1e300, offset_s=1e300)
    (row,) = node_rows([replace(plain, report=replace(plain.report, status=lying))])
    assert all(row[2:8])
    assert max(map(len, row)) <= 9


@pytest.mark.slow
def test_of_many_alarms_of_a_node_the_first_are_told():
    alarms = tuple(Alarm(code=f"a{i}", sentence="It is hot.", since="now") for i in range(30_000))
    notes = node_notes([view(alarms=alarms)])
    assert notes[0] == "a:9560: It is hot. [a0] since now"
    assert notes[5:] == ["a:9560: and 29,995 more alarms"]
    assert len(node_notes([view(alarms=alarms[:5])])) == 5


def test_a_node_cannot_write_to_the_terminal():
    (note,) = node_notes([view(NodeCondition.WRONG, reason="\x1b[2J\n\a" + "x" * 500)])
    assert note.startswith("a:9560: \\x1b[2J\\n\\x07xxx")
    assert note.isprintable()
    assert len(note) < 220
