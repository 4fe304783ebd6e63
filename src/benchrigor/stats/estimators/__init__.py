"""Mean, quantile, rate and proportion of a series, and of several invocations."""
