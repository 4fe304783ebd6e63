"""Readers of the files of other tools, recognised by content; they compute no statistics."""
