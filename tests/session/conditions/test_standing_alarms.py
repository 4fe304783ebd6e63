from __future__ import annotations

from benchrigor.model import Alarm, Code, Options, Round, RoundPlan
from benchrigor.session.conditions.standing_alarms import (
    MOST_WAIT_S,
    facts_of_alarms,
    must_wait,
    refuse_for_alarms,
    warn_of_alarms,
)

HOT = Alarm(code="hot", sentence="It is hot: look after fans.", since="2026-11-24T19:00:00+00:00")
FULL = Alarm(code="disk-full", sentence="A disk is full.", since="2026-11-24T19:00:00+00:00")


def rounds(*stood: tuple[Alarm, ...]) -> list[Round]:
    return [
        Round(plan=RoundPlan(index=index), elapsed_ns=1, facts=facts_of_alarms(alarms))
        for index, alarms in enumerate(stood)
    ]


def test_rounds_wait_only_where_that_is_wanted_and_not_for_ever() -> None:
    wait = Options(on_alarm="wait")
    assert must_wait(wait, [HOT], MOST_WAIT_S - 0.1)
    assert not must_wait(wait, [HOT], MOST_WAIT_S)
    assert not must_wait(wait, [], 0.0)
    assert not any(must_wait(Options(on_alarm=each), [HOT], 0.0) for each in (None, "mark"))


def test_each_alarm_is_told_once_with_the_number_of_its_rounds() -> None:
    hot, full = warn_of_alarms(rounds((HOT,), (), (HOT, FULL)))
    assert str(hot) == (
        "The alarm hot stood during 2 of 3 rounds: It is hot: look after fans. [alarm-stands]"
    )
    assert full.evidence == {"alarm": "disk-full", "marked": 1, "rounds": 3}
    assert warn_of_alarms(rounds((), ())) == ()


def test_an_end_names_all_alarms_that_stand() -> None:
    notice = refuse_for_alarms([HOT, FULL])
    assert notice.code is Code.ALARM_STANDS
    assert "(hot, disk-full): It is hot: look after fans. A disk is full." in str(notice)
