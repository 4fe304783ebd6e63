"""What follows while alarms stand: rounds are marked, or wait, or the session ends. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from benchrigor.model import Alarm, Code, Notice, Options, Round
from benchrigor.model.machine import OF_MACHINE
from benchrigor.model.readings import Facts
from benchrigor.model.text import many

MOST_WAIT_S = 60.0  # that rounds of a session wait in all
_ALARM = f"{OF_MACHINE}alarm "


def must_wait(options: Options, alarms: Collection[Alarm], waited_s: float) -> bool:
    """Return whether the next round waits until alarms are cleared."""
    return options.on_alarm == "wait" and len(alarms) > 0 and waited_s < MOST_WAIT_S


def facts_of_alarms(alarms: Iterable[Alarm]) -> Facts:
    """Return what marks a round during which alarms stood."""
    return {f"{_ALARM}{alarm.code}": alarm.sentence for alarm in alarms}


def warn_of_alarms(rounds: Sequence[Round]) -> tuple[Notice, ...]:
    """Warn of all alarms that stood during rounds."""
    stood: dict[str, list[str]] = {}
    for finished in rounds:
        for name, sentence in finished.facts.items():
            if name.startswith(_ALARM):
                stood.setdefault(name.removeprefix(_ALARM), []).append(str(sentence))
    return tuple(
        Notice.warning(
            Code.ALARM_STANDS,
            f"The alarm {code} stood during {len(said)} of {many(len(rounds), 'round')}: "
            f"{said[-1]}",
            alarm=code,
            marked=len(said),
            rounds=len(rounds),
        )
        for code, said in stood.items()
    )


def refuse_for_alarms(alarms: Collection[Alarm]) -> Notice:
    """Say which alarms ended a session."""
    codes = ", ".join(alarm.code for alarm in alarms)
    sentences = " ".join(alarm.sentence for alarm in alarms)
    return Notice.warning(
        Code.ALARM_STANDS,
        f"The session ended, since an alarm stands ({codes}): {sentences}",
        alarm=codes,
    )
