"""Texts are as their pages show them: ``python tests/texts/renew.py`` writes these again."""

import pytest
from tests.texts.rendering import causes, notices_of, pages, sections, text_of

from benchrigor.model import Code

SHOWN = {page: sections(page) for page in [*pages(), "notices"]}


@pytest.mark.parametrize(
    ("page", "title"), [(page, title) for page in pages() for title in causes(page)]
)
def test_a_text_is_as_its_page_shows_it(page: str, title: str) -> None:
    assert text_of(causes(page)[title]) == SHOWN[page].get(title)


@pytest.mark.parametrize("page", pages())
def test_a_page_shows_no_text_without_a_cause(page: str) -> None:
    assert SHOWN[page].keys() == causes(page).keys()


def test_every_code_of_a_notice_is_on_a_page() -> None:
    """As itself, or after its sentence on a page of the command line."""
    shown = " ".join(text for page in SHOWN.values() for text in page.values())
    assert [code for code in Code if f"{code} (" not in shown and f"[{code}]" not in shown] == []


@pytest.mark.parametrize("case", sorted({title.split(": ")[1] for title in SHOWN["notices"]}))
def test_the_sentences_of_a_golden_case_are_as_their_page_shows_them(case: str) -> None:
    found = {f"{code}: {case}": text for code, text in notices_of(case).items()}
    shown = {title: text for title, text in SHOWN["notices"].items() if title.endswith(f": {case}")}
    assert {title: found.get(title) for title in shown} == shown
