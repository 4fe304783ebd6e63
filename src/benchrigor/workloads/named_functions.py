"""Functions that are named as ``module:function``."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

from benchrigor.errors import InvalidInput, failed
from benchrigor.workloads.processes.own_signals import measuring

_FUNCTION = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def names_function(word: str) -> bool:
    """Return whether a word is ``module:function`` rather than the name of a program."""
    return _FUNCTION.fullmatch(word) is not None


def search_first(folder: str) -> None:
    """Have imports look in a folder first, as ``python -m`` does in the current one."""
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def imported(target: str, folder: str) -> Any:
    """Import ``module:function``; the output of the import goes to stderr."""
    module_name, _, path = target.partition(":")
    search_first(folder)
    try:
        with redirect_stdout(sys.stderr), measuring():
            item: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        raise InvalidInput(f"no module {error.name!r} to be found from {folder}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise failed(f"importing {module_name}", error) from error
    for name in path.split("."):
        if not hasattr(item, name):
            raise InvalidInput(f"module {module_name!r} has no {path!r}")
        item = getattr(item, name)
    return item
