"""Mutable arrays."""
