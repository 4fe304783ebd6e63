"""Two functions measured in turn, until their ratio is known."""
