"""How records become rows: JSON and one block of floats."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchrigor.model import codec
from benchrigor.storage.packing import pack, unpack


def test_arrays_leave_the_text_and_return_to_their_places() -> None:
    data = {"a": np.array([1.5]), "b": [{"c": np.array([2.5, -0.0]), "d": "x"}], "e": np.empty(0)}
    text, floats = pack(data)
    assert bytes(floats) == np.array([1.5, 2.5, -0.0], dtype="<f8").tobytes()
    back = unpack(text, bytes(floats))
    assert back["a"].tolist() == [1.5]
    assert back["b"][0]["c"].tobytes() == np.array([2.5, -0.0]).tobytes()
    assert back["b"][0]["d"] == "x"
    assert back["e"].size == 0


def test_a_metric_may_bear_the_name_of_the_mark() -> None:
    data = {"units": {"float64-le": np.array([1.0, 2.0])}, "single": {"float64-le": 3.0}}
    back = unpack(*pack(data))
    assert back["units"]["float64-le"].tolist() == [1.0, 2.0]
    assert back["single"] == {"float64-le": 3.0}


def test_every_row_carries_the_schema_version() -> None:
    assert json.loads(pack({})[0]) == codec.versions()


def test_a_block_that_was_cut_is_refused() -> None:
    text, floats = pack({"a": np.array([1.0, 2.0])})
    with pytest.raises(ValueError, match="multiple of element size"):
        unpack(text, bytes(floats)[:-3])
