import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from benchrigor.cli import main
from benchrigor.cli.exits import ExitCode
from benchrigor.cli.verb_help import SIDE_SYSTEMS, VERBS

CODES = Path(__file__).parents[2] / "docs" / "codes.md"
CLI = Path(__file__).parents[2] / "src" / "benchrigor" / "cli"


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_fits_the_screen_and_gives_examples(cli, verb):
    result = cli(verb, "--help")
    assert result.exit_code == 0
    assert f"\n    benchrigor {verb}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\b" not in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_begins_with_its_question_and_shows_about_a_dozen_options(cli, verb):
    command = main.get_command(click.Context(main), verb)
    flags = [
        each.opts[-1]
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]
    shown, whole = cli(verb, "--help").stdout, cli(verb, "--help-all").stdout
    for text in (shown, whole):
        assert " ".join(text.split("\n\n")[1].split()) == VERBS[verb]
    assert all(re.search(rf"^  (-\w, )?{flag}\b", whole, re.M) for flag in flags)
    if len(flags) <= 15:
        assert shown == whole
        return
    rows = re.findall(r"^  (-\S+)", shown, re.M)
    assert {each.rstrip(",") for each in rows} == {*command.usual, "-h"}  # all of them exist
    assert 10 <= len(command.usual) <= 13
    assert shown.endswith(f" {verb} --help-all\n")


@pytest.mark.parametrize("words", [["--help"], *([verb, "--help-all"] for verb in VERBS)])
def test_help_fits_a_narrow_terminal(cli, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "40")
    lines = cli(*words).stdout.splitlines()
    listed = lines[lines.index("Options:") :]
    # A term that does not fit stands alone.
    assert [each for each in listed if len(each) > 40 and "  " in each.strip()] == []


@pytest.mark.parametrize("verb", VERBS)
def test_examples_go_on_in_the_next_line_of_a_narrow_terminal(cli, monkeypatch, verb):
    def examples(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = cli(verb, "--help").stdout.partition("Examples:\n")[2]
        return shown.split("\n\n")[0] if "\n\n" in shown else shown

    narrow = examples(40)
    for line in narrow.splitlines():
        assert len(line) <= 40 or len(shlex.split(line.removesuffix("\\"))) == 1
    told, usual = (
        [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]
        for text in (narrow, examples(80))
    )
    assert told == usual


def test_nothing_else_of_the_help_goes_on_in_a_next_line(cli):
    assert "\\\n" not in cli("--help").stdout


def test_without_a_verb_the_help_is_shown_as_a_page(cli):
    bare = cli()
    assert bare.output == cli("--help").output
    assert "\\n" not in bare.output


def test_help_groups_the_verbs_by_task(cli):
    *_, measure, compare, servers, analyse, machine = cli("--help").stdout.split("\n\n")
    assert measure.startswith("Measure:\n  run  ")
    assert compare.startswith("Compare:\n  ab  ")
    assert servers.startswith("Servers:\n  peak  ")
    assert analyse.startswith("Analyse:\n")
    assert machine.startswith("Machine:\n  doctor  ")


def test_the_help_documents_every_exit_code(cli):
    shown = cli("--help").stdout
    documented = CODES.read_text(encoding="utf-8")
    for code in ExitCode:
        assert f"\n    {code:<3d}  " in shown
        assert f"\n| {code:d} | " in documented


@pytest.mark.slow
def test_every_verb_prints_json(cli):
    for verb in VERBS:
        assert "--json" in cli(verb, "--help").stdout


def test_the_package_is_a_program():
    command = [sys.executable, "-m", "benchrigor", "--version"]
    done = subprocess.run(  # our own program
        command, capture_output=True, text=True, check=True
    )
    assert " benchrigor, version " in done.stdout


def _loaded_by(*words: str) -> set[str]:
    """Return the names of the modules that a call of the command line loads."""
    code = (
        "import sys\n"
        "from benchrigor.cli import main\n"
        f"main({list(words)!r}, standalone_mode=False)\n"
        "print('\\n', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_version_and_help_load_no_verb_and_nothing_heavy(word):
    loaded = _loaded_by(word)
    assert "benchrigor.cli.verbs" in loaded
    assert not loaded & {"numpy", "scipy", "statsmodels", "rich", "sqlite3", "benchrigor.model"}
    assert not [name for name in loaded if name.endswith("_verb")]


@pytest.mark.slow
def test_before_its_first_call_a_run_loads_only_what_it_needs(cli, store):
    probe = "import sys\ndef f():\n    raise ValueError(' '.join(sys.modules))"
    (store.parent / "first_call.py").write_text(probe)
    command = [sys.executable, "-m", "benchrigor", "run", "--budget", "0.01"]
    command += ["--in-process", "first_call:f"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=store.parent)  # noqa: PLW1510  # it fails
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    slow = {"statsmodels", "ruptures", "matplotlib", "rich", "pandas", "asyncio"}
    slow |= {"scipy.special", "scipy.stats", "scipy.linalg", "benchrigor.report"}
    assert not loaded & slow


def test_each_verb_is_in_a_module_of_its_name_and_is_listed():
    context = click.Context(main)
    assert list(VERBS) == main.list_commands(context)
    for verb in VERBS:
        assert main.get_command(context, verb).name == verb
    modules = {path.stem.removesuffix("_verb") for path in CLI.glob("*_verb.py")}
    assert modules == {verb.replace("-", "") for verb in set(VERBS) - set(SIDE_SYSTEMS)}
    modules = {path.stem.removesuffix("_verb") for path in CLI.parent.rglob("*_verb.py")}
    assert modules == {verb.replace("-", "") for verb in VERBS}
    shown = main.get_help(context)
    for verb, what in VERBS.items():
        assert f"  {verb} " in shown
        assert what in " ".join(shown.split())
