"""A function as a workload, with a fresh interpreter for every round."""

from __future__ import annotations

import ast
import math
import os
import pickle
import shutil
import socket
import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import MethodType
from typing import Any, Self, Unpack

import numpy as np

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model import Code, Notice, RoundPlan
from benchrigor.model.checks import refuse, wrong_values
from benchrigor.model.options import LATEST
from benchrigor.model.series import Floats
from benchrigor.protocols import Recorder
from benchrigor.workloads.named_functions import hash_in, import_name, locate
from benchrigor.workloads.processes import worker
from benchrigor.workloads.processes.command_line import CommandLine, Where
from benchrigor.workloads.processes.running import Ended, OutputFile
from benchrigor.workloads.recorder import Segments
from benchrigor.workloads.timing import Stopwatch, misfits

_FIRST_START_S = 1.0
_FIRST_SHARE = 0.015  # of the time, for readings of the first round, which shows their cost
_OF_TASK = ("target", "inner", "gc", "cpus", "inside")
_DESCRIBED = (*_OF_TASK, "python", *Where.__annotations__, "timeout_s")
# A script is compiled at every start, which takes more than half of it; this reads the cached code.
# The current folder, "", is not in the path: a math.py in it must not replace the module.
_START = """
import sys, _frozen_importlib_external as files
sys.path[:] = filter(None, sys.path)
__file__ = sys.argv.pop(1)
exec(files.SourceFileLoader(__name__, __file__).get_code(__name__))
"""
_Told = tuple[dict[str, Any], dict[str, Floats]]  # facts and arrays
_Answer = tuple[int, Ended, _Told | None]  # start time, end, its answer
_MOST_GIVEN = 65_536  # bytes: it travels on the command line
_PADDING = 4096  # maximum bytes of environment, which move the stack


class InterpreterWorkload:
    """Times a function in a fresh interpreter for every round.

    Memory layout, hash seed and imported modules differ between interpreters and are fixed within
    one, so rounds are invocations. The program is a single file that needs only the standard
    library of CPython 3.9 or newer. The seed of a plan gives the hash seed and the size of the
    environment. Output of the function to stdout is lost.

    In addition to the facts of `CallableWorkload`, rounds have ``startup_s`` (until the program
    began), ``import_s`` (of the function's module), ``peak_memory`` of the process in bytes,
    ``peak_memory_floor`` (the same before the function was called), ``python``, and ``by_turns``
    if two interpreters took their readings by turns.

    Parameters
    ----------
    target
        "package.module:function", or the function itself. If it is a generator function, its steps
        are timed.
    python
        The interpreter; None for the one that runs this.
    cpus
        Processors that it may run on, by number; None for all of this process.
    inner, gc
        As of `CallableWorkload`.
    timeout_s
        Seconds after which a round is ended and fails; None for no limit.
    args, kwargs
        Arguments of the function, pickled, up to 64 kB.
    inside
        Folder that the module of the function must come from; None for any.
    path
        Folders that it imports from first; None for ``cwd``, and for this process's own if the
        target is a function.
    **where
        ``cwd``, the folder that it runs in and imports from first; None for the current one.
        ``env``, its variables in addition to `INHERITED`, the locale's and ``*_NUM_THREADS``.
        ``inherit_env``, names of further variables that it inherits from this process.

    Raises
    ------
    InvalidInput
        When an argument is out of range, or a fresh interpreter cannot import the function by a
        name.

    Examples
    --------
    >>> from benchrigor.model import RoundPlan
    >>> from benchrigor.workloads import RoundRecorder
    >>> workload = InterpreterWorkload("platform:python_version")
    >>> plan, recorder = RoundPlan(index=0, readings=20), RoundRecorder()
    >>> workload.run(plan, recorder)
    >>> finished = recorder.finish(plan, elapsed_ns=0)
    >>> finished.unit_readings["time"].size, finished.facts["startup_s"] > 0.0
    (20, True)
    """

    fresh_process = True
    _clock = WallClock()
    _whole_s: float | None = None  # the time of the first plan, which has the whole budget
    _is_paced = False
    _answer: Callable[[], _Answer] | None = None  # of the interpreter that was started

    def __init__(
        self,
        target: str | Callable[..., object],
        *,
        python: str | os.PathLike[str] | None = None,
        cpus: Collection[int] | None = None,
        inner: int | None = None,
        gc: str = "on",
        timeout_s: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        inside: str | os.PathLike[str] | None = None,
        path: Sequence[str] | None = None,
        **where: Unpack[Where],
    ) -> None:
        target, args, kwargs = _unbound(target, args, kwargs or {})
        named_so = not isinstance(target, str) or all(target.partition(":"))
        in_time = timeout_s is None or 0 < timeout_s <= threading.TIMEOUT_MAX
        refuse(
            misfits(inner=inner, gc=gc),
            wrong_values(
                [
                    ("target", target, named_so, "'package.module:function'"),
                    ("timeout_s", timeout_s, in_time, "seconds, more than 0, or None"),
                    ("cpus", cpus, _are_free(cpus), "numbers of processors of this process"),
                ]
            ),
        )
        program = _program(python)
        argv = [program, "-X", "faulthandler", "-c", _START, worker.__file__]
        started: Where = {"inherit_env": (), **where}
        self._line = CommandLine(argv, **started)
        # A function object was found by the path of this process; a name is looked up again.
        own = [str(self._line.cwd)] if isinstance(target, str) else filter(None, sys.path)
        self._path = [*(path or own)]
        self._given = _pickle(args, kwargs) if args or kwargs else None
        self._described: dict[str, Any] = {
            "kind": "interpreter",
            "target": target if isinstance(target, str) else import_name(target),
            "inner": inner,
            "gc": gc,
            "cpus": None if cpus is None else sorted(cpus),
            "inside": None if inside is None else str(Path(inside).absolute()),
            "python": program,
            **self._line.where,
            "timeout_s": timeout_s,
        }
        self._started = ExitStack()
        self.facts: dict[str, Any] = {}  # what else describes it

    def take_turns(self) -> None:
        """Time the reference in turn with the readings."""
        self._is_paced = True

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """Make the workload that `describe` described."""
        return cls(**{name: description[name] for name in _DESCRIBED if name in description})

    def describe(self) -> dict[str, Any]:
        """Return all that `from_description` needs, ready for JSON."""
        return self._described | self.facts

    @property
    def name(self) -> str:
        """The function, as it is imported."""
        return str(self._described["target"])

    @cached_property
    def source_files(self) -> tuple[Path | str, ...]:
        """The file of the function's module, as far as that is known without importing it."""
        file = locate(self.name.partition(":")[0], [*self._path, *filter(None, sys.path)])
        return () if file is None else (file, self.name)

    @cached_property
    def function_hash(self) -> str | None:
        """Hash of the function's source, found without an import, see `Provenance`."""
        try:
            text = str(Path(self.source_files[0]).read_text(encoding="utf-8"))
        except (IndexError, OSError, ValueError):  # not found, not readable, no text
            return None
        return hash_in(text, self.name.partition(":")[2])

    @cached_property
    def _stopwatch(self) -> Stopwatch:
        return Stopwatch(self._clock)

    def start(self, plan: RoundPlan, turns: socket.socket, *, is_first: bool) -> None:
        """Start the interpreter of a round; `run` with the same plan waits for it.

        It takes turns with the interpreter of another workload, which has the other socket of the
        pair.
        """
        self.close()
        limit_s = self._described["timeout_s"]
        if limit_s is not None:  # who waits longer goes on alone: the other one hangs
            longest = struct.pack("ll", *map(int, divmod(1e6 * limit_s, 1_000_000)))
            turns.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, longest)
        self._answer = self._started.enter_context(self._answering(plan, turns, is_first))

    def close(self) -> None:
        """End an interpreter that `start` started and `run` did not wait for."""
        self._answer = None
        self._started.close()

    def run(self, plan: RoundPlan, recorder: Recorder) -> None:
        """Start an interpreter, take up to ``plan.readings`` readings, and record them.

        WorkloadFailed when it does not start, runs too long, or does not come to its end;
        InvalidInput when the target is not a function that can be timed.
        """
        with closing(self):
            answer_of = self._answer or self._started.enter_context(self._answering(plan))
            began_ns, ended, told = answer_of()
        for notice in ended.left_behind(self.name):
            recorder.notice(notice)
        if told is None and ended.cut:
            cut = Notice.of(Code.CUT_ROUND, round=plan.index, seconds=plan.seconds or 0.0)
            recorder.notice(cut)
            recorder.cut()
            return
        facts, arrays = self._understood(told, ended)
        if ended.code == worker.EXIT_TOOK_LONG:
            left = Notice.of(Code.CUT_ROUND, "exit", name_=self.name, seconds_=worker.EXIT_S)
            recorder.notice(left)
        over_s = (self._clock.now_ns() - began_ns) / 1e9
        if arrays["readings"].size < plan.readings and over_s >= (plan.seconds or math.inf):
            recorder.cut()
        self._record(facts, arrays, recorder)

    @contextmanager
    def _answering(
        self, plan: RoundPlan, turns: socket.socket | None = None, is_first: bool = True
    ) -> Iterator[Callable[[], _Answer]]:
        """Start the program of a round, and give what waits for its end and its answer."""
        late_s = _FIRST_START_S if plan.index == 0 else 0.0  # a short budget is to give a reading
        shared = [] if turns is None else [turns.fileno()]
        task = self._task_of(plan) | {"turns": (*shared, is_first) if shared else None}
        limit_s = self._described["timeout_s"]
        if limit_s is not None:
            limit_s *= 1 + len(shared)
        with OutputFile() as answer:
            running = self._line.start(
                [*self._line.argv, ascii(task)],
                name=f"{self.name}: the fresh interpreter",
                env=_drawn(plan.seed or 0),
                stdout=answer.fileno(),
                clock=self._clock,
                timeout_s=limit_s,
                seconds=None if plan.seconds is None else LATEST * plan.seconds + late_s,
                pass_fds=shared,
            )

            def answer_of() -> _Answer:
                ended = running.wait()
                if (told := _decode(answer)) is None:
                    answer.check_room()
                return task["began_ns"], ended, told

            with running:
                yield answer_of

    def _task_of(self, plan: RoundPlan) -> dict[str, Any]:
        """Return the task for the program of a round, which begins now."""
        enough_ns, began_ns = worker.HEADROOM * self._stopwatch.shortest_ns, self._clock.now_ns()
        self._whole_s = self._whole_s or plan.seconds
        task = {name: self._described[name] for name in _OF_TASK} | {
            "given": self._given,
            "path": self._path,
            "readings": plan.readings,
            "seconds_ns": worker.NEVER if self._whole_s is None else 1e9 * self._whole_s,
            "until_ns": worker.NEVER if plan.seconds is None else began_ns + plan.seconds * 1e9,
            "longest_ns": worker.NEVER,
            "enough_ns": enough_ns,
            "reference": self._is_paced,
            "began_ns": began_ns,
        }
        if plan.index == 0 and plan.seconds is not None:
            task["longest_ns"] = _FIRST_SHARE * plan.seconds * 1e9
        return task

    def _understood(self, told: _Told | None, ended: Ended) -> _Told:
        """Return facts and arrays of an answer; raise what went wrong."""
        if told is None:
            how = ended.failure or f"exited with code {ended.code}"
            raise ended.error(f"{how}, before it passed its readings")
        if "refused" in told[0]:
            raise InvalidInput(told[0]["refused"])
        if "failed" in told[0]:
            raise ended.error(told[0]["failed"], name=self.name)
        return told

    def _record(self, facts: dict[str, Any], arrays: dict[str, Any], recorder: Recorder) -> None:
        """Record the readings of a round, its facts, delays and references."""
        readings_s = arrays.pop("readings")
        if not readings_s.size:
            raise WorkloadFailed(f"{self.name} ended before its first step")
        inner, measured = facts["inner_loop"], {**arrays, "is_metered": facts.pop("is_metered")}
        recorder.unit_readings("time", readings_s)
        Segments(**measured, by_turns="by_turns" in facts).report(recorder, readings_s * inner)
        self._stopwatch.report(recorder, (readings_s * inner * 1e9).astype(np.int64).tolist())
        for name, fact in facts.items():
            recorder.fact(name, fact)


def _drawn(seed: int) -> dict[str, str]:
    """Return the variables that differ from round to round."""
    rng = np.random.default_rng(seed)
    return {
        "PYTHONHASHSEED": str(rng.integers(2**32)),
        "BENCHRIGOR_PADDING": "=" * int(rng.integers(_PADDING)),
    }


def _unbound(
    target: str | Callable[..., object], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str | Callable[..., object], Sequence[Any], Mapping[str, Any]]:
    """Return the function of a partial one, or of an object's method, and its whole arguments."""
    while isinstance(target, partial):
        args, kwargs = (*target.args, *args), {**target.keywords, **kwargs}
        target = target.func
    if isinstance(target, MethodType) and not isinstance(target.__self__, type):
        return target.__func__, (target.__self__, *args), kwargs
    return target, args, kwargs


def _pickle(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """Return what travels to a fresh interpreter; InvalidInput if it cannot."""
    try:
        given = pickle.dumps((tuple(args), dict(kwargs)))
    except Exception as error:  # noqa: BLE001  # any error of objects that cannot be pickled
        raise InvalidInput(
            f"args cannot be pickled for a fresh interpreter: {error}; make them in the function"
        ) from None
    if len(given) > _MOST_GIVEN:
        raise InvalidInput(
            f"args are {len(given):,} bytes when pickled, expected {_MOST_GIVEN:,} at most; make "
            "them in the function"
        )
    return given


def _program(python: str | os.PathLike[str] | None) -> str:
    """Return the path of an interpreter; InvalidInput without one."""
    if python is None:
        return sys.executable
    found = shutil.which(os.fspath(python))
    if found is None:
        raise InvalidInput(
            f"python is {os.fspath(python)!r}, expected the path or name of an interpreter that "
            "can be run"
        )
    # No link is followed: it may belong to a virtual environment.
    return str(Path(found).absolute())


def _are_free(cpus: Collection[int] | None) -> bool:
    """Return whether this process may run on the processors."""
    if cpus is None:
        return True
    if not isinstance(cpus, Collection) or not cpus or not hasattr(os, "sched_getaffinity"):
        return False
    return set(cpus) <= os.sched_getaffinity(0)


def _decode(answer: OutputFile) -> _Told | None:
    """Return facts and arrays of what an interpreter answered; None unless that is whole."""
    answer.file.seek(0)
    said = answer.file.read().partition(worker.MARK)[2]  # what starts it may print before
    head, _, body = said.partition(b"\n")
    try:
        header = ast.literal_eval(head.decode())
        facts, sizes = header["facts"], dict(header["arrays"])
    except (ValueError, SyntaxError, TypeError, KeyError):
        return None
    if len(body) != 8 * sum(sizes.values()):
        return None
    parts = np.split(np.frombuffer(body), np.cumsum([*sizes.values()])[:-1])
    return facts, dict(zip(sizes, parts, strict=False))  # of no arrays one part
