"""`hloom.version`: the version of this library."""

from . import __version__
from .namespaces import publish as _publish

__all__ = ["__version__", "__version_info__"]

__version_info__ = tuple([int(part) for part in __version__.split(".")])
"""As integers."""

_publish(__name__)
