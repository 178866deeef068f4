"""Deferred execution: operations outside of jit that are recorded, and compiled together when a value is needed."""
