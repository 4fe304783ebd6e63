"""Write the generated parts of docs/reference.md anew: verbs, and the options of the fixture.

python tests/renew_reference.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchrigor import pytest_plugin
from benchrigor.cli import main
from benchrigor.cli.verb_help import VERBS

BAR = r"\|"
PAGE = Path(__file__).parents[1] / "docs" / "reference.md"


def renewed(text: str) -> str:
    """Return the page with all its generated parts as the package has them now."""
    parts = {"verbs": "\n".join(_verbs()), "fixture": "\n".join(_table(_Fixture().rows))}
    for name, part in parts.items():
        start, stop = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
        before, rest = text.split(start, 1)
        text = f"{before}{start}\n{part}\n{stop}{rest.split(stop, 1)[1]}"
    return text


def _verbs() -> Iterator[str]:
    context = click.Context(main, info_name="benchrigor")
    for name in main.list_commands(context):
        verb = main.get_command(context, name)
        assert verb is not None
        inner = click.Context(verb, info_name=name, parent=context)
        synopsis = " ".join(["benchrigor", name, *verb.collect_usage_pieces(inner)])
        yield f"### benchrigor {name}\n\n```text\n{synopsis}\n```\n"
        yield from _described(f"{VERBS[name]}\n\n{inspect.cleandoc(verb.help or '')}")
        options = [each for each in verb.params if isinstance(each, click.Option)]
        yield from _table([row for each in options if (row := each.get_help_record(inner))])
        yield ""


def _described(text: str) -> Iterator[str]:
    """Turn help into markdown; paragraphs behind a backspace keep their lines."""
    for paragraph in re.split(r"\n\n+", text):
        if not paragraph.startswith("\b"):
            yield f"{_escaped(paragraph)}\n"
            continue
        title, *lines = paragraph.removeprefix("\b\n").splitlines()
        yield f"{title}\n\n```text\n{inspect.cleandoc(chr(10).join(lines))}\n```\n"


def _table(rows: list[tuple[str, str]]) -> Iterator[str]:
    yield "| option | meaning |\n| --- | --- |"
    for names, text in rows:
        yield f"| `{names.replace('|', BAR)}` | {_escaped(text)} |"


def _escaped(text: str) -> str:
    return re.sub(r"([|<*_])", r"\\\1", re.sub("  +", " ", text))


class _Fixture:
    """Collects the options that the plugin adds to pytest."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []
        self.getgroup = lambda *_: self
        pytest_plugin.pytest_addoption(self)  # type: ignore[arg-type]

    def addoption(self, name: str, *, help: str, metavar: str = "", **_: Any) -> None:  # noqa: A002
        """Keep an option as a row."""
        self.rows.append((f"{name} {metavar}".strip(), help.replace("%%", "%")))


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
