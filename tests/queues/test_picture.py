"""The picture of service rates, by its artists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchrigor.model import ServiceRate
from benchrigor.queues import Recording, rate_recording
from benchrigor.queues.data.service import RateReason
from benchrigor.queues.picture import plot_rates

N = 300


def recorded() -> tuple[list[ServiceRate], Any]:
    """Compose a stage that serves 1000 items/s, and half as many from the middle on."""
    rng = np.random.default_rng(1)
    blocked_s = rng.uniform(0.0, 0.05, N)
    items = rng.poisson(np.repeat([1000.0, 500.0], N // 2) * (0.1 - blocked_s))
    rows = [
        f"0.1,{each},{float(waited)!r}\n" for each, waited in zip(items, blocked_s, strict=True)
    ]
    (end,) = rate_recording(Recording(["period_s,items,blocked_s\n", *rows], name="stage"))
    return list(end.rates), end.outline.stretches()


def labelled(artists: Any, label: str) -> list[Any]:
    return [each for each in artists if each.get_label() == label]


def segments(axes: Axes, label: str) -> list[np.ndarray]:
    """Return the lines that bear a label."""
    return [line for each in labelled(axes.collections, label) for line in each.get_segments()]


def bands(axes: Axes, label: str) -> list[Any]:
    return [bar for each in labelled(axes.containers, label) for bar in each.patches]


@pytest.mark.slow
def test_each_stretch_is_a_dot_in_its_middle() -> None:
    rates, stretches = recorded()
    (dots,) = labelled(plot_rates(rates, stretches).lines, "stretch")
    at, heights = dots.get_xydata().T
    assert at == pytest.approx((stretches.start_s + stretches.stop_s) / 2.0)
    assert heights == pytest.approx(stretches.rates)


@pytest.mark.slow
def test_each_phase_has_its_rate_and_interval_and_a_line_where_it_begins() -> None:
    rates, stretches = recorded()
    axes = plot_rates(rates, stretches)
    assert len(rates) == 2
    for rate, line, band in zip(
        rates, segments(axes, "rate"), bands(axes, "interval"), strict=True
    ):
        assert rate.estimate is not None
        assert line.tolist() == [
            pytest.approx([rate.start_s, rate.estimate.value]),
            pytest.approx([rate.stop_s, rate.estimate.value]),
        ]
        assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx(
            (rate.estimate.low, rate.estimate.high)
        )
        assert band.get_facecolor()[3] > 0.0
    (border,) = segments(axes, "phase")
    assert border[0][0] == pytest.approx(rates[1].start_s)


@pytest.mark.slow
def test_what_has_not_converged_is_hollow() -> None:
    rates, stretches = recorded()
    rates[1] = replace(rates[1], converged=False, reason=RateReason.FEW_ITEMS)
    axes = plot_rates(rates, stretches)
    assert len(bands(axes, "interval")) == 1
    (hollow,) = bands(axes, "interval, not converged")
    assert hollow.get_facecolor()[3] == 0.0
    assert hollow.get_linestyle() == "--"
    (_,) = segments(axes, "rate, not converged")
    assert any("too few" in each.get_text() for each in axes.texts)


def test_waiting_stands_below_with_the_time() -> None:
    rates, stretches = recorded()
    (below,) = plot_rates(rates, stretches).child_axes
    (stairs,) = labelled(below.patches, "waiting")
    assert stairs.get_data().values == pytest.approx(stretches.waiting)
    assert below.get_ylim() == (0.0, 1.0)
    assert below.get_xlabel() == "time (s)"
    assert below.get_xlim() == pytest.approx((0.0, 30.0))


def test_what_lies_far_above_is_marked_at_the_edge() -> None:
    rates, stretches = recorded()
    far = stretches.rates.copy()
    far[[3, 7]] = 50_000.0
    axes = plot_rates(rates, replace(stretches, rates=far))
    (marks,) = labelled(axes.lines, "beyond")
    assert marks.get_xdata() == pytest.approx([0.35, 0.75])
    assert axes.get_ylim()[1] < 2000.0
    assert len(labelled(axes.lines, "stretch")[0].get_xdata()) == N - 2


def test_stretches_of_nothing_but_waiting_have_no_dot() -> None:
    rates, stretches = recorded()
    some = stretches.rates.copy()
    some[:10] = np.nan
    axes = plot_rates(rates, replace(stretches, rates=some))
    assert len(labelled(axes.lines, "stretch")[0].get_xdata()) == N - 10
    assert np.isfinite(axes.get_ylim()).all()


@pytest.mark.slow
def test_what_came_of_it_is_said_above() -> None:
    rates, stretches = recorded()
    axes = plot_rates(rates, stretches, unit="lines", title="parse")
    assert axes.get_title(loc="left") == "parse"
    assert axes.get_ylabel() == "k lines/s"
    (number, said) = (each.get_text() for each in axes.texts)
    assert number.endswith("\nlines/s")
    assert " lines/s [" in said
    assert said.endswith("95%, converged")


@pytest.mark.slow
def test_where_there_is_no_rate_the_picture_says_why() -> None:
    rates, stretches = recorded()
    none = replace(rates[0], estimate=None, converged=False, reason=RateReason.NEVER_BUSY)
    axes = plot_rates([none], replace(stretches, rates=np.full(N, np.nan)))
    ((said,), (of_nothing,)) = (each.texts for each in (axes, plot_rates([], stretches)))
    assert "never busy" in said.get_text()
    assert of_nothing.get_text() == "no number"


def test_given_axes_are_drawn_into() -> None:
    axes = Figure().add_subplot()
    assert plot_rates(*recorded(), axes=axes) is axes
