"""All readings of one metric: how they came, which of them count, and their number."""
