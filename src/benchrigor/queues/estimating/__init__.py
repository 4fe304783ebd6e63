"""Service rates from periods: the two methods, and the sampling period that they need."""
