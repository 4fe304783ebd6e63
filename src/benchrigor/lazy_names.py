"""Names of a lobby, imported on first use: a program loads only the names it needs."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False  # typing and collections take longer to load than all else here
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, for names by the module they are in.

    A module of another package is named in full. Type checkers read the names in ``__init__.pyi``.
    """
    module_of = {name: module for module, several in names.items() for name in several.split()}

    def resolve(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = module_of[name]
        path = module if module.startswith("benchrigor.") else f"{package}.{module}"
        item: object = getattr(import_module(path), name)
        setattr(sys.modules[package], name, item)
        return item

    return resolve, lambda: sorted(module_of)
