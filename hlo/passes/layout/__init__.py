"""Passes that choose orders of dimensions and carry the choice out."""
