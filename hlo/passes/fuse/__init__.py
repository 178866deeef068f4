"""Passes that decide what is computed together, and when."""
