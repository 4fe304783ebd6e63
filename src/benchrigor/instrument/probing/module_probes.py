"""Probes around the functions of a module, chosen by their names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any, Self

from benchrigor.errors import InvalidInput
from benchrigor.instrument.probing.probe_registry import PROBES, ProbeRegistry


class ModuleProbes:
    """Functions of a module that were put into probes; made by `probe_module`.

    Attributes
    ----------
    names
        Of the probes, such as "json.decoder.scan".
    """

    def __init__(self, changes: list[tuple[Any, str, Any, Any]], names: tuple[str, ...]) -> None:
        self._changes, self.names = changes, names

    def undo(self) -> None:
        """Put the functions back, but for those that somebody else has replaced meanwhile."""
        for holder, name, func, wrapper in self._changes:
            if vars(holder).get(name) is wrapper:
                setattr(holder, name, func)
        self._changes = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()


def probe_module(
    module: ModuleType,
    pattern: str = "*",
    *,
    classes: bool = False,
    clock: str | None = None,
    registry: ProbeRegistry = PROBES,
) -> ModuleProbes:
    """Put all functions of a module with matching names into probes.

    A probe is named "module.function" or "module.Class.method". Imported functions, and functions
    with a probe, stay as they are. Modules that imported a function before keep the one without a
    probe.

    Parameters
    ----------
    module
        The module; timed functions replace its functions until `ModuleProbes.undo`.
    pattern
        Pattern as for file names: ``*``, ``?``, ``[abc]``. Methods match as "Class.method".
    classes
        Whether to time methods of the module's classes too.
    clock, registry
        As `probe` and `ProbeRegistry` have them.

    Raises
    ------
    InvalidInput
        If it is not a module, if no function matches, or if a function cannot be timed: then no
        function is replaced.

    Examples
    --------
    >>> import colorsys
    >>> with probe_module(colorsys, "rgb_to_*") as timed:
    ...     _ = colorsys.rgb_to_hsv(0.2, 0.4, 0.6)
    >>> timed.names
    ('colorsys.rgb_to_yiq', 'colorsys.rgb_to_hls', 'colorsys.rgb_to_hsv')
    """
    if not isinstance(module, ModuleType):
        raise InvalidInput(f"module is {module!r}, expected an imported module")
    if not isinstance(pattern, str):
        raise InvalidInput(f"pattern is {pattern!r}, expected a string such as 'read*'")
    found = [item for item in _functions(module, classes=classes) if fnmatchcase(item[2], pattern)]
    if not found:
        raise InvalidInput(f"no function of {module.__name__} fits {pattern!r}, expected some")
    names = tuple(f"{module.__name__}.{path}" for _, _, path, _ in found)
    changes = [
        (holder, name, func, registry.probe(full, clock=clock)(func))
        for (holder, name, _, func), full in zip(found, names, strict=True)
    ]
    timed = ModuleProbes(changes, names)
    try:
        for holder, name, _, wrapper in changes:
            setattr(holder, name, wrapper)
    except BaseException as error:  # a class may refuse, with any exception
        timed.undo()
        if not isinstance(error, Exception):
            raise
        raise InvalidInput(
            f"{holder.__name__}.{name} cannot be replaced: {error!r}; expected modules and classes "
            "whose attributes can be set"
        ) from error
    return timed


def _functions(module: ModuleType, *, classes: bool) -> Iterator[tuple[Any, str, str, Any]]:
    """Yield what holds a function, its name there, that with its class, and the function."""
    for name, item in list(vars(module).items()):
        if inspect.isclass(item) and classes and item.__module__ == module.__name__:
            for inner, method in list(vars(item).items()):
                if _is_own(method, module):
                    yield item, inner, f"{name}.{inner}", method
        elif _is_own(item, module):
            yield module, name, name, item


def _is_own(item: object, module: ModuleType) -> bool:
    func = getattr(item, "__func__", item)  # of a static or class method
    is_timed = hasattr(func, "__probe__")
    return inspect.isfunction(func) and func.__module__ == module.__name__ and not is_timed
