"""Places for the levels of factors, in commands, URLs and limits: ``{threads}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from benchrigor.workbench.surfaces.factors import Point

# {{name}} is the text {name}, and ${name} belongs to a shell.
_PLACE = re.compile(r"\{\{(?P<text>[^\W\d]\w*)\}\}|(?<!\$)\{(?P<name>[^\W\d]\w*)\}")


def places_in(item: Any) -> Iterator[str]:
    """Yield the names of places in a text, or in the texts of plain data.

    Examples
    --------
    >>> [*places_in(["serve", "--threads={threads}", "${HOME}", "{{literally}}"])]
    ['threads']
    """
    if isinstance(item, str):
        yield from (found["name"] for found in _PLACE.finditer(item) if found["name"])
    elif isinstance(item, Mapping | list | tuple):
        for inner in item.values() if isinstance(item, Mapping) else item:
            yield from places_in(inner)


def fill_places(item: Any, point: Point, *, again: bool = False) -> Any:
    """Return texts with the levels of a point in their places; other places stay as they are.

    Arguments of a command are filled one by one, so a level with a space is still one argument.
    Texts to be filled ``again`` later keep their ``{{name}}``.

    Examples
    --------
    >>> fill_places(["serve", "{fs}", "{{fs}} {load}", "{gib}GiB"], {"fs": "my xfs", "gib": 2.0})
    ['serve', 'my xfs', '{fs} {load}', '2GiB']
    """
    if isinstance(item, str):
        return _PLACE.sub(lambda found: _level(found, point, again=again), item)
    if isinstance(item, Mapping):
        return {name: fill_places(inner, point, again=again) for name, inner in item.items()}
    if isinstance(item, list | tuple):
        return type(item)(fill_places(inner, point, again=again) for inner in item)
    return item


def _level(found: re.Match[str], point: Point, *, again: bool) -> str:
    if found["text"]:
        return found[0] if again else f"{{{found['text']}}}"
    level = point.get(found["name"], found[0])
    return str(int(level) if isinstance(level, float) and level.is_integer() else level)
