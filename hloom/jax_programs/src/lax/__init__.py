"""jax._src.lax."""
