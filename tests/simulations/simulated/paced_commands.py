"""Runs of a command beside bare starts of the interpreter, on machines of any pace."""

from typing import Any

import numpy as np

import benchrigor as br
from benchrigor.model import Delays, References
from benchrigor.model.machine import COMMAND, COMMAND_CPU, COMMAND_REST
from benchrigor.session import Session

FULL = {COMMAND: 0.0102, COMMAND_CPU: 0.01, COMMAND_REST: 0.0002}


def run_of(
    *,
    slower: float,
    seed: int,
    rest_s: float = 0.002,
    references: bool = True,
    threads: int = 1,
    sleep_s: float = 0.0,
    stopped: int | None = None,
    warm_up: int = 0,
    **options: Any,
) -> br.RunRecord:
    """Return a run of a command of 20 ms, on a machine so much slower than at full pace.

    Of several threads each runs for as long, at the same time. It sleeps as well, for ``sleep_s``;
    the round ``stopped`` stood still for two seconds, in which the sleep went on. So many first
    rounds, a ``warm_up``, took three times as long.
    """
    rng = np.random.default_rng(seed)
    given = br.Options(target=None, max_rounds=60, min_rounds=60, rounds="restarted", **options)
    engine = Session(given, seed=1, subject={"kind": "command"})
    engine.subject.kept_levels = {kind: [(seconds, 1.0)] for kind, seconds in FULL.items()}
    while (plan := engine.ask()) is not None:
        cpu_s, start_s = (slower * each * rng.normal(1.0, 0.03) for each in (0.02, 0.01))
        cpu_s *= 3.0 if plan.index < warm_up else 1.0
        rests = rng.exponential(rest_s, 2) + 0.0002
        times = {COMMAND: start_s + rests[1], COMMAND_CPU: start_s, COMMAND_REST: rests[1]}
        timed = References(stops=[1], seconds={kind: [each] for kind, each in times.items()})
        waited_s = 2.0 if plan.index == stopped else 0.0
        wall_s = cpu_s + rests[0] + max(sleep_s, waited_s)
        engine.tell(
            br.Round(
                plan=plan,
                elapsed_ns=50_000_000,
                readings={"time": wall_s},
                facts={"cpu_s": threads * cpu_s, "voluntary_switches": 2 if sleep_s else 1},
                delays=Delays(stops=[1], seconds={"stopped": [waited_s]}, duration_s=[wall_s]),
                references=timed if references and plan.index % 3 == 0 else None,
            )
        )
    return engine.result()
