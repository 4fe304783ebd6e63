"""How many faults do the tests find? Small changes of the source, one at a time, and who sees them.

    python tests/mutants.py                     sixteen modules, drawn with the seed
    python tests/mutants.py --only stats --only cli
    python tests/mutants.py --module benchrigor.units --among tests/test_units.py

One module of each package and one of the root, 25 changes each. A change is tried by the fast tests
that reach its line, until one fails; it is killed if one does, or does not end. Needs ``coverage``.
``--tests`` names a tree whose tests are run with the source of this one: to hold two states of the
tests against each other, the changes stay the same. Tests that fail without a change do not count.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import click
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
Reached = Mapping[int, list[str]]
"""Tests by the line to which they come."""
_HELD = {0, 5}
"""How pytest exits where all tests pass, or there is none."""
MOST_TESTS = 200  # of one change: those that reach the fewest lines
FIRST_TESTS = 8
LIMIT_S = 60  # of the processor, for one change
_PRELOADED = ("hypothesis.strategies", "pytest", "scipy.optimize", "scipy.stats")
FEWEST_CHANGES = 40  # of a module that may be drawn
_CONTEXTS = """
import coverage
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    coverage.Coverage.current().switch_context(item.nodeid)
    yield
    coverage.Coverage.current().switch_context("")

def pytest_runtest_logreport(report):
    with open("failing", "a") as file:
        print(*[report.nodeid] * report.failed, file=file)
"""  # each case of a table by itself
_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


class Mutant(NamedTuple):
    """A module's source with one change."""

    line: int
    text: str
    """The changed line or lines, for people."""
    source: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield all changes of the bodies of functions."""
    tree = ast.parse(source)
    within = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in function.body
        for node in ast.walk(line)
    ]
    for node in dict.fromkeys(within):
        changed = _changed(node)
        if changed is not None:
            start, stop = _offsets(source, node)
            text = ast.unparse(changed)
            yield Mutant(node.lineno, text, f"{source[:start]}({text}){source[stop:]}")


def _changed(node: ast.AST) -> ast.expr | None:
    """Return what stands in a node's place in a mutant; None if it stays."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[first, *_]) if type(first) in _COMPARISONS:
            other.ops[0] = _COMPARISONS[type(first)]()
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _OPERATORS:
            other.op = _OPERATORS[type(op)]()
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            other.value = not value
        case ast.Constant(value=int() | float() as value):
            other.value = value + 1
        case _:
            return None
    return other


def _offsets(source: str, node: ast.AST) -> tuple[int, int]:
    """Return where a node begins and ends in the text; its columns are in bytes."""
    lines = source.splitlines(keepends=True)
    ends = [(node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)]
    return tuple(
        sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
        for line, column in ends
    )


def draw_modules(seed: int, only: Sequence[str]) -> list[str]:
    """Draw a module of each package, and one of the root."""
    source, drawn = np.random.default_rng(seed), []
    root = ROOT / "src" / "benchrigor"
    for package in [root, *sorted(path.parent for path in root.glob("*/__init__.py"))]:
        paths = sorted(package.glob("*.py") if package == root else package.rglob("*.py"))
        rich = [path for path in paths if len([*mutants_of(path.read_text())]) >= FEWEST_CHANGES]
        path = rich[source.integers(len(rich))]
        if not only or package.name in only:
            drawn.append(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    return drawn


class Tree:
    """A copy of the source and of tests, in which changes are tried."""

    def __init__(self, folder: Path, tests: Path) -> None:
        self.folder = folder
        for name in ("src", "docs", "examples", "pyproject.toml", "README.md"):
            _copy(ROOT / name, folder / name)
        _copy(tests / "tests", folder / "tests")
        self._variables = {
            **os.environ,
            "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}",
            "XDG_DATA_HOME": str(folder / "data"),
        }

    def reach(
        self, modules: Sequence[str], among: Sequence[str]
    ) -> dict[str, dict[int, list[str]]]:
        """Return the tests that come to each line of modules, the most particular first."""
        paths = [str(self.path(module)) for module in modules]
        rules = self.folder / "coverage.ini"
        rules.write_text(
            f"[run]\nconcurrency = thread\ndata_file = {self.folder}/reached\ninclude =\n  "
            + "\n  ".join(paths)
        )
        (self.folder / "contexts.py").write_text(_CONTEXTS)
        words = ["-m", "coverage", "run", f"--rcfile={rules}", "-m", "pytest", "-q", "-n", "0"]
        words += ["-p", "no:cacheprovider", "-p", "contexts", "-m", "not slow and not alone"]
        left_out = [f"--ignore=tests/{name}" for name in ("calibration", "e2e", "typing")]
        self._run([*words, *among, *left_out])
        failing = set((self.folder / "failing").read_text().splitlines())
        report = self.folder / "reached.json"
        words = ["-m", "coverage", "json", f"--rcfile={rules}", "--show-contexts"]
        self._run([*words, "-o", str(report)])
        files = json.loads(report.read_text())["files"]
        lines = {
            module: {
                int(line): [name for name in names if name and name not in failing]
                for line, names in files.get(f"src/{path}", {}).get("contexts", {}).items()
            }
            for module in modules
            for path in [f"{module.replace('.', '/')}.py"]
        }
        width: dict[str, int] = defaultdict(int)
        for by_line in lines.values():
            for names in by_line.values():
                for name in names:
                    width[name] += 1
        return {
            module: {line: sorted(names, key=width.__getitem__) for line, names in by_line.items()}
            for module, by_line in lines.items()
        }

    def path(self, module: str) -> Path:
        """Return the file of a module."""
        return self.folder.joinpath("src", *module.split(".")).with_suffix(".py")

    def is_killed(self, module: str, mutant: Mutant, tests: Sequence[str]) -> bool:
        """Return whether one of the tests fails with a change, or does not end."""
        path = self.path(module)
        before = path.read_text()
        path.write_text(mutant.source)
        try:
            parts = (tests[:FIRST_TESTS], tests[FIRST_TESTS:])  # most changes need no second part
            return any(part and self._exit_code_of(part) not in _HELD for part in parts)
        finally:
            path.write_text(before)

    def _run(self, words: Sequence[str]) -> None:
        command = [sys.executable, "-W", "ignore", *words]
        subprocess.run(
            command, cwd=self.folder, env=self._variables, capture_output=True, check=False
        )

    def _exit_code_of(self, tests: Sequence[str]) -> int:
        """Return how pytest exits, in a fork that has imported what takes time; -1 without end."""
        running = os.fork()
        if not running:
            os.setsid()
            self._become_pytest(tests)
        give_up_s = time.monotonic() + 10 * LIMIT_S
        while time.monotonic() < give_up_s:
            ended, status = os.waitpid(running, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(running, signal.SIGKILL)
        os.waitpid(running, 0)
        return -1

    def _become_pytest(self, tests: Sequence[str]) -> NoReturn:
        import pytest  # noqa: PLC0415

        os.chdir(self.folder)
        # Two changes within a second may be of one size: their byte code would be confused.
        os.environ.update(self._variables, PYTHONDONTWRITEBYTECODE="1")
        sys.dont_write_bytecode = True
        sys.path[:0] = [str(self.folder), str(self.folder / "src")]
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)  # ends the process
        code = 1
        try:
            words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "slow or not slow"]
            code = int(pytest.main(["-W", "ignore", *words, *tests]))
        finally:
            os._exit(code)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def try_module(tree: Tree, module: str, reached: Reached, n: int, seed: int) -> str:
    """Try a module's changes; return its line of the table."""
    changes = [*mutants_of(tree.path(module).read_text())]
    rng = np.random.default_rng([seed, *module.encode()])
    drawn = rng.choice(len(changes), min(n, len(changes)), replace=False)
    killed = 0
    for mutant in (changes[index] for index in drawn):
        tests = reached.get(mutant.line, [])[:MOST_TESTS]
        is_killed = bool(tests) and tree.is_killed(module, mutant, tests)
        killed += is_killed
        if not is_killed:
            click.echo(f"  survives: {module}:{mutant.line}: {mutant.text}")
    return f"{module:<58}{killed:>4} of {len(drawn):>3}"


@click.command
@click.option("--seed", default=52, show_default=True)
@click.option("--mutants", "n", default=25, show_default=True, help="Changes of each module.")
@click.option("--only", multiple=True, help="A package.")
@click.option("--module", "modules", multiple=True, help="This one, in place of those drawn.")
@click.option("--among", multiple=True, default=["tests"], help="Only tests below this path.")
@click.option("--tests", default=str(ROOT), help="Tree with the tests.")
def main(  # noqa: PLR0917
    seed: int,
    n: int,
    only: Sequence[str],
    modules: Sequence[str],
    among: Sequence[str],
    tests: str,
) -> None:
    """Print how many changes of each module the tests find."""
    modules = modules or draw_modules(seed, only)
    begun_s = time.monotonic()
    for name in _PRELOADED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder), Path(tests))
        reached = tree.reach(modules, among)
        click.echo(f"seed {seed}; lines reached after {time.monotonic() - begun_s:.0f} s")
        for module in modules:
            click.echo(try_module(tree, module, reached[module], n, seed))


if __name__ == "__main__":
    main()
