"""What a probe has read, what a hub knows of a node, and what to advise."""
