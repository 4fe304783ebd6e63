"""A load generator as `peak` describes it, with commands before trials and after crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchrigor.clocks import WallClock
from benchrigor.errors import BenchrigorError, WorkloadFailed
from benchrigor.model.secret_values import hide_secrets
from benchrigor.model.shell_words import words_of
from benchrigor.workbench.data import Limit, LoadResult, LoadTrial
from benchrigor.workbench.loadgen.load_command import LoadCommand
from benchrigor.workbench.loadgen.open_loop import OpenLoop
from benchrigor.workbench.loadgen.senders import HostSenders, Senders
from benchrigor.workbench.loadgen.sending import HttpRequest, HttpRequests
from benchrigor.workbench.pool.pool import HostTable, Pool, executor_for
from benchrigor.workbench.settings import SENDING
from benchrigor.workloads import Pick
from benchrigor.workloads.named_functions import imported
from benchrigor.workloads.processes.command_hooks import run_hook
from benchrigor.workloads.processes.command_line import CommandLine
from benchrigor.workloads.processes.time_limits import CallOverran


class Prepared:
    """A load generator with commands before a trial, and after a crash of the server."""

    def __init__(
        self,
        generator: OpenLoop | LoadCommand,
        *,
        prepare: Callable[[], object],
        recover: Callable[[], object],
    ) -> None:
        self._generator, self._prepare, self._recover = generator, prepare, recover
        self._broken: BenchrigorError | None = None  # why the server did not recover
        self._checked_s: float | None = None  # duration of the check, which prepares a first trial

    def check(self) -> None:
        """Prepare the first trial, and check that the server answers."""
        begun_s = time.monotonic()
        self._prepare()
        self._generator.check()
        self._checked_s = time.monotonic() - begun_s

    def offer(self, trial: LoadTrial) -> LoadResult:
        """Prepare, carry out the trial, and recover.

        If the server does not recover, the next trial fails: this one shows the breaking load.
        """
        if self._broken is not None:
            raise self._broken
        setup_s, self._checked_s = self._checked_s, None
        if setup_s is None:
            begun_s = time.monotonic()
            self._prepare()
            setup_s = time.monotonic() - begun_s
        result = self._generator.offer(trial)
        begun_s = time.monotonic()
        if result.crashed:
            try:
                self._recover()
                self._generator.check()
            except BenchrigorError as error:
                self._broken = error
            except CallOverran:
                self._broken = WorkloadFailed(
                    "The server had not recovered by the end of the budget"
                )
        spent_s = {"set-up": setup_s, **result.spent_s}
        spent_s["teardown"] = spent_s.get("teardown", 0.0) + time.monotonic() - begun_s
        return replace(result, spent_s=spent_s)

    def close(self) -> None:
        """Release the generator."""
        self._generator.close()


def _pool(described: Mapping[str, Any]) -> Pool:
    """Return the sending hosts, held for the search; a resumed one can take them at once."""
    executor = executor_for(HostTable(**described["hosts"]))
    return Pool(executor, owner=described["owner"], timed=True)


def _hook(command: str | None, option: str, cwd: str | None) -> Callable[[], object]:
    """Return what runs a command that is given as a text."""
    if command is None:
        return lambda: None
    words = words_of(command, f"{option} {hide_secrets(command)!r}")
    return partial(run_hook, option, words, CommandLine(words, cwd=cwd), WallClock())


def generator_of(
    described: Mapping[str, Any],
    limits: Sequence[Limit],
    *,
    cwd: str | None = None,
    recover: Callable[[], object] | None = None,
    senders: Senders | None = None,
) -> Prepared:
    """Return the load generator that `peak` describes; ``recover`` replaces its command.

    Commands run in ``cwd``, or in the folder of the description; ``senders`` replace its own.
    """
    cwd = cwd or described.get("cwd")
    is_rate = described["load"] == "rate"
    made: OpenLoop | LoadCommand
    if described["kind"] == "command":
        picks = [Pick.parse(pick) for pick in described["read"]]
        made = LoadCommand(described["words"], picks, limits=limits, is_rate=is_rate, cwd=cwd)
    else:
        requests: Any
        if described["kind"] == "target":
            requests = imported(described["words"][0], described["cwd"])
        else:
            kinds = [HttpRequest(**request) for request in described["requests"]]
            requests = HttpRequests(kinds=kinds)
        made = OpenLoop(
            requests,
            limits,
            senders=HostSenders(partial(_pool, described)) if described.get("hosts") else senders,
            **{name: described[name] for name in SENDING},
        )
    return Prepared(
        made,
        prepare=_hook(described["prepare"], "--prepare", cwd),
        recover=recover or _hook(described["recover"], "--recover", cwd),
    )
