"""What the documents show is run, and what they list is what there is."""

import doctest
import re
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from benchrigor.cli.exits import ExitCode
from benchrigor.model import Code, PhaseReason, RateReason, ServiceProcess, StopReason

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
    assert shown or path != ROOT / "README.md"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def listed(title: str) -> list[str]:
    section = CODES.split(f"## {title}", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `?([^|`]+?)`? \|", section, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("title", "codes"),
    [
        ("Why a session stopped", StopReason),
        ("Why a phase is measured", PhaseReason),
        ("Notices", Code),
        ("Why a service rate has not converged", RateReason),
        ("Service processes", ServiceProcess),
        ("Exit codes", [str(int(code)) for code in ExitCode]),
    ],
)
def test_every_code_stands_on_the_page_of_codes(title: str, codes: object) -> None:
    rows = [row for row in listed(title) if row not in {"code", "---"}]
    assert sorted(rows) == sorted(map(str, codes))  # type: ignore[call-overload]


def test_the_readme_has_one_command_to_run_and_one_to_test() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for mark in ("run", "test"):
        blocks = re.findall(rf"<!-- {mark} -->\n```sh\n(.*?)```", text, flags=re.DOTALL)
        assert len(blocks) == 1
        assert blocks[0].count("\n") == 1
