"""Results as HTML: a file for colleagues, and the output of a notebook."""
