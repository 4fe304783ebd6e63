"""Maps that are carried out: their file, the server meanwhile, samples as they are kept."""
