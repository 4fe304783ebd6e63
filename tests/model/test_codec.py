"""Annotations of arrays, in the forms that versions of numpy and Python give them."""

import types

import numpy as np
import numpy.typing as npt
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model.codec import decode, encode


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
