"""Texts of the verbs about stored runs and files: from ``tests/stored/method_5``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click.testing
from tests.texts.rendering import run

import benchrigor as br
from benchrigor.testing import FakeClock, SyntheticWorkload

STORED = Path(__file__).parents[2] / "stored" / "method_5"
LINES = """
list
list nonsense
show nonsense
show 294973a2
show 294973a2 --details
show 294973a2 --markdown -
show 8f406f58
show 8f406f58 --details
show 824b8b01
show 069410de
show 069410de --details
show cd9973cf
show 095491bb
show 095491bb --details
show 9ac47a5e --details
show 96eed29d
explain 294973a2
explain 8f406f58
explain 824b8b01
explain 069410de
explain 095491bb
explain 9ac47a5e
explain 069410de --metric speed
explain 8f406f58 --reading 0
explain 8f406f58 --reading 999
explain 095491bb --reading 0
explain 20a4f42a --reading 0
resume 294973a2
resume 8f406f58
resume 069410de
resume 76bdb629
compare 76bdb629 460b32ef
compare 76bdb629 460b32ef --details
compare --paired 76bdb629 460b32ef
compare --paired 9d4143e8 3bdc31c6 --details
compare --paired 76bdb629 e511b4a2
compare f651b57d e511b4a2
compare 0622293f 4fa93799
compare 095491bb 069410de
compare 8f406f58 824b8b01
compare 00e134c6 e98ee177 41ce9388
compare 00e134c6 e98ee177 41ce9388 --details
compare 095491bb 095491bb
convert 095491bb out.json --to pyperf
interference 8f406f58 --reference loop.csv
interference loop.csv 8f406f58 --composite
show 8b821ae5 --csv -
show c437ec93 --plot out.png
plan 8f406f58
plan 294973a2 --change 2% --margin 1% --power 90%
track-record
track-record --name nothing
""".strip().splitlines()


def of_stored(*words: str) -> click.testing.Result:
    """Return the answer of a verb next to the stored runs and files."""
    for path in STORED.iterdir():
        shutil.copy(path, path.name)
    return run(*words)


def of_pairs() -> click.testing.Result:
    """Return how often the intervals of runs held; each run was made twice."""
    for seed in range(4):
        clock, store = FakeClock(), os.environ["BENCHRIGOR_STORE"]
        name = ("parse", "render")[seed % 2]
        session = br.Session(br.Options(target=0.05), name=name, seed=1, clock=clock, store=store)
        session.run(SyntheticWorkload(mean=0.001 * (1 + seed // 3), cv=0.1, seed=1, clock=clock))
    return run("track-record")


CAUSES: dict[str, Callable[[], object]] = {
    line: partial(of_stored, *line.split()) for line in LINES
}
CAUSES["track-record of pairs"] = of_pairs
