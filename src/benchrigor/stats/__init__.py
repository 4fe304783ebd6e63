"""ARITHMETIC: pure functions, arrays in, model objects out."""
