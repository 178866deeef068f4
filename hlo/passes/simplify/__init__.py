"""Passes that make programs simpler, independent of layouts and of the backend: rules of arithmetic and movement,
constants, common values, dead code, loops, calls.

They are valid for every backend, and keep NaN, infinity and -0.0.
"""
