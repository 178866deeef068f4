"""Passes that decide layouts: orders of dimensions, transposes before products, tiles, memory spaces.

A pass here writes or removes layouts and copies, and computes nothing new.
"""
