"""Benchmarks inside a test suite: the test checks the result, ``bench`` measures the call.

python -m pytest examples/test_json.py --bench-budget 2
"""

from __future__ import annotations

import json

from benchrigor.pytest_plugin import Bench

DOCUMENT = {"rows": [{"id": number, "name": f"row {number}"} for number in range(200)]}


def test_dumping_and_loading_gives_the_document_back(bench: Bench) -> None:
    text = bench(json.dumps, DOCUMENT, sort_keys=True)
    assert json.loads(text) == DOCUMENT


def test_loading_gives_a_number_or_says_why_not(bench: Bench) -> None:
    text = json.dumps(DOCUMENT)
    assert bench(json.loads, text) == DOCUMENT
    if bench.record is not None:  # None with --bench-skip, and under pytest-xdist
        assert bench.record.estimate() is not None or bench.record.notices
