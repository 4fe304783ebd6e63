"""Functions: how they are named, found, imported and hashed, and what their calls need."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
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


def wrong_function(name: str, func: object, expected: str) -> list[str]:
    """Return the problems with a function that is to be timed."""
    if not callable(func):
        return [f"{name} is {func!r}, expected {expected}"]
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        return [
            f"{name} is {func!r}: calling it only makes an object; wrap it in a function that runs "
            "it to its end (Session.run measures the steps of a generator function)"
        ]
    return []


def awaits(func: Any) -> bool:
    """Return whether a function is a coroutine function: its calls are awaited.

    The program of a fresh interpreter, in `worker`, decides by the flags of its code.
    """
    return callable(func) and any(map(inspect.iscoroutinefunction, (func, func.__call__)))


def name_of(function: Callable[..., object]) -> str:
    """Name a function for people: its module and its place in it."""
    if isinstance(function, functools.partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    place = named.__qualname__.replace("<locals>.", "")
    module = getattr(named, "__module__", None)
    return place if module in {None, "__main__", "builtins"} else f"{module}.{place}"


def hash_of_function(function: Callable[..., object]) -> str | None:
    """Return a hash of the source of a function; None if it cannot be read."""
    inner: Any = inspect.unwrap(function)
    try:
        return hash_in(textwrap.dedent(inspect.getsource(inner)), inner.__code__.co_name)
    except (AttributeError, OSError, TypeError):
        return None


def hash_in(text: str, path: str) -> str | None:
    """Return a hash of a function, by its place in a source; None if it is not defined there.

    Comments and layout do not count. Lambdas of one line all count, as they look the same.
    """
    try:
        found: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError):
        return None  # a part of an expression: one line of a lambda
    for name in path.split("."):
        found = [node for scope in found for node in _definitions(scope, name)]
    said = "\n".join(map(ast.unparse, found))
    return hashlib.sha256(said.encode()).hexdigest()[:16] if found else None


def _definitions(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield the definitions of a name in a scope, also under conditions."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Lambda) and name == "<lambda>":
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _definitions(node, name)
        elif node.name == name:
            yield node


def takes_amount(func: Callable[..., object]) -> bool:
    """Return whether exactly one argument must be given to a function.

    Built-in functions without a signature count as taking no argument.
    """
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return False
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p for p in parameters if p.default is p.empty and p.kind not in various]
    return len(needed) == 1 and needed[0].kind is not inspect.Parameter.KEYWORD_ONLY


def import_name(function: Callable[..., object]) -> str:
    """Return the name by which a fresh interpreter imports a function; InvalidInput without one."""
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", "")
    way_out = "move it into a module, and name it 'package.module:function'"
    if not callable(function) or not module or not path:
        raise InvalidInput(f"target is {function!r}, expected a function; {way_out}")
    if "<" in path:
        kind = "a lambda" if path.endswith("<lambda>") else "made inside of another function"
        raise InvalidInput(f"{path} is {kind}: a fresh interpreter cannot import it; {way_out}")
    known = module in sys.builtin_module_names or locate(module, sys.path) is not None
    if module == "__main__" or not known:
        where = "this script or session" if module == "__main__" else repr(module)
        raise InvalidInput(
            f"{path} is of {where}, which a fresh interpreter cannot import; {way_out}"
        )
    return f"{module}:{path}"


def locate(module: str, path: list[str]) -> Path | None:
    """Return the file of a module that would be imported by a path, without importing it."""
    spec, name = None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec is not None and spec.origin else None
