"""`hloom.scipy`: SciPy's functions on arrays and tracers. Its parts are loaded when they are first used."""

from ..namespaces import publish as _publish

_publish(__name__)
