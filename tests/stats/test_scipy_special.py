"""Modules of numpy that `scipy.special` does not use are spared, and there when wanted."""

import subprocess
import sys

import pytest

SPARED = """
import sys
from benchrigor.stats.scipy_special import load_special
load_special()
assert not {"numpy.f2py", "numpy.ma", "numpy.polynomial", "numpy.testing"} & {*sys.modules}
import numpy as np
import scipy.stats, scipy.signal, scipy.optimize
assert abs(scipy.special.ndtri(0.975) - 1.96) < 1e-3
for name in ("f2py", "ma", "polynomial", "testing"):
    assert getattr(np, name) is sys.modules[f"numpy.{name}"]
"""
KNOWN = """
import sys
import numpy.testing as known
from benchrigor.stats.scipy_special import load_special
load_special()
import numpy as np
assert np.testing is known
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [SPARED, KNOWN])
def test_modules_that_are_not_used_are_not_loaded_and_can_be(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)
