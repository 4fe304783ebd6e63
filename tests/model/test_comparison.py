"""Lines that are said of two sides fit their screen."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated

from benchrigor.model import Code, Comparison, Notice, Verdict
from benchrigor.stats import compare

COMPARED = replace(compare([1.0, 1.1] * 5, [1.0, 1.1] * 5), notices=())


def sized(*, value: float, width: float, n: int, unit: str | None) -> Comparison:
    ratio = estimated(value, value * (1 - width), value * (1 + width))
    return replace(COMPARED, baseline=estimated(1.0, 1.0, 1.0, n=n), ratio=ratio, unit=unit)


@given(
    st.builds(
        sized,
        value=st.floats(0.001, 1e6),
        width=st.floats(0.0, 0.9),
        n=st.integers(1, 10**9),
        unit=st.sampled_from(["reading", "invocation", None]),
    ),
    st.integers(0, 10**12),
    st.floats(0.0, 1.0),
    st.sampled_from(list(Verdict)),
)
def test_the_line_never_grows_beyond_a_hundred_columns(
    found: Comparison, required: int, p: float, verdict: Verdict
) -> None:
    names = ("n" * 90, "json")
    line = str(replace(found, required=required, p_value=p, verdict=verdict, names=names))
    assert len(line) <= 100
    assert "json" in line


def test_without_a_number_the_line_says_why_and_fits() -> None:
    why = Notice.of(Code.NO_STABLE_PHASE, "no level", way_="{rises} " * 29)
    found = replace(COMPARED, ratio=None, difference=None, p_value=None, notices=(why,))
    for names in ((), ("module:an_old_way", "module:a_new_way")):
        line = str(replace(found, names=names))
        assert "it {" in line
        assert len(line) <= 100


def test_a_family_is_a_table_that_fits(tmp_path: Path, cli) -> None:
    names = ("a", "b" * 60, " ".join(["c" * 30] * 5))
    for side, level in (("old", 1.0), ("new", 1.2)):
        times = np.random.default_rng([7, len(side)]).normal(level, 0.01, (len(names), 40))
        rows = zip(names, times.tolist(), strict=True)
        results = [{"command": name, "times": each} for name, each in rows]
        (tmp_path / side).write_text(json.dumps({"results": results}))
    lines = cli("compare", tmp_path / "old", tmp_path / "new", "--details").stdout.splitlines()
    assert max(map(len, lines)) <= 79
    columns = ["name", "change", "[interval]", "visible", "p", "adj.", "verdict"]
    assert columns in [line.split() for line in lines]
