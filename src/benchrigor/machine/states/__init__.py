"""How a machine is at a moment: status, health, and capabilities in full."""
