"""The modules of `jax._src` that libraries import and that mean something here: each has a few names.

Other names raise ImportError, which libraries often expect: these modules are not JAX's interface.
"""
