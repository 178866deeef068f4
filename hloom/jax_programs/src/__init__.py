"""Functions of `jax._src` that are nowhere else in hloom: a file for each module, with few names. See `sources.py`."""
