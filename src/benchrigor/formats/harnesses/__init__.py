"""Files of tools that time code: in each module one format."""
