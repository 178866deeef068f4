"""Passes that decide how arrays lie: orders of dimensions, transposes before products, tiles, memory spaces.

What enters writes or removes layouts and copies, and computes nothing new.
"""
