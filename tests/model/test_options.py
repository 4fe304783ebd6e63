"""What options there are, and which of them fit together."""

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model import Options, codec


@pytest.mark.parametrize("limit", [0.0, 1.0, -0.1, float("nan"), "low", True])
def test_a_limit_of_autocorrelation_lies_between_0_and_1(limit: object) -> None:
    with pytest.raises(InvalidInput, match="autocorrelation_limit"):
        Options(autocorrelation_limit=limit)  # type: ignore[arg-type]


def test_options_survive_being_stored() -> None:
    options = Options(autocorrelation_limit=0.3, work=(0, None))
    assert codec.decode(Options, codec.encode(options)) == options
