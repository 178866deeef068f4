"""jax._src.numpy."""
