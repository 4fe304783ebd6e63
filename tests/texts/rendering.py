"""How texts are caused, rendered, and written into pages."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click.testing

from benchrigor.errors import BenchrigorError
from benchrigor.model import Notice

__all__ = ["PAGES", "causes", "of_code", "pages", "run", "sections", "text_of", "tried"]

PAGES = Path(__file__).parent
Cause = Callable[[], object]
_ALIKE = (  # what differs from one time to the next, and what stands in its place
    (re.compile(r"\b[0-9a-f]{8}\b(?=[\s:.,;]|$)"), "RUN_ID"),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "ADDRESS"),
    (re.compile(r"/tmp/[\w./-]*?/?scratch-\w+"), "FOLDER"),  # noqa: S108
)


def pages() -> list[str]:
    """Return the names of all tables of causes."""
    return sorted(path.stem for path in (PAGES / "causes").glob("[a-z]*.py"))


def causes(page: str) -> Mapping[str, Cause]:
    """Return a table of causes, by the title of the section that shows the text."""
    found: Mapping[str, Cause] = importlib.import_module(f"tests.texts.causes.{page}").CAUSES
    return found


def run(*words: object, files: Mapping[str, str] | None = None) -> click.testing.Result:
    """Call the command line in the scratch folder, in which there are these files."""
    from benchrigor.cli import main  # noqa: PLC0415

    for name, content in (files or {}).items():
        Path(name).write_text(content, encoding="utf-8")
    return click.testing.CliRunner().invoke(main, [str(word) for word in words])


def tried(call: Callable[..., object], /, *inputs: object) -> Iterator[object]:
    """Yield the results or refusals of a call with each of several inputs.

    An input is a tuple of positional arguments, a dict of named ones, or the only one.
    """
    for given in inputs:
        named = given if isinstance(given, dict) else {}
        others = given if isinstance(given, tuple) else ()
        try:
            yield call(*others, **named) if isinstance(given, dict | tuple) else call(given)
        except BenchrigorError as error:
            yield str(error)


def of_code(code: str, notices: Iterable[Notice]) -> list[Notice]:
    """Return the Notices of a code."""
    return [notice for notice in notices if notice.code == code]


def text_of(cause: Cause) -> str:
    """Return the text of a cause: its refusal, or its result, as people see it."""
    with _scratch():
        try:
            lines = [*_lines(cause())]
        except BenchrigorError as error:
            lines = [f"{type(error).__name__}: {error}"]
    return _steady("\n".join(lines))


def _steady(text: str) -> str:
    """Return a text without what differs from one time to the next."""
    for pattern, name in _ALIKE:
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _lines(found: Any) -> Iterator[str]:
    """Yield the lines of a result: text, a result of the command line, or Notices."""
    if isinstance(found, click.testing.Result):
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        yield from (f"exit code {found.exit_code}", found.stdout, found.stderr)
    elif isinstance(found, Notice):
        yield f"{found.code} ({found.severity}): {found.sentence}"
    elif isinstance(found, str):
        yield found
    elif isinstance(found, Iterable):
        for item in found:
            yield from _lines(item)
    else:
        yield str(found)


@contextmanager
def _scratch() -> Iterator[None]:
    """Work in a folder of its own, at 80 columns, without colours and stored runs."""
    before, folder = {**os.environ}, Path.cwd()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with tempfile.TemporaryDirectory(prefix="scratch-") as scratch:
        own = {"COLUMNS": "80", "NO_COLOR": "1", "XDG_DATA_HOME": scratch}
        os.environ.update(own, BENCHRIGOR_STORE=f"{scratch}/runs.sqlite")
        os.chdir(scratch)
        sys.path.insert(0, scratch)
        try:
            yield
        finally:
            for each, handler in handlers.items():  # verbs that wait for a signal leave their own
                signal.signal(each, handler)
            sys.path.remove(scratch)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


def sections(page: str) -> dict[str, str]:
    """Return the texts of a page by their titles."""
    path = PAGES / f"{page}.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return dict(
        re.findall(r"^## ([^\n]+)\n\n~~~text\n(.*?)\n?~~~$", text, re.MULTILINE | re.DOTALL)
    )


def write(page: str, texts: Mapping[str, str]) -> None:
    """Write the texts of a page."""
    parts = [f"# Texts: {page.replace('_', ' ')}", *(_section(*text) for text in texts.items())]
    (PAGES / f"{page}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n~~~text\n{text}\n~~~"


def notices_of(case: str) -> dict[str, str]:
    """Return the sentences of a golden case by their codes: the first of each."""
    from fence import CASES  # noqa: PLC0415

    found: dict[str, str] = {}
    for notice in _notices_in(CASES[case]()):
        found.setdefault(notice.code.value, _steady("\n".join(_lines(notice))))
    return found


def notices() -> dict[str, str]:
    """Return the sentence of each Notice code, under its name and the name of its case."""
    from fence import CASES  # noqa: PLC0415

    found: dict[str, tuple[str, str]] = {}
    for case in CASES:
        for code, sentence in notices_of(case).items():
            found.setdefault(code, (case, sentence))
    return {f"{code}: {case}": sentence for code, (case, sentence) in sorted(found.items())}


def _notices_in(item: Any) -> Iterator[Notice]:
    if isinstance(item, Notice):
        yield item
    elif isinstance(item, Mapping):
        yield from _notices_in(list(item.values()))
    elif isinstance(item, tuple | list):
        for part in item:
            yield from _notices_in(part)
    elif hasattr(item, "__dataclass_fields__"):
        yield from _notices_in([getattr(item, name) for name in item.__dataclass_fields__])
