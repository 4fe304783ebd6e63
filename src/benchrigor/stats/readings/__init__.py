"""All readings of one metric: how they came, which of them count, and what they say."""
