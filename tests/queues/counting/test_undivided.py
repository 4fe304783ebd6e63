"""Where threads run at once a lock keeps them apart; where they run by turns nothing is paid."""

from __future__ import annotations

import threading
import time

from benchrigor.queues.counting.undivided import undivided


class Tally:
    def __init__(self) -> None:
        self.items = 0
        self.lock = threading.RLock()

    def count(self, amount: int) -> int:
        before = self.items
        time.sleep(1e-5)
        self.items = before + amount
        return self.items


def test_where_threads_run_by_turns_the_method_is_what_it_was() -> None:
    assert undivided(Tally.count, by_turns=True) is Tally.count


def test_where_threads_run_at_once_they_are_kept_apart() -> None:
    count, tally = undivided(Tally.count, by_turns=False), Tally()

    def work() -> None:
        for _ in range(50):
            count(tally, 2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert tally.items == 400
    assert count(tally, amount=3) == 403
    assert count.__name__ == "count"
