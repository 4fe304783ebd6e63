"""A function that ``run`` measures: in fresh interpreters, or in this process."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchrigor.cli import options as shared
from benchrigor.cli.targets import (
    function_target,
    interpreter_target,
    metrics_for,
    trailing_words,
)
from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Metric, Notice
from benchrigor.model.checks import refuse
from benchrigor.protocols import Workload
from benchrigor.session.measuring import TIME
from benchrigor.workloads import AmountWorkload, CallableWorkload, StepwiseWorkload
from benchrigor.workloads.named_functions import imported
from benchrigor.workloads.processes.process_group import missing_for_processes
from benchrigor.workloads.timing import takes_amount

# Workload, metrics and subject of a session, and its notices
Chosen = tuple[Workload, tuple[Metric, ...], dict[str, Any], *tuple[Notice, ...]]

_FOR_COMMANDS = ("read", "read_units", "accept_exit", "shell")


def chosen_function(
    words: tuple[str, ...],
    given: Mapping[str, Any],
    speed: Metric | None,
    *,
    in_turn: bool = False,
) -> Chosen:
    """Return how the function that the words name is measured; a Notice says if it is in here."""
    target = words[0]
    problems = [
        f"{flag} is for commands, and {target} is a function"
        for flag in shared.flags_given(given, *_FOR_COMMANDS)
    ]
    refuse(problems, trailing_words(words))
    given = {**given, "speed": speed, "in_turn": in_turn}
    why = None if given["fresh"] and not given["in_process"] else _why_in_process(target, given)
    if why is None:
        return _in_interpreters(target, given)
    refuse(
        f"{flag} is for fresh interpreters: {why}"
        for flag in shared.flags_given(given, "fresh", *shared.FRESH)
    )
    notice = Notice.of(Code.THIS_PROCESS_ONLY, "here", why_=why)
    return *_in_process(target, given, speed), notice


def _in_process(
    target: str, given: Mapping[str, Any], speed: Metric | None
) -> tuple[Workload, tuple[Metric, ...], dict[str, Any]]:
    timing = {
        "gc": given["gc"] or "on",
        "batch": given["batch"],
        "timeout_s": given["timeout_s"],
        "cwd": str(Path.cwd()),
    }
    workload = function_target(target, **timing, fresh=given["rounds"] == "restarted")
    amount = isinstance(workload, AmountWorkload)
    if given["batch"] is not None and (amount or not isinstance(workload, CallableWorkload)):
        timed = "is called once for each work amount" if amount else "is measured step by step"
        raise InvalidInput(f"--batch is for plain functions, and {target} {timed}")
    if getattr(workload, "takes_amount", False) and not (given["work"] or speed):
        module, _, function = target.partition(":")
        raise InvalidInput(
            f"{target} takes a work amount: give one, or a range, with --work. To time calls with "
            f"one argument: benchrigor timeit -s 'import {module}' '{module}.{function}(...)'"
        )
    subject = {"kind": "target", "name": target, "target": target, **timing}
    if speed is not None and isinstance(workload, StepwiseWorkload):
        return workload, (TIME, replace(speed, must_satisfy=False)), subject
    return workload, metrics_for((), speed), subject


def _in_interpreters(target: str, given: Mapping[str, Any]) -> Chosen:
    wrong = [option for option in _for_one_process(given) if option != "--timeout"]
    refuse(f"--fresh goes without {option}" for option in wrong)
    workload = interpreter_target(target, given, python=given["python"])
    return workload, metrics_for(()), {**workload.describe(), "name": target}


def _why_in_process(target: str, given: Mapping[str, Any]) -> str | None:
    """Return why a function is measured in this process; None if fresh interpreters measure it."""
    option = next(_for_one_process(given), None)
    if given["in_process"]:
        return "--in-process is given"
    if given["in_turn"]:
        return "several functions take turns in it"
    if option is not None:
        return f"{option} is for one process"
    if missing := missing_for_processes():
        return missing[0]
    if given["python"]:  # which may have what this interpreter lacks
        return None
    function = imported(target, str(Path.cwd()))
    if inspect.isgeneratorfunction(function):
        return f"{target} is a generator function"
    is_plain = callable(function) and not inspect.isasyncgenfunction(function)
    if not is_plain or takes_amount(function):
        return f"{target} is not a function that is called without arguments"
    if "<locals>" in getattr(function, "__qualname__", ""):
        return f"{target} is made inside of another function"
    return f"{target} is of the program itself" if target.startswith("__main__:") else None


def _for_one_process(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that measure one process only."""
    if given["rounds"] == "continuous":
        yield "--rounds continuous"
    if given["speed"] and not given["work"]:
        yield "--analysis wps"
    yield from shared.flags_given(given, "work", "pieces", "over", "timeout_s")
