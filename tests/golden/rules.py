"""Which golden case holds each number that someone chose, in the statistics and the sessions?

    python tests/golden/rules.py                       numbers that the table does not have yet
    python tests/golden/rules.py benchrigor.stats.pace  those of these modules
    python tests/golden/rules.py --all                 every number again (hours)

Each number at module level of ``stats`` and ``session`` is a rule, or its limit. It is multiplied
and divided by 1000, and by 4 where that makes no sense, until a golden case finds something else.
``rules.csv`` names the case. Where there is none, its last column names a test that fails with
another number, or says in a few words why nothing depends on it: that column is written by hand.
"""

from __future__ import annotations

import ast
import csv
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import multiprocessing.pool
import re
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
TABLE = HERE / "rules.csv"
PACKAGES = ("stats", "session")
FACTORS = ((1000.0, 0.001), (4.0, 0.25))  # the others where the first make no sense
NO_RULES = {0, 1, -1}
LIMIT_S = 120  # of the processor, for one look
QUICK = 60  # cases that are tried with each number by itself
TOGETHER = 8  # numbers that are changed at once with all cases, until some case changes


@dataclass(frozen=True, slots=True)
class Rule:
    """A number in a module: the place-th of those that are assigned to a name."""

    module: str
    name: str
    place: int
    value: str
    line: int = 0
    column: int = 0
    case: str = ""
    otherwise: str = ""

    @property
    def names(self) -> list[str]:
        """The names to which it is assigned, or its tuple."""
        return re.findall(r"\w+", self.name)

    @property
    def key(self) -> tuple[str, str, int, str]:
        """What of it stays the same when lines move."""
        return self.module, self.name, self.place, self.value

    def changed(self, factor: float) -> str:
        """Return its value times a factor, as Python text: a whole number stays one."""
        value = ast.literal_eval(self.value)
        times = value * factor
        return repr(max(round(times), 1) if isinstance(value, int) else times)


def rules() -> Iterator[Rule]:
    """Yield all rules, in the order of the source."""
    for package in PACKAGES:
        for path in sorted((SOURCE / "benchrigor" / package).rglob("*.py")):
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            yield from _rules_of(module.removesuffix(".__init__"), path)


def _rules_of(module: str, path: Path) -> Iterator[Rule]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            numbers = [each for each in ast.walk(node.value) if _is_rule(each)]
            for place, number in enumerate(numbers):
                at = {"line": number.lineno, "column": number.col_offset}
                yield Rule(module, ast.unparse(target), place, ast.unparse(number), **at)


def _is_rule(node: Any) -> bool:
    is_number = isinstance(node, ast.Constant) and type(node.value) in {int, float}
    return is_number and node.value not in NO_RULES


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a module with some numbers changed."""

    def __init__(self, module: str, rules: Sequence[Rule], factor: float) -> None:
        super().__init__(module, str(SOURCE.joinpath(*module.split(".")).with_suffix(".py")))
        self._rules, self._factor = rules, factor

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the changed source."""
        lines = Path(self.path).read_text(encoding="utf-8").splitlines(keepends=True)
        for rule in sorted(self._rules, key=lambda rule: -rule.column):
            line, stop = lines[rule.line - 1], rule.column
            while line[stop : stop + 1].isalnum() or line[stop] in "._":
                stop += 1
                if line[stop - 1] == "e" and line[stop] in "+-":
                    stop += 1
            lines[rule.line - 1] = line[: rule.column] + rule.changed(self._factor) + line[stop:]
        return compile("".join(lines), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds changed modules before those on the path."""

    def __init__(self, rules: Sequence[Rule], factor: float) -> None:
        self._rules, self._factor = rules, factor

    def find_spec(self, fullname: str, path: object, target: object = None) -> Any:
        """Return the specification of a changed module."""
        rules = [rule for rule in self._rules if rule.module == fullname]
        if not rules:
            return None
        loader = _Changed(fullname, rules, self._factor)
        return importlib.util.spec_from_file_location(fullname, loader.path, loader=loader)


def cases_by_function() -> tuple[dict[tuple[str, int], list[str]], list[str]]:
    """Return the cases that call each function, and all cases, the quickest first.

    A function is told by its path, and the line where it begins.
    """
    from fence import CASES, records  # noqa: PLC0415

    called: dict[tuple[str, int], list[str]] = defaultdict(list)
    codes: set[CodeType] = set()
    seconds: dict[str, float] = {}
    for name in CASES:
        codes.clear()
        begun_s = time.process_time()
        sys.setprofile(lambda frame, *_: codes.add(frame.f_code))
        records.found(name)
        sys.setprofile(None)
        seconds[name] = time.process_time() - begun_s
        for place in {(code.co_filename, code.co_firstlineno) for code in codes}:
            called[place].append(name)
    return dict(called), sorted(seconds, key=seconds.__getitem__)


class Reach:
    """Tells which cases come to functions that mention a name."""

    def __init__(
        self, called: Mapping[tuple[str, int], Sequence[str]], quickest: list[str]
    ) -> None:
        self._called, self._quickest = called, quickest
        self._functions: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self._modules: dict[str, set[str]] = defaultdict(set)
        for path in sorted((SOURCE / "benchrigor").rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            within = set()
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    for part in (part for line in node.body for part in ast.walk(line)):
                        within.add(part)
                        self._functions[_named(part)].add((str(path), first))
            for part in ast.walk(tree):
                if part not in within and isinstance(getattr(part, "ctx", None), ast.Load):
                    self._modules[_named(part)].add(str(path))

    def cases(self, names: Iterable[str]) -> list[str]:
        """Return the cases that call a function which mentions one of the names, quickest first.

        Of a name that stands outside of functions: those that call any function of the module.
        """
        found: set[str] = set()
        for name in names:
            for place in self._functions[name]:
                found.update(self._called.get(place, ()))
            for (path, _), cases in self._called.items():
                if path in self._modules[name]:
                    found.update(cases)
        return sorted(found, key=self._quickest.index)


def _named(node: ast.AST) -> str:
    """Return the name that a node reads, of a variable or an attribute."""
    return str(getattr(node, "id", getattr(node, "attr", "")))


def case_of(job: tuple[Sequence[Rule], float, Sequence[str]]) -> str | None:
    """Return the first of some cases that finds something else with changed numbers.

    "" without one, None if the numbers make no sense. In a process of its own, which has not
    imported benchrigor before.
    """
    rules, factor, names = job
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, _Finder(rules, factor))
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        from fence import records  # noqa: PLC0415
    except Exception:  # noqa: BLE001  # no such number is possible
        return None
    sense = True
    for name in names:
        try:
            if records.changes_of(name, records.found(name)):
                return name
        except TimeoutError:
            return None
        except Exception:  # noqa: BLE001  # a number that makes no sense is no rule switched off
            sense = False
    return "" if sense else None


def _give_up(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


class Trials:
    """Tries numbers in processes, and notes which case holds each."""

    def __init__(
        self, pool: multiprocessing.pool.Pool, reach: Reach, held: dict[Rule, str]
    ) -> None:
        self._pool, self._reach, self.held = pool, reach, held
        self.without_sense: set[Rule] = set()

    def tell(self, groups: Iterable[Sequence[Rule]], factor: float, most: int | None) -> None:
        """Change the numbers of each group at once, and halve a group of which a case changes."""
        left = [group for group in groups if group]
        while left:
            names = [
                self._reach.cases(name for rule in group for name in rule.names)[:most]
                for group in left
            ]
            jobs = [(group, factor, cases) for group, cases in zip(left, names, strict=True)]
            tried, left = left, []
            for group, case in zip(tried, self._pool.imap(case_of, jobs), strict=True):
                if case == "":
                    continue
                if len(group) > 1:
                    left += [group[: len(group) // 2], group[len(group) // 2 :]]
                elif case:
                    self.held[group[0]] = case
                    click.echo(f"{group[0].module} {group[0].name}[{group[0].place}]: {case}")
                else:
                    self.without_sense.add(group[0])


def hold(found: Sequence[Rule], held: dict[Rule, str]) -> None:
    """Add the cases that hold rules; the rules without one stay missing.

    Each number is changed by itself and tried with the quickest cases. Those that these leave are
    changed together, and tried with all cases.
    """
    importlib.import_module("scipy.stats")  # once, for all processes
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        trials = Trials(pool, Reach(*pool.apply(cases_by_function)), held)
        left = found
        for factors in FACTORS:
            trials.without_sense.clear()
            for factor in factors:
                trials.tell([[rule] for rule in left if rule not in held], factor, QUICK)
                idle = [rule for rule in left if rule not in held]
                groups = [idle[at : at + TOGETHER] for at in range(0, len(idle), TOGETHER)]
                trials.tell(groups, factor, None)
            left = [rule for rule in found if rule in trials.without_sense - held.keys()]


def read_table() -> list[Rule]:
    """Return the rules of the table."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    return [
        Rule(module, name, int(place), value, case=case, otherwise=otherwise)
        for module, name, place, value, case, otherwise in rows
    ]


@click.command
@click.argument("modules", nargs=-1)
@click.option("--all", "is_all", is_flag=True, help="Try every number again.")
def renew(modules: tuple[str, ...], *, is_all: bool) -> None:
    """Find the cases that hold the numbers, and write the table."""
    table = read_table()
    known = {rule.key: rule.case for rule in ([] if is_all else table)}
    otherwise = {rule.key: rule.otherwise for rule in table}
    found = [*rules()]
    wanted = [rule for rule in found if rule.module.startswith(modules or "")]
    held: dict[Rule, str] = {}
    with suppress(KeyboardInterrupt):  # what is found is kept
        hold([rule for rule in wanted if not known.get(rule.key)], held)
        known = {rule.key: "" for rule in wanted} | known
    known |= {rule.key: case for rule, case in held.items()}
    tried = [rule for rule in found if rule.key in known]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        rows = (
            (*rule.key, case, "" if case else otherwise.get(rule.key, ""))
            for rule in tried
            for case in [known[rule.key]]
        )
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([("module", "name", "place", "value", "case", "otherwise"), *rows])
    idle = sum(not known[rule.key] for rule in tried)
    click.echo(
        f"{idle} of {len(tried)} numbers change no case; {len(found) - len(tried)} not tried"
    )


if __name__ == "__main__":
    renew()
