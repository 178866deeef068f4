"""Passes that make programs smaller: algebra, constants, equal and dead code, loops."""
