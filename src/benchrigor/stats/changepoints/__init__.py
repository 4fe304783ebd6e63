"""Where the distribution of a series changes."""
