"""Many nodes: an agent serves the state of one node, a hub pulls from all."""
