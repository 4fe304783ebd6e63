import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from benchrigor.cli import main

CODES = Path(__file__).parents[2] / "docs" / "codes.md"
CONTEXT = click.Context(main)
VERBS = main.list_commands(CONTEXT)


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_fits_the_screen_and_gives_examples(cli, verb):
    result = cli(verb, "--help")
    assert result.exit_code == 0
    assert f"\n    benchrigor {verb}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "\b" not in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_begins_with_its_question_and_shows_about_a_dozen_options(cli, verb):
    command = main.get_command(CONTEXT, verb)
    flags = [
        each.opts[-1]
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden
    ]
    shown, whole = cli(verb, "--help").stdout, cli(verb, "--help-all").stdout
    question = shown.split("\n\n")[1]
    assert question == whole.split("\n\n")[1]
    assert " ".join(question.split()) in " ".join(cli("--help").stdout.split())
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


def test_without_a_verb_the_help_is_shown_as_a_page_and_nothing_goes_on_in_a_next_line(cli):
    assert cli().output == cli("--help").output
    assert "\\\n" not in cli().output


def test_the_help_documents_every_exit_code(cli):
    shown = re.findall(r"^    (\d+)  ", cli("--help").stdout, re.MULTILINE)
    documented = re.findall(r"^\| (\d+) \| ", CODES.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == documented == ["0", "2", "3", "4", "5", "6", "7", "8", "130"]


def test_the_package_is_a_program(alone):
    assert " benchrigor, version " in alone("--version").stdout


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
    assert not [name for name in loaded if name.endswith(("_verb", "_verbs"))]


def test_before_its_first_call_a_run_loads_only_what_it_needs(alone, module):
    module("first_call", "import sys\ndef f():\n    raise ValueError(' '.join(sys.modules))")
    done = alone("run", "--budget", "0.01", "--in-process", "first_call:f")
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    slow = {"statsmodels", "ruptures", "matplotlib", "rich", "pandas", "asyncio"}
    slow |= {"scipy.special", "scipy.stats", "scipy.linalg", "benchrigor.report"}
    assert not loaded & slow


def test_each_verb_is_in_its_module_and_prints_json(cli):
    assert [main.get_command(CONTEXT, verb).name for verb in VERBS] == VERBS
    assert [verb for verb in VERBS if "--json" not in cli(verb, "--help").stdout] == []
