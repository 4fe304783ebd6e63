"""How fast a stage fed by a queue could go, and what that means for a pipeline."""
