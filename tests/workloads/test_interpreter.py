"""Functions measured in fresh interpreters."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import rounds

import benchrigor.workloads
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Round
from benchrigor.workloads import InterpreterWorkload

MODULE = """
import os, sys, time

def quick():
    return sum(range(100))

def steps():
    for _ in range(7):
        yield sum(range(1000))

def slow():
    time.sleep(0.4)

def hangs():
    time.sleep(60)

def with_argument(n):
    return n

async def later():
    import asyncio
    await asyncio.sleep(0)

def tell():
    with open("seen.txt", "a") as file:
        print(os.environ.get("PYTHONHASHSEED"), len(os.environ["BENCHRIGOR_PADDING"]),
              sorted(os.environ), sys.modules.keys() & {"numpy", "benchrigor"},
              os.sched_getaffinity(0), sys.path[0], file=file, sep="|")

def big():
    bytearray(200_000_000)

def wordy():
    raise ValueError("x" * 10**6)

def copies():
    os.fork()

def copies_that_leave():
    if os.fork() == 0:
        raise SystemExit(0)

def leaves_a_copy():
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
        os._exit(0)
    time.sleep(0.05)

def lingers():
    import atexit
    atexit.unregister(time.sleep)
    atexit.register(time.sleep, 60)

class Job:
    @staticmethod
    def noisy():
        print("nothing to see" * 100)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.py").write_text(MODULE)
    return tmp_path


def run(workload: InterpreterWorkload, readings: int = 5, **plan: object) -> Round:
    return rounds.run(workload, readings, **{"seed": 1, **plan})


def test_readings_of_a_function_arrive_with_what_was_measured_beside_them(folder: Path):
    workload = InterpreterWorkload("job:quick", cwd=folder)
    workload.take_turns()
    finished = run(workload, readings=200)
    assert finished.unit_readings["time"].shape == (200,)
    assert 1e-7 < np.median(finished.unit_readings["time"]) < 1e-3
    assert finished.starts_ns.shape == (200,)
    assert (np.diff(finished.starts_ns) > 0).all()
    assert finished.references is not None
    facts = finished.facts
    assert {"startup_s", "import_s", "first_call_s", "peak_memory", "inner_loop"} <= facts.keys()
    assert facts["gc"] == "on"
    assert facts["python"] == sys.version.split()[0]


@pytest.mark.parametrize(
    ("target", "given", "n"),
    [
        ("job:later", {}, 20),
        ("job:steps", {}, 7),
        ("job:Job.noisy", {}, 20),
        ("job:with_argument", {"args": (3,)}, 20),
        # Functions at hand are found by their names; they bring their objects and arguments.
        (os.getcwd, {}, 20),
        (Path.cwd, {}, 20),
        (Path().exists, {}, 20),
        (sorted, {"args": ([1, 2],), "kwargs": {"reverse": True}}, 20),
        (partial(sorted, [1, 2], reverse=True), {}, 20),
    ],
)
def test_what_has_a_name_can_be_measured(folder: Path, target: Any, given: Any, n: int):
    if isinstance(target, str):
        given = {**given, "cwd": folder}
    finished = run(InterpreterWorkload(target, **given), readings=20)
    assert finished.unit_readings["time"].shape == (n,)
    assert not finished.cut


@pytest.mark.parametrize("target", ["job:copies", "job:copies_that_leave"])
def test_only_the_original_of_a_process_that_forks_answers(folder: Path, target: str):
    """Few calls: each of them doubles the processes."""
    finished = run(InterpreterWorkload(target, cwd=folder, inner=1), readings=4)
    assert finished.unit_readings["time"].size == 4


def test_its_name_is_that_by_which_it_is_imported():
    assert InterpreterWorkload(shutil.which).name == "shutil:which"
    assert InterpreterWorkload(Path().exists).name == "pathlib:Path.exists"


def test_what_fails_says_little(folder: Path):
    with pytest.raises(WorkloadFailed) as raised:
        run(InterpreterWorkload("job:wordy", cwd=folder))
    assert "worker.py" not in str(raised.value)
    assert len(str(raised.value)) < 20_000


def test_the_environment_is_an_allow_list_and_drawn_from_the_seed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("WANTED", "x")
    cpu = min(os.sched_getaffinity(0))
    make = partial(InterpreterWorkload, "job:tell", cwd=folder, inner=1, env={"MINE": "1"})
    for _ in range(2):
        run(make(inherit_env=["WANTED"], cpus=[cpu]), readings=1)
    first, *_, last = (folder / "seen.txt").read_text().splitlines()
    assert first == last  # the same plan, the same seed
    seed, padding, names, heavy, cpus, path = first.split("|")
    assert int(seed) > 0
    assert int(padding) < 4096
    assert "'MINE'" in names
    assert "'WANTED'" in names
    assert "'SECRET'" not in names
    assert "'PATH'" in names
    assert heavy == "set()"
    assert cpus == str({cpu})
    assert path == str(folder)


def test_peak_memory_is_the_child_s_own(folder: Path):
    held = bytearray(100_000_000)
    facts = run(InterpreterWorkload("job:quick", cwd=folder)).facts
    small, floor = facts["peak_memory"], facts["peak_memory_floor"]
    large = run(InterpreterWorkload("job:big", cwd=folder, inner=1)).facts["peak_memory"]
    assert len(held) > small
    assert 0 < floor <= small < 60_000_000
    assert large - small == pytest.approx(200_000_000, rel=0.05)


def test_a_round_ends_when_its_time_is_up(folder: Path):
    finished = run(InterpreterWorkload("job:slow", cwd=folder), readings=500, seconds=30.0)
    assert 1 <= finished.unit_readings["time"].size < 10  # of the first a twentieth of the time
    assert not finished.cut


def test_one_under_way_when_the_budget_is_spent_does_not_count(folder: Path):
    finished = run(InterpreterWorkload("job:hangs", cwd=folder), seconds=0.5)
    assert finished.cut
    assert not finished.unit_readings
    assert [each.code for each in finished.notices] == ["cut-round"]


def test_no_copy_that_a_process_leaves_keeps_its_round(folder: Path):
    began = time.monotonic()
    finished = run(InterpreterWorkload("job:leaves_a_copy", cwd=folder, inner=1), readings=1)
    assert finished.unit_readings["time"].size == 1
    assert time.monotonic() - began < 30.0
    (notice,) = (each for each in finished.notices if each.code == "left-running")
    for pid in re.findall(r"process (\d+)", notice.sentence):
        os.kill(int(pid), 9)


def test_what_goes_on_at_exit_is_left_and_its_readings_count(folder: Path):
    finished = run(
        InterpreterWorkload("job:lingers", cwd=folder, inner=1), readings=4, seconds=30.0
    )
    assert finished.unit_readings["time"].size == 4
    (notice,) = (each for each in finished.notices if each.code == "cut-round")
    assert "2 s" in notice.sentence


def test_a_module_from_elsewhere_is_refused_where_one_from_a_folder_is_wanted(folder: Path):
    inside = InterpreterWorkload("job:quick", cwd=folder, inside=folder)
    assert run(inside).unit_readings["time"].size == 5
    with pytest.raises(InvalidInput):
        run(InterpreterWorkload("os:getcwd", cwd=folder, inside=folder))


def test_a_description_makes_the_same_workload(folder: Path):
    first = InterpreterWorkload(
        "job:quick", cwd=folder, inner=2, gc="off", env={"A": "b"}, timeout_s=9.0
    )
    again = InterpreterWorkload.from_description(first.describe())
    assert again.describe() == first.describe()
    facts = run(again).facts
    assert (facts["inner_loop"], facts["gc"]) == (2, "off")
    stored = {name: value for name, value in first.describe().items() if name != "inherit_env"}
    assert InterpreterWorkload.from_description(stored).describe() == first.describe()


def test_its_file_is_known_without_an_import(folder: Path):
    (folder / "job.py").write_text("raise SystemExit")
    files = InterpreterWorkload("job:quick", cwd=folder).source_files
    assert files == (folder / "job.py", "job:quick")
    assert InterpreterWorkload("nowhere:f", cwd=folder).source_files == ()


@pytest.mark.skipif(shutil.which("python3.9") is None, reason="no other interpreter here")
def test_other_interpreters_need_nothing_but_the_standard_library(folder: Path):
    told = subprocess.run(["python3.9", "--version"], capture_output=True, text=True, check=False)
    if told.returncode:
        pytest.skip("python3.9 is a name without an interpreter")
    finished = run(InterpreterWorkload("job:quick", cwd=folder, python="python3.9"))
    assert finished.facts["python"] == told.stdout.split()[1]


def test_its_source_is_hashed_without_an_import(folder: Path):
    def told(text: str, target: str = "job:work") -> str | None:
        (folder / "job.py").write_text(f"raise SystemExit\n{text}")
        return InterpreterWorkload(target, cwd=folder).function_hash

    method = "class Job:\n    def work():\n        return 1\n\ndef work(): pass\n"
    alike = (
        "# moved\ndef work():  # commented\n\n    return (1)\n",
        "def other():\n    return 2\n\ndef work():\n    return 1\n",
        "if True:\n    def work():\n        return 1\n",
    )
    unknown = "from os import getcwd as work\n", "def work(:\n"
    first, other = (told(f"def work():\n    return {number}\n") for number in (1, 2))
    assert None is not first != other
    assert {first} == {*map(told, alike), told(method, "job:Job.work")}
    assert {*map(told, unknown)} == {None}
    assert told("", "nowhere:work") is None
    (folder / "job.py").unlink()
    assert InterpreterWorkload("job:work", cwd=folder).function_hash is None


def test_its_program_loads_neither_numpy_nor_what_reads_json(folder: Path):
    text = "import sys\n\ndef told():\n    with open('loaded', 'w') as file:\n"
    (folder / "job.py").write_text(text + "        file.write(' '.join(sys.modules))\n")
    run(InterpreterWorkload("job:told", cwd=folder, inner=1), readings=1)
    loaded = set((folder / "loaded").read_text().split())
    assert "job" in loaded
    assert not loaded & {"numpy", "benchrigor", "json", "re", "enum", "typing", "subprocess"}


@pytest.mark.parametrize("args", [(lambda: None,), (b"x" * 70_000,)])
def test_what_cannot_travel_is_refused(args: tuple[object, ...]):
    with pytest.raises(InvalidInput):
        InterpreterWorkload("job:quick", args=args)


def test_its_program_is_compiled_once(folder: Path):
    run(InterpreterWorkload("job:quick", cwd=folder))
    program = Path(benchrigor.workloads.__file__).with_name("processes") / "worker.py"
    cached = importlib.util.cache_from_source(str(program))
    assert Path(cached).is_file() or not os.access(program.parent, os.W_OK)


def test_a_folder_may_hold_modules_with_names_of_the_standard_library(folder: Path):
    for name in ("math", "array", "time", "operator", "itertools", "functools", "pickle", "struct"):
        (folder / f"{name}.py").write_text("raise SystemError('not ours')\n")
    (folder / "job.py").write_text("def quick(n=3):\n    return sum(range(n))\n")
    for args in ((), (5,)):
        finished = run(InterpreterWorkload("job:quick", cwd=folder, args=args))
        assert finished.unit_readings["time"].size


def test_what_a_start_prints_is_no_part_of_the_answer(folder: Path):
    (folder / "sitecustomize.py").write_text("print('hello', flush=True)\n")
    workload = InterpreterWorkload("job:quick", cwd=folder, env={"PYTHONPATH": str(folder)})
    assert run(workload, readings=3).unit_readings["time"].size == 3
