"""Files of other tools: what is read of each sample in ``tests/formats/data``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import benchrigor as br
from benchrigor.model import Round, RunRecord
from fence.cases import register

DATA = Path(__file__).parents[2] / "formats" / "data"
PARTS = (
    "asv-0.6.6/host1",
    "asv-0.6.6/host1/1f4885ef-existing-py_tmp_venv_bin_python.json",  # of an earlier commit
    "criterion/slow/base",  # one baseline
)


def read(name: str) -> list[dict[str, object]]:
    """Return what a sample holds, record by record, without what is found in its readings."""
    return [described(each) for each in br.read_results(DATA / name)]


def described(record: RunRecord) -> dict[str, object]:
    """Return all that a record takes from its file."""
    told = record.to_dict()
    return {
        "name": record.name,
        "where": {key: value for key, value in (told["provenance"] or {}).items() if value},
        "notices": record.notices,
        "rounds": [held(each) for each in record.rounds],
        **{key: told[key] for key in ("subject", "metrics")},
    }


def held(each: Round) -> Mapping[str, object]:
    """Return the readings and facts of a round."""
    return {**each.unit_readings, **each.readings, "facts": each.facts}


for sample in [*sorted(path.name for path in DATA.iterdir()), *PARTS]:
    register(f"file_{sample.replace('/', '_')}", partial(read, sample))
