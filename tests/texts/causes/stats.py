"""What the functions of ``benchrigor.stats`` refuse, and why there is no number."""

import numpy as np

from benchrigor.stats import estimate_mean, estimate_quantile, required_readings

NORMAL = np.random.default_rng(1).normal(10.0, 1.0, 100)

CAUSES = {
    "a reading that is no number": lambda: estimate_mean([1.0, float("nan")]),
    "confidence in per cent": lambda: estimate_mean(NORMAL, confidence=95),
    "an unknown method": lambda: estimate_mean(NORMAL, method="bootstrap"),
    "a share out of range": lambda: estimate_quantile(NORMAL, 1.5),
    "readings to narrow what is near 0": lambda: required_readings(
        estimate_mean(NORMAL - NORMAL.mean()), 0.1
    ),
    "a target out of reach": lambda: required_readings(estimate_mean(NORMAL), 1e-12),
    "too few readings above a quantile": lambda: estimate_quantile(NORMAL, 0.99),
    "too few readings to merge": lambda: estimate_mean([1.0, 2.0], method="subsessions"),
}
