"""A statement, as timeit takes it."""

import sys

import pytest

from benchrigor.storage import Journal

SHORT = ("--budget", "0.3", "--no-store")


@pytest.mark.slow
def test_a_statement_is_measured_with_its_setup(cli, strict):
    result = cli("timeit", *SHORT, "--json", "-s", "rows = [1, 2]", "sorted(rows)")
    told = strict(result.stdout)
    assert told["name"] == "sorted(rows)"
    assert told["analyses"][0]["metric"]["unit"] == "s"


@pytest.mark.slow
def test_lines_are_one_program(cli, strict):
    words = ("-s", "total = 0", "for i in range(3):", "  total += i")
    told = strict(cli("timeit", *SHORT, "--json", *words).stdout)
    assert told["name"].endswith(" [...]")
    assert told["subject"]["statement"].splitlines() == [*words[2:]]


def test_a_run_of_a_statement_is_taken_up_again(cli, store):
    cli("timeit", "--max-rounds", "2", "-s", "x = 1", "x + 1")
    (run,) = Journal(store).runs()
    assert cli("resume", run["run_id"], "--max-rounds", "4").exit_code in {0, 3, 4}
    assert len(Journal(store).load(run["run_id"]).rounds) == 4


@pytest.mark.parametrize(
    ("words", "code", "phrase"),
    [
        (("for",), 2, "the statement is not valid Python"),
        (("-s", "1 +", "pass"), 2, "--setup is not valid Python"),
        (("-s", "1 / 0", "pass"), 5, "--setup raised ZeroDivisionError"),
        (("unknown_name",), 5, "raised NameError"),
        ((), 2, "Missing argument"),
        (("-s", "async def f(): pass", "f()"), 2, "makes a coroutine that nothing awaits"),
        (("-s", "import asyncio", "x = asyncio.sleep(0)"), 2, "write 'asyncio.run(...)' around it"),
        (("-s", "async def f(): pass", "g = lambda: f()", "(g(), 1)"), 2, "nothing awaits"),
        (("-s", "async def f(): yield", "f()"), 2, "an asynchronous generator that nothing steps"),
        (("-s", "def f(): yield", "f()"), 2, "write 'for _ in ...: pass' around it"),
        (("-s", "def f(): yield", "x = 1", "f()"), 2, "makes a generator that nothing steps"),
        (("-s", "y = range(9)", "(x for x in y)"), 2, "makes a generator that nothing steps"),
        (("-s", "y = range(9)", "z = y", "(x for x in z)"), 2, "makes a generator that nothing"),
        (("-s", "y = []", "y or (x for x in y)"), 2, "makes a generator that nothing steps"),
        (("map(str, range(9))",), 2, "makes a map that nothing steps through"),
        (("filter(None, range(9))",), 2, "makes a filter that nothing steps through"),
    ],
)
def test_what_is_no_statement_is_refused(cli, words, code, phrase):
    result = cli("timeit", *SHORT, *words)
    assert result.exit_code == code
    assert phrase in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("-s", "import asyncio", "asyncio.run(asyncio.sleep(0))"),
        ("-s", "def f(): yield", "list(f())"),
        ("-s", "y = range(9)", "sum(x for x in y)"),
        ("-s", "y = range(9)", "g = (x for x in y)"),
        (
            "-s",
            "total = 0",
            "total += 1",
            "statement = before = total",
            "(total, statement, before)",
        ),
        ("-s", "def f(): yield", "for _ in f(): pass"),
        (
            "-s",
            "import asyncio\nasync def f(): yield\nasync def g():\n  async for _ in f(): pass",
            "asyncio.run(g())",
        ),
    ],
)
def test_what_runs_to_its_end_is_measured(cli, words):
    assert cli("timeit", *SHORT, *words, "--max-rounds", "2").exit_code in {0, 3, 4}


@pytest.mark.slow
def test_the_project_gives_defaults_that_options_replace(cli, strict, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor]\nbudget = 0.2\ntarget = "30%"\nstatistic = "median"\n'
    )
    told = strict(cli("timeit", "pass", "--no-store", "--target=20%", "--json").stdout)
    options = told["record"]["options"] if "record" in told else told["options"]
    assert (options["budget_s"], options["target"], options["statistic"]) == (0.2, 0.2, "median")


@pytest.mark.slow
def test_a_statement_imports_from_the_current_folder(cli, strict, tmp_path, monkeypatch):
    (tmp_path / "of_this_folder.py").write_text("ROWS = [3, 1, 2]\n")
    monkeypatch.setattr("sys.path", [*sys.path])
    words = ("-s", "from of_this_folder import ROWS", "sorted(ROWS)")
    told = strict(cli("timeit", *SHORT, "--json", *words).stdout)
    assert told["subject"]["cwd"] == str(tmp_path)
    assert sys.path[0] == str(tmp_path)
