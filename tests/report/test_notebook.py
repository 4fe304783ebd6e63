"""The magic of notebooks: a cell is measured, and its progress takes one line."""

from types import SimpleNamespace
from typing import Any

import pytest

import benchrigor as br
from benchrigor import notebook
from benchrigor.report import html


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

    monkeypatch.setattr(html, "_template", missing)
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
