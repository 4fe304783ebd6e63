"""What pyproject.toml says of metrics and settings, and where tables of TOML stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.model.toml_tables import lines_of
from benchrigor.storage.user_settings import defaults, metric_named


def described(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(f"[tool.benchrigor.metrics]\n{table}\n")
    (folder / "deep").mkdir()
    return folder / "deep"


def test_a_metric_is_what_the_nearest_project_says(tmp_path: Path) -> None:
    folder = described(tmp_path, 'rate = "req/s,harmonic"\ntime = "±5%"')
    assert metric_named("rate", folder=folder).averaging == "harmonic"
    assert metric_named("rate", "op/s", folder=folder).averaging == "auto"
    assert metric_named("other", folder=folder).unit == ""
    assert metric_named("time", unit="s", folder=folder).relative_half_width == pytest.approx(0.05)


@pytest.mark.parametrize("table", ["rate = 3", "rate = ", 'rate = "lower,higher"'])
def test_a_wrong_table_is_refused(tmp_path: Path, table: str) -> None:
    with pytest.raises(InvalidInput):
        metric_named("rate", folder=described(tmp_path, table))


def test_defaults_are_read_as_they_would_be_typed(tmp_path: Path) -> None:
    assert defaults(tmp_path) == {}
    (tmp_path / "pyproject.toml").write_text(
        '[tool.benchrigor]\nbudget = 5\ntarget = "3%"\n[tool.benchrigor.metrics]\ntime = "±1%"\n'
    )
    assert defaults(tmp_path) == {"budget": "5", "target": "3%"}


def test_keys_are_found_by_their_lines_whatever_stands_between():
    text = '''\
# a = 1
"quoted key".b = """
[not.a.table]
c = 2
""" # [nor.this]
d = [ "]", # e = 5
  { f = 1 },
]
[ g . 'h' ]
i = {j = 1, k = [
2]}
l = \'\'\'
m = 3\'\'\'
[[n]]
o = "[" # [
[[n]]
o = 'x'
[n.p]
q = 1\r
'''
    assert lines_of(text) == {
        ("quoted key",): 2,
        ("quoted key", "b"): 2,
        ("d",): 6,
        ("g", "h"): 9,
        ("g", "h", "i"): 10,
        ("g", "h", "i", "j"): 10,
        ("g", "h", "i", "k"): 10,
        ("g", "h", "l"): 12,
        ("n", "0"): 14,
        ("n", "0", "o"): 15,
        ("n", "1"): 16,
        ("n", "1", "o"): 17,
        ("n", "p"): 18,
        ("n", "p", "q"): 19,
    }
