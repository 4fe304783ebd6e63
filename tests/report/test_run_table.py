from collections.abc import Sequence
from dataclasses import replace

import pytest
from simulated.estimates import estimated

from benchrigor.model import (
    Analysis,
    Code,
    Decision,
    Metric,
    Notice,
    Options,
    RunRecord,
    StopReason,
)
from benchrigor.model.analysis import Kind
from benchrigor.report.run_table import tabulate
from benchrigor.stats import observe

FOOTNOTE = "±: half of the 95% confidence interval"
TIME = Metric(name="time", unit="s")
WIDE = estimated(
    0.001234567, 0.001234445, 0.001234689, n=1_234_567, n_effective=1e6, method="long-run-variance"
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


def words(records: Sequence[RunRecord]) -> str:
    return " ".join(tabulate(records).split()).removesuffix(f" {FOOTNOTE}")


@pytest.mark.parametrize("name", ["f", "sort", "test_of_many_words[and-some-more]", "x" * 200])
@pytest.mark.parametrize("reason", StopReason)
def test_whatever_the_name_and_the_ending_the_table_fits(reason: StopReason, name: str) -> None:
    records = [ended(StopReason.SATISFIED, "other"), ended(reason, name)]
    lines = tabulate(records).splitlines()
    assert max(map(len, lines)) <= 79
    assert not any(line != line.rstrip() for line in lines)
    assert name in "".join(lines)
    assert str(reason).replace("-", " ") in words(records)


def test_options_are_worded_as_the_reader_gives_them() -> None:
    analysis = Analysis(
        metric=TIME,
        kind=Kind.READINGS,
        n=3,
        observed=observe([0.001, 0.002, 0.3]),
        notices=(Notice.refusal(Code.TOO_FEW_READINGS, "Too few."),),
    )
    records = [ended(StopReason.TIME_BUDGET, analyses=(analysis,))]
    assert "(--budget)" in tabulate(records)
    assert "(--bench-budget)" in tabulate(
        records, worded=lambda text: text.replace("--", "--bench-")
    )
