"""The sides of a gate: old code, new code, and a second copy of the old, each in its own folder.

A side proves its code: all that its pytest imported from the repository lies in its own folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchrigor.errors import InvalidInput, NotComparable
from benchrigor.model.checks import refuse
from benchrigor.units import first_few, many
from benchrigor.workloads.worktrees import Checkout, worktrees

OLD, NEW, COPY = "old", "new", "copy"  # roles; the copy is of the old code
_PYTHON = "{python}"
_PYTEST = ("pytest", "py.test")
_RUNNERS = ("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "env", "nice", "taskset")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Where one version of the code runs.

    ``words`` is the command, with the side's interpreter. ``others`` are folders of the same code
    in other versions: nothing of them may be imported here.
    """

    role: str
    label: str
    folder: Path
    words: tuple[str, ...]
    top: Path
    others: tuple[Path, ...] = ()
    path: tuple[str, ...] = ()  # folders to import from, first

    @property
    def env(self) -> dict[str, str]:
        """The variables that the command has in addition to this process."""
        path = [*self.path, *filter(None, [os.environ.get("PYTHONPATH")])]
        return {"PYTHONPATH": os.pathsep.join(path)} if path else {}

    def check_imports(self, modules: Mapping[str, str]) -> None:
        """Raise NotComparable if code of the repository was imported from outside the side."""
        strangers = [
            f"{name} ({file})"
            for name, file in modules.items()
            if self._is_strange(name, Path(file))
        ]
        if strangers:
            raise NotComparable(
                f"the {self.role} side, {self.label}, imported {first_few(strangers, 3)}, "
                f"expected files in {self.top}: both sides would measure the same code. Install it "
                "in editable mode (pip install -e .), remove an installed copy, or name an "
                "interpreter for each side (--python)"
            )

    def _is_strange(self, name: str, file: Path) -> bool:
        """Return whether a module is another version of one in this side."""
        if file.is_relative_to(self.top):
            return False
        is_installed = "site-packages" in file.parts  # an environment may be in the repository
        of_another = any(file.is_relative_to(other) for other in self.others)
        if of_another and not is_installed:
            return True
        return "." not in name and name not in sys.stdlib_module_names and self._holds(name)

    def _holds(self, name: str) -> bool:
        """Return whether the side has a module or package of this name to import."""
        return any(
            (Path(place) / f"{name}.py").is_file() or (Path(place) / name / "__init__.py").is_file()
            for place in self.path
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the sides come from, as the command line says it."""

    words: tuple[str, ...]
    revisions: Sequence[str] = ()
    folders: Sequence[Path] = ()
    pythons: Sequence[str] = ()
    build: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        problems = []
        ways = {"--rev": len(self.revisions), "--python": len(self.pythons)}
        problems += [
            f"{flag} is given {many(count, 'time')}, expected twice: the old one and the new one"
            for flag, count in ways.items()
            if count not in (0, 2)
        ]
        chosen = [flag for flag, count in (*ways.items(), ("--old", len(self.folders))) if count]
        if len(self.folders) == 1:
            problems.append("--old and --new go together: give both folders")
        elif len(chosen) != 1:
            given = " and ".join(chosen) or "nothing"
            problems.append(
                f"{given} says what to compare, expected one of --rev REV --rev REV, "
                "--old DIR --new DIR, and --python PROGRAM --python PROGRAM"
            )
        if self.build and not self.revisions:
            problems.append("--build goes with --rev")
        problems += [f"{place} is no folder" for place in self.folders if not place.is_dir()]
        refuse(problems)

    @contextmanager
    def sides(self) -> Iterator[dict[str, Side]]:
        """Set the sides up: check revisions out and build them, for as long as they are used."""
        if self.revisions:
            old, new = self.revisions
            with worktrees([old, new, old], build=self.build or None) as found:
                yield self._named(found, [old, new, old])
            return
        folders = [place.resolve() for place in self.folders] or [Path.cwd().resolve()] * 2
        labels = [*map(str, self.folders)] or [*self.pythons]
        places = [Checkout(top=each, folder=each, original=each) for each in folders]
        yield self._named([*places, places[0]], [*labels, labels[0]])

    def _named(self, places: Sequence[Checkout], labels: Sequence[str]) -> dict[str, Side]:
        pythons = [*self.pythons, *self.pythons[:1]] or [""] * 3
        tops = {each for place in places for each in (place.top, place.original)}
        made = {}
        for role, place, label, python in zip(
            (OLD, NEW, COPY), places, labels, pythons, strict=True
        ):
            path = dict.fromkeys([*place.path(), *map(str, _roots(place.folder))])
            made[role] = Side(
                role=role,
                label=label,
                folder=place.folder,
                words=with_python(_at_home(self.words, place.folder), python),
                top=place.top,
                others=tuple(each for each in tops if not place.top.is_relative_to(each)),
                path=() if python else tuple(path),
            )
        return made


def _roots(folder: Path) -> Iterator[Path]:
    """Yield the folders of a project that Python imports from, if it is one of Python."""
    source = folder / "src"  # may hold nothing but packages that share a namespace
    if source.is_dir():
        yield source
    if any(folder.glob("*.py")) or any(folder.glob("*/__init__.py")):
        yield folder


def _at_home(words: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return a command with the interpreter of the folder here, if the side lacks one."""
    first, *rest = words
    here = Path(first)
    is_python = here.name.startswith("python") or is_pytest(words)
    is_lacking = here.name != first and not (folder / first).exists() and here.exists()
    return (str(here.absolute()) if is_python and is_lacking else first, *rest)


def with_python(words: Sequence[str], python: str) -> tuple[str, ...]:
    """Return a command that an interpreter runs: in place of its own, or of ``{python}``."""
    if not python:
        return tuple(words)
    if any(_PYTHON in word for word in words):
        return tuple(word.replace(_PYTHON, python) for word in words)
    first, *rest = words
    name = Path(first).name
    if name.startswith("python"):
        return (python, *rest)
    if name in _PYTEST:
        return (python, "-m", "pytest", *rest)
    raise InvalidInput(
        f"{first} is no interpreter, expected python, pytest, or a command with {_PYTHON} where "
        "the interpreter stands"
    )


def is_pytest(words: Sequence[str]) -> bool:
    """Return whether a command runs pytest: by itself, as a module, or as ``uv run`` does."""
    names = [Path(word).name.removesuffix(".exe") for word in words]
    at = next((place for place, name in enumerate(names) if name in _PYTEST), None)
    if not at:
        return at == 0
    is_module = names[at - 1] == "-m" and any(name.startswith("python") for name in names[:at])
    return is_module or names[0] in _RUNNERS
