"""The rules of the house that no other tool checks: short modules, no circles."""

import ast
import csv
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import benchrigor
from benchrigor.model import Code

ROOT = Path(benchrigor.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
FEWEST_LINES, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 60, 400, 50
SIDE_SYSTEMS = {"gate", "instrument", "interference", "queues", "workbench"}
SIDE_PARTS = [[name] for name in SIDE_SYSTEMS]
LISTS = {"cli", "model", "testing"}
"""Folders with one file per verb, type or fake."""
ROOMS = [path.parent.name for path in sorted(ROOT.glob("*/__init__.pyi"))]
LONG_FUNCTIONS: dict[str, str] = {}
"""Functions that may be longer, each with the reason."""
LONG_MODULES = {
    "codes.py": "one table of what is said",
    "workloads/processes/worker.py": "one file is all that a fresh interpreter loads",
}
"""Modules that may be longer, likewise."""
SHORT_MODULES = {
    "__main__.py": "the entry point",
    "cli/list_verb.py": "a verb that loads nothing of what measures",
    "formats/criterion.py": "a format",
    "formats/jmeter.py": "a format",
    "formats/pytest_benchmark.py": "a format",
    "formats/saved_records.py": "a format",
    "gate/side_plugin.py": "what pytest loads in a side",
    "instrument/nodes.py": "what agents and hubs share",
    "lazy_names.py": "what all packages load first",
    "model/shell_words.py": "what model and workloads share",
    "notebook.py": "what a notebook loads",
    "workloads/processes/launcher.py": "a script of its own",
}
"""Modules that may be shorter than others, likewise; an `__init__` may."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def code_of(path: Path) -> frozenset[int]:
    """Return the numbers of the lines that are neither blank, comment nor docstring."""
    described = {
        number
        for node in nodes_of(path)
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return frozenset(
        number
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#") and number not in described
    )


def imported_by(path: Path) -> Iterator[str]:
    """Yield what a module imports of the package, at any place: lazily, or for types alone."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if file_of(inner) else str(node.module)


def imported_names(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a module imports, each with the module that it takes them from."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            yield from ((item.name, str(node.module)) for item in node.names)


def names_in(stub: Path) -> dict[str, str]:
    """Return the names that a stub lists, each with the module that has it."""
    return dict(imported_names(stub))


def file_of(module: str) -> Path | None:
    """Return the file of a module of the package."""
    path = ROOT.parent / module.replace(".", "/")
    files = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in files if file.is_file()), None)


def test_no_two_modules_bear_the_same_name() -> None:
    names = Counter(
        (system_of(path), path.stem)
        for path in MODULES
        if not path.stem.startswith("__") and not LISTS & set(path.relative_to(ROOT).parts)
    )
    assert [name for name, count in names.items() if count > 1] == []


def system_of(path: Path) -> str:
    """Return the side system that a module is of, empty for the core."""
    package = path.relative_to(ROOT).parts[0]
    return package if package in SIDE_SYSTEMS else ""


def test_the_core_imports_no_side_system() -> None:
    """Not even through the names of another package."""
    homes = {f"benchrigor.{room}": names_in(ROOT / room / "__init__.pyi") for room in ROOMS}
    assert [
        f"{name_of(path)}: {item}"
        for path in MODULES
        if path.name != "__init__.py" and not system_of(path)
        for item, module in imported_names(path)
        if homes.get(module, {}).get(item, module).split(".")[1:2] in SIDE_PARTS
    ] == []


def test_a_report_composes_each_result_that_is_a_page() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    results = re.findall(
        r"^class \w+\(.*\bReported\b(?:.*\n)*?    _(?:facts|page) = ", text, re.MULTILINE
    )
    assert len(results) == len(re.findall(r"^class \w+\(.*\bReported\b", text, re.MULTILINE)) > 5
    named = re.findall(r'^    _(?:facts|page)\b.* = "([\w.]+):(\w+)"$', text, re.MULTILINE)
    assert all(callable(getattr(import_module(module), name)) for module, name in named)


def assert_there_is(test: str) -> None:
    """Assert that there is a test of this name, or what stands before the name of its case."""
    path, *names = test.partition("[")[0].split("::")
    place = TESTS.parent / path
    assert place.exists(), test
    text = place.read_text(encoding="utf-8") if names else ""
    assert all(re.search(rf"\b(def|class) {name}\b", text) for name in names), test


def test_the_table_of_slow_tests_names_tests_that_there_are() -> None:
    lines = (TESTS / "slow.txt").read_text(encoding="utf-8").splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        assert_there_is(line)


def test_the_table_of_rules_says_of_each_what_holds_it_or_why_nothing_does() -> None:
    with (TESTS / "golden/rules.csv").open(newline="", encoding="utf-8") as file:
        for rule in csv.DictReader(file):
            assert bool(rule["case"]) is not bool(rule["otherwise"]), rule
            assert not rule["case"] or (TESTS / f"golden/records/{rule['case']}.json").exists()
            if "::" in rule["otherwise"]:
                assert_there_is(rule["otherwise"])


def test_modules_are_short() -> None:
    assert {name_of(path) for path in MODULES if len(code_of(path)) > MOST_LINES} == {*LONG_MODULES}


def test_modules_hold_enough_to_be_worth_a_file() -> None:
    short = {name_of(path) for path in MODULES if len(code_of(path)) < FEWEST_LINES}
    assert {name for name in short if not name.endswith("__init__.py")} == {*SHORT_MODULES}


def test_functions_are_short() -> None:
    found = {
        f"{name_of(path)}: {node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(code_of(path).intersection(range(node.lineno, (node.end_lineno or 0) + 1)))
        > MOST_LINES_OF_A_FUNCTION
    }
    assert found == set(LONG_FUNCTIONS)


def test_no_import_goes_round_in_a_circle() -> None:
    imports = {path: {file_of(name) for name in imported_by(path)} - {None} for path in MODULES}
    try:
        TopologicalSorter(imports).prepare()
        circle = []
    except CycleError as error:
        circle = [name_of(path) for path in error.args[1]]
    assert circle == []


def test_who_makes_a_notice_names_all_figures_of_its_sentence_and_words_none() -> None:
    for path in MODULES:
        for call in nodes_of(path):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "Notice.of":
                continue
            assert not [part for part in ast.walk(call) if isinstance(part, ast.JoinedStr)]
            code, *case = map(ast.unparse, call.args)
            given = {each.arg for each in call.keywords}
            if None in given or not code.startswith("Code.") or (case and case[0][0] != "'"):
                continue  # the tests of texts make the others
            _, sentence = Code[code[5:]].sentences[case[0].strip("'") if case else ""]
            assert set(re.findall(r"\{(\w+)", sentence)) <= given, name_of(path)
