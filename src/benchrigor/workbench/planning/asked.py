"""The plans that a planner has asked for: which are under way, and which numbers are taken."""

from __future__ import annotations

from itertools import count
from typing import Generic, Protocol, TypeVar

from benchrigor.errors import PlanMismatch
from benchrigor.model.series import short


class _Numbered(Protocol):
    @property
    def id(self) -> int:
        """Its number, counted from 0."""


P = TypeVar("P", bound=_Numbered)


class Asked(Generic[P]):
    """Plans that were asked for; the result of each is passed once, in any order.

    Parameters
    ----------
    noun
        The name of a plan.

    Attributes
    ----------
    under_way
        The plans without a result.
    numbers
        Of all plans. Smaller ones are of plans that an earlier process did not finish.
    """

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._told: list[P] = []
        self.under_way: list[P] = []
        self.numbers: set[int] = set()

    @property
    def next(self) -> int:
        """The number after all others."""
        return max(self.numbers, default=-1) + 1

    @property
    def first_free(self) -> int:
        """The least number of no plan."""
        return next(number for number in count() if number not in self.numbers)

    def add(self, plan: P) -> P:
        """Count a plan as under way, and return it."""
        self.numbers.add(plan.id)
        self.under_way.append(plan)
        return plan

    def check(self, plan: P) -> None:
        """Raise PlanMismatch unless a plan is under way."""
        if plan not in self.under_way:
            what = "has been told already" if plan in self._told else "was never asked for"
            raise PlanMismatch(
                f"{short(plan)} {what}; tell each {self._noun} that ask() returned, once"
            )

    def end(self, plan: P) -> None:
        """Count a plan as told, or as given up, if it is under way."""
        if plan in self.under_way:
            self.under_way.remove(plan)
            self._told.append(plan)

    def recall(self, plan: P) -> None:
        """Count a plan as told, which an earlier process may have asked for."""
        if plan not in self.under_way:
            self.add(plan)
        self.end(plan)
