"""Results as lines on a screen, as data and as files."""

from __future__ import annotations

import json
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated.estimates import estimated
from tests.model.known import AT, STATUS

from benchrigor.errors import InvalidInput
from benchrigor.model import Code, Comparison, Health, Notice, Sample, Verdict
from benchrigor.model.codec import decode, encode
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


class Alias:
    """As `typing.TypeAliasType` of Python 3.12, by which numpy 2.5 defines `NDArray`."""

    __value__ = npt.NDArray[np.float64]


class AliasOfAlias:
    __value__ = types.GenericAlias(Alias(), (np.float64,))


@pytest.mark.parametrize(
    "kind",
    [
        npt.NDArray[np.float64],
        npt.NDArray[np.int64],
        np.ndarray,
        np.ndarray[tuple[int], np.dtype[np.float64]],
        Alias(),
        types.GenericAlias(Alias(), (np.float64,)),
        types.GenericAlias(Alias(), (np.float64,)) | None,
        AliasOfAlias(),
    ],
    ids=["floats", "ints", "bare", "shaped", "alias", "alias of", "optional", "twice"],
)
def test_an_array_is_rebuilt_in_whatever_form_it_is_annotated(kind):
    again = decode(kind, encode(np.array([1.0, 2.5])))
    assert isinstance(again, np.ndarray)
    assert again.tolist() == [1.0, 2.5]
    assert decode(dict[str, kind], {"time": [1.0]})["time"].tolist() == [1.0]
    with pytest.raises(InvalidInput):
        decode(kind, 7)


def test_a_value_is_found_by_its_name() -> None:
    assert STATUS.value("memory available") == 4.2e9
    assert STATUS.value("storage fullest") == "/home"
    assert STATUS.value("gpus") is None
    with pytest.raises(InvalidInput):
        STATUS.value("memory free")


def test_a_table_is_never_wider_than_a_terminal() -> None:
    long = Sample("storage /" + "a" * 200 + " free", 1e9, "B")
    texts = Sample("storage fullest", "/" + "b" * 200)
    shown = str(Health(samples=(long, texts, Sample("x", None, reason="c d " * 60)), at=AT))
    assert all(len(line) < 80 for line in shown.splitlines())
