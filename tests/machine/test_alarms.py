"""Alarms told states of known truth, by a clock that is a number; and their thresholds."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.texts.causes.machine import FULL

from benchrigor.errors import InvalidInput
from benchrigor.machine import Alarms, health, read_thresholds, status
from benchrigor.model import Sample, Status


def state(at: float = 0.0, /, **values: float | str | None) -> Status:
    samples = (
        Sample(name.replace("_", " "), value, reason="hidden" if value is None else "")
        for name, value in values.items()
    )
    return Status(samples=tuple(samples), at=f"at {at:g}")


def told(alarms: Alarms, *values: float | None, since_s: float = 0.0, step_s: float = 5.0) -> list:
    """Tell values one after the other, and return which codes stand after each."""
    found = []
    for index, value in enumerate(values):
        now_s = since_s + index * step_s
        alarms.tell(state(now_s, storage_used=value), now_s)
        found.append([each.code for each in alarms.standing()])
    return found


def test_an_alarm_is_raised_when_it_has_held_and_cleared_when_that_has_been_over() -> None:
    values = [96.0, 96.0, 96.0, 93.0, 90.0, 90.0, 90.0, 93.0]
    stands = [[], [], ["full"], ["full"], ["full"], ["full"], [], []]
    alarms = Alarms([FULL])
    assert told(alarms, *values) == stands
    assert alarms.changes == {"full": 2}


def test_what_is_not_known_changes_nothing_and_is_told() -> None:
    alarms = Alarms([FULL])
    alarms.tell(state(storage_used=None), 0.0)
    assert alarms.unjudged.keys() == {"full"}
    told(alarms, 96.0, None, 96.0)
    assert alarms.unjudged == {}
    assert [each.code for each in alarms.standing()] == ["full"]
    alarms.tell(state(load=1.0), 100.0)
    assert told(alarms, None, None, since_s=200.0) == [["full"]] * 2


@pytest.mark.parametrize(
    ("code", "values", "stands"),
    [
        ("thrashing", {"swap in": 5e6, "swap out": 5e6, "pressure memory some": 40.0}, True),
        ("thrashing", {"swap in": 5e6, "swap out": 5e6, "pressure memory some": None}, True),
        ("thrashing", {"swap in": 5e6, "swap out": 5e6, "pressure memory some": 1.0}, False),
        ("thrashing", {"swap in": 5e6, "swap out": 0.0, "pressure memory some": 40.0}, False),
        ("under-used", {"cpu busiest core": 99.0, "cpu busy": 25.0}, True),  # one of four
        ("under-used", {"cpu busiest core": 99.0, "cpu busy": 50.0}, False),  # one of two
        ("under-used", {"cpu busiest core": 40.0, "cpu busy": 25.0}, False),
        ("throttling", {"throttled": 30.0}, True),
        ("hot", {"temperature margin": 1.0}, True),
        ("disk-full", {"storage used": 97.0, "storage fullest": "/"}, True),
        ("disk-failing", {"smart failing disks": 1}, True),
        ("disk-failing", {"smart failing disks": 0}, False),
        ("memory-low", {"memory available share": 2.0}, True),
        ("memory-errors", {"memory errors uncorrected": 1}, True),
        ("stolen", {"steal": 25.0}, True),
    ],
)
def test_what_is_built_in_is_raised_when_it_is_so(code, values, stands) -> None:
    alarms = Alarms()
    samples = tuple(
        Sample(name, value, reason="" if value else "x") for name, value in values.items()
    )
    for now_s in range(61):
        alarms.tell(Status(samples=samples, at="now"), now_s)
    assert [each.code for each in alarms.standing()] == ([code] if stands else [])
    assert (
        "storage fullest" not in values or alarms.standing()[0].evidence["storage fullest"] == "/"
    )


def test_a_composite_is_cleared_when_one_of_its_conditions_is_over() -> None:
    alarms = Alarms()
    busy = {"cpu_busiest_core": 99.0, "cpu_busy": 25.0}
    for now_s in range(31):
        alarms.tell(state(**busy), now_s)
    assert len(alarms.standing()) == 1
    for now_s in range(31, 62):
        alarms.tell(state(**busy | {"cpu_busy": 60.0}), now_s)
    assert alarms.standing() == ()


def test_a_callback_hears_once_of_each_change_and_what_it_raises_breaks_nothing() -> None:
    alarms, heard = Alarms([FULL]), []

    def broken(alarm: object, is_standing: bool) -> None:
        raise ValueError("deaf")

    alarms.on_change(broken)
    alarms.on_change(lambda alarm, is_standing: heard.append((alarm.code, is_standing)))
    told(alarms, *[96.0] * 6, *[80.0] * 6)
    assert heard == [("full", True), ("full", False)]
    assert "deaf" in alarms.callback_error


def test_a_callback_may_use_the_alarms() -> None:
    alarms = Alarms([FULL])
    alarms.on_change(lambda alarm, _: alarms.raise_("derived", because=alarm.code))
    told(alarms, 96.0, 96.0, 96.0)
    assert [each.code for each in alarms.standing()] == ["full", "derived"]


def test_others_raise_and_clear_alarms_and_raising_again_renews_the_figures() -> None:
    moments = iter(["noon", "later", "later still"])
    alarms, heard = Alarms(now=lambda: next(moments)), []
    alarms.on_change(lambda _, is_standing: heard.append(is_standing))
    for length in (10, 20):
        alarms.raise_("queue-full", "Full.", length=length)
    alarms.raise_("queue-full", length=30)
    (alarm,) = alarms.standing()
    assert (alarm.sentence, alarm.since, alarm.evidence) == ("Full.", "noon", {"length": 30})
    alarms.clear("queue-full")
    alarms.clear("queue-full")
    alarms.clear("unheard-of")
    assert (alarms.standing(), heard) == ((), [True, False])


def test_an_alarm_of_a_threshold_raised_by_hand_has_its_sentence() -> None:
    alarms = Alarms([FULL])
    alarms.raise_("full")
    assert alarms.standing()[0].sentence == FULL.sentence
    assert told(alarms, *[96.0] * 6) == [["full"]] * 6  # and none beside it
    assert alarms.changes == {"full": 1}
    assert told(alarms, 50.0, 50.0, 50.0, since_s=40.0)[-1] == []
    assert alarms.changes == {"full": 2}


def test_other_thresholds_clear_what_they_no_longer_name_and_leave_the_rest() -> None:
    alarms = Alarms([FULL])
    told(alarms, 96.0, 96.0, 96.0)
    alarms.raise_("by-hand")
    alarms.configure(read_thresholds())
    assert [each.code for each in alarms.standing()] == ["by-hand"]
    assert alarms.thresholds == read_thresholds()


@pytest.mark.parametrize("wrong", [[replace(FULL, when=())], [FULL, FULL], "", 3, [FULL, None]])
def test_wrong_thresholds_leave_those_before_in_force(wrong) -> None:
    alarms = Alarms([FULL])
    with pytest.raises(InvalidInput):
        alarms.configure(wrong)
    assert alarms.thresholds == (FULL,)


def test_what_others_say_wrongly_raises_nothing() -> None:
    alarms = Alarms()
    with pytest.raises(InvalidInput):
        alarms.raise_("a", x=float("nan"))
    assert alarms.standing() == ()


def test_a_clock_that_goes_back_never_shortens_a_hold() -> None:
    alarms = Alarms([FULL])
    for now_s in (100.0, 105.0, 50.0, 55.0):
        alarms.tell(state(storage_used=96.0), now_s)
    assert alarms.standing() == ()
    alarms.tell(state(storage_used=96.0), 60.0)
    assert len(alarms.standing()) == 1


def test_threads_may_tell_raise_and_ask_at_once() -> None:
    alarms, counted = Alarms([FULL]), []
    alarms.on_change(lambda alarm, _: counted.append(alarm.code))

    def work(number: int) -> None:
        for index in range(200):
            alarms.tell(state(storage_used=96.0), float(index))
            alarms.raise_(f"thread-{number}", count=index)
            alarms.standing()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counted) == ["full", *(f"thread-{number}" for number in range(4))]


STEPS = st.lists(
    st.tuples(st.floats(0.0, 30.0), st.one_of(st.none(), st.floats(80.0, 100.0))), max_size=60
)


@given(STEPS)
def test_laws_of_raising_and_clearing(steps: list[tuple[float, float | None]]) -> None:
    alarms, changes = Alarms([FULL]), []
    alarms.on_change(lambda _, is_standing: changes.append((now_s, is_standing)))
    now_s, seen = 0.0, []
    for step_s, value in steps:
        now_s += step_s
        seen.append((now_s, value))
        before = len(changes)
        alarms.tell(state(storage_used=value), now_s)
        assert len(alarms.standing()) <= 1  # never more than one of a code
        for _, is_standing in changes[before:]:
            # All that was known for hold_s was beyond the limit, or clear.
            told_of = [(when, known) for when, known in seen if known is not None]
            others = [at for at, (_, known) in enumerate(told_of) if not fits(known, is_standing)]
            held = [when for when, _ in told_of[max(others, default=-1) + 1 :]]
            assert held
            assert now_s - held[0] >= FULL.hold_s
    assert [is_standing for _, is_standing in changes] == [
        index % 2 == 0 for index in range(len(changes))
    ]
    moments = [when for when, _ in changes]
    assert all(b - a >= FULL.hold_s for a, b in pairwise(moments))


def fits(value: float, is_standing: bool) -> bool:
    return value > 95.0 if is_standing else value <= 90.0


PAGE = Path(__file__).parents[2] / "docs" / "machine-state.md"


def test_every_default_is_about_samples_that_there_always_are() -> None:
    samples = {each.name for each in (*status(interval_s=0.0).samples, *health().samples)}
    for each in read_thresholds():
        assert {condition.sample for condition in each.when} <= samples
        assert set(each.evidence) <= samples


def test_the_page_of_the_machine_lists_the_defaults_as_they_are() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \| ([\d.]+) s \|", PAGE.read_text(), re.M)
    expected = [
        (each.code, "; ".join(map(worded, each.when)), f"{each.hold_s:g}")
        for each in read_thresholds()
    ]
    assert rows == expected


def worded(condition: Any) -> str:
    way = "above" if condition.above is not None else "below"
    return f"{condition.sample} {way} {condition.limit:g} ({condition.clear:g})"


def test_a_file_changes_what_it_names_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        "[hot]\nenabled = false\n[disk-full]\nhold_s = 60\n"
        '[busy]\nsentence = "Busy."\nwhen = [{sample = "load 1 min", above = 4, clear = 2}]\n'
    )
    before = {each.code: each for each in read_thresholds()}
    after = {each.code: each for each in read_thresholds(path)}
    assert (after["hot"].enabled, after["hot"].when) == (False, before["hot"].when)
    assert after["disk-full"].hold_s == 60
    assert after["busy"].to_dict() == {
        "when": [{"sample": "load 1 min", "above": 4, "clear": 2}],
        "sentence": "Busy.",
        "hold_s": 10.0,
        "evidence": [],
        "enabled": True,
    }
    changed = {"hot", "disk-full", "busy"}
    assert {code for code in after if after[code] != before.get(code)} == changed
    assert read_thresholds(path.read_text()) == tuple(after.values())


def test_deeply_nested_toml_is_refused() -> None:
    with pytest.raises(InvalidInput):
        read_thresholds("a = " + "[" * 100_000)


def test_too_many_thresholds_are_refused_before_they_are_looked_at() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_thresholds({f"code-{index}": None for index in range(100_000)})
    assert len(caught.value.problems) == 1
