"""Passes that make programs simpler without asking how arrays lie or what runs them: rules of arithmetic and movement,
constants, common values, dead code, loops, calls.

What enters holds for every backend, and keeps NaN, infinity and -0.0.
"""
