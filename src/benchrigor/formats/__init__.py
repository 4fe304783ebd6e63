"""Files of other tools, recognised by content: what they hold, and no statistics."""
