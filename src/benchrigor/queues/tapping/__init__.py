"""How each kind of source is counted, in the way that its users expect of it."""
