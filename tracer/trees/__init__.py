"""Pytrees: which classes are containers, flattening, structures, paths, by optree with JAX's names."""
