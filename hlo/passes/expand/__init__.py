"""Passes that write an op with others, by family."""
