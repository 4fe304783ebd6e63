"""Measuring in a notebook: ``%load_ext benchrigor.notebook`` gives the magic ``%%bench``.

A result is shown as its HTML, once. While it is measured, one line shows how it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchrigor.cli.output import LiveLine
from benchrigor.errors import InvalidInput
from benchrigor.model import Options, RunRecord
from benchrigor.safe_text import escaped
from benchrigor.session.measuring import measure

_NAME = "_benchrigor_cell"
_REDRAWN_EVERY_S = 1.0  # each drawing is a message to the browser


def load_ipython_extension(shell: Any) -> None:
    """Add the magic to a shell of IPython."""

    def bench(line: str, cell: str) -> RunRecord:
        """Measure a cell: ``%%bench name="sorted", target=0.01`` takes arguments of `measure`."""
        return measure_cell(shell, line, cell)

    shell.register_magic_function(bench, "cell", "bench")


def measure_cell(shell: Any, line: str, cell: str) -> RunRecord:
    """Measure the lines of a cell, with arguments of `measure`; assignments stay inside.

    Raises
    ------
    InvalidInput
        When the line is not arguments by name.
    """
    try:
        given = eval(f"dict({line})", shell.user_ns)  # noqa: S307  # the user's own line
    except (SyntaxError, TypeError) as error:
        raise InvalidInput(f"%%bench takes arguments of measure, found {line!r}") from error
    first = next((text for text in cell.splitlines() if text.strip()), "")
    arguments = {"name": first.strip(), **given}
    names = {name for name in Options.__dataclass_fields__ if name in arguments}
    line_of_progress = LiveLine(_redraw, every_s=_REDRAWN_EVERY_S)
    line_of_progress.follow(arguments["name"], Options(**{key: arguments[key] for key in names}))
    arguments.setdefault("progress", line_of_progress)
    try:
        return measure(_function_of(shell, cell), **arguments)
    finally:
        _clear()


def _redraw(text: str) -> None:
    """Show a line in place of the one before."""
    _clear()
    print(escaped(text), flush=True)  # noqa: T201  # what a notebook shows while it waits


def _clear() -> None:
    """Take the line away as soon as there is something else to show."""
    import_module("IPython.display").clear_output(wait=True)  # only a notebook has it


def _function_of(shell: Any, cell: str) -> Callable[[], None]:
    """Return the lines as the body of a function in the user's namespace."""
    program = ast.parse(f"def {_NAME}():\n    pass")
    (made,) = program.body
    assert isinstance(made, ast.FunctionDef)  # noqa: S101  # as it is written
    made.body = ast.parse(cell).body or made.body
    exec(compile(program, "<%%bench>", "exec"), shell.user_ns)  # noqa: S102  # the user's own cell
    function: Callable[[], None] = shell.user_ns.pop(_NAME)
    return function
