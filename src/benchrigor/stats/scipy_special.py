"""Loading of `scipy.special`, in half the time."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import numpy as np

_UNUSED = ("f2py", "ma", "polynomial", "testing")


class _Placeholder(ModuleType):
    """A module that is loaded where something of it is asked for."""

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.__name__), name)


def load_special() -> None:
    """Load `scipy.special` without modules of numpy that it does not use.

    ``from numpy import *`` in scipy names them, which takes half of the time.
    """
    if "scipy.special" in sys.modules:
        return
    known = vars(np)
    placed = {name: _Placeholder(f"numpy.{name}") for name in _UNUSED if name not in known}
    known.update(placed)
    try:
        import_module("scipy.special")
    finally:
        for name, placeholder in placed.items():
            if known[name] is placeholder:  # not loaded meanwhile
                del known[name]
