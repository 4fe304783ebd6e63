"""Many nodes: an agent serves what is known of one, a hub pulls from all."""
