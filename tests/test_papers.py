"""Each feature on the page of papers has calls, and each call exists."""

from __future__ import annotations

import ast
import inspect
import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import benchrigor
from benchrigor.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
ROWS = re.findall(r"^\| (?!feature |---)(.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.M)
CALLS = sorted({call for _, calls in ROWS for call in re.findall(r"`([^`]+)`", calls)})


def test_every_feature_has_a_call() -> None:
    assert len(ROWS) > 80
    assert [
        feature for feature, calls in ROWS if not re.fullmatch(r"`[^`]+`(, `[^`]+`)*", calls)
    ] == []


@pytest.mark.parametrize("call", [each for each in CALLS if each.startswith("benchrigor ")])
def test_commands_exist(call: str) -> None:
    _, verb, *words = call.split()
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    option, value = (*words, None, None)[:2]
    if option is not None:
        (found,) = (each for each in command.params if option in each.opts)
        if value is not None:
            found.type.convert(value, found, None)


@pytest.mark.parametrize("call", [each for each in CALLS if not each.startswith("benchrigor ")])
def test_names_exist_and_take_these_arguments(call: str) -> None:
    node = ast.parse(call, mode="eval").body
    options: dict[str, Any] = {}
    if isinstance(node, ast.Call):
        options = {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}
        node = node.func
    found = named(ast.unparse(node))
    if options:
        assert inspect.signature(found).bind_partial(**options).arguments
    if found is benchrigor.Options:
        found(**options)  # which checks the values, too


def named(dotted: str) -> Any:
    """Return what a name is below the package; the first part may be one of its packages."""
    first, *rest = dotted.split(".")
    try:
        begin = getattr(benchrigor, first)
    except AttributeError:
        begin = import_module(f"benchrigor.{first}")
    return reduce(member, rest, begin)


def test_a_call_that_is_not_there_is_found_out() -> None:
    for wrong in ("stats.fit_speed", "Options.colour", "workbench.surfaces.surface.Surface.worst"):
        with pytest.raises((AssertionError, AttributeError, ImportError)):
            named(wrong)


def member(whole: Any, part: str) -> Any:
    """Return a member, also one that only the objects of a class have."""
    if inspect.isclass(whole) and not hasattr(whole, part):
        own = {name for each in whole.__mro__ for name in getattr(each, "__annotations__", ())}
        own |= set(re.findall(rf"self\.({part})\b", inspect.getsource(whole)))
        assert part in own, f"{whole.__name__} has no {part}"
        return None
    if inspect.ismodule(whole) and not hasattr(whole, part):
        return import_module(f"{whole.__name__}.{part}")
    return getattr(whole, part)
