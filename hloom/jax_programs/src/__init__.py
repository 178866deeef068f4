"""The modules of `jax._src` that libraries import and that mean something here: each has a few names.

What is not here raises ImportError, which libraries often expect: these modules are not JAX's interface.
"""
