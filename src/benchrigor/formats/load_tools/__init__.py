"""Files of load generators: in each module one format."""
