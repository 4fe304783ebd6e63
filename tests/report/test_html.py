"""A page of results: whole, safe, readable by machines, by its parser."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.recorded import told

import benchrigor as br
from benchrigor.report.html import document_of, sheet_of

_VOID = {"meta", "input", "br"}
NAME = "<script>alert(1)</script> \"q\" 'a' | a\nb \x1b[31m \u202e & µ"
SHOWN = "<script>alert(1)</script> \"q\" 'a' | a\\nb \\x1b[31m \\u202e & µ"


class Parsed(HTMLParser):
    """The tags of a document with their attributes, its text, and how deep they are."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[tuple[str, str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text.append((self.open[-1] if self.open else "", data))

    def texts(self, tag: str) -> list[str]:
        return [data.strip() for within, data in self.text if within == tag and data.strip()]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def shown() -> Parsed:
    """The page of one run."""
    return page_of(told(readings()))


def page_of(*results: object) -> Parsed:
    return Parsed(document_of([sheet_of(result) for result in results], "a title"))


def readings(n: int = 600, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(1.0, 0.05, n)


def test_a_page_answers_first_and_shows_all_that_was_found(shown: Parsed) -> None:
    assert shown.texts("h1") == ["a"]
    assert shown.count("svg") == shown.count("figure") > 0
    headings = shown.texts("h2")
    assert headings == ["What was found", "How it came about", "Environment"] or len(headings) > 1
    answer = " ".join(shown.texts("p"))
    assert "95% confidence interval" in answer


def test_a_page_loads_nothing_and_runs_one_script_alone(shown: Parsed) -> None:
    (policy,) = [a["content"] for _, a in shown.tags if a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert shown.count("script") == 1
    links = [
        value
        for _, attributes in shown.tags
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href") and not str(value).startswith("#")
    ]
    assert links == []


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_hostile_names_are_text(kind: str) -> None:
    record = told(readings(), name=NAME, metrics=(br.Metric(name=NAME, unit=NAME),))
    other = told(readings(seed=2), name=f"{NAME} new", metrics=record.metrics)
    page = page_of(record if kind == "run" else br.compare_runs(record, other))
    assert page.count("script") == 1
    text = " ".join(data for _, data in page.text)
    assert SHOWN in text
    assert not re.search("[\x1b\u202e]", text)


def test_pictures_have_names_and_colours_of_the_page(shown: Parsed) -> None:
    drawn = [attributes for tag, attributes in shown.tags if tag == "svg"]
    assert all(attributes["role"] == "img" for attributes in drawn)
    assert len([text for text in shown.texts("title") if text != "a title"]) == len(drawn)
    colours = " ".join(attributes.get("style") or "" for _, attributes in shown.tags)
    assert "var(--ink)" in colours
    assert not re.search("#[0-9a-f]{6}", colours)
