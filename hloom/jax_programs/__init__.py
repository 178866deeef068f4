"""JAX programs as they are: `import jax` in them finds hloom. See docs/jax_programs.md.

    switch         as_jax(): the finder through which Python imports `jax`, and its errors
    misses         the names of JAX that the program used and hloom lacks
    children       the same in processes that the program starts
    distributions  what `importlib.metadata` says of `jax` and `jaxlib`
    versions       the version of JAX that programs see
    src            the few modules of `jax._src` that libraries import and that work here

`python -m hloom jax SCRIPT.py` is `hloom/command_line/jax.py`.
"""

from .switch import JaxImportedError, as_jax

__all__ = ["JaxImportedError", "as_jax"]
