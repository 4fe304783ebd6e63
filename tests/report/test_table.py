from collections.abc import Sequence
from dataclasses import replace

import pytest

from benchrigor.model import (
    Analysis,
    Decision,
    Estimate,
    Kind,
    Metric,
    Options,
    RunRecord,
    StopReason,
)
from benchrigor.report import tabulate

TIME = Metric(name="time", unit="s")
WIDE = Estimate(
    value=0.001234567,
    low=0.001234445,
    high=0.001234689,
    confidence=0.95,
    n=1_234_567,
    n_effective=1e6,
    method="long-run-variance",
)


def ended(reason: StopReason | None, name: str = "sort", **given: object) -> RunRecord:
    record = RunRecord(
        name=name,
        options=Options(),
        metrics=(TIME,),
        seed=1,
        rounds=(),
        analyses=(Analysis(metric=TIME, kind=Kind.UNIT_READINGS, n=WIDE.n, estimate=WIDE),),
        decision=None if reason is None else Decision(stop=True, reason=reason),
    )
    return replace(record, **given)  # type: ignore[arg-type]


def words(records: Sequence[RunRecord], width: int = 79) -> str:
    return " ".join(tabulate(records, width=width).split())


def test_what_is_no_result_never_looks_like_one() -> None:
    assert words([ended(StopReason.SATISFIED)]).endswith("1,234,567 satisfied")
    assert words([ended(StopReason.TIME_BUDGET)]).endswith(
        "1,234,567 not converged: time budget spent"
    )
    assert words([ended(None)]).endswith("1,234,567 still running")
    assert words([ended(StopReason.INTERRUPTED, analyses=())]).endswith(
        "no number not converged: interrupted"
    )


@pytest.mark.parametrize("name", ["f", "sort", "test_of_many_words[and-some-more]", "x" * 200])
@pytest.mark.parametrize("reason", StopReason)
def test_whatever_the_name_and_the_ending_the_table_fits(reason: StopReason, name: str) -> None:
    records = [ended(StopReason.SATISFIED, "other"), ended(reason, name)]
    lines = tabulate(records).splitlines()
    assert max(map(len, lines)) <= 79
    assert not any(line != line.rstrip() for line in lines)
    assert name in "".join(lines)
    assert str(reason).replace("-", " ") in words(records)


def test_names_give_way_first_then_endings() -> None:
    name = "test_sorting"
    records = [ended(StopReason.SATISFIED, "f"), ended(StopReason.TIME_BUDGET, name)]
    one, two, three = (tabulate(records, width=width).splitlines() for width in (100, 84, 79))
    assert one[2].startswith(f"{name}  1.2")
    assert one[2].endswith("not converged: time budget spent")
    assert two[2] == name
    assert two[3].endswith("not converged: time budget spent")
    assert three[2].startswith(f"{name}  1.2")
    assert three[2].endswith("1,234,567  not converged:")
    assert three[3].strip() == "time budget spent"
    assert three[3].index("time") == three[2].index("not")
