"""A statement, as timeit takes it; what is refused stands in a page of texts."""

import sys

import pytest

SHORT = ("--budget", "0.3", "--no-store")


def test_a_statement_is_measured_with_its_setup(told):
    found = told("timeit", *SHORT, "-s", "rows = [1, 2]", "sorted(rows)")
    assert found["name"] == "sorted(rows)"
    assert found["analyses"][0]["metric"]["unit"] == "s"
    lines = ["for i in range(3):", "  total += i"]
    found = told("timeit", *SHORT, "-s", "total = 0", *lines)
    assert found["name"].endswith(" [...]")
    assert found["subject"]["statement"].splitlines() == lines


def test_a_run_of_a_statement_is_taken_up_again(cli, kept):
    cli("timeit", "--max-rounds", "2", "-s", "x = 1", "x + 1")
    assert cli("resume", kept()[0].run_id, "--max-rounds", "4").exit_code in {0, 3, 4}
    assert len(kept()[0].rounds) == 4


@pytest.mark.parametrize(
    "words",
    [
        ("-s", "import asyncio", "asyncio.run(asyncio.sleep(0))"),
        ("-s", "y = range(9)", "sum(x for x in y)"),
        ("-s", "y = range(9)", "g = (x for x in y)"),
        ("-s", "t = 0", "t += 1", "statement = before = t", "(t, statement, before)"),
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


def test_the_project_gives_defaults_that_options_replace(told, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor]\nbudget = 0.2\ntarget = "30%"\nstatistic = "median"\n'
    )
    options = told("timeit", "--no-store", "--target=20%", "pass")["options"]
    assert (options["budget_s"], options["target"], options["statistic"]) == (0.2, 0.2, "median")


def test_a_statement_imports_from_the_current_folder(told, tmp_path, monkeypatch):
    (tmp_path / "of_this_folder.py").write_text("ROWS = [3, 1, 2]\n")
    monkeypatch.setattr("sys.path", [*sys.path])
    found = told("timeit", *SHORT, "-s", "from of_this_folder import ROWS", "sorted(ROWS)")
    assert found["subject"]["cwd"] == str(tmp_path)
    assert sys.path[0] == str(tmp_path)
