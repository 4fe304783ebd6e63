"""Everything benchrigor raises on purpose.

The tree::

    BenchrigorError
    ├── InvalidInput     a value that is out of range, named (also a ValueError)
    │   └── NotComparable    readings in different units are to be compared
    ├── NotEstimable     the data allow no number; carries the Notice that says why
    ├── PlanMismatch     a round belongs to a plan never asked for, or is a repeat
    ├── WorkloadFailed   the workload raised, exited with an error, hung or gave no reading
    ├── WorkTooShort     even the largest work amount makes rounds too short to measure
    ├── DetectorFailed   a detector raised, or returned wrong change points
    ├── ClockFailed      the clock went backwards or stood still
    ├── StoreFailed      the journal cannot be read or written
    └── MissingExtra     a package is not installed that only some need (also an ImportError)

Catch `BenchrigorError` to catch them all. An error raised while a session runs carries the
record of the rounds that were finished before it, as ``error.record``.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from benchrigor.safe_text import page

if TYPE_CHECKING:
    from collections.abc import Iterable


def without_our_frames(error: BaseException) -> BaseException:
    """Take our own frames off an error: its reader wants to see the place in their own function."""
    # A module is imported for its function, and a loop awaits its result.
    ours = (__package__, "importlib", "asyncio")
    trace = error.__traceback__
    while trace and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ours:
        trace = trace.tb_next
    return error.with_traceback(trace)


def _without_secrets(item: object) -> object:
    from benchrigor.safe_text import hide_in_text  # noqa: PLC0415  # slow to load

    if isinstance(item, tuple):
        return tuple(map(_without_secrets, item))
    return hide_in_text(item) if isinstance(item, str) else item


class BenchrigorError(Exception):
    """The base of all errors that benchrigor raises on purpose.

    Its ``args`` are the lines of the message. Control characters in them are escaped and secrets
    hidden, since messages repeat the words of commands, programs and other errors. ``record`` is
    the `RunRecord` of the rounds finished before, if a session was running; ``records`` are several
    records by name, if runs took turns.
    """

    record: object | None = None
    records: object | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*map(_without_secrets, args))

    def __str__(self) -> str:
        return page(map(str, self.args))  # a line for each


class InvalidInput(BenchrigorError, ValueError):
    """A value that is out of range; the message names the value and the expected one.

    Parameters
    ----------
    problems
        One sentence, or several when a whole set of values was checked at once.

    Examples
    --------
    >>> print(InvalidInput(["target is 0, expected more than 0", "confidence is 1, expected less"]))
    2 problems:
    - target is 0, expected more than 0
    - confidence is 1, expected less
    """

    def __init__(self, problems: str | Iterable[str]) -> None:
        several = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(several if len(several) > 1 else several[0])
        self.problems: tuple[str, ...] = self.args[0] if len(several) > 1 else self.args

    def __str__(self) -> str:
        number = len(self.problems)
        head = [f"{number} problems:"] if number > 1 else []
        return page([*head, *(f"{'- ' if head else ''}{problem}" for problem in self.problems)])


class NotComparable(InvalidInput):
    """The two sides differ in kind: their units are not the same."""


class NotEstimable(BenchrigorError):
    """The data allow no number; ``notice`` is the `benchrigor.model.Notice` that says why."""

    def __init__(self, notice: object) -> None:
        super().__init__(str(notice))
        self.notice = notice


class PlanMismatch(BenchrigorError):
    """A round belongs to a plan that was never asked for, or that already has a round."""


class WorkloadFailed(BenchrigorError):
    """The workload raised, exited with an error, ran into its time limit or gave no reading."""


AT_FIRST = "before the first reading"  # the moment at which a function failed
_MOST_WORDS = 2_000  # of the message of an error that is not ours


def failed(part: str, error: BaseException, where: str = "") -> WorkloadFailed:
    """Return an error with the exception that a part of a workload raised."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001  # the error's own code
        words = ""
    if len(words) > _MOST_WORDS:
        words = words[:_MOST_WORDS]
        words = f"{words.rpartition(' ')[0] or words}…"  # half a secret would not look like one
    raised = f"{type(error).__name__}{f': {words}' if words else ''}"
    if type(error) is TypeError and "argument" in words and AT_FIRST in where:
        where += "; give it arguments in a function of its own, as in lambda: f(1, 2)"
    return WorkloadFailed(f"{part} raised {raised}{where}")


def used_up(error: BaseException) -> WorkloadFailed | None:
    """Return what to say if our own code failed because this process has no more of something."""
    number, why = error.errno if isinstance(error, OSError) else None, ""
    if number in (errno.EMFILE, errno.ENFILE):
        why = "Too many open files: the measured code may keep files open, or limit their number"
    if number == errno.EAGAIN:
        why = "no process or thread can be started: the measured code may have started many"
    is_full = isinstance(error, MemoryError) or number == errno.ENOMEM
    # The loader of libraries has no number for it.
    if is_full or (isinstance(error, ImportError) and "map segment" in str(error)):
        why = "no memory is left: the measured code may keep much of it, or limit it"
    return WorkloadFailed(why) if why else None


class WorkTooShort(BenchrigorError):
    """Even a round with the largest work amount allowed is too short to be measured."""


class DetectorFailed(BenchrigorError):
    """A session's detector raised, or did not return the change points of the readings."""


class ClockFailed(BenchrigorError):
    """The clock went backwards or stood still, so that nothing can be timed with it."""


class StoreFailed(BenchrigorError):
    """The journal cannot be opened, read or written."""


class MissingExtra(BenchrigorError, ImportError):
    """A package is not installed that only some need; the message says how to get it.

    Examples
    --------
    >>> print(MissingExtra("drawing", package="matplotlib", extra="report"))
    drawing needs matplotlib, which is not installed: pip install 'benchrigor[report]'
    """

    def __init__(self, what: str, *, package: str, extra: str) -> None:
        super().__init__(
            f"{what} needs {package}, which is not installed: pip install 'benchrigor[{extra}]'"
        )
