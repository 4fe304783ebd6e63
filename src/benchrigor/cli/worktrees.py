"""Revisions of a git repository, each checked out in a folder of its own for a while."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from benchrigor.cli.output import remark
from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput, WorkloadFailed
from benchrigor.model.secret_values import hide_secrets
from benchrigor.workloads.processes.command_line import CommandLine, with_stderr
from benchrigor.workloads.processes.output_file import OutputFile
from benchrigor.workloads.processes.own_signals import not_interrupted


@contextmanager
def worktrees(revisions: Sequence[str], *, build: str | None = None) -> Iterator[list[Path]]:
    """Check revisions out beside each other, and give the folder that is the current one in each.

    They are gone afterwards, also after a signal, and the tree at hand is left as it is. ``build``
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
    with ExitStack() as stack:
        with not_interrupted():
            folder = Path(mkdtemp(prefix="benchrigor-"))
            stack.callback(_git, "worktree", "prune", cwd=top)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        places = []
        for index, (revision, commit) in enumerate(zip(revisions, commits, strict=True)):
            place = folder / str(index)
            # One that is killed while it is added stays locked, which keeps it from being pruned.
            stack.callback(_unlock, place, top)
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


def _unlock(place: Path, top: Path) -> None:
    with suppress(InvalidInput):  # it is not locked, as a rule
        _git("worktree", "unlock", str(place), cwd=top)


def _build(build: str, place: Path, revision: str) -> None:
    """Run a command in a revision; the end of what it prints is in the error where it fails."""
    line = CommandLine(words_of(build), cwd=place)
    with OutputFile(keeps_end=True) as output:
        try:
            group = line.start(words_of(build), stdout=output, stderr=output, clock=WallClock())
        except WorkloadFailed as error:
            raise WorkloadFailed(f"--build {error}") from None
        failure = line.failure(group.wait(None).code)
        if failure:
            failure = f"--build {hide_secrets(build)!r} in revision {revision} {failure}"
            raise WorkloadFailed(*with_stderr(failure, output.end()))


def words_of(command: str) -> list[str]:
    """Split a command as a shell would; InvalidInput where a quotation does not end."""
    try:
        return shlex.split(command)
    except ValueError as error:
        shown = hide_secrets(command)
        raise InvalidInput(f"{shown!r} cannot be read as a command: {error}") from None
