"""Revisions of a git repository, each checked out in a folder of its own for a while."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp

from benchrigor.cli.output import remark
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.secret_values import hide_secrets
from benchrigor.workloads.processes.command_line import with_stderr
from benchrigor.workloads.processes.own_signals import handled


@contextmanager
def worktrees(revisions: Sequence[str], *, build: str | None = None) -> Iterator[list[Path]]:
    """Check revisions out beside each other, and give the folder that is the current one in each.

    They are gone afterwards, also after SIGTERM, and the tree at hand is left as it is. ``build``
    is a command that is run in each first.

    Raises
    ------
    InvalidInput
        When this is no repository, or it has no such revision.
    WorkloadFailed
        When the command fails.
    """
    top = Path(_git("rev-parse", "--show-toplevel"))
    commits = [
        _git("rev-parse", "--verify", "--end-of-options", f"{it}^{{commit}}") for it in revisions
    ]
    here = Path.cwd().resolve().relative_to(top.resolve())
    if _git("status", "--porcelain", "--untracked-files=no"):
        remark("what is not committed here is in neither revision")
    with _ended_gently(), ExitStack() as stack:
        folder = Path(mkdtemp(prefix="benchrigor-"))
        stack.callback(_git, "worktree", "prune", cwd=top)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        places = []
        for index, (revision, commit) in enumerate(zip(revisions, commits, strict=True)):
            place = folder / str(index)
            _git("worktree", "add", "--quiet", "--detach", str(place), commit, cwd=top)
            if not (place / here).is_dir():
                raise InvalidInput(f"revision {revision} has no folder {here}, expected one")
            if build is not None:
                _build(build, place / here, revision)
            places.append(place / here)
        yield places


def _git(*words: str, cwd: Path | None = None) -> str:
    """Return what a command of git prints; InvalidInput says why it failed."""
    try:
        done = subprocess.run(  # noqa: S603  # git, without a shell
            ["git", *words],  # noqa: S607  # by its place in the path, as users run it
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise InvalidInput("--rev needs git, and there is no such program") from None
    if done.returncode:
        told = done.stderr.strip().removeprefix("fatal: ")
        raise InvalidInput(f"git {words[0]} {words[-1]}: {told}")
    return done.stdout.strip()


def _build(build: str, place: Path, revision: str) -> None:
    """Run a command in a revision; what it prints goes to stderr where it fails."""
    shown = hide_secrets(build)
    try:
        done = subprocess.run(  # noqa: S603  # the caller's own command, without a shell
            words_of(build), cwd=place, capture_output=True, check=False
        )
    except OSError as error:
        raise WorkloadFailed(f"--build {shown!r} cannot be started: {error.strerror}") from None
    if done.returncode:
        failure = f"--build {shown!r} exited with code {done.returncode} in revision {revision}"
        raise WorkloadFailed(*with_stderr(failure, done.stderr or done.stdout))


def words_of(command: str) -> list[str]:
    """Split a command as a shell would; InvalidInput where a quotation does not end."""
    try:
        return shlex.split(command)
    except ValueError as error:
        shown = hide_secrets(command)
        raise InvalidInput(f"{shown!r} cannot be read as a command: {error}") from None


@contextmanager
def _ended_gently() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt inside, so that what was made is taken away."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with handled({signal.SIGTERM: signal.default_int_handler}):
        yield
