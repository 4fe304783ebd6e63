"""The level of a stationary series, its long-run variance, its interval."""
