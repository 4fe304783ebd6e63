"""What the documents and the front page show is run, and what they list is what there is."""

import ast
import doctest
import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import typing
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import benchrigor
from benchrigor.cli import main
from benchrigor.cli.exits import ExitCode
from benchrigor.model import Code, PeakStatus, ServiceRate, StablePhase, StopReason

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODES = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_sessions_shown_in_documents_come_out_as_shown(path: Path) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(path)
    shown = [each for each in document.examples() if isinstance(each.parsed, doctest.Example)]
    for example in shown:
        source = example.parsed.source
        example.parsed.source = re.sub(r"budget_s=\d+", "budget_s=0.3", source)  # to save time
        example.evaluate()
    assert shown or path != ROOT / "docs" / "python.md"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def listed(title: str) -> list[str]:
    section = CODES.split(f"## {title}", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `?([^|`]+?)`? \|", section, flags=re.MULTILINE)


def kind_of(result: Any, *names: str) -> Any:
    """Return the kind of codes that a field of a result has, or of its parts."""
    for name in names:
        hint = typing.get_type_hints(result, vars(sys.modules[result.__module__]))[name]
        result = next(each for each in (*typing.get_args(hint), hint) if isinstance(each, type))
    return result


@pytest.mark.parametrize(
    ("title", "codes"),
    [
        ("Why a session stopped", StopReason),
        ("Why a phase is measured", kind_of(StablePhase, "reason")),
        ("Notices", Code),
        ("How the search for a peak ended", PeakStatus),
        ("Why a service rate has not converged", kind_of(ServiceRate, "reason")),
        ("Service processes", kind_of(ServiceRate, "moments", "process")),
        ("Exit codes", [str(int(code)) for code in ExitCode]),
    ],
)
def test_every_code_stands_on_the_page_of_codes(title: str, codes: object) -> None:
    rows = [row for row in listed(title) if row not in {"code", "---"}]
    assert sorted(rows) == sorted(map(str, codes))  # type: ignore[call-overload]


def test_the_page_of_codes_tells_how_severe_each_is() -> None:
    section = CODES.split("## Notices", 1)[1].split("\n## ", 1)[0]
    shown = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, flags=re.MULTILINE))
    made = {str(code): {severity for severity, _ in code.sentences.values()} for code in Code}
    assert {code: set(severities.split(", ")) for code, severities in shown.items()} == made


def test_every_code_that_refuses_stands_in_the_table_of_refusals_with_its_test() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| .* \| `([^`]+)`: (.*) \|$",
        CODES.split("## What refuses", 1)[1].split("\n## ", 1)[0],
        flags=re.MULTILINE,
    )
    codes = {code for code, _, _ in rows}
    refusals = {str(c) for c in Code if "refusal" in {kind for kind, _ in c.sentences.values()}}
    assert codes == refusals
    for _, file, name in rows:
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text or f'"{name}": ' in text, name


def test_the_reference_is_as_the_package_has_it() -> None:
    script = runpy.run_path(str(ROOT / "tests" / "renew_reference.py"))
    page = script["PAGE"].read_text(encoding="utf-8")
    assert page == script["renewed"](page), "run python tests/renew_reference.py"
    assert "### benchrigor run\n" in page
    assert "`--bench-target SHARE`" in page


def test_the_readme_has_one_command_to_test() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"<!-- test -->\n```sh\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 1
    assert blocks[0].count("\n") == 1


def test_comparisons_of_tests_are_shown_in_the_form_that_is_printed() -> None:
    printed = (ROOT / "tests" / "texts" / "plugin.md").read_text(encoding="utf-8")
    (*_, row) = re.findall(r"^name .*verdict$", printed, flags=re.MULTILINE)
    columns = re.split("  +", row)
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for header in re.findall(r"^name  .*verdict$", text, flags=re.MULTILINE):
            assert re.split("  +", header) == columns, path
        shown = re.findall(r"^test_\w+ .*\] .*$", text, flags=re.MULTILINE)
        assert all(re.search(r"% \w+ time \[", row) for row in shown), path


def test_the_page_of_the_pace_says_what_its_picture_shows() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "pictures" / "changing_pace.py"))
    kept = json.loads(script["WINDOWS"].read_text(encoding="utf-8"))
    columns = [
        script["figures"](script["column"](kept["windows"], name)).values()
        for name in ("time", "alone", "at_full_pace")
    ]
    page = (ROOT / "docs" / "pace.md").read_text(encoding="utf-8")
    for row in zip(*columns, strict=True):
        cells = " | ".join(f"{float(f'{100 * each:.2g}'):g}%" for each in row)
        assert f"| {cells} |" in page


def test_the_front_page_says_what_its_picture_shows() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "pictures" / "comparing.py"))
    rows = json.loads(script["RECORDED"].read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for tool, cells in script["figures"](rows).items():
        assert f"| {tool} | {' | '.join(cells)} |" in text


# Each feature on the page of papers has calls, and each call exists.
PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!feature |---)(.+) \| (.+) \|$", PAPERS, re.M)
CALLS = sorted({call for _, calls in ROWS for call in re.findall(r"`([^`]+)`", calls)})


def test_every_feature_has_a_call() -> None:
    assert len(ROWS) > 80
    assert [
        feature for feature, calls in ROWS if not re.fullmatch(r"`[^`]+`(, `[^`]+`)*", calls)
    ] == []


@pytest.mark.parametrize("call", [each for each in CALLS if each.startswith("benchrigor ")])
def test_commands_exist(call: str) -> None:
    _, verb, *words = call.split()
    command = main.get_command(click.Context(main), verb)
    assert command is not None
    option, value = (*words, None, None)[:2]
    if option is not None:
        (found,) = (each for each in command.params if option in each.opts)
        if value is not None:
            found.type.convert(value, found, None)


@pytest.mark.parametrize("call", [each for each in CALLS if not each.startswith("benchrigor ")])
def test_names_exist_and_take_these_arguments(call: str) -> None:
    node = ast.parse(call, mode="eval").body
    options: dict[str, Any] = {}
    if isinstance(node, ast.Call):
        options = {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}
        node = node.func
    found = named(ast.unparse(node))
    if options:
        assert inspect.signature(found).bind_partial(**options).arguments
    if found is benchrigor.Options:
        found(**options)  # which checks the values, too


def named(dotted: str) -> Any:
    """Return what a name is below the package; the first part may be one of its packages."""
    first, *rest = dotted.split(".")
    try:
        begin = getattr(benchrigor, first)
    except AttributeError:
        begin = import_module(f"benchrigor.{first}")
    return reduce(member, rest, begin)


def test_a_call_that_is_not_there_is_found_out() -> None:
    for wrong in ("stats.fit_speed", "Options.colour", "workbench.surface.Surface.worst"):
        with pytest.raises((AssertionError, AttributeError, ImportError)):
            named(wrong)


def member(whole: Any, part: str) -> Any:
    """Return a member, also one that only the objects of a class have."""
    if inspect.isclass(whole) and not hasattr(whole, part):
        own = {name for each in whole.__mro__ for name in getattr(each, "__annotations__", ())}
        own |= set(re.findall(rf"self\.({part})\b", inspect.getsource(whole)))
        assert part in own, f"{whole.__name__} has no {part}"
        return None
    if inspect.ismodule(whole) and not hasattr(whole, part):
        return import_module(f"{whole.__name__}.{part}")
    return getattr(whole, part)


README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BUDGET = "0.2s"
NO_FAULT = {"benchrigor": {0, 3, 4, 7}, "pytest": {0, 1}}  # undecided, no number, worse


def blocks(text: str, *languages: str) -> list[str]:
    """Return what the blocks of code in these languages hold."""
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [code for language, code in found if language in languages]


def lines(text: str) -> list[str]:
    """Return the commands of a page: lines of its blocks of shell, and those before an output."""
    joined = (code.replace("\\\n", " ") for code in blocks(text, "sh", "bash"))
    scripts = [line for code in joined for line in code.splitlines()]
    return scripts + re.findall(r"^\$ (.*)$", text, flags=re.MULTILINE)


def write_files(text: str, folder: Path) -> None:
    """Write the files that a page shows, named by their first lines."""
    for code in blocks(text, "python"):
        if named := re.match(r"# (\w+\.py)\n", code):
            (folder / named[1]).write_text(code, encoding="utf-8")


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program of this Python in the folder."""
    environment = {name: text for name, text in os.environ.items() if "PYTEST" not in name}
    environment["BENCHRIGOR_STORE"] = str(folder / "runs.sqlite")
    words = [sys.executable, *argv]
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def git(folder: Path, line: str) -> None:
    """Run a command of git in the folder."""
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *shlex.split(line)]
    subprocess.run(words, cwd=folder, check=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a shallow clone, as CI has it, of a repository that holds the files of the front page.

    It measures for a moment.
    """
    origin = tmp_path / "origin"
    origin.mkdir()
    write_files(README, origin)
    settings = f'[tool.benchrigor]\nbudget = "{BUDGET}"\n'
    (origin / "pyproject.toml").write_text(settings, encoding="utf-8")
    for line in ("init -q -b main", "add .", "commit -qm Begin", "branch change"):
        git(origin, line)
    git(tmp_path, f"clone -q --depth=1 --branch=change {origin.as_uri()} clone")
    (fetching,) = (line for line in lines(README) if line.startswith("git "))
    git(tmp_path / "clone", fetching.removeprefix("git "))
    return tmp_path / "clone"


@pytest.mark.parametrize(
    "line", [line for line in lines(README) if line.startswith(("benchrigor ", "pytest "))]
)
def test_commands_of_the_front_page_measure(project: Path, line: str) -> None:
    program, *words = shlex.split(line, comments=True)
    done = run(project, "-m", program, *words)
    assert done.returncode in NO_FAULT[program], done.stdout + done.stderr
    assert re.search(r"\d ?%|no number", done.stdout), done.stdout + done.stderr


def test_only_installing_is_left_to_other_tests() -> None:
    programs = [line.split()[0] for line in lines(README)]
    assert sorted(set(programs)) == ["benchrigor", "git", "pytest", "python3"]
    installing = [line for line in lines(README) if line.startswith("python3 ")]
    assert all("pip install" in line for line in installing)
    assert len(installing) == 2


def test_scripts_of_the_front_page_run(project: Path) -> None:
    scripts = [code for code in blocks(README, "python") if not code.startswith(("#", ">>>"))]
    for script in scripts:
        done = run(project, "-c", re.sub(r"budget_s=\d+", "budget_s=0.2", script))
        assert done.returncode == 0, done.stderr
    assert scripts


def test_tests_of_the_page_of_pytest_run(tmp_path: Path) -> None:
    write_files((ROOT / "docs" / "pytest.md").read_text(encoding="utf-8"), tmp_path)
    (name,) = (path.name for path in tmp_path.glob("test_*.py"))
    done = run(tmp_path, "-m", "pytest", name, f"--bench-budget={BUDGET}")
    assert "test_parsing" in done.stdout
    assert done.returncode in NO_FAULT["pytest"], done.stdout


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_on_pages_are_commands(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in lines(path.read_text(encoding="utf-8")):
        _, verb, *words = [*shlex.split(line, comments=True), "", ""]
        if line.startswith("benchrigor "):
            words = words[:-2] if not verb.startswith("-") else []
            command = main.get_command(click.Context(main), verb)
            assert command is not None, line
            command.make_context(verb, words, parent=click.Context(main))


def test_every_page_is_linked_from_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    unlisted = {"README.md", "plan.md"}
    for path in sorted((ROOT / "docs").glob("*.md")):
        assert path.name in unlisted or f"]({path.name})" in index, path.name


def test_the_front_page_is_short() -> None:
    assert len(README.splitlines()) <= 150
