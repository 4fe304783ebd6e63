"""Results as HTML: a file for colleagues, and what a notebook shows."""
