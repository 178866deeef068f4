"""jax._src.lib: the version of jaxlib."""

from ....namespaces.jax_names import VERSION as version_str

__all__ = ["version", "version_str"]

version = tuple(map(int, version_str.split(".")))
