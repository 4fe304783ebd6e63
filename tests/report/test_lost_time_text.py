from __future__ import annotations

from benchrigor.report.lost_time_text import (
    pressure_of_profile,
)


def test_the_facts_of_a_profile_are_seconds_of_its_wall_time() -> None:
    facts = {"wall_s": 8.0, "pressure_memory_s": 2.0, "pressure_memory_full_s": 0.8}
    assert pressure_of_profile({**facts, "pressure_from": "/proc/pressure"}) == {
        ("memory", "some"): 0.25,
        ("memory", "full"): 0.1,
    }
    assert pressure_of_profile({"pressure_cpu_s": 1.0}) == {}
    assert pressure_of_profile({"wall_s": 1.0, "pressure": "not there"}) == {}
