"""The register of cases: each a function without arguments, under a name of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["CASES", "Case", "case", "register"]

Case = Callable[[], object]

CASES: dict[str, Case] = {}
"""All cases by name; importing `fence` fills it."""


def register(name: str, func: Case) -> None:
    """Enter a case under a name that no other one has."""
    if name in CASES:
        raise ValueError(f"two cases are called {name!r}")
    CASES[name] = func


def case(func: Case) -> Case:
    """Enter a function as the case of its name."""
    register(func.__name__, func)
    return func


def each(funcs: Mapping[str, Case]) -> dict[str, object]:
    """Call several functions, and keep their results by name."""
    return {name: func() for name, func in funcs.items()}
