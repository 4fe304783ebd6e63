from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import benchrigor as br
from benchrigor.model import Analysis, Decision, Estimate, Notice, RunRecord, WpsFit
from benchrigor.model.analysis import Kind
from benchrigor.stats import fit_wps


@pytest.fixture
def estimated() -> Callable[..., Estimate]:
    """Compose an estimate by hand."""

    def compose(value: float, low: float, high: float) -> Estimate:
        return Estimate(
            value=value,
            low=low,
            high=high,
            confidence=0.95,
            n=40,
            n_effective=40.0,
            method="wps",
            standard_error=(high - low) / 4.0,
            degrees_of_freedom=17.25,
        )

    return compose


@pytest.fixture
def of_pairs() -> Callable[..., RunRecord]:
    """Compose the record of rounds of various work; the line is fitted where none is given."""

    def compose(
        work: np.ndarray,
        duration_s: np.ndarray,
        *,
        left_out: tuple[int, ...] = (),
        fit: WpsFit | None = None,
        notices: tuple[Notice, ...] = (),
        unit: str = "B/s",
        reason: br.StopReason = br.StopReason.SATISFIED,
        required: int | None = None,
        **changes: object,
    ) -> RunRecord:
        rounds = tuple(
            br.Round(
                plan=br.RoundPlan(index=index, work=float(amount)),
                elapsed_ns=round(1e9 * seconds),
                readings={"time": float(seconds)},
            )
            for index, (amount, seconds) in enumerate(zip(work, duration_s, strict=True))
        )
        kept = [index for index in range(len(rounds)) if index not in left_out]
        if fit is None and len(kept) > 2:
            fit = fit_wps(np.asarray(work)[kept], np.asarray(duration_s)[kept])
        if fit is not None:
            fit = replace(fit, **changes)  # type: ignore[arg-type]
        metric = br.Metric(name="speed", unit=unit, direction="higher")  # type: ignore[arg-type]
        analysis = Analysis(
            metric=metric,
            kind=Kind.WORK,
            n=len(rounds),
            n_kept=len(kept),
            estimate=None if fit is None else fit.speed,
            wps=fit,
            left_out=left_out,
            required=required,
            notices=notices,
        )
        return RunRecord(
            name="gzip",
            options=br.Options(analysis="wps", target=0.02, short_round_s=0.1),
            metrics=(metric,),
            seed=1,
            rounds=rounds,
            analyses=(analysis,),
            decision=Decision(stop=True, reason=reason),
        )

    return compose
