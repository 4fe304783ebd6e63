"""Let another harness do the timing, and benchrigor decide how much of it is needed.

`ask` says how many readings are wanted next, `timeit` takes them, `tell` hands them over. No
clock, file or thread of benchrigor is involved.

    python examples/wrap_timeit.py
"""

from __future__ import annotations

import sys
import timeit

import benchrigor as br
from benchrigor.report import render

CALLS = 20


def main(budget_s: float = 10.0) -> br.RunRecord:
    """Drive timeit by ask and tell, and return the record."""
    timer = timeit.Timer("'-'.join(map(str, numbers))", setup="numbers = range(1000)")
    session = br.Session(
        br.Options(target=0.02, budget_s=budget_s),
        [br.Metric(name="time", unit="s")],
        name="join 1000 numbers, timed by timeit",
    )
    while (plan := session.ask()) is not None:
        totals = timer.repeat(repeat=plan.readings, number=CALLS)
        session.tell(
            br.Round(
                plan=plan,
                elapsed_ns=round(sum(totals) * 1e9),
                unit_readings={"time": [total / CALLS for total in totals]},
            )
        )
    return session.result()


if __name__ == "__main__":
    print(render(main(*map(float, sys.argv[1:]))))
