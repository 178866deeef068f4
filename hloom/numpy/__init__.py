"""`hloom.numpy`: NumPy's functions on arrays and tracers, with JAX's promotion.

Some functions are missing, and using one raises an AttributeError that says so.
"""

from ..namespaces import layers_below as _layers_below  # noqa: F401  # before all else
from ..namespaces import publish as _publish
from . import array_methods as _array_methods  # noqa: F401  # gives arrays their methods
from .array_api import VERSIONS as _VERSIONS
from .array_api import namespace_info as __array_namespace_info__  # noqa: F401

__array_api_version__ = _VERSIONS[-1]

_publish(__name__, examples=("import hloom.numpy as jnp",))
