"""A state of a machine and a plan, to be shown and stored."""

from simulated.estimates import estimated

import benchrigor as br
from benchrigor.model import Sample, Status

AT = "2026-11-24T19:00:00.000+00:00"
STATUS = Status(
    samples=(
        Sample("cpu busy", 12.34567, "%"),
        Sample("memory available", 4.2e9, "B"),
        Sample("storage fullest", "/home"),
        *(Sample(f"swap {way}", None, "B/s", "first reading") for way in ("in", "out")),
        Sample("gpus", None, reason="no driver is loaded"),
    ),
    at=AT,
    span_s=0.1,
    cost_s={"cpu": 0.0002, "memory": 0.0001},
)
PILOT = br.plan(
    estimated(0.01234, 0.0120, 0.0126, n=500, n_effective=400.0, standard_error=0.00015),
    change=0.03,
    margin=0.01,
)
