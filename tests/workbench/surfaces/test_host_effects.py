"""Hosts as effects: what is predicted is their mean, whichever of them measured a point."""

from __future__ import annotations

import math

import numpy as np
import pytest
from known_maps import known

from benchrigor.model import Code
from benchrigor.workbench import Factor
from benchrigor.workbench.surfaces.factors import Space
from benchrigor.workbench.surfaces.samples import Measured, Sample
from benchrigor.workbench.surfaces.surface import Surface, fit_surface

SPACE = Space([Factor("threads", levels=[1, 2, 4, 8, 16, 32, 64, 128], scale="log2")])
PACES = {"elm": 1.2, "oak": 1.0, "fir": 0.8}
MEAN = math.prod(PACES.values()) ** (1 / 3)


def samples(n: int = 16, *, paces: dict[str, float] = PACES) -> list[Measured]:
    """Return what hosts in turn find of a rate that goes with the root of the threads."""
    grid, names = SPACE.grid(), [*paces]
    found = []
    for number in range(n):
        point, host = grid[(3 * number) % len(grid)], names[number % len(names)]
        rate = 100.0 * float(point["threads"]) ** 0.5 * paces[host]
        found.append(
            Measured(
                sample=Sample(id=number, point=point),
                estimates={"rate": known(rate, 0.005)},
                host=host,
            )
        )
    return found


def errors(surface: Surface) -> np.ndarray:
    rates = np.array([100.0 * float(point["threads"]) ** 0.5 * MEAN for point in SPACE.grid()])
    return np.abs(surface.intervals(SPACE.grid())[0] / rates - 1.0)


def test_the_mean_over_hosts_is_predicted() -> None:
    surface = fit_surface(SPACE, samples())
    assert errors(surface).max() < 0.03
    assert errors(fit_surface(SPACE, samples(), interchangeable=True)).max() > 0.05
    low, high = surface.intervals(SPACE.grid())[1:]
    rates = np.array([100.0 * float(point["threads"]) ** 0.5 * MEAN for point in SPACE.grid()])
    assert np.all((low <= rates) & (rates <= high))


def test_it_says_by_how_much_hosts_differ() -> None:
    hosts = fit_surface(SPACE, samples()).hosts("rate")
    for name, pace in PACES.items():
        assert hosts[name].low <= pace / MEAN <= hosts[name].high
        assert hosts[name].value == pytest.approx(pace / MEAN, rel=0.03)


def test_interchangeable_hosts_have_no_effects() -> None:
    assert fit_surface(SPACE, samples(), interchangeable=True).hosts("rate") == {}


def test_one_host_changes_nothing() -> None:
    """Whether it is told or not."""
    alone = samples(paces={"elm": 1.0})
    untold = [Measured(sample=each.sample, estimates=each.estimates, host=None) for each in alone]
    surfaces = [fit_surface(SPACE, each) for each in (alone, untold)]
    assert surfaces[0].hosts("rate") == {}
    np.testing.assert_array_equal(*[each.intervals(SPACE.grid()) for each in surfaces])


def test_the_order_of_samples_does_not_matter() -> None:
    one, other = fit_surface(SPACE, samples()), fit_surface(SPACE, samples()[::-1])
    np.testing.assert_allclose(
        one.intervals(SPACE.grid()), other.intervals(SPACE.grid()), rtol=1e-3
    )


def test_too_few_points_do_not_tell_hosts_from_configurations() -> None:
    surface = fit_surface(SPACE, samples(5))
    assert surface.hosts("rate") == {}
    assert Code.HOSTS_UNKNOWN in {each.code for each in surface.notices}
    assert surface.model is not None


def test_points_that_several_hosts_measured_are_ranked_once() -> None:
    names = [each.name for each in fit_surface(SPACE, samples(24)).ranking("rate")]
    assert sorted(names) == sorted({*names})
