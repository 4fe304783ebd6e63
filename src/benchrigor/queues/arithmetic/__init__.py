"""From counts of items and of waiting to rates, capacities and bottlenecks."""
