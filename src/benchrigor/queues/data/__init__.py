"""The service rate of a stage, and what rates suggest for a pipeline."""
