"""A statement as a workload: it stands in the timed loop itself, so that no call is timed."""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from itertools import repeat
from operator import length_hint
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any

from benchrigor.errors import InvalidInput, failed
from benchrigor.protocols import Clock, DelayMeter
from benchrigor.workloads.callable import CallableWorkload
from benchrigor.workloads.processes.own_signals import measuring
from benchrigor.workloads.timing import What

if TYPE_CHECKING:
    from benchrigor.workloads.processes.worker import Timing

# The loop of the standard library's `timeit`. A generator keeps the names of the setup in local
# variables from reading to reading. A statement that ends in an expression runs once before, which
# keeps the type of its value.
_TEMPLATE = """
def statement():
    setup
    _benchrigor_timing = yield
    first
    while True:
        loop
"""
_LOOP = """
_benchrigor_calls, _benchrigor_now = _benchrigor_timing
_benchrigor_start = _benchrigor_now()
for _benchrigor_call in _benchrigor_calls:
    statement
    pass
_benchrigor_stop = _benchrigor_now()
_benchrigor_timing = yield _benchrigor_start, _benchrigor_stop
"""
_FILE = "<statement>"
_UNAWAITED = (
    "the statement makes a coroutine that nothing awaits: write 'asyncio.run(...)' around it, with "
    "-s 'import asyncio', or measure the coroutine function with benchrigor run MODULE:FUNCTION"
)
_LAZY = "the statement makes {} that nothing steps through: write 'for _ in ...: pass' around it"
_UNSTEPPED: dict[object, str] = {
    GeneratorType: _LAZY.format("a generator"),
    **{kind: _LAZY.format(f"a {kind.__name__}") for kind in (map, filter, zip)},
    AsyncGeneratorType: "the statement makes an asynchronous generator that nothing steps through: "
    "measure a coroutine function that runs it to its end with benchrigor run MODULE:FUNCTION",
}
_Loop = Generator[tuple[int, int], tuple["repeat[None]", Callable[[], int]], None]


class StatementWorkload(CallableWorkload):
    """Times a statement in a loop, as `timeit` of the standard library does.

    The setup runs once, and its names are local to the statement.

    Parameters
    ----------
    statement, setup
        Lines of Python.
    clock, inner, gc, meter
        As for `CallableWorkload`; a call is a run of the statement.

    Raises
    ------
    InvalidInput
        When a text is not valid Python, or is valid in a function only (``return``, ``yield``).
    WorkloadFailed
        When the setup raises.

    Examples
    --------
    >>> from benchrigor.clocks import WallClock
    >>> from benchrigor.model import RoundPlan
    >>> from benchrigor.workloads.recorder import RoundRecorder
    >>> plan = RoundPlan(index=0, readings=2)
    >>> workload = StatementWorkload("x + 1", setup="x = 1", clock=WallClock(), inner=300)
    >>> recorder = RoundRecorder()
    >>> workload.run(plan, recorder)
    >>> times = recorder.finish(plan, elapsed_ns=20_000).unit_readings["time"]
    >>> times.size, bool((times < 1e-6).all())
    (2, True)
    """

    def __init__(
        self,
        statement: str,
        *,
        setup: str = "",
        clock: Clock,
        inner: int | None = None,
        gc: str = "on",
        meter: DelayMeter | None = None,
    ) -> None:
        loop = _start(_compile(statement, setup))
        what = What(
            lambda _: partial(_time_runs, loop),
            lambda runs: _checked_run(loop) if runs == 1 else None,
        )
        super().__init__(_statement, what=what, clock=clock, inner=inner, gc=gc, meter=meter)


@contextmanager
def _checked_run(loop: _Loop) -> Iterator[None]:
    """Raise InvalidInput after the run inside if it only made a coroutine or a generator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", r"coroutine .* was never awaited$", RuntimeWarning)
        yield
    names = inspect.getgeneratorlocals(loop)
    if (made := names.get("_benchrigor_made")) in _UNSTEPPED:
        raise InvalidInput(_UNSTEPPED[made])
    for named in filter(inspect.iscoroutine, names.values()):
        named.close()
        raise InvalidInput(_UNAWAITED)
    for seen in caught:
        if seen.filename == _FILE and "was never awaited" in str(seen.message):
            raise InvalidInput(_UNAWAITED)
        warnings.showwarning(seen.message, seen.category, seen.filename, seen.lineno)


def _time_runs(loop: _Loop, timing: Timing) -> None:
    """Time readings of several runs."""
    now, append, readings, until_ns, calls_left = timing
    inner, time_loop = length_hint(calls_left[0]), loop.send
    try:
        for _ in repeat(None, readings):
            calls_left[0] = calls = repeat(None, inner)
            start, stop = time_loop((calls, now))
            append(stop - start)
            if stop >= until_ns:
                break
    except RuntimeError as error:
        # A generator turns a StopIteration that is raised in it into a RuntimeError.
        if isinstance(error.__cause__, StopIteration):
            raise error.__cause__ from None
        raise


def _statement() -> None:
    """Name the statement in messages."""


_statement.__module__, _statement.__qualname__ = "__main__", "statement"


def _compile(statement: str, setup: str) -> Callable[[], _Loop]:
    """Return the generator function that times a statement, see the template."""
    texts = {"setup": (setup, "--setup"), "statement": (statement, "the statement")}
    bodies = {word: _parse(text, name) for word, (text, name) in texts.items()}
    bodies |= {"first": [], "loop": _Template(bodies).visit(ast.parse(_LOOP)).body}
    match bodies["statement"]:
        case [*before, ast.Expr(value=value)]:
            kind = ast.Call(ast.Name("_benchrigor_type", ast.Load()), args=[value], keywords=[])
            kept = ast.Assign([ast.Name("_benchrigor_made", ast.Store())], kind)
            once = _Template({"statement": [*before, kept]})
            bodies["first"] = once.visit(ast.parse(_LOOP)).body
    program = _Template(bodies).visit(ast.parse(_TEMPLATE))
    names: dict[str, Any] = {"__name__": "statement", "_benchrigor_type": type}
    try:
        code = compile(ast.fix_missing_locations(program), _FILE, "exec")
    except SyntaxError as error:
        raise InvalidInput(
            f"setup and statement are lines of a function, and not valid there: {error.msg}"
        ) from None
    exec(code, names)  # noqa: S102  # the caller's own program
    generator: Callable[[], _Loop] = names["statement"]
    return generator


class _Template(ast.NodeTransformer):
    """Puts bodies in place of the words that name them."""

    def __init__(self, bodies: dict[str, list[ast.stmt]]) -> None:
        self._bodies = bodies

    def visit_Expr(self, node: ast.Expr) -> ast.stmt | list[ast.stmt]:  # of `ast`
        """Replace a word."""
        word = node.value.id if isinstance(node.value, ast.Name) else ""
        return self._bodies.get(word, node)


def _parse(text: str, name: str) -> list[ast.stmt]:
    """Return the statements of a text, one or more."""
    try:
        compile(text, f"<{name}>", "exec")  # refuses return, yield, break and await, as timeit does
        return ast.parse(text).body or [ast.Pass()]
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise InvalidInput(f"{name} is not valid Python: {reason}{line}") from None


def _start(generator: Callable[[], _Loop]) -> _Loop:
    """Run the setup; its output goes to stderr."""
    loop = generator()
    try:
        with redirect_stdout(sys.stderr), measuring():
            next(loop)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise failed("--setup", error) from error
    return loop
