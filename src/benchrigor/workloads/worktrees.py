"""Revisions of a git repository, checked out for a while in folders of their own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, STDOUT
from tempfile import gettempdir, mkdtemp

from benchrigor.errors import InvalidInput
from benchrigor.safe_text import hide_secrets
from benchrigor.workloads.processes.command_line import SETUP_S, CommandLine
from benchrigor.workloads.processes.own_signals import hold_interrupts
from benchrigor.workloads.processes.running import Ended, shown

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A revision in a folder of its own.

    ``top`` is that folder, ``folder`` the one in it that stands for the current one, and
    ``original`` the top of the current tree.
    """

    top: Path
    folder: Path
    original: Path

    def path(self, modules: Iterable[str] = ()) -> list[str]:
        """Return the folders here that this process imports from in the current tree.

        ``modules`` are names that Python may find by other means than the path, as in some editable
        installations.
        """
        places = [*filter(None, sys.path), *(place for name in modules for place in _roots(name))]
        inside = [
            self.top / resolved.relative_to(self.original)
            for resolved in (Path(place).resolve() for place in dict.fromkeys(places))
            if resolved.is_relative_to(self.original)
        ]
        return [str(place) for place in inside if place.exists()]


def _roots(module: str) -> list[str]:
    """Return the folders that a module at the top is imported from."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):  # some set up no spec
        return []
    if spec is None:
        return []
    places = spec.submodule_search_locations or [spec.origin or ""]
    return [str(Path(place).parent) for place in places]


_PREFIX, _OWNER = "benchrigor-", "owner"


@contextmanager
def _held(mark: Path) -> Iterator[None]:
    """Hold a file inside, or until this process is killed; OSError if another one holds it."""
    with mark.open("ab") as file:
        if fcntl is None:
            raise OSError
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _remove_abandoned() -> None:
    """Remove the folders of processes that were killed; git forgets them when it next prunes.

    Numbers and starts of processes would not tell: a container has its own, and the clock is set.
    """
    for mark in Path(gettempdir()).glob(f"{_PREFIX}*/{_OWNER}"):
        with suppress(OSError), _held(mark):
            shutil.rmtree(mark.parent, ignore_errors=True)


@contextmanager
def marked_folder() -> Iterator[Path]:
    """Make a folder for as long as it is used; the next start removes those of killed processes."""
    with ExitStack() as stack:
        with hold_interrupts():
            _remove_abandoned()
            folder = Path(mkdtemp(prefix=_PREFIX)).resolve()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            with suppress(OSError):
                stack.enter_context(_held(folder / f"{_OWNER}-to-be"))
                (folder / f"{_OWNER}-to-be").rename(folder / _OWNER)
        yield folder


@contextmanager
def worktrees(
    revisions: Sequence[str], *, folder: Path | None = None, build: Sequence[str] | None = None
) -> Iterator[list[Checkout]]:
    """Check revisions out next to each other.

    They are gone afterwards, also after a signal, and the current tree does not change. ``folder``
    lies in the repository, None for the current one. ``build`` is a program with its arguments,
    which runs first in every revision.

    Raises
    ------
    InvalidInput
        When this is not a repository, or it has no such revision.
    WorkloadFailed
        When the command fails.
    """
    folder = (folder or Path.cwd()).resolve()
    top = _top(folder)
    commits = [commit_of(revision, top) for revision in revisions]
    here = folder.relative_to(top)
    with ExitStack() as stack:
        stack.callback(_git, "worktree", "prune", cwd=top)
        shelter = stack.enter_context(marked_folder())
        checkouts = []
        for index, (revision, commit) in enumerate(zip(revisions, commits, strict=True)):
            place = shelter / str(index)
            # One that is killed while it is added stays locked, which keeps it from being pruned.
            stack.callback(_unlock, place, top)
            _git("worktree", "add", "--quiet", "--detach", str(place), commit, cwd=top)
            if not (place / here).is_dir():
                raise InvalidInput(f"revision {revision} has no folder {here}, expected one")
            if build is not None:
                _build(build, place / here, revision)
            checkouts.append(Checkout(top=place, folder=place / here, original=top))
        yield checkouts


def is_changed() -> bool:
    """Return whether the current tree differs from its last commit."""
    return bool(_git("status", "--porcelain", "--untracked-files=no", cwd=_top(Path.cwd())))


def _top(folder: Path) -> Path:
    try:
        return Path(_git("rev-parse", "--show-toplevel", cwd=folder)).resolve()
    except _GitFailed:
        raise InvalidInput(
            f"{folder} is in no git repository, expected one to take the revision from"
        ) from None


def commit_of(revision: str, folder: Path) -> str:
    """Return the commit of a revision of the repository that a folder lies in."""
    top = _top(folder)
    try:
        return _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", cwd=top)
    except _GitFailed:
        raise InvalidInput(
            f"the repository {top} has no revision {revision!r}, expected a branch, tag or commit; "
            "a shallow clone has few: fetch it first"
        ) from None


class _GitFailed(InvalidInput):
    """A command of git failed; the message has its output."""


def _git(*words: str, cwd: Path) -> str:
    """Return the output of a command of git; InvalidInput says why it failed."""
    if shutil.which("git") is None:
        raise InvalidInput("revisions need git, which is missing")
    argv, name = ["git", *words], f"git {words[0]} {words[-1]}"
    with CommandLine(argv, cwd=cwd).start(argv, stdout=PIPE, timeout_s=SETUP_S) as running:
        ended = running.wait()
        if ended.limit_s:
            raise InvalidInput(f"{name} {_too_long(ended)}")
        if ended.failure:
            said = hide_secrets(ended.said.decode(errors="replace").strip())
            raise _GitFailed(f"{name}: {said.removeprefix('fatal: ')}")
        return running.printed.read().decode().strip()


def _unlock(place: Path, top: Path) -> None:
    with suppress(InvalidInput):  # it is not locked, as a rule
        _git("worktree", "unlock", str(place), cwd=top)


def _build(build: Sequence[str], place: Path, revision: str) -> None:
    """Run a command in a revision; if it fails, the error has the end of its output."""
    name = f"--build {shown(build)} in revision {revision}"
    ended = CommandLine(build, cwd=place).run(build, name=name, stdout=STDOUT, timeout_s=SETUP_S)
    if ended.failure:
        raise ended.error(_too_long(ended) if ended.limit_s else None)


def _too_long(ended: Ended) -> str:
    return f"{ended.failure}, expected its end by then: does it hang? Run it there by hand"
