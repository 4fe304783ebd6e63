"""Count what there is to read and to hold in mind, and hold it against budgets.

    python3 .ci/count.py            all figures beside their budgets; 1 where one is above
    python3 .ci/count.py --tight    also writes the figures reached into the table of budgets

``budgets.toml``, beside this file, has the budgets. A row goes down to what is reached; only a
stated reason raises one. Standard library only.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_name("budgets.toml")
PACKAGE = ROOT / "src" / "benchrigor"
GENERATED = {"reference.md", "codes.md"}  # pages of which each line is looked up
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
# Besides the package and the packages one level below it, users import from these modules.
PUBLIC_MODULES = ("errors", "protocols", "units", "clocks", "__main__")
WORDS_OF_A_TEXT = 3  # that holds wording


class Source:
    """One file of Python."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its tree."""
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def n_lines(self) -> int:
        """Lines with a token on them, apart from comments and docstrings."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in self.nodes:
            lines.difference_update(_docstring(node))
        return len(lines)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield its test functions."""
        for node in self.nodes:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if name.startswith("test"):
                        yield node


def _docstring(node: ast.AST) -> range:
    """Return the lines of a node's docstring."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        match node.body[:1]:
            case [ast.Expr(value=ast.Constant(value=str())) as first]:
                return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def sources(folder: Path) -> list[Source]:
    """Return the files of Python below a folder."""
    return [Source(path) for path in sorted(folder.rglob("*.py")) if ".venv-dev" not in path.parts]


def lines_by_package(files: Iterable[Source], folder: Path) -> Counter[str]:
    """Return the lines of the packages directly below a folder; "." is the folder itself."""
    lines: Counter[str] = Counter()
    for file in files:
        package, *below = file.path.relative_to(folder).parts
        lines[package if below else "."] += file.n_lines
    return lines


def public_modules() -> set[str]:
    """Return the modules from which users import."""
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    return {"benchrigor", *(f"benchrigor.{name}" for name in (*packages, *PUBLIC_MODULES))}


def inner_names(tests: Iterable[Source]) -> set[str]:
    """Return the names of inner modules that tests reach.

    They are imported, attributes of imported modules (also by setattr), or dotted texts, as patch
    takes.
    """
    public = public_modules()
    return {
        name
        for file in tests
        for name in _names_reached(file)
        if name.startswith("benchrigor.") and name.rpartition(".")[0] not in public
    }


def _names_reached(file: Source) -> Iterator[str]:
    """Yield the names of modules of benchrigor that a file imports, or names otherwise."""
    imported = [*_imported(file)]
    modules = {own: whole for own, whole in imported if _is_module(whole)}
    yield from (whole for _, whole in imported if not _is_module(whole))
    for node in file.nodes:
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in modules:
                yield f"{modules[name]}.{attribute}"
            case ast.Call(args=[ast.Name(id=name), ast.Constant(value=str(attribute)), *_]) if (
                name in modules  # setattr, delattr and the like
            ):
                yield f"{modules[name]}.{attribute}"
            case ast.Constant(value=str(text)) if re.fullmatch(r"benchrigor(\.\w+){2,}", text):
                yield text


def _imported(file: Source) -> Iterator[tuple[str, str]]:
    """Yield what a file imports of benchrigor: its name there, and its whole name."""
    for node in file.nodes:
        match node:
            case ast.Import(names=aliases):
                yield from ((alias.asname, alias.name) for alias in aliases if alias.asname)
                yield from ((name, name) for alias in aliases if (name := alias.name.split(".")[0]))
            case ast.ImportFrom(module=str(module), names=aliases):
                for alias in aliases:
                    yield alias.asname or alias.name, f"{module}.{alias.name}"


def _is_module(dotted: str) -> bool:
    path = ROOT / "src" / dotted.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def n_holding_wording(tests: Iterable[Source]) -> int:
    """Count the test functions that compare with a text of three words or more."""
    return sum(
        any(map(_holds_wording, ast.walk(function)))
        for file in tests
        for function in file.functions()
    )


def _holds_wording(node: ast.AST) -> bool:
    compared: list[ast.expr] = []
    if isinstance(node, ast.Assert):
        compared = [node.test]
    elif isinstance(node, ast.Call):
        compared = [given.value for given in node.keywords if given.arg == "match"]
    return any(_is_text(part) for each in compared for part in ast.walk(each))


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)) if " " in text:
            return len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS_OF_A_TEXT
    return False


def figures() -> dict[str, dict[str, int]]:
    """Return all figures: those of the whole, and the lines of code by package."""
    src, tests, docs, others = (
        sources(ROOT / folder) for folder in ("src", "tests", "docs", "examples")
    )
    others += sources(ROOT / ".ci")
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.name not in GENERATED]
    whole = {
        "src": sum(file.n_lines for file in src),
        "tests": sum(file.n_lines for file in tests),
        "docs": sum(file.n_lines for file in docs),
        "everything": sum(file.n_lines for file in (*src, *tests, *docs, *others)),
        "words of pages": sum(len(path.read_text(encoding="utf-8").split()) for path in pages),
        "inner names of tests": len(inner_names(tests)),
        "tests that hold wording": n_holding_wording(tests),
    }
    return {
        "whole": whole,
        "src": dict(lines_by_package(src, PACKAGE)),
        "tests": dict(lines_by_package(tests, ROOT / "tests")),
    }


def show(found: dict[str, dict[str, int]], budgets: dict[str, dict[str, int]]) -> int:
    """Print the figures beside their budgets; return how many are above."""
    above = 0
    for table, rows in found.items():
        print(f"{table:<32}{'found':>8}{'budget':>9}")
        for name, figure in sorted(rows.items()):
            budget = budgets.get(table, {}).get(name, 0)
            above += figure > budget
            print(f"  {name:<30}{figure:>8,}{budget:>9,}{'  above' * (figure > budget)}")
    return above


def tighten(found: dict[str, dict[str, int]], budgets: dict[str, dict[str, int]]) -> None:
    """Write the figures that are lower than their budgets into the table; keep the others."""
    text = BUDGETS.read_text(encoding="utf-8") if BUDGETS.is_file() else ""
    lines = [line for line in text.splitlines() if line.startswith("#")]
    for table, rows in found.items():
        lines += ["", f"[{table}]"]
        for name, figure in sorted(rows.items()):
            lines.append(f'"{name}" = {min(figure, budgets.get(table, {}).get(name, figure))}')
    BUDGETS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Print the figures; return the exit code."""
    budgets = tomllib.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.is_file() else {}
    found = figures()
    if "--tight" in sys.argv[1:]:
        tighten(found, budgets)
        return 0
    above = show(found, budgets)
    if above:
        print(f"{above} figures are above their budgets: make it smaller, or say why not")
    return 1 if above else 0


if __name__ == "__main__":
    raise SystemExit(main())
