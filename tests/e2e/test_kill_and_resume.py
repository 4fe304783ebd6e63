"""A session is killed with SIGKILL in the midst of a round, and taken up again."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import benchrigor as br
from benchrigor.model import codec
from benchrigor.storage import Journal

SCRIPT = """
import random, sys, time
import benchrigor as br

source = random.Random(1)

def slow():
    time.sleep(source.uniform(0.001, 0.003))  # so that the target is far, and not out of reach

options = br.Options(target=1e-3, budget_s=float("inf"))
br.Session(options, seed=1, name="slow", store=sys.argv[1]).run(slow)
"""


def rounds_in(path: Path) -> int:
    return sum(run["rounds"] for run in Journal(path).runs()) if path.exists() else 0


@pytest.mark.slow
def test_no_finished_round_is_lost_and_none_counts_twice(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)]) as process:
        deadline = time.monotonic() + 300.0
        while rounds_in(path) < 5 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    (run,) = Journal(path).runs()
    kept = Journal(path).load(run["run_id"]).rounds
    assert len(kept) >= 5
    assert [each.plan.index for each in kept] == list(range(len(kept)))
    assert not run["finished"]

    options = br.Options(target=1e-3, budget_s=1e6, max_rounds=len(kept) + 4)
    session = br.Session.resume(path, run["run_id"], options=options)
    source = random.Random(2)  # noqa: S311
    record = session.run(lambda: time.sleep(source.uniform(0.001, 0.003)))
    assert len(record.rounds) == len(kept) + 4, record.decision
    assert [each.plan.index for each in record.rounds] == list(range(len(record.rounds)))
    assert all(
        codec.encode(old) == codec.encode(new)
        for old, new in zip(kept, record.rounds, strict=False)
    )
    assert record.readings().size == sum(each.n_readings for each in record.rounds)
    assert Journal(path).load(run["run_id"]).to_dict() == record.to_dict()
