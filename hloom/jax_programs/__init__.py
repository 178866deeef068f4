"""JAX programs as they are: `import jax` in them finds hloom. See docs/jax_programs.md.

    switch         as_jax(): the finder through which Python imports `jax`, and its errors
    misses         the names of JAX that the program used and hloom lacks
    children       the same in processes that the program starts
    distributions  what `importlib.metadata` says of `jax` and `jaxlib`
    versions       the version of JAX that programs see
    sources        the modules of `jax._src`, from the record of JAX's names in `sources.txt`
    declared       internal names that are in hloom under another name
    internal       internal names that can be imported only
    src            functions of `jax._src` that are nowhere else in hloom
    jaxlib         the modules of `jaxlib` that libraries import

`python -m hloom jax SCRIPT.py` is `hloom/command_line/jax.py`.
"""

from .switch import JaxImportedError, as_jax

__all__ = ["JaxImportedError", "as_jax"]
