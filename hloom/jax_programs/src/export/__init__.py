"""Internal modules of `jax._src.export`."""
