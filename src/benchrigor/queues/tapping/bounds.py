"""How many items a queue may hold, moved while the program may move it as well."""

from __future__ import annotations

from collections.abc import Callable

from benchrigor.errors import InvalidInput

Move = Callable[[int], int]
"""Called with a queue's bound, returns the one that it shall have; may refuse by raising."""

Resize = Callable[[Move], None]
"""Moves the bound of a queue, in which nobody else moves it meanwhile."""


class Bound:
    """The bound of a queue, raised for a while by loans.

    A bound that is not as it was left has been set by the program. That then stands: loans made
    before it are void, since nobody knows whether the program has counted them in.
    """

    def __init__(self, resize: Resize) -> None:
        self._resize = resize
        self._left = 0
        self._loans: dict[object, int] = {}

    def lend(self, by: int) -> object:
        """Raise it until what is returned is given back; InvalidInput where there is none."""
        loan = object()

        def raised(bound: int) -> int:
            if bound <= 0:
                raise InvalidInput("the queue takes any number of items, expected one with maxsize")
            self._void_unless_left(bound)
            self._loans[loan] = by
            self._left = bound + by
            return self._left

        self._resize(raised)
        return loan

    def give_back(self, loan: object) -> None:
        """End a loan, unless the program has set the bound meanwhile."""

        def lowered(bound: int) -> int:
            self._void_unless_left(bound)
            self._left = bound - self._loans.pop(loan, 0)
            return self._left

        if loan in self._loans:
            self._resize(lowered)

    def give_all_back(self) -> None:
        """End all loans."""
        for loan in tuple(self._loans):
            self.give_back(loan)

    def _void_unless_left(self, bound: int) -> None:
        if bound != self._left:
            self._loans.clear()
