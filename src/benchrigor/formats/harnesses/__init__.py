"""Files of tools that time code: one module per format."""
