"""The service rate of a stage, and the advice for a pipeline that follows from rates."""
