"""Results in a notebook: one output for each, whose progress takes one line."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import benchrigor as br
from benchrigor import notebook
from benchrigor.report.html import pages

CELLS = (
    "%load_ext benchrigor.notebook\nimport benchrigor as br\nfrom benchrigor import workbench",
    "%%bench budget_s=0.3\nsorted(range(100))",
    "br.measure_pair(lambda: sorted(range(100)), lambda: sorted(range(200)), budget_s=0.3)",
    "br.measure_many({'a': dict, 'b': list}, budget_s=0.2)",
    """search = workbench.PeakSearch(threshold_s=0.1, seed_load=50.0)
while (trial := search.ask()) is not None:
    answer_s = 0.01 / (1 - trial.load / 400) if trial.load < 390 else 1.0
    n = int(trial.load * trial.duration_s)
    given = dict(scheduled=n, sent=n, completed=n)
    search.tell(trial, br.LoadResult(mean_response_s=answer_s, p95_response_s=None, **given))
search.result()""",
    """levels = {'n': [1, 2, 4, 8], 'm': [1, 2, 3]}
factors = [workbench.Factor(name, levels=each) for name, each in levels.items()]
search = workbench.SurfaceMap(factors, samples=9, seed=1)
while (sample := search.ask()) is not None:
    value = 100.0 * sample.point['n'] + 10.0 * sample.point['m']
    search.tell(sample, (value, 0.98 * value, 1.02 * value))
search.result()""",
)


def test_each_result_is_one_output_of_a_notebook() -> None:
    """Only where a kernel can be started."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    written = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    asyncio.run(nbclient.NotebookClient(written, timeout=200).async_execute())
    outputs = [cell["outputs"] for cell in written["cells"]]
    assert outputs[0] == []
    for (only,) in outputs[1:]:
        assert only["output_type"] == "execute_result"
        assert "<svg" in only["data"]["text/html"] or "comparison" in only["data"]["text/plain"]


@pytest.fixture
def cleared(monkeypatch) -> list[bool]:
    """How often the line of progress was taken away."""
    seen = list[bool]()
    monkeypatch.setattr(notebook, "_clear", lambda: seen.append(True))
    return seen


def test_a_cell_is_measured_in_the_namespace_of_the_user(cleared, capsys) -> None:
    shell: Any = SimpleNamespace(user_ns={"rows": [3, 1, 2]})
    record = notebook.measure_cell(shell, "budget_s=0.2, target=0.5", "x = sorted(rows)\nx")
    assert record.name == "x = sorted(rows)"
    assert record.options.target == 0.5
    assert [*shell.user_ns] == ["rows", "__builtins__"]
    lines = capsys.readouterr().out.splitlines()
    assert 1 <= len(lines) <= 3
    assert len(cleared) == len(lines) + 1


def test_a_line_that_is_no_arguments_is_refused(cleared) -> None:
    shell: Any = SimpleNamespace(user_ns={})
    with pytest.raises(br.InvalidInput):
        notebook.measure_cell(shell, "--budget 3", "1 + 1")


def test_an_extension_adds_its_magic() -> None:
    known = dict[str, str]()
    shell: Any = SimpleNamespace(
        register_magic_function=lambda _, kind, name: known.update({name: kind})
    )
    notebook.load_ipython_extension(shell)
    assert known == {"bench": "cell"}


def test_without_the_extra_a_result_is_plain_html(monkeypatch) -> None:
    def missing(_: str) -> None:
        raise br.errors.MissingExtra("HTML", package="jinja2", extra="report")

    monkeypatch.setattr(pages, "_template", missing)
    text = br.measure(dict, name="<dict>", budget_s=0.1)._repr_html_()
    assert text is not None
    assert "&lt;dict&gt;" in text or "<strong>The" in text
    assert "<svg" not in text
    assert (
        br.Estimate(  # a result without a sheet is shown as before
            value=1.0, low=0.9, high=1.1, confidence=0.95, n=9, n_effective=9.0, method="told"
        )._repr_html_()
        is None
    )
