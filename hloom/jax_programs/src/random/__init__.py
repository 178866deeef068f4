"""jax._src.random."""
