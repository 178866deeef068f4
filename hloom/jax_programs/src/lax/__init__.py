"""jax._src.lax: the operations."""
